//! Processes on a machine: starting, watching and ending them.
//!
//! Requests and answers are plain data, as in [`crate::machine`]. A handle identifies a process.

use std::ffi::OsString;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::BoxFuture;

pub use helve_policy::ProcessId;

/// Operations on processes.
pub trait Processes: Send + Sync {
    /// Starts a process. If the future is dropped before it resolves, the process is ended.
    fn spawn(&self, request: Spawn) -> BoxFuture<'static, Result<ProcessId, SpawnError>>;

    /// Starts a process whose standard input and output are pipes that the caller gets. `stdin` of the request must be
    /// [`Stdin::Pipe`]. Its standard error is kept as its output.
    fn connect(&self, request: Spawn) -> BoxFuture<'static, Result<ConnectedProcess, SpawnError>>;

    /// Waits for a condition, then returns the output since a cursor. Dropping the future ends the wait, not the
    /// process.
    fn watch<'a>(
        &'a self,
        id: &'a ProcessId,
        request: WatchRequest,
    ) -> BoxFuture<'a, Result<WatchResult, ProcessError>>;

    /// Returns the beginning and the end of all output so far.
    fn output<'a>(
        &'a self,
        id: &'a ProcessId,
    ) -> BoxFuture<'a, Result<ProcessOutput, ProcessError>>;

    /// Types into the process's terminal.
    fn type_in<'a>(
        &'a self,
        id: &'a ProcessId,
        bytes: Bytes,
    ) -> BoxFuture<'a, Result<(), ProcessError>>;

    /// Sends a signal to every live process of the tree.
    fn signal<'a>(
        &'a self,
        id: &'a ProcessId,
        signal: Signal,
    ) -> BoxFuture<'a, Result<(), ProcessError>>;

    /// Ends the whole tree: sends TERM, waits for [`GRACE`], then sends KILL. Returns the number of ended processes.
    fn end<'a>(&'a self, id: &'a ProcessId) -> BoxFuture<'a, Result<usize, ProcessError>>;

    /// Lists the processes that any Helve process of the same user started, oldest first. Ended processes are listed
    /// until their handle expires.
    fn list(&self) -> BoxFuture<'_, Vec<Process>>;

    /// Returns which sandboxing the machine supports.
    fn sandbox_support(&self) -> BoxFuture<'_, SandboxSupport>;
}

/// How long a process gets between TERM and KILL.
pub const GRACE: Duration = Duration::from_millis(500);

/// What to start, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Spawn {
    /// The program and its arguments. The program is looked up in the PATH of `environment`.
    pub argv: Vec<OsString>,
    /// Absolute, with every link followed.
    pub folder: PathBuf,
    /// The complete environment.
    pub environment: Vec<(OsString, OsString)>,
    pub stdin: Stdin,
    /// `None` to run without a sandbox.
    pub sandbox: Option<SandboxPlan>,
    pub output: OutputPolicy,
    pub lifetime: Lifetime,
    /// The command, description and call that process lists show.
    pub about: ProcessInfo,
}

/// What a process reads as its standard input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stdin {
    /// Reads return end of file at once.
    Closed,
    /// A pseudo-terminal that can be typed into.
    Terminal { rows: u16, columns: u16 },
    /// A pipe, for [`Processes::connect`]. Standard output is a pipe too.
    Pipe,
}

/// A process that the caller talks to. Dropping the pipes closes them; it does not end the process.
pub struct ConnectedProcess {
    pub id: ProcessId,
    pub stdin: Box<dyn AsyncWrite + Send + Unpin>,
    pub stdout: Box<dyn AsyncRead + Send + Unpin>,
}

/// What a sandboxed process may write and read. All paths are absolute, with every link followed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxPlan {
    /// The only folders that are writable.
    pub writable: Vec<PathBuf>,
    /// Writable folders in which no git repository can be created, at any depth, and no existing one can be redirected
    /// to other settings.
    pub guarded: Vec<PathBuf>,
    /// Writable subfolders of a git folder that is not inside a guarded folder, such as the git folder of a linked
    /// worktree. Changes that would redirect git to another repository or to other settings are refused in them.
    pub git_folders: Vec<PathBuf>,
    /// Paths that are read-only even inside writable folders.
    pub protected: Vec<PathBuf>,
    /// Symbolic links inside writable folders that can be neither removed nor replaced. What they lead to is not
    /// affected.
    pub protected_links: Vec<PathBuf>,
    /// Files and folders that cannot be seen, even inside writable folders. Paths that do not exist are not affected.
    pub hidden: Vec<PathBuf>,
    /// Folders that can be read although they are inside hidden folders. Writable folders need not be listed.
    pub visible: Vec<PathBuf>,
    /// Folders that look writable, but whose changes go to a private copy.
    pub copied: Vec<CopiedFolder>,
    pub network: Network,
    pub limits: SandboxLimits,
}

/// Resource limits of a sandboxed command. `None` means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxLimits {
    /// Bytes of memory: of the whole command where a control group can be created, else of each process.
    pub memory: Option<u64>,
    /// Number of processes and threads.
    pub processes: Option<u64>,
    /// Maximum size of each file that is written, in bytes.
    pub file_size: Option<u64>,
}

/// A folder that looks writable to a sandboxed process; its changes go to a private copy. Only changed files are
/// copied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopiedFolder {
    pub folder: PathBuf,
    /// The folder in which the changes are kept. Two folders are created in it.
    pub changes: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    On,
    Off,
}

/// How much output of a process to keep. Before that, control sequences are stripped, repeated progress lines are
/// collapsed and secrets are redacted.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputPolicy {
    /// Number of bytes at the start of the output that are kept in memory.
    pub head: usize,
    /// Number of bytes at the end of the output that are kept in memory.
    pub tail: usize,
    /// A new private file for all output. Its folder is created if necessary.
    pub spool: Option<Spool>,
    /// Values to redact.
    pub secrets: Vec<Bytes>,
}

/// The file for all output of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spool {
    pub path: PathBuf,
    /// Output beyond this many bytes is only counted.
    pub max_bytes: u64,
}

/// How long a process may live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// The process is ended when this Helve process ends, even by a crash.
    Helve,
    /// The process outlives this Helve process. Other Helve processes of the same user can find it.
    Detached,
}

/// Identifies a process in lists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessInfo {
    pub command: String,
    pub description: String,
    /// Id of the call that started the process; empty if no call did.
    pub call: String,
    /// Id of the session of that call, or empty.
    pub session: String,
    pub root: PathBuf,
}

/// What to wait for, and which output to return.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchRequest {
    /// The cursor to start from, in bytes of kept output.
    pub from: u64,
    /// Maximum bytes to return.
    pub max_bytes: usize,
    /// Which bytes to return if there are more than `max_bytes`.
    pub excerpt: Excerpt,
    pub until: WaitCondition,
    pub timeout: Duration,
}

/// Which end of the output to return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excerpt {
    Newest,
    /// From the cursor on, so that all output can be read in sequence.
    Oldest,
}

impl WatchRequest {
    /// Returns the byte range to return, given the amount of output so far.
    pub fn window(&self, output_len: u64) -> Range<u64> {
        let (from, max) = (self.from.min(output_len), self.max_bytes as u64);
        match self.excerpt {
            Excerpt::Newest => from.max(output_len.saturating_sub(max))..output_len,
            Excerpt::Oldest => from..output_len.min(from.saturating_add(max)),
        }
    }
}

/// What a watch waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitCondition {
    /// Does not wait.
    Now,
    /// The process itself has ended and its output was read. Its children may live on.
    Ended,
    /// The whole tree has ended.
    AllEnded,
    /// This text appears at or after `from`.
    Text(String),
    /// A process of the tree listens on this TCP port on loopback.
    Port(u16),
}

/// Output and state of a process at the end of a wait.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchResult {
    /// Output since `from`, cut at character boundaries where it is UTF-8.
    pub text: Bytes,
    /// Bytes between `from` and the start of `text`.
    pub left_out: u64,
    /// The cursor to continue with.
    pub next: u64,
    pub outcome: WaitOutcome,
    pub process: Process,
}

/// Why the wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitOutcome {
    /// The condition was met.
    Met,
    /// The condition can no longer be met, because all processes have ended.
    Impossible,
    TimedOut,
}

/// A process that was started.
#[derive(Clone, Debug, PartialEq)]
pub struct Process {
    pub id: ProcessId,
    pub about: ProcessInfo,
    pub state: ProcessState,
    /// Live processes that this process started, directly or indirectly.
    pub children: Vec<ProcessMember>,
    /// A process that reads from its own output pipe, where no input will ever arrive. Some editors do this if there is
    /// no terminal.
    pub waiting_for_input: Option<ProcessMember>,
    /// CPU time of the live processes.
    pub cpu_time: Duration,
    /// Time since the start, or from the start to the end, by a monotonic clock.
    pub elapsed: Duration,
    /// Bytes of kept output.
    pub output_bytes: u64,
    pub is_terminal: bool,
    /// Whether the process belongs to another Helve process.
    pub is_foreign: bool,
    pub spool: Option<PathBuf>,
    /// Kinds of system calls that the sandbox denied, each once.
    pub denied_calls: Vec<DeniedCall>,
}

/// A kind of system call that the sandbox denied. The paths of denied writes are not reported this way, but found in
/// error messages in the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeniedCall {
    Network,
    /// Tracing another process or reading its memory.
    Tracing,
    /// Creating or writing a protected file, such as the settings of a new git repository.
    Protected,
    /// Writing to a file with another hard link that is protected or may be outside the writable folders.
    HardLink,
    /// Creating, renaming or opening a file for writing outside the writable folders.
    Outside,
    /// Writing to git folders at all, because the system does not let Helve check what is written there.
    GitFolders,
}

/// Whether a process runs, or how it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProcessState {
    Running,
    Exited(i32),
    /// Killed by this signal.
    Killed(i32),
    /// Ended with an unknown exit status.
    Lost,
}

/// A single process of a process tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessMember {
    pub pid: u32,
    /// The command line, cut to one line.
    pub command: String,
}

/// All output, or its start and end.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessOutput {
    /// The start of the output, or all of it if `left_out` is 0.
    pub head: Bytes,
    /// Number of bytes between `head` and `tail`.
    pub left_out: u64,
    /// The end of the output. It starts at the beginning of a line if possible.
    pub tail: Bytes,
    /// Number of lines in all output.
    pub lines: u64,
    pub bytes: u64,
    /// The spool file and how many bytes it holds.
    pub spooled: Option<(PathBuf, u64)>,
    /// How often a secret was redacted.
    pub redacted: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    Interrupt,
    Hangup,
    Terminate,
    Kill,
    Stop,
    Continue,
    User1,
    User2,
}

/// Which sandboxing a machine supports, and by what means.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct SandboxSupport {
    /// Restricting writes to certain folders.
    pub writes: Support,
    /// Making paths in writable folders read-only.
    pub protected: Support,
    /// Denying access to the network.
    pub network: Support,
    /// A limit on the number of processes in a tree.
    pub processes: Support,
    /// A limit on the memory of sandboxed commands.
    pub memory: Support,
}

/// Whether a kind of sandboxing works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Support {
    /// Supported by this means.
    Yes(String),
    /// Not supported for this reason.
    No(String),
}

impl Default for Support {
    fn default() -> Self {
        Support::No("programs cannot be run here".into())
    }
}

/// Why a process did not start. The dialect has the messages for models.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpawnError {
    #[error("program not found: {0}")]
    NoProgram(String),
    #[error("folder not found: {0}")]
    NoFolder(PathBuf),
    #[error("{0} is not a folder")]
    NotAFolder(PathBuf),
    #[error("cannot be sandboxed: {0}")]
    NotConfined(String),
    #[error("{0} processes are running already")]
    TooManyRunning(usize),
    #[error("the system allows no more processes")]
    NoMoreProcesses,
    #[error("the command is too long for the system")]
    TooLong,
    #[error("too many open files")]
    TooManyOpenFiles,
    /// No process can be started here at all: the keeper, the helper that starts all processes, does not run.
    #[error("processes cannot be started: {0}")]
    NoKeeper(String),
    #[error("{0}")]
    Other(String),
}

/// Why an operation on a running process failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProcessError {
    #[error("no such process")]
    Unknown,
    #[error("the process has ended")]
    Ended,
    #[error("the process has no terminal")]
    NoTerminal,
    #[error("the process belongs to another Helve process")]
    Foreign,
    #[error("{0}")]
    Other(String),
}
