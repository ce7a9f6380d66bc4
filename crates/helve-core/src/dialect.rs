//! A dialect: the limits on output and the wording of all messages to a model. The core has no wording of its own.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use helve_policy::{Part, Refusal, Verdict};
use helve_text::cut::{CutText, Limits};

use crate::foreign::AmbiguousName;
use crate::input::BadInput;
use crate::machine::MachineError;
use crate::machine::commit::CommitError;
use crate::output::{Saved, ToolError};
use crate::server::ServerError;
use crate::validate::{ArgumentProblem, UnknownParameter};

/// The output limits and the wording of one family of tools.
pub struct Dialect {
    pub name: &'static str,
    pub limits: Limits,
    pub words: &'static dyn Words,
}

/// Output that was cut to the limits, with what the notice about the cut must say.
#[derive(Debug)]
pub struct OutputCut<'a> {
    /// The text that was kept.
    pub pieces: CutText<'a>,
    /// `None` if the full output could not be saved.
    pub saved: Option<&'a Saved>,
    /// Whether the agent may delegate reading the rest to a sub-agent.
    pub may_delegate: bool,
}

/// Every message of the core to a model.
pub trait Words: Send + Sync {
    /// Returns the kept text, with a notice of what was cut and how to read the rest.
    fn cut_output(&self, cut: &OutputCut<'_>) -> String;
    /// The arguments cannot be parsed.
    fn bad_input(&self, tool: &str, bad: &BadInput) -> String;
    /// The arguments do not satisfy the schema of the tool.
    fn invalid(&self, tool: &str, problems: &[ArgumentProblem]) -> String;
    /// Reports parameters that the tool does not have. The message is appended to the tool's answer.
    fn unknown_parameters(&self, tool: &str, extra: &[UnknownParameter]) -> String;
    /// The call is refused because of parameters that the tool does not have, `extra`. `accepted` are those that it
    /// has.
    fn refused_parameters(
        &self,
        tool: &str,
        extra: &[UnknownParameter],
        accepted: &[&str],
    ) -> ToolError;
    /// A parameter is given under two names with different values.
    fn ambiguous_name(&self, tool: &str, ambiguous: &AmbiguousName) -> ToolError;
    /// No tool is called `tool`. `near` are similar names, `all` the names of all offered tools.
    fn unknown_tool(&self, tool: &str, near: &[&str], all: &[&str]) -> String;
    /// The tool exists, but is switched off or always denied.
    fn denied_tool(&self, tool: &str) -> ToolError;
    /// Says in one clause why a part is asked about or denied.
    fn reason(&self, part: &Part, verdict: &Verdict) -> String;
    /// The call needs a permission that it did not get.
    fn refused(&self, refusal: &Refusal) -> ToolError;
    /// `display_path` is the displayed path of the file that the operation failed on.
    fn machine_error(&self, display_path: &str, error: &MachineError) -> ToolError;
    /// A text cannot be a path, for example because it begins with `~` while the home folder is unknown.
    fn bad_path(&self, given: &str, why: &BadPath) -> ToolError;
    /// A change was not applied. `display_path` is the displayed path of its first file.
    fn commit_failed(&self, display_path: &str, why: &CommitFailure) -> ToolError;
    /// A preview was requested of a tool that has none.
    fn no_preview(&self, tool: &str) -> ToolError;
    fn aborted(&self) -> ToolError;
    fn panicked(&self, tool: &str) -> ToolError;
    fn too_deep(&self, max_depth: u8) -> ToolError;
    fn hook_failed(&self, hook: &str, why: &HookFault) -> ToolError;
    /// The tool attempted something that its grant does not cover.
    fn not_granted(&self) -> ToolError;
    /// The session's memory could not be read or written.
    fn store_failed(&self, why: &str) -> ToolError;
    /// An MCP server failed.
    fn server_error(&self, server: &str, error: &ServerError) -> ToolError;
}

/// Why a text cannot be a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadPath {
    Empty,
    Nul,
    TooLong {
        limit: usize,
    },
    /// The text begins with `~`, and the home folder is unknown.
    NoHome,
}

/// How a hook failed. A call whose `before` hook failed does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookFault {
    Refused(Arc<str>),
    Panicked,
    TimedOut(Duration),
}

/// Why a change was not applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommitFailure {
    /// The file has changed in the meantime, and the change cannot be rebased. `base` is the content that the change
    /// was computed from, `now` the current content; both are `None` if they are unknown or there is no file.
    Stale {
        display_path: String,
        base: Option<Bytes>,
        now: Option<Bytes>,
    },
    Commit {
        display_path: String,
        error: CommitError,
    },
    /// The journal could not record the old content, so nothing was changed.
    Journal {
        why: String,
    },
}
