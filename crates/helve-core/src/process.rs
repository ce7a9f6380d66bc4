//! Programs that run on a machine: what is started, what is told of it, how it ends.
//!
//! Plain data in, plain data out, like the verbs on files: a running program is a handle.

use std::ffi::OsString;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::BoxFuture;

pub use helve_policy::ProcessId;

/// The verbs on programs.
pub trait Processes: Send + Sync {
    /// Starts a program. It ends by itself, by [`Processes::end`], or with Helve; dropping the future
    /// before it resolves ends it too.
    fn spawn(&self, want: Spawn) -> BoxFuture<'static, Result<ProcessId, SpawnError>>;

    /// Waits until something holds, then tells what was said since a cursor. Dropping the future ends
    /// the waiting, not the program.
    fn watch<'a>(
        &'a self,
        id: &'a ProcessId,
        want: WatchRequest,
    ) -> BoxFuture<'a, Result<WatchResult, ProcessError>>;

    /// The beginning and the end of everything it said so far.
    fn output<'a>(
        &'a self,
        id: &'a ProcessId,
    ) -> BoxFuture<'a, Result<ProcessOutput, ProcessError>>;

    /// Types into a terminal session.
    fn type_in<'a>(
        &'a self,
        id: &'a ProcessId,
        bytes: Bytes,
    ) -> BoxFuture<'a, Result<(), ProcessError>>;

    /// Sends a signal to every process that the program started and that still lives.
    fn signal<'a>(
        &'a self,
        id: &'a ProcessId,
        signal: Signal,
    ) -> BoxFuture<'a, Result<(), ProcessError>>;

    /// Ends the whole tree: TERM, [`GRACE`], KILL. Resolves when nothing of it lives, with how many were ended.
    fn end<'a>(&'a self, id: &'a ProcessId) -> BoxFuture<'a, Result<usize, ProcessError>>;

    /// What this Helve started and what other Helves of the same user run, oldest first. Those that
    /// ended are told until their handle is forgotten.
    fn list(&self) -> BoxFuture<'_, Vec<Process>>;

    /// What confinement can be had here.
    fn confinement(&self) -> BoxFuture<'_, SandboxSupport>;
}

/// How long a program may take to end when it is asked to.
pub const GRACE: Duration = Duration::from_millis(500);

/// What is started, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Spawn {
    /// The program and its arguments; the program is looked up in the environment's PATH.
    pub program: Vec<OsString>,
    /// Absolute, with every link followed.
    pub folder: PathBuf,
    /// The whole environment.
    pub environment: Vec<(OsString, OsString)>,
    pub stdin: Stdin,
    pub confine: Option<SandboxPlan>,
    pub keep: OutputPolicy,
    pub lifetime: Lifetime,
    /// For whoever lists it.
    pub about: ProcessInfo,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stdin {
    /// Reading finds the end at once.
    Closed,
    /// A terminal of its own, that can be typed into.
    Terminal { rows: u16, columns: u16 },
}

/// What a program is kept from. Reading is not restricted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxPlan {
    /// Writing is possible below these and nowhere else.
    pub writable: Vec<PathBuf>,
    /// Not below these, even where a folder above is writable.
    pub protected: Vec<PathBuf>,
    pub network: Network,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    On,
    Off,
}

/// What is kept of the output, after control sequences were taken out, progress lines collapsed and
/// secrets replaced.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputPolicy {
    /// Bytes kept in memory from the beginning and from the end.
    pub head: usize,
    pub tail: usize,
    /// A new private file that takes everything; its folder is made if it is not there.
    pub spool: Option<Spool>,
    /// Values that are never told.
    pub secrets: Vec<Bytes>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spool {
    pub path: PathBuf,
    /// What comes after so many bytes is counted only.
    pub most: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// Nothing of it outlives Helve, however Helve ends.
    Helve,
    /// Goes on when this process is gone; other Helves of the user find it.
    Beyond,
}

/// Whose program it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessInfo {
    pub command: String,
    pub description: String,
    pub call: String,
    pub session: String,
    pub root: PathBuf,
}

/// What to wait for and what to tell.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchRequest {
    /// Where telling begins, counted in bytes of output as kept.
    pub from: u64,
    /// At most so many bytes are told.
    pub most: usize,
    /// Which, if there are more.
    pub told: Excerpt,
    pub until: WaitCondition,
    pub deadline: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excerpt {
    Newest,
    /// Those at the cursor, so that all can be read one after the other.
    Oldest,
}

impl WatchRequest {
    /// Which bytes are told, of as many as were said.
    pub fn window(&self, said: u64) -> Range<u64> {
        let (from, most) = (self.from.min(said), self.most as u64);
        match self.told {
            Excerpt::Newest => from.max(said.saturating_sub(most))..said,
            Excerpt::Oldest => from..said.min(from.saturating_add(most)),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitCondition {
    Now,
    /// The program itself has ended and what it said has been taken in. Others that it started may live on.
    Ended,
    /// Nothing that it started lives.
    AllEnded,
    /// This text appears at or after `from`.
    Text(String),
    /// Something of the tree listens on this TCP port of the loopback.
    Port(u16),
}

#[derive(Clone, Debug, PartialEq)]
pub struct WatchResult {
    /// Output since `from`, on whole characters where it is UTF-8.
    pub text: Bytes,
    /// Bytes between `from` and the beginning of `text`.
    pub left_out: u64,
    /// The cursor to go on with.
    pub next: u64,
    pub met: WaitOutcome,
    pub process: Process,
}

/// Why the waiting ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitOutcome {
    Yes,
    /// It cannot come any more: everything has ended.
    Never,
    Deadline,
}

/// A program that was started.
#[derive(Clone, Debug, PartialEq)]
pub struct Process {
    pub id: ProcessId,
    pub about: ProcessInfo,
    pub state: ProcessState,
    /// Other processes that it started and that live.
    pub children: Vec<ProcessMember>,
    /// One of it that turned to where it writes for its input, as editors without a terminal do: none can come.
    pub waits: Option<ProcessMember>,
    /// How long what lives has computed.
    pub worked: Duration,
    /// From its start to its end, or to now, by a clock that does not jump.
    pub took: Duration,
    /// Bytes of output as kept.
    pub said: u64,
    pub is_terminal: bool,
    /// Whether another Helve runs it.
    pub is_foreign: bool,
    pub spool: Option<PathBuf>,
    /// What it asked the system for and did not get, each once, as far as this is told.
    pub withheld: Vec<DeniedCall>,
}

/// What a confined program asked the system for and did not get. What it may not write it learns from the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeniedCall {
    Network,
    /// To trace another process, or to look into its memory.
    Tracing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProcessState {
    Running,
    Exited(i32),
    /// By a signal, its number.
    Killed(i32),
    /// Ended, and nobody saw how.
    Lost,
}

/// A process in a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessMember {
    pub pid: u32,
    /// As in a list of processes, cut to a line.
    pub command: String,
}

/// Everything a program said, or its two ends.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessOutput {
    /// All of it where `left_out` is 0.
    pub head: Bytes,
    pub left_out: u64,
    /// On a line's beginning where there is one near.
    pub tail: Bytes,
    /// Lines of all output.
    pub lines: u64,
    pub bytes: u64,
    /// How much of it the spool holds, where there is one.
    pub spooled: Option<(PathBuf, u64)>,
    /// How often a secret was replaced.
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

/// What a machine can confine, and with what.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct SandboxSupport {
    pub writes: Support,
    pub protected: Support,
    pub network: Support,
    /// A bound on the number of processes of one tree.
    pub processes: Support,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Support {
    /// By this means.
    Yes(String),
    /// For this reason.
    No(String),
}

impl Default for Support {
    fn default() -> Self {
        Support::No("programs cannot be run here".into())
    }
}

/// Why a program did not start. A value: the dialect words it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpawnError {
    #[error("there is no program {0}")]
    NoProgram(String),
    #[error("the folder {0} is not there")]
    NoFolder(PathBuf),
    #[error("{0} is not a folder")]
    NotAFolder(PathBuf),
    #[error("it cannot be confined: {0}")]
    NotConfined(String),
    #[error("{0} programs run already")]
    TooMany(usize),
    #[error("no more processes can be started")]
    NoMoreProcesses,
    #[error("the command is too long for the system")]
    TooLong,
    #[error("too many open files")]
    TooManyOpen,
    /// Programs cannot be kept here at all, for this reason.
    #[error("no programs can be run: {0}")]
    NoKeeper(String),
    #[error("{0}")]
    Other(String),
}

/// Why a verb on a running program failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProcessError {
    #[error("there is no such program")]
    Unknown,
    #[error("it has ended")]
    Ended,
    #[error("it has no terminal")]
    NoTerminal,
    #[error("another Helve runs it")]
    Foreign,
    #[error("{0}")]
    Other(String),
}
