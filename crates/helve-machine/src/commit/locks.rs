//! Two writers of one file take turns, in this process and across processes.

use std::hash::{BuildHasher, Hasher};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use helve_core::Place;
use parking_lot::{Mutex, MutexGuard};
use rustix::io::Errno;

use super::sys::Sys;
use super::types::CommitError;
use crate::errors::machine_error;

/// Paths share this many locks. Few, so that a commit of many files needs few open files, and lock files need no clearing up.
const STRIPES: usize = 64;
const SHORTEST_NAP: Duration = Duration::from_micros(200);
const LONGEST_NAP: Duration = Duration::from_millis(10);

/// The locks of this process, and the folder where it meets the others.
#[derive(Debug)]
pub(crate) struct Locks {
    folder: PathBuf,
    stripes: Vec<Mutex<()>>,
    /// How long a commit waits for the others before it gives up.
    patience: Duration,
}

/// The locks of one commit. A lock file's lock ends with its handle, also when the process dies.
#[derive(Debug)]
pub(super) struct Held<'a> {
    files: Vec<OwnedFd>,
    stripes: Vec<MutexGuard<'a, ()>>,
}

impl Locks {
    pub(crate) fn new(folder: PathBuf, patience: Duration) -> Self {
        Self { folder, stripes: (0..STRIPES).map(|_| Mutex::new(())).collect(), patience }
    }

    /// Locks every place, always in the same order, so that no two commits wait for one another.
    pub(super) fn hold(&self, sys: &Sys, places: &[&Place]) -> Result<Held<'_>, CommitError> {
        let mut wanted: Vec<(usize, &Place)> =
            places.iter().map(|place| (stripe(&place.path()), *place)).collect();
        wanted.sort_by_key(|(stripe, _)| *stripe);
        wanted.dedup_by_key(|(stripe, _)| *stripe);
        let until = Instant::now() + self.patience;
        let mut held = Held { files: Vec::new(), stripes: Vec::new() };
        for (stripe, place) in wanted {
            let busy = || CommitError::Busy { at: place.clone(), waited: self.patience };
            held.stripes.push(self.stripes[stripe].try_lock_until(until).ok_or_else(busy)?);
            let file = self.open(sys, stripe).map_err(|errno| self.broken(errno))?;
            wait(sys, &file, until).map_err(|errno| match errno {
                Errno::WOULDBLOCK => busy(),
                errno => self.broken(errno),
            })?;
            held.files.push(file);
        }
        Ok(held)
    }

    fn open(&self, sys: &Sys, stripe: usize) -> Result<OwnedFd, Errno> {
        let path = self.folder.join(format!("{stripe:02}.lock"));
        match sys.open_lock(&path) {
            Err(Errno::NOENT) => {
                let mut missing: Vec<_> = self.folder.ancestors().collect();
                while let Some(folder) = missing.pop() {
                    // Opening tells what is wrong, better than one of the folders above that exist.
                    sys.make_private_folder(folder).unwrap_or(());
                }
                sys.open_lock(&path)
            }
            opened => opened,
        }
    }

    fn broken(&self, errno: Errno) -> CommitError {
        CommitError::Lock { folder: self.folder.clone(), why: machine_error(errno) }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a file's lock tells nobody when it is free, and this thread may block"
)]
fn wait(sys: &Sys, file: &OwnedFd, until: Instant) -> Result<(), Errno> {
    let mut nap = SHORTEST_NAP;
    loop {
        match sys.take_turn(file) {
            Err(Errno::WOULDBLOCK) if Instant::now() < until => {
                std::thread::sleep(nap);
                nap = (nap * 2).min(LONGEST_NAP);
            }
            locked => return locked,
        }
    }
}

/// The same in every process, so it cannot come from a hasher with a random key.
fn stripe(path: &Path) -> usize {
    let hash = blake3::hash(path.as_os_str().as_encoded_bytes());
    usize::from(hash.as_bytes()[0]) % STRIPES
}

/// A number that no other thread or process is likely to have.
pub(super) fn random() -> u64 {
    std::hash::RandomState::new().build_hasher().finish()
}
