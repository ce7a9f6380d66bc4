//! Finds the newest files. Memory use depends on how many are requested.

use std::collections::BinaryHeap;
use std::sync::Arc;

use helve_core::MachineError;
use helve_core::machine::{FoundFile, SearchCounts, SkippedFiles};
use parking_lot::Mutex;
use rustix::fs::{AtFlags, statat};

use super::{file_counts, found_file, mtime};
use crate::walk::{self, IgnoredEntries, VisitEnd, Visitor, WalkEntry, WalkOutcome};

/// A modification time since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mtime {
    pub(crate) seconds: i64,
    pub(crate) nanos: u32,
}

/// Keeps the `max` newest files; ties are broken by path.
pub(super) struct NewestFiles<T> {
    max: usize,
    /// The file to drop next is on top.
    files: BinaryHeap<RankedFile<T>>,
}

pub(crate) struct RankedFile<T> {
    pub(crate) modified: Mtime,
    pub(crate) path: Box<[u8]>,
    pub(crate) data: T,
}

impl<T> NewestFiles<T> {
    pub(super) fn new(max: usize) -> Self {
        Self { max, files: BinaryHeap::new() }
    }

    /// Whether a file with this time and path would be kept.
    pub(super) fn would_keep(&self, modified: Mtime, path: &[u8]) -> bool {
        let last = self.files.peek();
        self.files.len() < self.max || last.is_some_and(|last| last.is_after(modified, path))
    }

    pub(super) fn keep(&mut self, modified: Mtime, path: &[u8], data: T) {
        if !self.would_keep(modified, path) {
            return;
        }
        self.files.push(RankedFile { modified, path: path.into(), data });
        if self.files.len() > self.max {
            self.files.pop();
        }
    }

    /// Merges several collections, newest first.
    pub(super) fn sorted(all: impl IntoIterator<Item = Self>) -> Vec<RankedFile<T>> {
        let mut files: Vec<RankedFile<T>> = all.into_iter().flat_map(|one| one.files).collect();
        files.sort_unstable();
        files
    }
}

impl<T> RankedFile<T> {
    /// Whether a file with this time and path ranks before this one.
    pub(crate) fn is_after(&self, modified: Mtime, path: &[u8]) -> bool {
        (modified, &*self.path) > (self.modified, path)
    }
}

impl<T> Ord for RankedFile<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.modified.cmp(&self.modified).then_with(|| self.path.cmp(&other.path))
    }
}

impl<T> PartialOrd for RankedFile<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for RankedFile<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T> Eq for RankedFile<T> {}

/// Returns the `max` newest of the files that `walk` visits.
pub(super) fn find(
    max: usize,
    walk: impl FnOnce(Vec<NewestVisitor>) -> Result<WalkOutcome, MachineError>,
) -> Result<(Vec<FoundFile>, SearchCounts, IgnoredEntries), MachineError> {
    let results: Vec<Arc<Mutex<NewestResult>>> =
        (0..walk::thread_count()).map(|_| Arc::new(Mutex::new(NewestResult::new(max)))).collect();
    let WalkOutcome { skipped, ended, ignored_entries } =
        walk(results.iter().cloned().map(NewestVisitor).collect())?;
    let mut total = NewestResult::new(max);
    let mut newest = Vec::new();
    for result in results {
        let result = std::mem::replace(&mut *result.lock(), NewestResult::new(0));
        total.files += result.files;
        total.vanished += result.vanished;
        newest.push(result.newest);
    }
    let mut counts = file_counts(total.files, skipped, ended);
    counts.skipped = walk::add_skipped(counts.skipped, vanished_files(total.vanished));
    let found = NewestFiles::sorted(newest).into_iter().take(max);
    let found = found.map(|file| found_file(&file.path, Some(file.modified))).collect();
    Ok((found, counts, ignored_entries))
}

fn vanished_files(files: u64) -> SkippedFiles {
    let mut skipped = SkippedFiles::default();
    skipped.unreadable.files = files;
    skipped
}

/// What one thread found.
pub(super) struct NewestResult {
    newest: NewestFiles<()>,
    files: u64,
    vanished: u64,
}

impl NewestResult {
    fn new(max: usize) -> Self {
        Self { newest: NewestFiles::new(max), files: 0, vanished: 0 }
    }
}

pub(super) struct NewestVisitor(Arc<Mutex<NewestResult>>);

impl Visitor for NewestVisitor {
    fn file(&mut self, entry: &WalkEntry<'_>) -> VisitEnd {
        let stat = statat(entry.parent, entry.name, AtFlags::SYMLINK_NOFOLLOW);
        let mut result = self.0.lock();
        match stat {
            Ok(stat) => {
                result.files += 1;
                result.newest.keep(mtime(&stat), entry.path, ());
            }
            Err(_) => result.vanished += 1,
        }
        VisitEnd::Complete
    }
}
