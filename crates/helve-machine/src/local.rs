//! The machine this process runs on.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use helve_core::machine::{
    Find, FindFlow, Listing, Located, Search, SearchFlow, Whole, Window, Windowed,
};
use helve_core::{BoxFuture, Machine, MachineError, Place};

#[cfg(feature = "faults")]
use crate::commit::faults::Faults;
use crate::commit::{Change, CommitError, Committed, Locks, Swept, Sys, commit};
use crate::errors::failed;
use crate::hop::hop;
use crate::{find, list, locate, search, whole, window};

/// How long a commit waits for other writers of the same file.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a path may take to be followed, and a folder or file to be read: a file system may never answer.
const LOOKING: Duration = Duration::from_secs(10);
const READING: Duration = Duration::from_secs(60);

/// The files of this machine, with the rights of this process.
#[derive(Clone, Debug)]
pub struct Local {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    locks: Locks,
    swept: Swept,
    sys: Sys,
}

impl Local {
    /// Meets the other processes of the user in a folder of the system's own.
    pub fn new() -> Self {
        // Not from the environment, where two processes of one user may differ.
        Self::locking_in(format!("/tmp/helve-locks-{}", rustix::process::geteuid().as_raw()))
    }

    /// Meets other processes in a folder, which is created when the first commit needs it. It has to be the same for all.
    pub fn locking_in(folder: impl Into<PathBuf>) -> Self {
        Self::with(folder.into(), Sys::default())
    }

    /// Lets file operations fail.
    #[cfg(feature = "faults")]
    pub fn failing(folder: impl Into<PathBuf>, faults: Faults) -> Self {
        Self::with(folder.into(), Sys { faults })
    }

    fn with(folder: PathBuf, sys: Sys) -> Self {
        let locks = Locks::new(folder, PATIENCE);
        Self { shared: Arc::new(Shared { locks, swept: Swept::default(), sys }) }
    }

    /// Whether a verb that reads is to fail.
    fn check(&self, verb: &'static str) -> Result<(), MachineError> {
        self.shared.sys.fault(verb).map_or(Ok(()), |errno| Err(failed(errno)))
    }

    /// Makes all changes or none. Once begun it runs to its end, even if the future is dropped.
    pub fn commit(
        &self,
        changes: Vec<Change>,
    ) -> BoxFuture<'static, Result<Vec<Committed>, CommitError>> {
        let shared = self.shared.clone();
        Box::pin(async move {
            let Some(first) = changes.first().map(Change::at).cloned() else {
                return Ok(Vec::new());
            };
            let work = move || commit(&shared.sys, &shared.locks, &shared.swept, &changes);
            tokio::task::spawn_blocking(work).await.unwrap_or_else(|failed| {
                Err(CommitError::Failed { at: first, why: MachineError::Other(failed.to_string()) })
            })
        })
    }
}

impl Default for Local {
    fn default() -> Self {
        Self::new()
    }
}

impl Machine for Local {
    fn locate<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<Located, MachineError>> {
        let (path, checked) = (path.to_owned(), self.check("locate"));
        hop(LOOKING, move |_| checked.and_then(|()| locate::locate(&path)))
    }

    fn window<'a>(
        &'a self,
        at: &'a Place,
        want: Window,
    ) -> BoxFuture<'a, Result<Windowed, MachineError>> {
        let at = at.clone();
        hop(want.deadline, move |stop| window::window(&at, want, stop))
    }

    fn list<'a>(
        &'a self,
        at: &'a Place,
        most: usize,
    ) -> BoxFuture<'a, Result<Listing, MachineError>> {
        let at = at.clone();
        let checked = self.check("list");
        hop(READING, move |stop| checked.and_then(|()| list::list(&at, most, stop)))
    }

    fn read<'a>(&'a self, at: &'a Place, most: u64) -> BoxFuture<'a, Result<Whole, MachineError>> {
        let at = at.clone();
        let checked = self.check("load");
        hop(READING, move |stop| checked.and_then(|()| whole::whole(&at, most, stop)))
    }

    fn commit(
        &self,
        changes: Vec<Change>,
    ) -> BoxFuture<'static, Result<Vec<Committed>, CommitError>> {
        Local::commit(self, changes)
    }

    fn find(&self, want: Find) -> FindFlow {
        find::find(want)
    }

    fn search(&self, want: Search) -> SearchFlow {
        search::search(want)
    }
}
