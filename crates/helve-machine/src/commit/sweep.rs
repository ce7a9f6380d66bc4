//! Removes temporary files that killed writers left behind.

use std::collections::HashMap;
use std::ffi::CString;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::fs::{FileType, OFlags};

use super::existing::FileIdentity;
use super::stage::is_temporary;
use super::sys::Syscalls;
use crate::errors::type_of;

/// Maximum number of names read from a folder that was already swept once.
pub(super) const RESCAN_LIMIT: usize = 4096;
/// A folder is not swept again before this time has passed, because listing it takes as long as the rest of a small
/// commit.
pub(super) const RESCAN_INTERVAL: Duration = Duration::from_secs(5);
const MAX_REMEMBERED_FOLDERS: usize = 4096;

/// The folders this process has already swept, and when it last did.
#[derive(Debug, Default)]
pub(crate) struct SweptFolders(Mutex<HashMap<FileIdentity, Instant>>);

impl SweptFolders {
    /// Removes temporary files that no process has locked: their owner is dead.
    ///
    /// Errors are ignored; a later commit tries again.
    pub(super) fn sweep(&self, sys: &Syscalls, folder: BorrowedFd<'_>) {
        let Ok(stat) = sys.stat(folder) else { return };
        let Some(max_names) = self.start_sweep(FileIdentity::of(&stat), Instant::now()) else {
            return;
        };
        let mut found = Vec::new();
        let listed = sys.names(folder, max_names, |name| {
            if is_temporary(name.to_bytes()) {
                found.push(name.to_owned());
            }
        });
        if listed.is_ok() {
            found.into_iter().for_each(|name| remove_if_dead(sys, folder, name));
        }
    }

    /// Records the folder as swept and returns how many of its names to read: all of them the first time, later at most
    /// [`RESCAN_LIMIT`]. Returns `None` if it was swept a moment ago.
    pub(super) fn start_sweep(&self, folder: FileIdentity, now: Instant) -> Option<usize> {
        let mut swept = self.0.lock();
        let max_names = match swept.get(&folder) {
            Some(last) if now.duration_since(*last) < RESCAN_INTERVAL => return None,
            Some(_) => RESCAN_LIMIT,
            None => usize::MAX,
        };
        if swept.len() >= MAX_REMEMBERED_FOLDERS {
            swept.clear();
        }
        swept.insert(folder, now);
        Some(max_names)
    }
}

fn remove_if_dead(sys: &Syscalls, folder: BorrowedFd<'_>, name: CString) {
    let is_own_file = sys.stat_at(folder, &name).is_ok_and(|stat| {
        let user = rustix::process::geteuid();
        type_of(&stat) == FileType::RegularFile && (user.is_root() || stat.st_uid == user.as_raw())
    });
    if is_own_file
        && let Ok(file) = sys.open(folder, &name, OFlags::RDONLY)
        && sys.try_lock_data(&file).is_ok()
    {
        sys.unlink(folder, &name).unwrap_or(());
    }
}
