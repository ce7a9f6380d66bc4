//! Runs programs through a keeper, a helper process that makes sure that no program hangs a call or is left behind.
#![expect(
    clippy::disallowed_methods,
    reason = "this module starts programs, reads /proc, and writes spools and records in the data folder"
)]

mod detached;
mod foreign;
pub mod keeper;
mod keeper_client;
mod output_buffer;
mod port;
mod program;
mod pump;
mod records;
mod spawn;
mod spool;
mod sys;
mod tree;
mod watch;
mod wire;

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use helve_core::BoxFuture;
use helve_core::process::{
    ConnectedProcess, Process, ProcessError, ProcessId, ProcessOutput, Processes, SandboxSupport,
    Signal, Spawn, SpawnError, Support, WatchRequest, WatchResult,
};
use parking_lot::Mutex;
use tokio::io::unix::AsyncFd;
use tokio::task::AbortHandle;

pub use keeper_client::KeeperCommand;

use crate::confine;
use keeper_client::KeeperClient;
use program::{Program, ProgramStatus};
use records::ProgramRecord;

/// How long a warden, the process that watches over one program, may take to end its tree before Helve does it itself.
const WARDEN_TIMEOUT: Duration = Duration::from_millis(800);

/// How long to wait for the program to read typed input.
const TYPE_TIMEOUT: Duration = Duration::from_secs(5);

/// How processes are run.
#[derive(Clone, Debug)]
pub struct ProcessSettings {
    /// The command that starts the keeper, or why there is no keeper.
    pub keeper: Result<KeeperCommand, String>,
    /// A private folder through which the Helve processes of a user know each other's programs.
    pub records_folder: PathBuf,
    /// Maximum number of programs that run at once.
    pub max_running: usize,
    /// Maximum number of remembered programs, including ended ones.
    pub max_remembered: usize,
}

impl ProcessSettings {
    pub fn new(keeper: KeeperCommand, records_folder: impl Into<PathBuf>) -> Self {
        ProcessSettings {
            keeper: Ok(keeper),
            records_folder: records_folder.into(),
            max_running: 64,
            max_remembered: 512,
        }
    }
}

/// The processes of this machine. Dropping it ends those that this Helve started.
#[derive(Clone, Debug)]
pub struct LocalProcesses {
    shared: Arc<SharedProcesses>,
}

#[derive(Debug)]
struct SharedProcesses {
    settings: ProcessSettings,
    client: Arc<KeeperClient>,
    table: Mutex<ProgramTable>,
}

#[derive(Debug, Default)]
struct ProgramTable {
    starting: usize,
    running: Vec<TableEntry>,
    /// Programs that have ended, in the order in which this was noticed.
    ended: VecDeque<TableEntry>,
}

#[derive(Debug)]
struct TableEntry {
    program: Arc<Program>,
    monitor: AbortHandle,
}

impl Drop for TableEntry {
    fn drop(&mut self) {
        // The task owns the connection to the warden; closing it ends the program.
        self.monitor.abort();
    }
}

impl LocalProcesses {
    pub fn new(settings: ProcessSettings) -> Self {
        let client = KeeperClient::new(settings.keeper.clone());
        LocalProcesses {
            shared: Arc::new(SharedProcesses { settings, client, table: Mutex::default() }),
        }
    }

    async fn find(&self, id: &ProcessId) -> Result<ProgramOwner, ProcessError> {
        if let Some(program) = self.shared.table.lock().find(id) {
            return Ok(ProgramOwner::Ours(program));
        }
        let (folder, id) = (self.shared.settings.records_folder.clone(), id.clone());
        blocking(move || foreign::find(&folder, &id))
            .await?
            .map(|record| ProgramOwner::Foreign(Box::new(record)))
    }
}

/// Whether this Helve or another one runs a program.
enum ProgramOwner {
    Ours(Arc<Program>),
    Foreign(Box<ProgramRecord>),
}

impl Processes for LocalProcesses {
    fn spawn(&self, request: Spawn) -> BoxFuture<'static, Result<ProcessId, SpawnError>> {
        let shared = self.shared.clone();
        Box::pin(async move { shared.spawn(request).await })
    }

    fn connect(&self, request: Spawn) -> BoxFuture<'static, Result<ConnectedProcess, SpawnError>> {
        let shared = self.shared.clone();
        Box::pin(async move { shared.connect(request).await })
    }

    fn watch<'a>(
        &'a self,
        id: &'a ProcessId,
        request: WatchRequest,
    ) -> BoxFuture<'a, Result<WatchResult, ProcessError>> {
        Box::pin(async move {
            match self.find(id).await? {
                ProgramOwner::Ours(program) => watch::watch(program, request).await,
                ProgramOwner::Foreign(record) => {
                    foreign::watch(self.shared.settings.records_folder.clone(), *record, request)
                        .await
                }
            }
        })
    }

    fn output<'a>(
        &'a self,
        id: &'a ProcessId,
    ) -> BoxFuture<'a, Result<ProcessOutput, ProcessError>> {
        Box::pin(async move {
            match self.find(id).await? {
                ProgramOwner::Ours(program) => Ok(program.output()),
                ProgramOwner::Foreign(record) => blocking(move || foreign::output(&record)).await,
            }
        })
    }

    fn type_in<'a>(
        &'a self,
        id: &'a ProcessId,
        bytes: Bytes,
    ) -> BoxFuture<'a, Result<(), ProcessError>> {
        Box::pin(async move {
            match self.find(id).await? {
                ProgramOwner::Ours(program) => type_in(&program, &bytes).await,
                ProgramOwner::Foreign(record) if !record.is_terminal => {
                    Err(ProcessError::NoTerminal)
                }
                ProgramOwner::Foreign(_) => Err(ProcessError::Foreign),
            }
        })
    }

    fn signal<'a>(
        &'a self,
        id: &'a ProcessId,
        signal: Signal,
    ) -> BoxFuture<'a, Result<(), ProcessError>> {
        Box::pin(async move {
            let signals = signal_numbers(signal);
            match self.find(id).await? {
                ProgramOwner::Ours(program) => {
                    let warden = program.pin_warden();
                    let warden = warden.ok_or(ProcessError::Ended)?;
                    let signalled = blocking(move || tree::signal(warden, signals)).await?;
                    if signalled.is_empty() { Err(ProcessError::Ended) } else { Ok(()) }
                }
                ProgramOwner::Foreign(record) => {
                    blocking(move || foreign::signal(&record, signals)).await?
                }
            }
        })
    }

    fn end<'a>(&'a self, id: &'a ProcessId) -> BoxFuture<'a, Result<usize, ProcessError>> {
        Box::pin(async move {
            match self.find(id).await? {
                ProgramOwner::Ours(program) => end(program).await,
                ProgramOwner::Foreign(record) => blocking(move || foreign::end(&record)).await?,
            }
        })
    }

    fn list(&self) -> BoxFuture<'_, Vec<Process>> {
        Box::pin(async move {
            let programs = self.shared.table.lock().all();
            let folder = self.shared.settings.records_folder.clone();
            blocking(move || list(&programs, &folder)).await.unwrap_or_default()
        })
    }

    fn sandbox_support(&self) -> BoxFuture<'_, SandboxSupport> {
        let keeper = self.shared.settings.keeper.clone();
        Box::pin(async move {
            let support = match keeper {
                Ok(_) => blocking(confine::probe).await.map_err(|error| error.to_string()),
                Err(why) => Err(why),
            };
            match support {
                Ok(support) => {
                    let (processes, memory) =
                        (keeper::process_limit_support(), keeper::memory_limit_support());
                    SandboxSupport { processes, memory, ..support }
                }
                Err(why) => {
                    let no = || Support::No(why.clone());
                    SandboxSupport {
                        writes: no(),
                        protected: no(),
                        network: no(),
                        processes: no(),
                        memory: no(),
                    }
                }
            }
        })
    }
}

/// Lists our own programs and those of other Helve processes, oldest first.
fn list(programs: &[Arc<Program>], folder: &Path) -> Vec<Process> {
    let now = records::monotonic_ms();
    let mut all: Vec<_> =
        programs.iter().map(|program| (program.began.elapsed(), program.describe())).collect();
    for record in ProgramRecord::all(folder) {
        if !programs.iter().any(|program| program.id == record.id) {
            let age = Duration::from_millis(now.saturating_sub(record.program_started_ms));
            all.push((age, foreign::describe(&record)));
        }
    }
    all.sort_by_key(|(age, _)| Reverse(*age));
    all.into_iter().map(|(_, process)| process).collect()
}

/// Maximum total size of the output of ended programs kept in memory.
const MAX_KEPT_OUTPUT_BYTES: usize = 32 << 20;

impl ProgramTable {
    fn add(&mut self, entry: TableEntry, max: usize) {
        self.running.push(entry);
        let ended = self
            .running
            .extract_if(.., |entry| entry.program.status().borrow().has_monitor_ended());
        self.ended.extend(ended);
        let mut kept_bytes: usize =
            self.ended.iter().map(|entry| entry.program.in_memory_bytes()).sum();
        while self.running.len() + self.ended.len() > max || kept_bytes > MAX_KEPT_OUTPUT_BYTES {
            let Some(oldest) = self.ended.pop_front() else { break };
            kept_bytes -= oldest.program.in_memory_bytes();
        }
    }

    /// Searches the newest programs first, because they are usually requested.
    fn find(&self, id: &ProcessId) -> Option<Arc<Program>> {
        let mut all = self.running.iter().rev().chain(self.ended.iter().rev());
        all.find(|entry| entry.program.id == *id).map(|entry| entry.program.clone())
    }

    fn all(&self) -> Vec<Arc<Program>> {
        self.ended.iter().chain(&self.running).map(|entry| entry.program.clone()).collect()
    }

    fn running_count(&self) -> usize {
        self.running.iter().filter(|entry| !entry.program.has_all_ended()).count() + self.starting
    }
}

async fn type_in(program: &Program, bytes: &[u8]) -> Result<(), ProcessError> {
    if !program.is_terminal {
        return Err(ProcessError::NoTerminal);
    }
    let terminal = program.terminal().filter(|_| !program.has_all_ended());
    let terminal = terminal.ok_or(ProcessError::Ended)?;
    match tokio::time::timeout(TYPE_TIMEOUT, write_all(&terminal, bytes)).await {
        Ok(typed) => typed.map_err(|error| ProcessError::Other(error.to_string())),
        Err(_) => Err(ProcessError::Other("the program does not read what is typed".into())),
    }
}

async fn write_all(terminal: &AsyncFd<OwnedFd>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let mut ready = terminal.writable().await?;
        if let Ok(written) = ready.try_io(|terminal| Ok(rustix::io::write(terminal, bytes)?)) {
            bytes = &bytes[written?..];
        }
    }
    Ok(())
}

async fn end(program: Arc<Program>) -> Result<usize, ProcessError> {
    let warden = program.pin_warden();
    if let Some(warden) = warden
        && program.is_terminal
    {
        // An interactive shell ignores SIGTERM, but not SIGHUP.
        blocking(move || tree::signal(warden, &[rustix::process::Signal::HUP])).await?;
    }
    program.ask_to_end();
    if let Some(warden) = warden {
        // The program may have stopped its warden. SIGCONT is harmless otherwise.
        rustix::process::kill_process(warden, rustix::process::Signal::CONT).ok();
    }
    let mut status = program.status();
    let all_ended = status.wait_for(|status| status.killed_at_end.is_some());
    if let Ok(Ok(status)) = tokio::time::timeout(WARDEN_TIMEOUT, all_ended).await {
        return Ok(ended_count(&status));
    }
    // The warden did not end the tree in time: do it from here.
    let record = program.record_now();
    let ended = blocking(move || foreign::end(&record)).await?;
    if !matches!(ended, Err(ProcessError::Ended) | Ok(0)) {
        return ended;
    }
    // The warden was only late, and reports the number of processes itself.
    let all_ended = status.wait_for(|status| status.killed_at_end.is_some());
    match tokio::time::timeout(WARDEN_TIMEOUT, all_ended).await {
        Ok(Ok(status)) => Ok(ended_count(&status)),
        Ok(Err(_)) | Err(_) => ended,
    }
}

fn ended_count(status: &ProgramStatus) -> usize {
    usize::try_from(status.killed_at_end.unwrap_or_default()).unwrap_or(usize::MAX)
}

fn signal_numbers(signal: Signal) -> &'static [rustix::process::Signal] {
    use rustix::process::Signal as Number;
    match signal {
        Signal::Interrupt => &[Number::INT],
        Signal::Hangup => &[Number::HUP],
        Signal::Terminate => &[Number::TERM],
        Signal::Kill => &[Number::KILL],
        Signal::Stop => &[Number::STOP],
        Signal::Continue => &[Number::CONT],
        Signal::User1 => &[Number::USR1],
        Signal::User2 => &[Number::USR2],
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ProcessError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| ProcessError::Other(error.to_string()))
}
