//! Reads configuration: which files exist, what they set, and where each value comes from.
//!
//! Files are read in this order. Later ones win.
//! 1. the user's: opencode's own folder (`~/.config/opencode`) unless `"opencode": false` switches it off;
//!    `helve.json`, `helve.jsonc`, `agent(s)/**/*.md` and `command(s)/**/*.md` in Helve's folder; then every `--config`
//!    file or folder;
//! 2. the project's, in its root only: the servers of `.mcp.json`, `opencode.json(c)`, `.opencode/opencode.json(c)`,
//!    `.opencode/agent(s)` and `mode(s)`; `helve.json(c)`, `.helve/helve.json(c)`, `.helve/agent(s)`.
//!
//! Single values replace earlier ones. Rules (of `permission`) and tool switches (of `tools`) are appended, and the
//! last match decides. There are two lists, the user's and the project's, which `helve_core` combines. Agents merge
//! field by field. An MCP server replaces an earlier one of the same name entirely. An untrusted project contributes
//! only rules, tool switches, new agents, servers (marked as untrusted), a stricter sandbox and fewer environment
//! variables. Its other settings have no effect until it is trusted, and its `{env:…}` and `{file:…}` references are
//! refused.
//!
//! Anything invalid becomes a [`ConfigProblem`] and is ignored. If ignoring it could loosen the policy, every rule of
//! the file becomes at least an ask: denies stay, allows become asks. That happens if a file cannot be read or parsed,
//! and for any mistake in `permission` or `tools`. A [`Config`] is a snapshot: it does not follow later changes of the
//! files. After a change, gathering the files again yields another digest. This module writes no file.

mod agent;
mod builtin;
mod commands;
mod config_file;
mod edit;
mod expand;
mod explain;
mod gather;
mod includes;
mod instructions;
mod interpret;
mod jsonc;
mod keys;
mod languages;
mod lint;
mod load;
mod mcp;
mod mcp_json;
mod messages;
mod models;
mod problem;
mod programs;
mod rules;
mod scripts;
mod skill_folders;
mod skills;
mod tree;
mod web;
mod yaml;

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use helve_core::ToolSwitch;
use helve_core::{Rule, Source};

pub use agent::{Agent, AgentMode, AgentOrigin};
pub use builtin::DEFAULT_AGENT;
pub use commands::CommandTemplate;
pub use edit::{DiagnosticsMode, EditSection, HardLinkMode, MatchMode, SyntaxMode};
pub use explain::{SettingLine, SettingState, builtin_rules};
pub use gather::{ConfigFiles, ConfigPaths, PluginSettings, gather, gather_with_plugins};
pub use instructions::{INSTRUCTION_NAMES, InstructionFile};
pub use languages::{LanguageSection, ToolchainEntry, ToolchainSection};
pub use load::{
    ConfigHost, ConfigReadError, Disk, FileContents, FileStamp, FolderFiles, LinkPolicy, MAX_DEPTH,
    MAX_FILE_BYTES, MAX_MARKDOWN_FILES,
};
pub use mcp::{ServerConfig, ServerTransport};
pub use models::{CompactionConfig, CostConfig, ModelConfig, ModelSection, ProviderConfig};
pub use problem::{ConfigProblem, ProblemExcerpt, Severity};
pub use programs::{BashSection, EnvironmentSection, SandboxSection};
pub use scripts::{HookConfig, PluginConfig, ProgramConfig, ScriptSection};
pub use skill_folders::{CurrentSkills, SkillFolders};
pub use skills::{SKILL_FILE, Skill};
pub use tree::Position;
pub use web::{CertificateFile, SearchConfig, WebSection};

/// The configuration in effect, and its problems.
#[derive(Clone, Debug)]
pub struct Config {
    /// The user's rules. The last match decides.
    pub user_rules: Vec<Rule>,
    /// The project's rules: a separate wall, or appended to the user's, depending on trust.
    pub project_rules: Vec<Rule>,
    /// The user's `tools` map.
    pub user_tool_switches: Vec<ToolSwitch>,
    pub project_tool_switches: Vec<ToolSwitch>,
    /// Built-in agents first, then in the order of their first mention. Disabled ones are omitted.
    pub agents: Vec<Agent>,
    pub tool_output: ToolOutputLimits,
    pub edit: EditSection,
    pub web: WebSection,
    pub scripts: ScriptSection,
    pub languages: LanguageSection,
    pub models: ModelSection,
    pub servers: Vec<ServerConfig>,
    /// Name of one of `agents` that a person may start.
    pub default_agent: Option<WithSource<String>>,
    /// If the project names a `default_agent`: the agent that the user's own files would choose. What that agent
    /// forbids stays forbidden.
    pub replaced_agent: Option<Agent>,
    /// How deep sub-agents may be nested.
    pub subagent_depth: Option<WithSource<u64>>,
    /// The program that runs commands, with its leading arguments. Empty for the default.
    pub shell: Vec<WithSource<String>>,
    pub bash: BashSection,
    pub sandbox: SandboxSection,
    pub environment: EnvironmentSection,
    /// Instruction files, outermost first. Those of the project have no effect until it is trusted.
    pub instructions: Vec<InstructionFile>,
    /// Commands that a person can run by name, each name once.
    pub commands: Vec<CommandTemplate>,
    /// Skills, each name once. Those of an untrusted project are not read.
    pub skills: Vec<Skill>,
    /// Where `skills` were found, to read them again.
    pub skill_folders: SkillFolders,
    pub problems: Vec<ConfigProblem>,
    /// Every file that was read, in order.
    pub sources: Vec<SourceFile>,
    /// Digest of the project's configuration and instruction files. A person trusts a project by its digest.
    pub digest: String,
    /// Settings of an untrusted project that have no effect yet.
    needs_trust: Vec<SettingLine>,
    /// Whether the project was trusted when its files were interpreted.
    trust: Trust,
    /// The root of the workspace.
    root: PathBuf,
    /// The user's folders that were read, in order. They may contain tools and plugins.
    pub user_folders: Vec<PathBuf>,
    /// The files that `digest` covers, each with a hash of its content.
    pub digested_files: Vec<(PathBuf, String)>,
    /// Known keys that have no effect in Helve, in the order of the files.
    pub unused_keys: Vec<WithSource<String>>,
}

impl Config {
    /// Returns the agent that is used if nobody names one: the default agent, else `build`, else the first that a
    /// person may start.
    pub fn main_agent(&self) -> Option<&Agent> {
        let name = self.default_agent.as_ref().map_or(DEFAULT_AGENT, |name| name.value.as_str());
        let is_startable_by_person = |agent: &&Agent| agent.is_startable_by_person();
        let named =
            self.agents.iter().filter(is_startable_by_person).find(|agent| agent.name == name);
        named.or_else(|| self.agents.iter().find(is_startable_by_person))
    }
}

/// Limits on how much of an output a model is shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolOutputLimits {
    pub max_lines: Option<WithSource<u64>>,
    pub max_bytes: Option<WithSource<u64>>,
}

/// Whether a file belongs to the user or to the project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigLayer {
    User,
    Project,
}

/// Whether a person trusted the project with its current files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    Trusted,
    Untrusted,
}

/// A file that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    pub path: Arc<Path>,
    pub layer: ConfigLayer,
    pub bytes: usize,
}

/// A value and where it was set.
#[derive(Clone, Debug, PartialEq)]
pub struct WithSource<T> {
    pub value: T,
    pub source: Source,
    /// The text with its references unexpanded, if it had any: the expanded values may be secrets.
    raw: Option<String>,
}

impl<T> WithSource<T> {
    pub fn new(value: T, source: Source) -> Self {
        Self { value, source, raw: None }
    }
}

impl<T> Deref for WithSource<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl WithSource<String> {
    /// Returns the text with its `{env:…}` and `{file:…}` references unexpanded. It is not safe to show if the file
    /// itself may contain a secret.
    pub fn as_written(&self) -> &str {
        self.raw.as_deref().unwrap_or(&self.value)
    }
}

#[cfg(test)]
mod tests;
