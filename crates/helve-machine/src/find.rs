//! Files of a tree by name: the newest, the nearest in name, or level by level.

mod levels;
mod near;
mod newest;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use helve_core::Place;
use helve_core::machine::{
    Amount, Beyond, Counts, Ended, Find, FindFlow, Found, Ignored, Kind, Order, SearchError,
    Skipped, Tree,
};
use rustix::fs::Stat;

use crate::open;
use crate::walk::{self, DEEPEST, Ground, Opened, Side, Stop, Way};

pub(crate) use newest::{Kept, Time};

/// How many ignored files are named.
const GLIMPSES: usize = 3;

pub(crate) fn find(want: Find) -> FindFlow {
    walk::flow(&want.tree.clone(), move |stop| answer(&want, stop))
}

fn answer(want: &Find, stop: &Stop) -> Result<(Vec<Found>, Counts), SearchError> {
    let ground = match walk::open(&want.tree.at)? {
        Opened::Folder(folder) => Arc::new(Ground::new(&want.tree, folder)?),
        Opened::NotAFolder => return one(&want.tree.at),
    };
    let way = Way { side: Side::of(want.tree.ignored), deepest: DEEPEST };
    let (found, mut counts, unseen) = match &want.order {
        Order::Newest => newest::find(want.most, |look| walk::walk(&ground, way, stop, look))?,
        Order::Near(name) => near::find(&ground, way, stop, name, want.most)?,
        Order::Levels => {
            let (found, counts) = levels::find(&ground, way, stop, want.most)?;
            return Ok((found, counts));
        }
    };
    if let Some(peek) = worth_a_glance(&want.tree, &counts) {
        let stop = stop.sooner(peek);
        let glance = |look| walk::walk_hidden(unseen, &ground, &stop, look);
        let (found, beyond, _) = newest::find(GLIMPSES, glance)?;
        counts.beyond = Some(Beyond {
            matches: beyond.matches,
            files: beyond.files,
            first: found.into_iter().map(|found| found.path).collect(),
            ended: beyond.ended,
        });
    }
    Ok((found, counts))
}

/// How long to look into ignored files, if that may help.
pub(crate) fn worth_a_glance(tree: &Tree, counts: &Counts) -> Option<Duration> {
    let Ignored::Skip { peek } = tree.ignored else { return None };
    let nothing = counts.matches == 0 && counts.ended == Ended::Complete;
    let hidden = counts.skipped.ignored != Amount::default();
    (nothing && hidden && !peek.is_zero()).then_some(peek)
}

/// A tree that is one file.
fn one(at: &Place) -> Result<(Vec<Found>, Counts), SearchError> {
    let (_, stat) = open::file(at)?;
    let found = file(&[], Some(time(&stat)));
    Ok((vec![found], counted(1, Skipped::default(), Ended::Complete)))
}

fn counted(files: u64, skipped: Skipped, ended: Ended) -> Counts {
    Counts { matches: files, files, looked_at: files, skipped, ended, ..Counts::default() }
}

fn file(path: &[u8], modified: Option<Time>) -> Found {
    Found {
        path: OsStr::from_bytes(path).into(),
        kind: Kind::File,
        modified: modified.map(Time::told),
        more: Amount::default(),
    }
}

/// When a file was changed.
pub(crate) fn time(stat: &Stat) -> Time {
    Time { seconds: stat.st_mtime, nanos: u32::try_from(stat.st_mtime_nsec).unwrap_or(0) }
}

impl Time {
    pub(crate) fn told(self) -> SystemTime {
        let whole = Duration::from_secs(self.seconds.unsigned_abs());
        let seconds = match self.seconds {
            0.. => SystemTime::UNIX_EPOCH.checked_add(whole),
            _ => SystemTime::UNIX_EPOCH.checked_sub(whole),
        };
        let at = seconds.and_then(|at| at.checked_add(Duration::from_nanos(self.nanos.into())));
        at.unwrap_or(SystemTime::UNIX_EPOCH)
    }
}

pub(crate) fn path(bytes: &[u8]) -> PathBuf {
    OsStr::from_bytes(bytes).into()
}

#[cfg(test)]
mod tests;
