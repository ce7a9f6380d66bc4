//! Removing saved outputs that are too old or too much, about once an hour for all processes together.

use std::fs::DirEntry;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::Limits;
use crate::private;

/// Its time of change is when the last sweep began.
const MARK: &str = ".swept";

/// Whether the last sweep of any process is long ago.
pub(super) fn is_due(folder: &Path, every: Duration) -> bool {
    let marked = std::fs::metadata(folder.join(MARK)).and_then(|mark| mark.modified());
    // A mark from the future is one of a clock that was wrong.
    !marked.is_ok_and(|at| SystemTime::now().duration_since(at).is_ok_and(|age| age < every))
}

/// Says that a sweep begins.
pub(super) fn claim(folder: &Path) {
    let mark = private::lockable(&folder.join(MARK));
    // Without a mark there are more sweeps than needed, no more.
    mark.and_then(|mark| mark.set_modified(SystemTime::now())).ok();
}

/// Removes what is too old, then the oldest until the rest is within limits; never the newest.
pub(super) fn sweep(folder: &Path, limits: &Limits) {
    let sessions = folders(folder);
    let mut outputs: Vec<Output> = sessions.iter().flat_map(|session| outputs(session)).collect();
    outputs.sort_by_key(|output| std::cmp::Reverse(output.modified));
    let now = SystemTime::now();
    let mut total = 0u64;
    for (position, output) in outputs.iter().enumerate() {
        total = total.saturating_add(output.bytes);
        let is_old = now.duration_since(output.modified).is_ok_and(|age| age > limits.age);
        let is_much = total > limits.all || position >= limits.files;
        if position > 0 && (is_old || is_much) {
            // Another process may have been faster; what cannot be removed is tried again.
            std::fs::remove_file(&output.path).ok();
        }
    }
    for session in sessions {
        // Fails, as it should, where something is left.
        std::fs::remove_dir(session).ok();
    }
}

/// Removes the temporary files of sessions that have not used any for long.
pub(super) fn sweep_scratch(scratch: &Path, age: Duration) {
    for folder in folders(scratch) {
        let used = std::fs::metadata(&folder).and_then(|folder| folder.modified());
        if used.is_ok_and(|used| used.elapsed().is_ok_and(|unused| unused > age)) {
            // What cannot be removed is tried again.
            std::fs::remove_dir_all(folder).ok();
        }
    }
}

struct Output {
    path: PathBuf,
    bytes: u64,
    modified: SystemTime,
}

fn folders(folder: &Path) -> Vec<PathBuf> {
    let is_folder = |entry: &DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    entries(folder).filter(is_folder).map(|entry| entry.path()).collect()
}

fn outputs(session: &Path) -> Vec<Output> {
    let output = |entry: DirEntry| {
        let path = entry.path();
        // Of the entry itself: a link is none of ours.
        let metadata = entry.metadata().ok().filter(std::fs::Metadata::is_file)?;
        let is_ours = path.extension().is_some_and(|extension| extension == "txt");
        is_ours.then_some(())?;
        Some(Output { path, bytes: metadata.len(), modified: metadata.modified().ok()? })
    };
    entries(session).filter_map(output).collect()
}

fn entries(folder: &Path) -> impl Iterator<Item = DirEntry> {
    std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok)
}
