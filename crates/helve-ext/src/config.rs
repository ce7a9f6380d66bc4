//! Configuration: which files there are, what they say, and where each value was written.
//!
//! Read in this order, later ones winning:
//! 1. the user's: `helve.json`, `helve.jsonc` and `agent(s)/**/*.md` of the user's folder, then every `--config` file;
//! 2. the project's, from its root only: the servers of `.mcp.json`, `opencode.json(c)`, `.opencode/opencode.json(c)`, `.opencode/agent(s)` and
//!    `mode(s)`; `helve.json(c)`, `.helve/helve.json(c)`, `.helve/agent(s)`.
//!
//! Single values replace. Rules and switches are appended, so that a later file's match decides, in two lists: the user's
//! and the project's; how these meet is for `helve_core`. Agents merge field by field. An MCP server replaces one of the
//! same name as a whole. While a project is untrusted only its rules, switches, new agents, (marked) servers, a stricter
//! sandbox and a smaller environment are taken;
//! everything else of it waits, and its `{env:…}` and `{file:…}` are refused.
//!
//! What cannot be understood becomes a [`Problem`] and is left out. Wherever that could loosen policy (a file that does not
//! parse or cannot be read, anything wrong in `permission` or `tools`) the whole layer asks instead: denies hold, nothing is
//! allowed. A [`Config`] is a value: files that change afterwards change nothing until they are gathered again, and then
//! the digest of a project has changed too. No file is ever written.

mod agent;
mod builtin;
mod changes;
mod expand;
mod explain;
mod gather;
mod jsonc;
mod keys;
mod load;
mod mcp;
mod mcp_json;
mod page;
mod problem;
mod programs;
mod rules;
mod shadow;
mod tree;
mod understand;
mod words;
mod yaml;

use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use helve_core::Switch;
use helve_core::permission::{Rule, Source};

pub use agent::{Agent, Mode, Origin};
pub use changes::{Changes, HardLinks, Matching, SyntaxCheck};
pub use explain::{Listed, State};
pub use gather::{Gathered, Places, gather};
pub use load::{DEEPEST, Disk, MOST_BYTES, MOST_NOTES, Notes, Outside, Reach, Taken, Unreadable};
pub use mcp::{Server, Transport};
pub use problem::{Excerpt, Problem, Severity};
pub use programs::{Bash, EnvironmentSection, SandboxSection};
pub use tree::At;

/// Everything that is in force, and what is wrong with it.
#[derive(Clone, Debug)]
pub struct Config {
    /// The user's rules; the last match decides.
    pub user: Vec<Rule>,
    /// The project's rules, for a wall of their own or to be appended, as trust says.
    pub project: Vec<Rule>,
    /// The user's `tools` map.
    pub switches: Vec<Switch>,
    pub project_switches: Vec<Switch>,
    /// Built-in ones first, then in the order they were first mentioned; disabled ones are left out.
    pub agents: Vec<Agent>,
    pub tool_output: ToolOutput,
    pub changes: Changes,
    pub servers: Vec<Server>,
    /// Names one of `agents` that a person may start.
    pub default_agent: Option<Given<String>>,
    /// The program that runs commands, and its arguments before the command's; empty: the default.
    pub shell: Vec<Given<String>>,
    pub bash: Bash,
    pub sandbox: SandboxSection,
    pub environment: EnvironmentSection,
    pub problems: Vec<Problem>,
    /// Every file that was read, in order.
    pub sources: Vec<FileRead>,
    /// Changes whenever a configuration file of the project does; what a person trusts.
    pub digest: String,
    waiting: Vec<Listed>,
}

/// Limits of what a model is shown of one output.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolOutput {
    pub max_lines: Option<Given<u64>>,
    pub max_bytes: Option<Given<u64>>,
}

/// Whose a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    User,
    Project,
}

/// Whether a person trusted the project as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    Trusted,
    Untrusted,
}

/// A file that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRead {
    pub path: Arc<Path>,
    pub layer: Layer,
    pub bytes: usize,
}

/// A value and where it was given.
#[derive(Clone, Debug, PartialEq)]
pub struct Given<T> {
    pub value: T,
    pub source: Source,
    /// The text with its `{env:…}` and `{file:…}`, where it had any: what they stand for may be a secret.
    written: Option<String>,
}

impl<T> Given<T> {
    pub fn new(value: T, source: Source) -> Self {
        Self { value, source, written: None }
    }
}

impl<T> Deref for Given<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl Given<String> {
    /// The text as it stands in the file, to be shown.
    pub fn shown(&self) -> &str {
        self.written.as_deref().unwrap_or(&self.value)
    }
}

#[cfg(test)]
mod tests;
