//! Lines of the files of a tree, the newest files first.

mod best;
mod file;
mod lines;
mod pattern;

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use helve_core::MachineError;
use helve_core::machine::{
    Beyond, Counts, Ended, Hit, Search, SearchError, SearchFlow, Shape, Skipped,
};
use parking_lot::Mutex;
use rustix::fs::{FileType, Mode, OFlags, Stat, fstat, openat};

use self::best::{Best, Matches};
use self::file::{Looked, Reader};
use self::lines::Wanted;
use self::pattern::Pattern;
use crate::errors::type_of;
use crate::find::{Time, time, worth_a_glance};
use crate::open;
use crate::walk::{
    self, DEEPEST, Ground, Met, Opened, Side, Stop, Unseen, Visited, Visitor, Walked, Way,
};

const FILE: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
/// A file that was not named is not searched beyond this.
const LARGEST: u64 = 512 << 20;
/// How many ignored files are named.
const GLIMPSES: usize = 3;

pub(crate) fn search(want: Search) -> SearchFlow {
    walk::flow(&want.tree.clone(), move |stop| answer(want, stop))
}

fn answer(want: Search, stop: &Stop) -> Result<(Vec<Hit>, Counts), SearchError> {
    let pattern = pattern::compile(&want)?;
    let opened = walk::open(&want.tree.at)?;
    let want = Arc::new(want);
    let (task, shape) = (Task { want: want.clone(), pattern, stop: stop.clone() }, want.shape);
    let ground = match opened {
        Opened::Folder(folder) => Arc::new(Ground::new(&want.tree, folder)?),
        Opened::NotAFolder => return named(&task, shape),
    };
    let way = Way { side: Side::of(want.tree.ignored), deepest: DEEPEST };
    let (best, mut counts, unseen) =
        all(&task, shape, |seeks| walk::walk(&ground, way, stop, seeks))?;
    if let Some(peek) = worth_a_glance(&want.tree, &counts) {
        let stop = stop.sooner(peek);
        let task = Task { stop: stop.clone(), ..task };
        let glance = |seeks| walk::walk_hidden(unseen, &ground, &stop, seeks);
        let (best, beyond, _) = all(&task, Shape::Counts { most: GLIMPSES }, glance)?;
        counts.beyond = Some(Beyond {
            matches: beyond.matches,
            files: beyond.files,
            first: best.hits().into_iter().map(|hit| hit.path).collect(),
            ended: beyond.ended,
        });
    }
    Ok((best.hits(), counts))
}

/// What every thread has to know.
#[derive(Clone)]
struct Task {
    want: Arc<Search>,
    pattern: Pattern,
    stop: Stop,
}

/// Searches what `walk` lets its visitors see.
fn all(
    task: &Task,
    shape: Shape,
    walk: impl FnOnce(Vec<Seek>) -> Result<Walked, MachineError>,
) -> Result<(Best, Counts, Unseen), SearchError> {
    let best = Arc::new(Mutex::new(Best::new(most(shape))));
    let shares: Vec<Arc<Mutex<Counts>>> = (0..walk::threads()).map(|_| Arc::default()).collect();
    let seek = |share: &Arc<Mutex<Counts>>| Seek::new(task, shape, &best, share);
    let Walked { skipped, ended, unseen } = walk(shares.iter().map(seek).collect())?;
    let mut counts = Counts { skipped, ended, ..Counts::default() };
    for share in &shares {
        let share = share.lock();
        counts.matches += share.matches;
        counts.files += share.files;
        counts.looked_at += share.looked_at;
        counts.skipped = walk::add(counts.skipped, share.skipped);
    }
    let best = std::mem::replace(&mut *best.lock(), Best::new(0));
    Ok((best, counts, unseen))
}

/// Searches the one file that was named, however large it is.
fn named(task: &Task, shape: Shape) -> Result<(Vec<Hit>, Counts), SearchError> {
    let (file, stat) = open::file(&task.want.tree.at)?;
    let best = Arc::new(Mutex::new(Best::new(most(shape))));
    let share: Arc<Mutex<Counts>> = Arc::default();
    let mut seek = Seek::new(task, shape, &best, &share);
    let visited = match seek.may_read(Path::new("")) {
        true => seek.opened(&file, &stat, &[]),
        false => seek.skip(|skipped| skipped.unasked += 1),
    };
    let best = std::mem::replace(&mut *best.lock(), Best::new(0));
    let ended = match visited {
        Visited::Whole => Ended::Complete,
        Visited::Cut => Ended::Deadline,
    };
    let counts = Counts { ended, ..share.lock().clone() };
    Ok((best.hits(), counts))
}

fn most(shape: Shape) -> usize {
    match shape {
        Shape::Lines { most, .. } | Shape::Counts { most } | Shape::Names { most } => most,
    }
}

/// One thread's search.
struct Seek {
    want: Arc<Search>,
    shape: Shape,
    reader: Reader,
    best: Arc<Mutex<Best>>,
    share: Arc<Mutex<Counts>>,
}

impl Seek {
    fn new(task: &Task, shape: Shape, best: &Arc<Mutex<Best>>, share: &Arc<Mutex<Counts>>) -> Self {
        let context = match shape {
            Shape::Lines { context, .. } => context,
            Shape::Counts { .. } | Shape::Names { .. } => 0,
        };
        let reader = Reader::new(task.pattern.clone(), context, task.stop.clone());
        Self { want: task.want.clone(), shape, reader, best: best.clone(), share: share.clone() }
    }

    fn opened(&mut self, file: &OwnedFd, stat: &Stat, path: &[u8]) -> Visited {
        let modified = time(stat);
        let mut found = self.reader.lines(self.wanted(modified, path));
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        let looked = self.reader.look(file, size, &mut found);
        let mut share = self.share.lock();
        match looked {
            Looked::Text | Looked::Cut => share.looked_at += 1,
            Looked::Binary => share.skipped.binary += 1,
            Looked::TooLarge => share.skipped.too_large += 1,
            Looked::Unreadable => share.skipped.unreadable.files += 1,
        }
        if found.matches > 0 {
            share.matches += found.matches;
            share.files += 1;
            drop(share);
            let weight = match self.shape {
                Shape::Lines { most, .. } => {
                    usize::try_from(found.matches).unwrap_or(most).min(most)
                }
                Shape::Counts { .. } | Shape::Names { .. } => 1,
            };
            let matches = Matches { count: found.matches, weight, lines: found.kept };
            self.best.lock().keep(modified, path, matches);
        }
        if looked == Looked::Cut { Visited::Cut } else { Visited::Whole }
    }

    /// Lines are taken down only for files that will be told.
    fn wanted(&self, modified: Time, path: &[u8]) -> Wanted {
        match self.shape {
            Shape::Names { .. } => Wanted::First,
            Shape::Counts { .. } => Wanted::Count,
            Shape::Lines { most, cut, .. } => match self.best.lock().wants(modified, path) {
                true => Wanted::Lines { most, cut },
                false => Wanted::Count,
            },
        }
    }

    fn may_read(&self, path: &Path) -> bool {
        self.want.readable.as_ref().is_none_or(|readable| readable.allows(path))
    }

    fn skip(&self, note: fn(&mut Skipped)) -> Visited {
        note(&mut self.share.lock().skipped);
        Visited::Whole
    }
}

impl Visitor for Seek {
    fn file(&mut self, met: &Met<'_>) -> Visited {
        if !self.may_read(Path::new(OsStr::from_bytes(met.path))) {
            return self.skip(|skipped| skipped.unasked += 1);
        }
        let opened = openat(met.within, met.name, FILE, Mode::empty());
        let Ok((file, stat)) = opened.and_then(|file| fstat(&file).map(|stat| (file, stat))) else {
            return self.skip(|skipped| skipped.unreadable.files += 1);
        };
        if type_of(&stat) != FileType::RegularFile {
            return self.skip(|skipped| skipped.special += 1);
        }
        if u64::try_from(stat.st_size).is_ok_and(|size| size > LARGEST) {
            return self.skip(|skipped| skipped.too_large += 1);
        }
        self.opened(&file, &stat, met.path)
    }
}

#[cfg(test)]
mod tests;
