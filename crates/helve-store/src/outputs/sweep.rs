//! Removes saved outputs that exceed the limits, about once an hour across all processes.

use std::fs::DirEntry;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::OutputLimits;
use crate::private;

/// The modification time of this file is the start of the last sweep.
const SWEEP_MARKER: &str = ".swept";

/// Whether no process has started a sweep within the last `interval`.
pub(super) fn is_due(folder: &Path, interval: Duration) -> bool {
    let last = std::fs::metadata(folder.join(SWEEP_MARKER)).and_then(|mark| mark.modified());
    // A time in the future (from a wrong clock) is ignored: the sweep is due.
    !last.is_ok_and(|at| SystemTime::now().duration_since(at).is_ok_and(|age| age < interval))
}

/// Records that a sweep starts now.
pub(super) fn record_start(folder: &Path) {
    let mark = private::open_for_locking(&folder.join(SWEEP_MARKER));
    // If the time cannot be recorded, the next sweep merely comes too early.
    mark.and_then(|mark| mark.set_modified(SystemTime::now())).ok();
}

/// Removes expired outputs, then the oldest outputs until the rest is within the limits. The newest output always
/// stays.
pub(super) fn sweep(folder: &Path, limits: &OutputLimits) {
    let sessions = folders(folder);
    let mut outputs: Vec<SavedOutput> =
        sessions.iter().flat_map(|session| outputs(session)).collect();
    outputs.sort_by_key(|output| std::cmp::Reverse(output.modified));
    let now = SystemTime::now();
    let mut total = 0u64;
    for (position, output) in outputs.iter().enumerate() {
        total = total.saturating_add(output.bytes);
        let is_old = now.duration_since(output.modified).is_ok_and(|age| age > limits.max_age);
        let is_over_limit = total > limits.max_total_bytes || position >= limits.max_files;
        if position > 0 && (is_old || is_over_limit) {
            // Another process may have removed the file already. If not, the next sweep tries again.
            std::fs::remove_file(&output.path).ok();
        }
    }
    for session in sessions {
        // Removing a folder that is not empty fails, as intended.
        std::fs::remove_dir(session).ok();
    }
}

/// Removes the scratch folders of sessions that have not been used for longer than `max_age`.
pub(super) fn sweep_scratch(scratch: &Path, max_age: Duration) {
    for folder in folders(scratch) {
        let last_used = std::fs::metadata(&folder).and_then(|folder| folder.modified());
        if last_used.is_ok_and(|time| time.elapsed().is_ok_and(|unused| unused > max_age)) {
            // If the folder cannot be removed, the next sweep tries again.
            std::fs::remove_dir_all(folder).ok();
        }
    }
}

struct SavedOutput {
    path: PathBuf,
    bytes: u64,
    modified: SystemTime,
}

fn folders(folder: &Path) -> Vec<PathBuf> {
    let is_folder = |entry: &DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    entries(folder).filter(is_folder).map(|entry| entry.path()).collect()
}

fn outputs(session: &Path) -> Vec<SavedOutput> {
    let output = |entry: DirEntry| {
        let path = entry.path();
        // The metadata of a link is that of the link itself. Links are skipped, because outputs are never links.
        let metadata = entry.metadata().ok().filter(std::fs::Metadata::is_file)?;
        let is_output = path.extension().is_some_and(|extension| extension == "txt");
        is_output.then_some(())?;
        Some(SavedOutput { path, bytes: metadata.len(), modified: metadata.modified().ok()? })
    };
    entries(session).filter_map(output).collect()
}

fn entries(folder: &Path) -> impl Iterator<Item = DirEntry> {
    std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok)
}
