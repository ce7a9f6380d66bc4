//! Searches the files of a tree for a pattern, the newest files first.

mod file_searcher;
mod line_sink;
mod newest;
mod pattern;

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use helve_core::MachineError;
use helve_core::machine::{
    ContextLines, IgnoredMatches, MatchedFile, ResultShape, SearchCounts, SearchError, SearchFlow,
    SearchRequest, SkippedFiles, WalkEnd,
};
use parking_lot::Mutex;
use rustix::fs::{FileType, Mode, OFlags, Stat, fstat, openat};

use self::file_searcher::{FileOutcome, FileSearcher};
use self::line_sink::CollectMode;
use self::newest::{FileMatches, NewestMatches};
use self::pattern::CompiledPattern;
use crate::errors::type_of;
use crate::find::{Mtime, ignored_search_time, mtime};
use crate::open;
use crate::walk::{
    self, IgnoreFilter, IgnoredEntries, MAX_DEPTH, OpenedRoot, PreparedTree, StopSignal, VisitEnd,
    Visitor, WalkEntry, WalkOptions, WalkOutcome,
};

const FILE: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
/// Maximum size of a searched file, unless it was named explicitly.
const MAX_FILE_BYTES: u64 = 512 << 20;
/// How many ignored files are listed as a hint.
const MAX_IGNORED_HINTS: usize = 3;

pub(crate) fn search(request: SearchRequest) -> SearchFlow {
    walk::spawn_flow(&request.tree.clone(), move |stop| run(request, stop))
}

fn run(
    request: SearchRequest,
    stop: &StopSignal,
) -> Result<(Vec<MatchedFile>, SearchCounts), SearchError> {
    let pattern = pattern::compile(&request)?;
    let opened = walk::open_root(&request.tree.at)?;
    let request = Arc::new(request);
    let (task, shape) =
        (SearchTask { request: request.clone(), pattern, stop: stop.clone() }, request.shape);
    let tree = match opened {
        OpenedRoot::Folder(folder) => Arc::new(PreparedTree::new(&request.tree, folder)?),
        OpenedRoot::NotAFolder => return search_named(&task, shape),
    };
    let options =
        WalkOptions { filter: IgnoreFilter::of(request.tree.ignored), max_depth: MAX_DEPTH };
    let (newest, mut counts, ignored_entries) =
        search_walk(&task, shape, |visitors| walk::walk(&tree, options, stop, visitors))?;
    if let Some(timeout) = ignored_search_time(&request.tree, &counts) {
        let stop = stop.with_shorter_deadline(timeout);
        let task = SearchTask { stop: stop.clone(), ..task };
        let walk_ignored = |visitors| walk::walk_ignored(ignored_entries, &tree, &stop, visitors);
        let (ignored_newest, ignored_counts, _) =
            search_walk(&task, ResultShape::Counts { max: MAX_IGNORED_HINTS }, walk_ignored)?;
        counts.ignored_matches = Some(IgnoredMatches {
            matches: ignored_counts.matches,
            files: ignored_counts.files,
            examples: ignored_newest.hits().into_iter().map(|hit| hit.path).collect(),
            ended: ignored_counts.ended,
        });
    }
    Ok((newest.hits(), counts))
}

/// What all search threads share.
#[derive(Clone)]
struct SearchTask {
    request: Arc<SearchRequest>,
    pattern: CompiledPattern,
    stop: StopSignal,
}

/// Searches the files that `walk` visits.
fn search_walk(
    task: &SearchTask,
    shape: ResultShape,
    walk: impl FnOnce(Vec<SearchVisitor>) -> Result<WalkOutcome, MachineError>,
) -> Result<(NewestMatches, SearchCounts, IgnoredEntries), SearchError> {
    let newest = Arc::new(Mutex::new(NewestMatches::new(max_results(shape))));
    let results: Vec<Arc<Mutex<SearchCounts>>> =
        (0..walk::thread_count()).map(|_| Arc::default()).collect();
    let visitor =
        |result: &Arc<Mutex<SearchCounts>>| SearchVisitor::new(task, shape, &newest, result);
    let WalkOutcome { skipped, ended, ignored_entries } =
        walk(results.iter().map(visitor).collect())?;
    let mut counts = SearchCounts { skipped, ended, ..SearchCounts::default() };
    for result in &results {
        let result = result.lock();
        counts.matches += result.matches;
        counts.files += result.files;
        counts.searched += result.searched;
        counts.skipped = walk::add_skipped(counts.skipped, result.skipped);
    }
    let newest = std::mem::replace(&mut *newest.lock(), NewestMatches::new(0));
    Ok((newest, counts, ignored_entries))
}

/// Searches a file that was named explicitly, whatever its size.
fn search_named(
    task: &SearchTask,
    shape: ResultShape,
) -> Result<(Vec<MatchedFile>, SearchCounts), SearchError> {
    let (file, stat) = open::file(&task.request.tree.at)?;
    let newest = Arc::new(Mutex::new(NewestMatches::new(max_results(shape))));
    let result: Arc<Mutex<SearchCounts>> = Arc::default();
    let mut visitor = SearchVisitor::new(task, shape, &newest, &result);
    let visit_end = match visitor.may_read(Path::new("")) {
        true => visitor.search_opened(&file, &stat, &[]),
        false => visitor.skip(|skipped| skipped.not_permitted += 1),
    };
    let newest = std::mem::replace(&mut *newest.lock(), NewestMatches::new(0));
    let ended = match visit_end {
        VisitEnd::Complete => WalkEnd::Complete,
        VisitEnd::Interrupted => WalkEnd::Incomplete,
    };
    let counts = SearchCounts { ended, ..result.lock().clone() };
    Ok((newest.hits(), counts))
}

fn max_results(shape: ResultShape) -> usize {
    match shape {
        ResultShape::Lines { max, .. }
        | ResultShape::Counts { max }
        | ResultShape::Names { max } => max,
    }
}

/// Searches files on one thread.
struct SearchVisitor {
    request: Arc<SearchRequest>,
    shape: ResultShape,
    searcher: FileSearcher,
    newest: Arc<Mutex<NewestMatches>>,
    result: Arc<Mutex<SearchCounts>>,
}

impl SearchVisitor {
    fn new(
        task: &SearchTask,
        shape: ResultShape,
        newest: &Arc<Mutex<NewestMatches>>,
        result: &Arc<Mutex<SearchCounts>>,
    ) -> Self {
        let context = match shape {
            ResultShape::Lines { context, .. } => context,
            ResultShape::Counts { .. } | ResultShape::Names { .. } => ContextLines::default(),
        };
        let searcher = FileSearcher::new(task.pattern.clone(), context, task.stop.clone());
        Self {
            request: task.request.clone(),
            shape,
            searcher,
            newest: newest.clone(),
            result: result.clone(),
        }
    }

    fn search_opened(&mut self, file: &OwnedFd, stat: &Stat, path: &[u8]) -> VisitEnd {
        let modified = mtime(stat);
        let mut sink = self.searcher.sink(self.collect_mode(modified, path));
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        let outcome = self.searcher.search(file, size, &mut sink);
        let mut result = self.result.lock();
        match outcome {
            FileOutcome::Text | FileOutcome::Interrupted => result.searched += 1,
            FileOutcome::Binary => result.skipped.binary += 1,
            FileOutcome::TooLarge => result.skipped.too_large += 1,
            FileOutcome::Unreadable => result.skipped.unreadable.files += 1,
        }
        if sink.matches > 0 {
            result.matches += sink.matches;
            result.files += 1;
            drop(result);
            let weight = match self.shape {
                ResultShape::Lines { max, .. } => {
                    usize::try_from(sink.matches).unwrap_or(max).min(max)
                }
                ResultShape::Counts { .. } | ResultShape::Names { .. } => 1,
            };
            let matches = FileMatches { count: sink.matches, weight, lines: sink.lines };
            self.newest.lock().keep(modified, path, matches);
        }
        if outcome == FileOutcome::Interrupted { VisitEnd::Interrupted } else { VisitEnd::Complete }
    }

    /// Decides how much to collect: lines are collected only for files that will be reported.
    fn collect_mode(&self, modified: Mtime, path: &[u8]) -> CollectMode {
        match self.shape {
            ResultShape::Names { .. } => CollectMode::First,
            ResultShape::Counts { .. } => CollectMode::Count,
            ResultShape::Lines { max, cut, .. } => {
                match self.newest.lock().would_keep(modified, path) {
                    true => CollectMode::Lines { max, cut },
                    false => CollectMode::Count,
                }
            }
        }
    }

    fn may_read(&self, path: &Path) -> bool {
        self.request.readable.as_ref().is_none_or(|readable| readable.allows(path))
    }

    fn skip(&self, count: fn(&mut SkippedFiles)) -> VisitEnd {
        count(&mut self.result.lock().skipped);
        VisitEnd::Complete
    }
}

impl Visitor for SearchVisitor {
    fn file(&mut self, entry: &WalkEntry<'_>) -> VisitEnd {
        if !self.may_read(Path::new(OsStr::from_bytes(entry.path))) {
            return self.skip(|skipped| skipped.not_permitted += 1);
        }
        let opened = openat(entry.parent, entry.name, FILE, Mode::empty());
        let Ok((file, stat)) = opened.and_then(|file| fstat(&file).map(|stat| (file, stat))) else {
            return self.skip(|skipped| skipped.unreadable.files += 1);
        };
        if type_of(&stat) != FileType::RegularFile {
            return self.skip(|skipped| skipped.special += 1);
        }
        if u64::try_from(stat.st_size).is_ok_and(|size| size > MAX_FILE_BYTES) {
            return self.skip(|skipped| skipped.too_large += 1);
        }
        self.search_opened(&file, &stat, entry.path)
    }
}

#[cfg(test)]
mod tests;
