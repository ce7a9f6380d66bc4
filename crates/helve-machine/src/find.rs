//! Finds files of a tree by name: the newest, the most similarly named, or level by level.

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
    FileCount, FileKind, FileTree, FindFlow, FindOrder, FindRequest, FoundFile, IgnoredMatches,
    IgnoredMode, SearchCounts, SearchError, SkippedFiles, WalkEnd,
};
use rustix::fs::Stat;

use crate::open;
use crate::walk::{
    self, IgnoreFilter, MAX_DEPTH, OpenedRoot, PreparedTree, StopSignal, WalkOptions,
};

pub(crate) use newest::{Mtime, RankedFile};

/// How many ignored files are listed as a hint.
const MAX_IGNORED_HINTS: usize = 3;

pub(crate) fn find(request: FindRequest) -> FindFlow {
    walk::spawn_flow(&request.tree.clone(), move |stop| run(&request, stop))
}

fn run(
    request: &FindRequest,
    stop: &StopSignal,
) -> Result<(Vec<FoundFile>, SearchCounts), SearchError> {
    let tree = match walk::open_root(&request.tree.at)? {
        OpenedRoot::Folder(folder) => Arc::new(PreparedTree::new(&request.tree, folder)?),
        OpenedRoot::NotAFolder => return single_file(&request.tree.at),
    };
    let options =
        WalkOptions { filter: IgnoreFilter::of(request.tree.ignored), max_depth: MAX_DEPTH };
    let (found, mut counts, ignored_entries) = match &request.order {
        FindOrder::Newest => newest::find(request.max_results, |visitors| {
            walk::walk(&tree, options, stop, visitors)
        })?,
        FindOrder::SimilarName(name) => {
            near::find(&tree, options, stop, name, request.max_results)?
        }
        FindOrder::BreadthFirst => {
            let (found, counts) = levels::find(&tree, options, stop, request.max_results)?;
            return Ok((found, counts));
        }
    };
    if let Some(timeout) = ignored_search_time(&request.tree, &counts) {
        let stop = stop.with_shorter_deadline(timeout);
        let walk_ignored = |visitors| walk::walk_ignored(ignored_entries, &tree, &stop, visitors);
        let (ignored_files, ignored_counts, _) = newest::find(MAX_IGNORED_HINTS, walk_ignored)?;
        counts.ignored_matches = Some(IgnoredMatches {
            matches: ignored_counts.matches,
            files: ignored_counts.files,
            examples: ignored_files.into_iter().map(|file| file.path).collect(),
            ended: ignored_counts.ended,
        });
    }
    Ok((found, counts))
}

/// Returns how long to search ignored files, for a hint that they match. Returns `None` if other files match, if the
/// search is incomplete, or if no file is ignored.
pub(crate) fn ignored_search_time(tree: &FileTree, counts: &SearchCounts) -> Option<Duration> {
    let IgnoredMode::Skip { hint_timeout } = tree.ignored else { return None };
    let found_nothing = counts.matches == 0 && counts.ended == WalkEnd::Complete;
    let has_ignored = counts.skipped.ignored != FileCount::default();
    (found_nothing && has_ignored && !hint_timeout.is_zero()).then_some(hint_timeout)
}

/// Handles a tree that is a single file.
fn single_file(at: &Place) -> Result<(Vec<FoundFile>, SearchCounts), SearchError> {
    let (_, stat) = open::file(at)?;
    let found = found_file(&[], Some(mtime(&stat)));
    Ok((vec![found], file_counts(1, SkippedFiles::default(), WalkEnd::Complete)))
}

fn file_counts(files: u64, skipped: SkippedFiles, ended: WalkEnd) -> SearchCounts {
    SearchCounts {
        matches: files,
        files,
        searched: files,
        skipped,
        ended,
        ..SearchCounts::default()
    }
}

fn found_file(path: &[u8], modified: Option<Mtime>) -> FoundFile {
    FoundFile {
        path: OsStr::from_bytes(path).into(),
        kind: FileKind::File,
        modified: modified.map(Mtime::to_system_time),
        not_listed: FileCount::default(),
    }
}

/// Returns the modification time of a file.
pub(crate) fn mtime(stat: &Stat) -> Mtime {
    Mtime { seconds: stat.st_mtime, nanos: u32::try_from(stat.st_mtime_nsec).unwrap_or(0) }
}

impl Mtime {
    pub(crate) fn to_system_time(self) -> SystemTime {
        let distance = Duration::from_secs(self.seconds.unsigned_abs());
        let seconds = match self.seconds {
            0.. => SystemTime::UNIX_EPOCH.checked_add(distance),
            _ => SystemTime::UNIX_EPOCH.checked_sub(distance),
        };
        let at = seconds.and_then(|at| at.checked_add(Duration::from_nanos(self.nanos.into())));
        at.unwrap_or(SystemTime::UNIX_EPOCH)
    }
}

pub(crate) fn path_from_bytes(bytes: &[u8]) -> PathBuf {
    OsStr::from_bytes(bytes).into()
}

#[cfg(test)]
mod tests;
