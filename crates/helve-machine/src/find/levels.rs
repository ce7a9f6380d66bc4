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

/// Walks more and more levels until there are enough lines, then walks the whole tree once to count the rest.
pub(super) fn find(
    tree: &Arc<PreparedTree>,
    options: WalkOptions,
    stop: &StopSignal,
    max: usize,
) -> Result<(Vec<FoundFile>, SearchCounts), MachineError> {
    let mut max_depth = 1;
    loop {
        let (lines, ended) = first_lines(tree, WalkOptions { max_depth, ..options }, stop, max)?;
        let is_final = lines.len() >= max
            || ended == WalkEnd::Incomplete
            || max_depth >= MAX_DEPTH
            || !lines.iter().any(|line| line.depth == max_depth && line.kind == LineKind::Folder);
        if is_final {
            return count_rest(tree, options, stop, lines);
        }
        max_depth *= 2;
    }
}

/// A listed file or folder. The order of the fields is the sort order.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct TreeLine {
    depth: usize,
    kind: LineKind,
    path: Box<[u8]>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum LineKind {
    Folder,
    File,
}

/// Returns the first `max` lines of the levels within `options`.
fn first_lines(
    tree: &Arc<PreparedTree>,
    options: WalkOptions,
    stop: &StopSignal,
    max: usize,
) -> Result<(Vec<TreeLine>, WalkEnd), MachineError> {
    let results: Vec<Arc<Mutex<BinaryHeap<TreeLine>>>> =
        (0..walk::thread_count()).map(|_| Arc::default()).collect();
    let visitor =
        |result: &Arc<Mutex<BinaryHeap<TreeLine>>>| LineVisitor { max, result: result.clone() };
    let WalkOutcome { ended, .. } =
        walk::walk(tree, options, stop, results.iter().map(visitor).collect())?;
    let mut lines: Vec<TreeLine> =
        results.iter().flat_map(|result| std::mem::take(&mut *result.lock())).collect();
    lines.sort_unstable();
    lines.truncate(max);
    Ok((lines, ended))
}

struct LineVisitor {
    max: usize,
    /// The last line in sort order is on top.
    result: Arc<Mutex<BinaryHeap<TreeLine>>>,
}

impl LineVisitor {
    fn keep(&mut self, kind: LineKind, path: &[u8]) {
        let depth = 1 + memchr::memchr_iter(b'/', path).count();
        let mut result = self.result.lock();
        let last = result.peek().map(|line| (line.depth, line.kind, &*line.path));
        if result.len() >= self.max && last.is_none_or(|last| (depth, kind, path) >= last) {
            return;
        }
        result.push(TreeLine { depth, kind, path: path.into() });
        if result.len() > self.max {
            result.pop();
        }
    }
}

impl Visitor for LineVisitor {
    fn file(&mut self, entry: &WalkEntry<'_>) -> VisitEnd {
        self.keep(LineKind::File, entry.path);
        VisitEnd::Complete
    }

    fn folder(&mut self, entry: &WalkEntry<'_>) {
        self.keep(LineKind::Folder, entry.path);
    }
}

/// Counts the entries below the listed folders that are not listed themselves. Section 0 is the tree itself; each
/// listed folder has its own section.
fn count_rest(
    tree: &Arc<PreparedTree>,
    options: WalkOptions,
    stop: &StopSignal,
    lines: Vec<TreeLine>,
) -> Result<(Vec<FoundFile>, SearchCounts), MachineError> {
    let folders = lines.iter().filter(|line| line.kind == LineKind::Folder);
    let sections: HashMap<Box<[u8]>, usize> =
        folders.enumerate().map(|(at, line)| (line.path.clone(), at + 1)).collect();
    let sections = Arc::new(sections);
    let results: Vec<Arc<Mutex<Vec<FileCount>>>> = (0..walk::thread_count())
        .map(|_| Arc::new(Mutex::new(vec![FileCount::default(); sections.len() + 1])))
        .collect();
    let visitor = |result: &Arc<Mutex<Vec<FileCount>>>| CountVisitor {
        sections: sections.clone(),
        result: result.clone(),
    };
    let WalkOutcome { skipped, ended, .. } =
        walk::walk(tree, options, stop, results.iter().map(visitor).collect())?;
    let mut sums = vec![FileCount::default(); sections.len() + 1];
    for result in &results {
        for (sum, amount) in sums.iter_mut().zip(result.lock().iter()) {
            sum.files += amount.files;
            sum.folders += amount.folders;
        }
    }
    let files = sums.iter().map(|sum| sum.files).sum();
    for line in &lines {
        let parent = line.path.iter().rposition(|byte| *byte == b'/').map(|at| &line.path[..at]);
        let section = parent.and_then(|parent| sections.get(parent)).copied().unwrap_or(0);
        // An entry that vanished between the two walks may be listed but not counted.
        let unlisted = match line.kind {
            LineKind::File => &mut sums[section].files,
            LineKind::Folder => &mut sums[section].folders,
        };
        *unlisted = unlisted.saturating_sub(1);
    }
    let mut counts = file_counts(files, skipped, ended);
    counts.not_listed = sums[0];
    let found = lines.into_iter().map(|line| FoundFile {
        not_listed: sections.get(&line.path).map_or(FileCount::default(), |at| sums[*at]),
        kind: match line.kind {
            LineKind::File => FileKind::File,
            LineKind::Folder => FileKind::Folder,
        },
        path: path_from_bytes(&line.path),
        modified: None,
    });
    Ok((found.collect(), counts))
}

struct CountVisitor {
    sections: Arc<HashMap<Box<[u8]>, usize>>,
    result: Arc<Mutex<Vec<FileCount>>>,
}

impl Visitor for CountVisitor {
    fn file(&mut self, entry: &WalkEntry<'_>) -> VisitEnd {
        self.result.lock()[entry.section].files += 1;
        VisitEnd::Complete
    }

    fn folder(&mut self, entry: &WalkEntry<'_>) {
        self.result.lock()[entry.section].folders += 1;
    }

    fn section(&self, path: &[u8], section: usize) -> usize {
        self.sections.get(path).copied().unwrap_or(section)
    }
}
