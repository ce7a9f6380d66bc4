//! The local machine as an implementation of [`Machine`].

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use helve_core::machine::{
    DirListing, FileContent, FindFlow, FindRequest, LocatedPath, RestrictedFiles,
    RestrictedRequest, SearchFlow, SearchRequest, WindowLines, WindowRequest,
};
use helve_core::process::Processes;
use helve_core::{BoxFuture, Machine, MachineError, Place};
use tokio::sync::oneshot;

use crate::blocking::run_blocking;
#[cfg(feature = "faults")]
use crate::commit::faults::InjectedFaults;
use crate::commit::{
    AwaitRecorded, CommitChange, CommitError, Committed, PathLocks, SweptFolders, Syscalls, commit,
};
use crate::errors::machine_error;
use crate::process::LocalProcesses;
use crate::{find, list, locate, read, restricted, search, window};

/// How long a commit waits for other writers to release the lock of a file.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
/// Limits for resolving a path and for reading a file or directory, because a file system may never answer.
const LOCATE_TIMEOUT: Duration = Duration::from_secs(10);
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// Accesses the files of this machine with the rights of this process.
#[derive(Clone, Debug)]
pub struct LocalMachine {
    shared: Arc<Shared>,
    processes: Option<LocalProcesses>,
}

#[derive(Debug)]
struct Shared {
    locks: PathLocks,
    swept_folders: SweptFolders,
    syscalls: Syscalls,
}

impl LocalMachine {
    /// Creates a machine whose lock files live in a fixed directory per user.
    pub fn new() -> Self {
        // Not taken from the environment, which may differ between two processes of one user.
        Self::with_lock_folder(format!("/tmp/helve-locks-{}", rustix::process::geteuid().as_raw()))
    }

    /// Keeps lock files in `folder`, which the first commit creates. All processes that write the same files must
    /// use the same folder.
    pub fn with_lock_folder(folder: impl Into<PathBuf>) -> Self {
        Self::with_syscalls(folder.into(), Syscalls::default())
    }

    /// Creates a machine whose file operations fail as `faults` says.
    #[cfg(feature = "faults")]
    pub fn with_faults(folder: impl Into<PathBuf>, faults: InjectedFaults) -> Self {
        Self::with_syscalls(folder.into(), Syscalls { faults })
    }

    fn with_syscalls(folder: PathBuf, syscalls: Syscalls) -> Self {
        let locks = PathLocks::new(folder, LOCK_TIMEOUT);
        let shared = Shared { locks, swept_folders: SweptFolders::default(), syscalls };
        Self { shared: Arc::new(shared), processes: None }
    }

    /// Adds the ability to start processes.
    pub fn with_processes(self, processes: LocalProcesses) -> Self {
        Self { processes: Some(processes), ..self }
    }

    /// Fails if a test injected a fault for this operation.
    fn check_fault(&self, operation: &'static str) -> Result<(), MachineError> {
        self.shared.syscalls.fault(operation).map_or(Ok(()), |errno| Err(machine_error(errno)))
    }

    /// Applies all changes or none. Once started it completes, even if the future is dropped.
    pub fn commit(
        &self,
        changes: Vec<CommitChange>,
        recorded: AwaitRecorded,
    ) -> BoxFuture<'static, Result<Vec<Committed>, CommitError>> {
        let shared = self.shared.clone();
        Box::pin(async move {
            let Some(first) = changes.first().map(CommitChange::at).cloned() else {
                return Ok(Vec::new());
            };
            let (sender, receiver) = oneshot::channel();
            tokio::task::spawn_blocking(move || {
                let Shared { locks, swept_folders, syscalls } = &*shared;
                let mut result = commit(syscalls, locks, swept_folders, &changes, recorded);
                let committed = match &mut result {
                    Ok(applied) => Ok(std::mem::take(&mut applied.committed)),
                    Err(error) => Err(error.clone()),
                };
                // Sending fails if nobody waits any more. The answer does not wait until the replaced files are closed.
                sender.send(committed).ok();
                drop(result);
            });
            receiver.await.unwrap_or_else(|_panicked| {
                let why = MachineError::Other("the commit panicked".into());
                Err(CommitError::Failed { at: first, why })
            })
        })
    }
}

impl Default for LocalMachine {
    fn default() -> Self {
        Self::new()
    }
}

impl Machine for LocalMachine {
    fn processes(&self) -> Option<Arc<dyn Processes>> {
        self.processes.clone().map(|processes| Arc::new(processes) as Arc<dyn Processes>)
    }

    fn locate<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<LocatedPath, MachineError>> {
        let (path, fault_check) = (path.to_owned(), self.check_fault("locate"));
        // Most paths were looked up a moment ago. Waking another thread would take much longer than looking at the cache.
        if let (Ok(()), Some(located)) = (&fault_check, locate::locate_cached(&path)) {
            return Box::pin(std::future::ready(Ok(located)));
        }
        run_blocking(LOCATE_TIMEOUT, move |_| fault_check.and_then(|()| locate::locate(&path)))
    }

    fn window<'a>(
        &'a self,
        at: &'a Place,
        request: WindowRequest,
    ) -> BoxFuture<'a, Result<WindowLines, MachineError>> {
        let at = at.clone();
        run_blocking(request.timeout, move |stop| window::window(&at, request, stop))
    }

    fn list<'a>(
        &'a self,
        at: &'a Place,
        max: usize,
    ) -> BoxFuture<'a, Result<DirListing, MachineError>> {
        let at = at.clone();
        let fault_check = self.check_fault("list");
        run_blocking(READ_TIMEOUT, move |stop| {
            fault_check.and_then(|()| list::list(&at, max, stop))
        })
    }

    fn read<'a>(
        &'a self,
        at: &'a Place,
        max: u64,
    ) -> BoxFuture<'a, Result<FileContent, MachineError>> {
        let at = at.clone();
        let fault_check = self.check_fault("load");
        run_blocking(READ_TIMEOUT, move |stop| {
            fault_check.and_then(|()| read::read_file(&at, max, stop))
        })
    }

    fn read_link<'a>(
        &'a self,
        at: &'a Place,
    ) -> BoxFuture<'a, Result<Option<Bytes>, MachineError>> {
        let at = at.clone();
        run_blocking(READ_TIMEOUT, move |_| read::read_link(&at))
    }

    fn commit(
        &self,
        changes: Vec<CommitChange>,
        recorded: AwaitRecorded,
    ) -> BoxFuture<'static, Result<Vec<Committed>, CommitError>> {
        LocalMachine::commit(self, changes, recorded)
    }

    fn find(&self, request: FindRequest) -> FindFlow {
        find::find(request)
    }

    fn search(&self, request: SearchRequest) -> SearchFlow {
        search::search(request)
    }

    fn find_restricted(
        &self,
        request: RestrictedRequest,
    ) -> BoxFuture<'static, Result<RestrictedFiles, MachineError>> {
        restricted::find(request)
    }
}
