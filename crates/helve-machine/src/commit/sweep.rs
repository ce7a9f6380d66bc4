//! Clearing away what a writer left that was killed.

use std::collections::HashSet;
use std::ffi::CString;
use std::os::fd::BorrowedFd;

use parking_lot::Mutex;
use rustix::fs::{FileType, OFlags};

use super::seen::Identity;
use super::stage::is_temporary;
use super::sys::Sys;
use crate::errors::type_of;

/// A folder that was looked through once is not read further than this again.
pub(super) const GLANCE: usize = 4096;
const MOST_REMEMBERED: usize = 4096;

/// The folders this process has looked through.
#[derive(Debug, Default)]
pub(crate) struct Swept(Mutex<HashSet<Identity>>);

impl Swept {
    /// Removes temporary files whose owner is dead: nobody holds their lock.
    ///
    /// What fails here fails nothing else: the next commit tries again.
    pub(super) fn sweep(&self, sys: &Sys, folder: BorrowedFd<'_>) {
        let Ok(stat) = sys.stat(folder) else { return };
        let mut found = Vec::new();
        let listed = sys.names(folder, self.reach(Identity::of(&stat)), |name| {
            if is_temporary(name.to_bytes()) {
                found.push(name.to_owned());
            }
        });
        if listed.is_ok() {
            found.into_iter().for_each(|name| remove_if_dead(sys, folder, name));
        }
    }

    /// How many names are read: all of a folder that is new to this process.
    pub(super) fn reach(&self, folder: Identity) -> usize {
        let mut known = self.0.lock();
        if known.len() >= MOST_REMEMBERED {
            known.clear();
        }
        if known.insert(folder) { usize::MAX } else { GLANCE }
    }
}

fn remove_if_dead(sys: &Sys, folder: BorrowedFd<'_>, name: CString) {
    let is_own_file = sys.stat_at(folder, &name).is_ok_and(|stat| {
        let user = rustix::process::geteuid();
        type_of(&stat) == FileType::RegularFile && (user.is_root() || stat.st_uid == user.as_raw())
    });
    if is_own_file
        && let Ok(file) = sys.open(folder, &name, OFlags::RDONLY)
        && sys.lock(&file).is_ok()
    {
        sys.unlink(folder, &name).unwrap_or(());
    }
}
