//! The newest of many, in memory for as many as are wanted.

use std::collections::BinaryHeap;
use std::sync::Arc;

use helve_core::MachineError;
use helve_core::machine::{Counts, Found, Skipped};
use parking_lot::Mutex;
use rustix::fs::{AtFlags, statat};

use super::{counted, file, time};
use crate::walk::{self, Met, Unseen, Visited, Visitor, Walked};

/// When a file was changed, since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Time {
    pub(crate) seconds: i64,
    pub(crate) nanos: u32,
}

/// Keeps the `most` newest; of equally new ones those whose path comes first.
pub(super) struct Newest<T> {
    most: usize,
    /// The one that has to go next on top.
    kept: BinaryHeap<Kept<T>>,
}

pub(crate) struct Kept<T> {
    pub(crate) modified: Time,
    pub(crate) path: Box<[u8]>,
    pub(crate) with: T,
}

impl<T> Newest<T> {
    pub(super) fn new(most: usize) -> Self {
        Self { most, kept: BinaryHeap::new() }
    }

    /// Whether such a file would be kept.
    pub(super) fn wants(&self, modified: Time, path: &[u8]) -> bool {
        let last = self.kept.peek();
        self.kept.len() < self.most || last.is_some_and(|last| last.is_after(modified, path))
    }

    pub(super) fn keep(&mut self, modified: Time, path: &[u8], with: T) {
        if !self.wants(modified, path) {
            return;
        }
        self.kept.push(Kept { modified, path: path.into(), with });
        if self.kept.len() > self.most {
            self.kept.pop();
        }
    }

    /// Newest first.
    pub(super) fn sorted(all: impl IntoIterator<Item = Self>) -> Vec<Kept<T>> {
        let mut kept: Vec<Kept<T>> = all.into_iter().flat_map(|one| one.kept).collect();
        kept.sort_unstable();
        kept
    }
}

impl<T> Kept<T> {
    /// Whether such a file comes first.
    pub(crate) fn is_after(&self, modified: Time, path: &[u8]) -> bool {
        (modified, &*self.path) > (self.modified, path)
    }
}

impl<T> Ord for Kept<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.modified.cmp(&self.modified).then_with(|| self.path.cmp(&other.path))
    }
}

impl<T> PartialOrd for Kept<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Kept<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T> Eq for Kept<T> {}

/// The `most` newest, of what `walk` lets its visitors see.
pub(super) fn find(
    most: usize,
    walk: impl FnOnce(Vec<Look>) -> Result<Walked, MachineError>,
) -> Result<(Vec<Found>, Counts, Unseen), MachineError> {
    let shares: Vec<Arc<Mutex<Share>>> =
        (0..walk::threads()).map(|_| Arc::new(Mutex::new(Share::new(most)))).collect();
    let Walked { skipped, ended, unseen } = walk(shares.iter().cloned().map(Look).collect())?;
    let mut total = Share::new(most);
    let mut newest = Vec::new();
    for share in shares {
        let share = std::mem::replace(&mut *share.lock(), Share::new(0));
        total.files += share.files;
        total.gone += share.gone;
        newest.push(share.newest);
    }
    let mut counts = counted(total.files, skipped, ended);
    counts.skipped = walk::add(counts.skipped, gone(total.gone));
    let found = Newest::sorted(newest).into_iter().take(most);
    let found = found.map(|kept| file(&kept.path, Some(kept.modified))).collect();
    Ok((found, counts, unseen))
}

fn gone(files: u64) -> Skipped {
    let mut skipped = Skipped::default();
    skipped.unreadable.files = files;
    skipped
}

/// What one thread found.
pub(super) struct Share {
    newest: Newest<()>,
    files: u64,
    gone: u64,
}

impl Share {
    fn new(most: usize) -> Self {
        Self { newest: Newest::new(most), files: 0, gone: 0 }
    }
}

pub(super) struct Look(Arc<Mutex<Share>>);

impl Visitor for Look {
    fn file(&mut self, met: &Met<'_>) -> Visited {
        let stat = statat(met.within, met.name, AtFlags::SYMLINK_NOFOLLOW);
        let mut share = self.0.lock();
        match stat {
            Ok(stat) => {
                share.files += 1;
                share.newest.keep(time(&stat), met.path, ());
            }
            Err(_) => share.gone += 1,
        }
        Visited::Whole
    }
}
