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
use tokio::sync::{Semaphore, oneshot};

use crate::blocking::{Cancellation, run_blocking};
#[cfg(feature = "faults")]
use crate::commit::faults::InjectedFaults;
use crate::commit::{
    AwaitRecorded, CommitChange, CommitError, Committed, ComputeChange, PathLocks, SweptFolders,
    Syscalls, commit,
};
use crate::errors::machine_error;
use crate::process::LocalProcesses;
use crate::{find, list, locate, read, restricted, search, window};

/// How long a commit waits for other writers to release the lock of a file.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
/// Limits for resolving a path and for reading a file or directory, because a file system may never answer.
const LOCATE_TIMEOUT: Duration = Duration::from_secs(10);
const READ_TIMEOUT: Duration = Duration::from_secs(60);
/// Such an update waits on its thread until the old content is recorded, for which another thread may be needed. This
/// is far below the number of threads for blocking work, so that there is always one.
const MAX_UPDATES: usize = 64;

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
    /// Limits how many threads [`Machine::read_and_commit`] blocks at once.
    updates: Semaphore,
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
        let swept_folders = SweptFolders::default();
        let shared =
            Shared { locks, swept_folders, syscalls, updates: Semaphore::new(MAX_UPDATES) };
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
        match changes.first().map(CommitChange::at).cloned() {
            Some(first) => self.commit_on_thread(first, move || changes, recorded),
            None => Box::pin(std::future::ready(Ok(Vec::new()))),
        }
    }

    /// Makes the changes and applies them, all on one thread. `at` is the place to name if the thread panics.
    fn commit_on_thread(
        &self,
        at: Place,
        make_changes: impl FnOnce() -> Vec<CommitChange> + Send + 'static,
        recorded: AwaitRecorded,
    ) -> BoxFuture<'static, Result<Vec<Committed>, CommitError>> {
        let shared = self.shared.clone();
        Box::pin(async move {
            let (sender, receiver) = oneshot::channel();
            tokio::task::spawn_blocking(move || {
                let Shared { locks, swept_folders, syscalls, .. } = &*shared;
                let changes = make_changes();
                if changes.is_empty() {
                    sender.send(Ok(Vec::new())).ok();
                    return;
                }
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
                Err(CommitError::Failed { at, why })
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
        // Most paths were looked up a moment ago. Waking another thread would take much longer than looking at the
        // cache.
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

    fn read_and_commit<'a>(
        &'a self,
        at: Place,
        max_bytes: u64,
        compute: ComputeChange,
        recorded: AwaitRecorded,
    ) -> BoxFuture<'a, Result<Vec<Committed>, CommitError>> {
        let (file, fault_check) = (at.clone(), self.check_fault("load"));
        let make_changes = move || {
            let cancellation = Cancellation::after(READ_TIMEOUT);
            let content =
                fault_check.and_then(|()| read::read_file(&file, max_bytes, &cancellation));
            compute(content).into_iter().collect()
        };
        Box::pin(async move {
            // The semaphore is never closed.
            let _permit = self.shared.updates.acquire().await.ok();
            self.commit_on_thread(at, make_changes, recorded).await
        })
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::{Arc, Mutex};

    use helve_core::commit::{ExpectedContent, FileMode, HardLinks, record_signal};
    use helve_core::machine::FileContent;

    use super::*;
    use crate::fixture::{folder, run};

    /// Whether the old content of the file is recorded.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Record {
        Confirmed,
        Failed,
    }

    /// Appends `new` to a file with the content `old`, unless `compute` returns none. Returns the files afterwards.
    fn update(
        record: Record,
        compute: fn(FileContent) -> Option<Vec<u8>>,
    ) -> (String, Vec<String>) {
        let (root, locks) = (folder(), folder());
        fs::write(root.path().join("a"), "old").unwrap();
        let machine = LocalMachine::with_lock_folder(locks.path());
        let at = Place { anchor: root.path().canonicalize().unwrap(), beneath: "a".into() };
        let place = at.clone();
        let change = move |content: Result<FileContent, MachineError>| {
            let content = content.unwrap();
            let expect = ExpectedContent::File(content.bytes.clone());
            let (mode, links) = (FileMode::Keep, HardLinks::Replace);
            let bytes = compute(content)?.into();
            Some(CommitChange::Write { at: place, expect, bytes, mode, links })
        };
        let (recorded, awaited) = record_signal();
        match record {
            Record::Confirmed => recorded.confirm(),
            Record::Failed => drop(recorded),
        }
        let result = run(machine.read_and_commit(at, 100, Box::new(change), awaited));
        let result = match result {
            Ok(committed) => format!("{} committed", committed.len()),
            Err(error) => error.to_string(),
        };
        let files = fs::read_dir(root.path()).unwrap().map(|entry| {
            let entry = entry.unwrap();
            let text = fs::read_to_string(entry.path()).unwrap();
            format!("{} = {text}", entry.file_name().display())
        });
        (result, files.collect())
    }

    fn append(content: FileContent) -> Option<Vec<u8>> {
        Some([&content.bytes, &b" new"[..]].concat())
    }

    #[test]
    fn a_computed_change_is_committed() {
        assert_eq!(
            update(Record::Confirmed, append),
            ("1 committed".into(), vec!["a = old new".into()])
        );
    }

    #[test]
    fn nothing_changes_unless_the_old_content_is_recorded() {
        assert_eq!(
            update(Record::Failed, append),
            ("the old content was not recorded".into(), vec!["a = old".into()])
        );
    }

    #[test]
    fn nothing_changes_if_nothing_is_computed() {
        let unchanged = vec!["a = old".to_owned()];
        for record in [Record::Confirmed, Record::Failed] {
            assert_eq!(update(record, |_| None), ("0 committed".into(), unchanged.clone()));
            assert_eq!(
                update(record, |_| panic!("broken")),
                ("the commit panicked".into(), unchanged.clone())
            );
        }
    }

    #[test]
    fn an_error_of_reading_is_passed_on() {
        let (root, locks) = (folder(), folder());
        let machine = LocalMachine::with_lock_folder(locks.path());
        let at = Place { anchor: root.path().canonicalize().unwrap(), beneath: "a".into() };
        let found = Arc::new(Mutex::new(None));
        let seen = found.clone();
        let compute = move |content: Result<FileContent, MachineError>| {
            *seen.lock().unwrap() = Some(content.map(|_| ()));
            None
        };
        let result =
            run(machine.read_and_commit(at, 100, Box::new(compute), AwaitRecorded::nothing()));
        assert_eq!(result, Ok(Vec::new()));
        assert_eq!(*found.lock().unwrap(), Some(Err(MachineError::NotFound)));
    }
}
