//! A dialect: the limits on output and the wording of all messages to a model. The core has no wording of its own.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use helve_policy::Refusal;
use helve_text::cut::{CutText, Limits};

use crate::input::BadInput;
use crate::machine::MachineError;
use crate::machine::commit::CommitError;
use crate::output::{Saved, ToolError};
use crate::server::ServerError;
use crate::validate::{ArgumentProblem, UnknownParameter};

/// The limits and wording of one set of tools.
pub struct Dialect {
    pub name: &'static str,
    pub limits: Limits,
    pub words: &'static dyn Words,
}

/// Output that was cut, with what the notice needs.
#[derive(Debug)]
pub struct OutputCut<'a> {
    pub pieces: CutText<'a>,
    /// `None` if the full output could not be saved.
    pub saved: Option<&'a Saved>,
    /// Whether the agent may delegate reading the rest to a sub-agent.
    pub may_delegate: bool,
}

/// Every message of the core to a model.
pub trait Words: Send + Sync {
    /// The kept text, with a notice of what was cut and how to continue.
    fn notice(&self, cut: &OutputCut<'_>) -> String;
    fn bad_input(&self, tool: &str, bad: &BadInput) -> String;
    fn invalid(&self, tool: &str, problems: &[ArgumentProblem]) -> String;
    /// Parameters that the tool does not have. The message is appended to its answer.
    fn unknown_parameters(&self, tool: &str, extra: &[UnknownParameter]) -> String;
    fn unknown_tool(&self, tool: &str, near: &[&str], all: &[&str]) -> String;
    fn refused(&self, refusal: &Refusal) -> ToolError;
    /// `shown` is the path that the error is about.
    fn machine_error(&self, shown: &str, error: &MachineError) -> ToolError;
    /// A text that is not a valid path: it contains NUL, is too long, or needs an unknown home folder.
    fn bad_path(&self, given: &str, why: &BadPath) -> ToolError;
    /// The call failed on a file before reading it was granted. The message must not reveal anything about the file.
    fn unasked(&self) -> ToolError;
    /// A change that was not applied. `shown` is the first file of the change.
    fn commit_failed(&self, shown: &str, why: &CommitFailure) -> ToolError;
    fn aborted(&self) -> ToolError;
    fn panicked(&self, tool: &str) -> ToolError;
    fn too_deep(&self, most: u8) -> ToolError;
    fn hook_failed(&self, hook: &str, why: &HookFault) -> ToolError;
    fn not_granted(&self) -> ToolError;
    /// The session's memory could not be read or written.
    fn memory_failed(&self, why: &str) -> ToolError;
    /// An MCP server failed.
    fn server_error(&self, server: &str, error: &ServerError) -> ToolError;
}

/// Why a text cannot name a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadPath {
    Empty,
    Nul,
    TooLong { limit: usize },
    NoHome,
}

/// How a hook failed. A call whose `before` hook failed does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookFault {
    Refused(Arc<str>),
    Panicked,
    TimedOut(Duration),
}

/// Why no file was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommitFailure {
    /// The file has changed where the change applies. `now` is its present content.
    Stale {
        shown: String,
        now: Option<Bytes>,
    },
    Commit {
        shown: String,
        error: CommitError,
    },
    /// The journal could not record the old content, so nothing was changed.
    Journal {
        why: String,
    },
}
