//! Lists a tree level by level, with counts of what lies below the listed folders.

use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use helve_core::MachineError;
use helve_core::machine::{FileCount, FileKind, FoundFile, SearchCounts, WalkEnd};
use parking_lot::Mutex;

use super::{file_counts, path_from_bytes};
use crate::walk::{
    self, MAX_DEPTH, PreparedTree, StopSignal, VisitEnd, Visitor, WalkEntry, WalkOptions,
    WalkOutcome,
};

/// Walks more and more levels until there are enough entries, then walks the whole tree once to count the rest.
pub(super) fn find(
    tree: &Arc<PreparedTree>,
    options: WalkOptions,
    stop: &StopSignal,
    max: usize,
) -> Result<(Vec<FoundFile>, SearchCounts), MachineError> {
    let mut max_depth = 1;
    loop {
        let (entries, ended) =
            first_entries(tree, WalkOptions { max_depth, ..options }, stop, max)?;
        let is_final = entries.len() >= max
            || ended == WalkEnd::Incomplete
            || max_depth >= MAX_DEPTH
            || !entries
                .iter()
                .any(|entry| entry.depth == max_depth && entry.kind == ListedKind::Folder);
        if is_final {
            return count_rest(tree, options, stop, entries);
        }
        max_depth *= 2;
    }
}

/// A listed file or folder. The order of the fields is the sort order.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct TreeEntry {
    depth: usize,
    kind: ListedKind,
    path: Box<[u8]>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ListedKind {
    Folder,
    File,
}

/// Returns the first `max` entries of the levels within `options`.
fn first_entries(
    tree: &Arc<PreparedTree>,
    options: WalkOptions,
    stop: &StopSignal,
    max: usize,
) -> Result<(Vec<TreeEntry>, WalkEnd), MachineError> {
    let results: Vec<Arc<Mutex<BinaryHeap<TreeEntry>>>> =
        (0..walk::thread_count()).map(|_| Arc::default()).collect();
    let visitor =
        |result: &Arc<Mutex<BinaryHeap<TreeEntry>>>| EntryVisitor { max, result: result.clone() };
    let WalkOutcome { ended, .. } =
        walk::walk(tree, options, stop, results.iter().map(visitor).collect())?;
    let mut entries: Vec<TreeEntry> =
        results.iter().flat_map(|result| std::mem::take(&mut *result.lock())).collect();
    entries.sort_unstable();
    entries.truncate(max);
    Ok((entries, ended))
}

struct EntryVisitor {
    max: usize,
    /// The last entry in sort order is on top.
    result: Arc<Mutex<BinaryHeap<TreeEntry>>>,
}

impl EntryVisitor {
    fn keep(&mut self, kind: ListedKind, path: &[u8]) {
        let depth = 1 + memchr::memchr_iter(b'/', path).count();
        let mut result = self.result.lock();
        let last = result.peek().map(|entry| (entry.depth, entry.kind, &*entry.path));
        if result.len() >= self.max && last.is_none_or(|last| (depth, kind, path) >= last) {
            return;
        }
        result.push(TreeEntry { depth, kind, path: path.into() });
        if result.len() > self.max {
            result.pop();
        }
    }
}

impl Visitor for EntryVisitor {
    fn file(&mut self, entry: &WalkEntry<'_>) -> VisitEnd {
        self.keep(ListedKind::File, entry.path);
        VisitEnd::Complete
    }

    fn folder(&mut self, entry: &WalkEntry<'_>) {
        self.keep(ListedKind::Folder, entry.path);
    }
}

/// Counts the entries that are not listed themselves, separately for each listed folder that they are below. Each
/// listed folder has a counter, and counter 0 is for the rest of the tree.
fn count_rest(
    tree: &Arc<PreparedTree>,
    options: WalkOptions,
    stop: &StopSignal,
    entries: Vec<TreeEntry>,
) -> Result<(Vec<FoundFile>, SearchCounts), MachineError> {
    let folders = entries.iter().filter(|entry| entry.kind == ListedKind::Folder);
    let counters: HashMap<Box<[u8]>, usize> =
        folders.enumerate().map(|(at, entry)| (entry.path.clone(), at + 1)).collect();
    let counters = Arc::new(counters);
    let results: Vec<Arc<Mutex<Vec<FileCount>>>> = (0..walk::thread_count())
        .map(|_| Arc::new(Mutex::new(vec![FileCount::default(); counters.len() + 1])))
        .collect();
    let visitor = |result: &Arc<Mutex<Vec<FileCount>>>| CountVisitor {
        counters: counters.clone(),
        result: result.clone(),
    };
    let WalkOutcome { skipped, ended, .. } =
        walk::walk(tree, options, stop, results.iter().map(visitor).collect())?;
    let mut sums = vec![FileCount::default(); counters.len() + 1];
    for result in &results {
        for (sum, amount) in sums.iter_mut().zip(result.lock().iter()) {
            sum.files += amount.files;
            sum.folders += amount.folders;
        }
    }
    let files = sums.iter().map(|sum| sum.files).sum();
    for entry in &entries {
        let parent = entry.path.iter().rposition(|byte| *byte == b'/').map(|at| &entry.path[..at]);
        let counter = parent.and_then(|parent| counters.get(parent)).copied().unwrap_or(0);
        // An entry that vanished between the two walks may be listed but not counted.
        let unlisted = match entry.kind {
            ListedKind::File => &mut sums[counter].files,
            ListedKind::Folder => &mut sums[counter].folders,
        };
        *unlisted = unlisted.saturating_sub(1);
    }
    let mut counts = file_counts(files, skipped, ended);
    counts.not_listed = sums[0];
    let found = entries.into_iter().map(|entry| FoundFile {
        not_listed: counters.get(&entry.path).map_or(FileCount::default(), |at| sums[*at]),
        kind: match entry.kind {
            ListedKind::File => FileKind::File,
            ListedKind::Folder => FileKind::Folder,
        },
        path: path_from_bytes(&entry.path),
        modified: None,
    });
    Ok((found.collect(), counts))
}

struct CountVisitor {
    counters: Arc<HashMap<Box<[u8]>, usize>>,
    result: Arc<Mutex<Vec<FileCount>>>,
}

impl Visitor for CountVisitor {
    fn file(&mut self, entry: &WalkEntry<'_>) -> VisitEnd {
        self.result.lock()[entry.counter].files += 1;
        VisitEnd::Complete
    }

    fn folder(&mut self, entry: &WalkEntry<'_>) {
        self.result.lock()[entry.counter].folders += 1;
    }

    fn counter(&self, path: &[u8], folder_counter: usize) -> usize {
        self.counters.get(path).copied().unwrap_or(folder_counter)
    }
}
