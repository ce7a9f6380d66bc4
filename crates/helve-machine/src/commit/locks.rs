//! Locks that serialize writers of the same file, within this process and across processes.

use std::hash::{BuildHasher, Hasher};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use helve_core::Place;
use parking_lot::{Mutex, MutexGuard};
use rustix::io::Errno;

use super::CommitError;
use super::sys::Syscalls;
use crate::errors::machine_error;

/// Number of locks shared by all paths. A fixed, small number keeps the count of open files low and needs no cleanup.
const STRIPES: usize = 64;
const MIN_RETRY_DELAY: Duration = Duration::from_micros(200);
const MAX_RETRY_DELAY: Duration = Duration::from_millis(10);

/// The locks of this process, and the folder with the lock files shared with other processes.
#[derive(Debug)]
pub(crate) struct PathLocks {
    folder: PathBuf,
    stripes: Vec<Mutex<()>>,
    /// How long a commit waits for a lock.
    timeout: Duration,
}

/// The locks held by one commit. A lock file is unlocked when its handle is closed, even if the process dies.
#[derive(Debug)]
pub(super) struct HeldLocks<'a> {
    files: Vec<OwnedFd>,
    stripes: Vec<MutexGuard<'a, ()>>,
}

impl PathLocks {
    pub(crate) fn new(folder: PathBuf, timeout: Duration) -> Self {
        Self { folder, stripes: (0..STRIPES).map(|_| Mutex::new(())).collect(), timeout }
    }

    /// Locks every place. The order is fixed, so that two commits cannot deadlock.
    pub(super) fn acquire(
        &self,
        sys: &Syscalls,
        places: &[&Place],
    ) -> Result<HeldLocks<'_>, CommitError> {
        let mut stripes: Vec<(usize, &Place)> =
            places.iter().map(|place| (stripe(&place.path()), *place)).collect();
        stripes.sort_by_key(|(stripe, _)| *stripe);
        stripes.dedup_by_key(|(stripe, _)| *stripe);
        let deadline = Instant::now() + self.timeout;
        let mut held = HeldLocks { files: Vec::new(), stripes: Vec::new() };
        for (stripe, place) in stripes {
            let busy = || CommitError::Busy { at: place.clone(), waited: self.timeout };
            held.stripes.push(self.stripes[stripe].try_lock_until(deadline).ok_or_else(busy)?);
            let file = self.open(sys, stripe).map_err(|errno| self.lock_error(errno))?;
            wait_for_lock(sys, &file, deadline).map_err(|errno| match errno {
                Errno::WOULDBLOCK => busy(),
                errno => self.lock_error(errno),
            })?;
            held.files.push(file);
        }
        Ok(held)
    }

    fn open(&self, sys: &Syscalls, stripe: usize) -> Result<OwnedFd, Errno> {
        let path = self.folder.join(format!("{stripe:02}.lock"));
        match sys.open_lock(&path) {
            Err(Errno::NOENT) => {
                let mut missing: Vec<_> = self.folder.ancestors().collect();
                while let Some(folder) = missing.pop() {
                    // Ignored: opening the lock file reports a better error.
                    sys.make_private_folder(folder).unwrap_or(());
                }
                sys.open_lock(&path)
            }
            opened => opened,
        }
    }

    fn lock_error(&self, errno: Errno) -> CommitError {
        CommitError::Lock { folder: self.folder.clone(), why: machine_error(errno) }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a file lock cannot be awaited, and this thread may block"
)]
fn wait_for_lock(sys: &Syscalls, file: &OwnedFd, deadline: Instant) -> Result<(), Errno> {
    let mut delay = MIN_RETRY_DELAY;
    loop {
        match sys.try_lock_path(file) {
            Err(Errno::WOULDBLOCK) if Instant::now() < deadline => {
                std::thread::sleep(delay);
                delay = (delay * 2).min(MAX_RETRY_DELAY);
            }
            locked => return locked,
        }
    }
}

/// Returns the lock of a path. It must be the same in every process, so a hasher with a random key cannot be used.
fn stripe(path: &Path) -> usize {
    let hash = blake3::hash(path.as_os_str().as_encoded_bytes());
    usize::from(hash.as_bytes()[0]) % STRIPES
}

/// Returns a random number.
pub(super) fn random() -> u64 {
    std::hash::RandomState::new().build_hasher().finish()
}
