//! A dialect: limits, and the words for what the spine has to say. The spine has none of its own.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use helve_policy::Refusal;
use helve_text::cut::{Limits, Pieces};

use crate::input::BadInput;
use crate::machine::MachineError;
use crate::machine::commit::CommitError;
use crate::output::{Saved, ToolError};
use crate::server::ServerError;
use crate::validate::{ArgumentProblem, UnknownParameter};

/// Limits and words of one way of speaking to a model.
pub struct Dialect {
    pub name: &'static str,
    pub limits: Limits,
    pub words: &'static dyn Words,
}

/// A cut that was made, with what the notice needs to know.
#[derive(Debug)]
pub struct OutputCut<'a> {
    pub pieces: Pieces<'a>,
    /// `None` when the whole could not be saved.
    pub saved: Option<&'a Saved>,
    /// Whether the agent may hand the reading to a sub-agent.
    pub may_delegate: bool,
}

/// Everything the spine may have to say to a model.
pub trait Words: Send + Sync {
    /// The kept text with a notice of what was cut and how to go on.
    fn notice(&self, cut: &OutputCut<'_>) -> String;
    fn bad_input(&self, tool: &str, bad: &BadInput) -> String;
    fn invalid(&self, tool: &str, problems: &[ArgumentProblem]) -> String;
    /// Parameters that the tool does not have; appended to its answer.
    fn ignored(&self, tool: &str, extra: &[UnknownParameter]) -> String;
    fn unknown(&self, tool: &str, near: &[&str], all: &[&str]) -> String;
    fn refused(&self, refusal: &Refusal) -> ToolError;
    /// `shown` is the path that it is about.
    fn machine(&self, shown: &str, error: &MachineError) -> ToolError;
    /// A path that is no path: NUL, an unknown home folder, too long.
    fn bad_path(&self, given: &str, why: &BadPath) -> ToolError;
    /// The call failed over a file that nobody was asked about.
    fn unspoken(&self) -> ToolError;
    /// A change that was not made; `shown` is the file it began with.
    fn unmade(&self, shown: &str, why: &CommitFailure) -> ToolError;
    fn aborted(&self) -> ToolError;
    fn panicked(&self, tool: &str) -> ToolError;
    fn too_deep(&self, most: u8) -> ToolError;
    fn hook_failed(&self, hook: &str, why: &HookFault) -> ToolError;
    fn not_granted(&self) -> ToolError;
    fn memory_failed(&self, why: &str) -> ToolError;
    /// An MCP server could not do its part.
    fn server(&self, server: &str, trouble: &ServerError) -> ToolError;
}

/// Why a text cannot name a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadPath {
    Empty,
    Nul,
    TooLong { most: usize },
    NoHome,
}

/// How a hook failed; a call whose `before` failed does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookFault {
    Refused(Arc<str>),
    Panicked,
    TimedOut(Duration),
}

/// Why nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommitFailure {
    /// The file changed where the change applies; here is how it reads now.
    Stale {
        shown: String,
        now: Option<Bytes>,
    },
    Commit {
        shown: String,
        error: CommitError,
    },
    /// What was there could not be taken down, so nothing was touched.
    Journal {
        why: String,
    },
}
