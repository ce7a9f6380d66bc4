//! Interprets the gathered files as a configuration.

use helve_core::Source;

use super::agent::{Agent, AgentEntry, AgentMode, Agents, FinishedAgents};
use super::builtin::DEFAULT_AGENT;
use super::config_file::{Authority, ConfigFile, ExpandMode, FileContext};
use super::explain::SettingLine;
use super::gather::{ConfigFileKind, ConfigFiles, GatheredFile};
use super::jsonc::{self, ParsedJson};
use super::languages::LanguageSection;
use super::load::ConfigHost;
use super::problem::{ConfigProblem, Severity};
use super::programs::{self, BashSection, EnvironmentSection, SandboxSection};
use super::rules::RuleList;
use super::scripts::ScriptSection;
use super::tree::{ConfigEntry, ConfigNode, ConfigValue, Position, PositionTracker, repeated};
use super::web::WebSection;
use super::yaml::{self, FrontMatter};
use super::{
    CommandTemplate, Config, ConfigLayer, EditSection, InstructionFile, ModelSection, ServerConfig,
    Skill, SourceFile, ToolOutputLimits, Trust, WithSource, commands, keys, mcp, mcp_json,
    messages, skills,
};

/// Maximum values of `tool_output`.
const MAX_LINES: u64 = 1_000_000;
const MAX_BYTES: u64 = 16 << 20;

pub(super) fn interpret(files: &ConfigFiles, host: &dyn ConfigHost, trust: Trust) -> Config {
    let (included, tool_files) = (&files.included, files.tool_files.as_slice());
    let context = FileContext { host, home: files.home.as_deref(), included, tool_files };
    let mut draft = ConfigDraft::new(trust, files.problems.clone());
    for item in files.items.iter().chain(&files.skills) {
        draft.read_item(item, &context);
    }
    draft.finish(files)
}

/// Sub-agents nested deeper than this would reach the limit on nested calls.
const MAX_SUBAGENT_DEPTH: u64 = 3;

struct ConfigDraft {
    trust: Trust,
    user: RuleList,
    project: RuleList,
    agents: Agents,
    tool_output: ToolOutputLimits,
    edit: EditSection,
    web: WebSection,
    scripts: ScriptSection,
    languages: LanguageSection,
    models: ModelSection,
    servers: Vec<ServerConfig>,
    default_agent: Option<WithSource<String>>,
    /// The `default_agent` of the user's files.
    user_default_agent: Option<String>,
    subagent_depth: Option<WithSource<u64>>,
    shell: Vec<WithSource<String>>,
    bash: BashSection,
    sandbox: SandboxSection,
    environment: EnvironmentSection,
    problems: Vec<ConfigProblem>,
    sources: Vec<SourceFile>,
    commands: Vec<CommandTemplate>,
    skills: Vec<Skill>,
    needs_trust: Vec<SettingLine>,
    /// Known keys that have no effect.
    unused_keys: Vec<WithSource<String>>,
}

impl ConfigDraft {
    fn new(trust: Trust, problems: Vec<ConfigProblem>) -> Self {
        Self {
            trust,
            user: RuleList::default(),
            project: RuleList::default(),
            agents: Agents::builtin(),
            tool_output: ToolOutputLimits::default(),
            edit: EditSection::default(),
            web: WebSection::default(),
            scripts: ScriptSection::default(),
            languages: LanguageSection::default(),
            models: ModelSection::default(),
            servers: Vec::new(),
            default_agent: None,
            user_default_agent: None,
            subagent_depth: None,
            shell: Vec::new(),
            bash: BashSection::default(),
            sandbox: SandboxSection::default(),
            environment: EnvironmentSection::default(),
            problems,
            sources: Vec::new(),
            commands: Vec::new(),
            skills: Vec::new(),
            needs_trust: Vec::new(),
            unused_keys: Vec::new(),
        }
    }

    fn read_item(&mut self, item: &GatheredFile, context: &FileContext<'_>) {
        let (Ok(contents), Some(text)) = (&item.content, item.text()) else {
            if let Err(why) = &item.content {
                let text = messages::unreadable(why);
                self.problems.push(ConfigProblem::of_file(
                    item.path.clone(),
                    Severity::Error,
                    text,
                ));
            }
            return self.mark_broken(item, Position::START);
        };
        let (path, layer, bytes) = (item.path.clone(), item.layer, contents.bytes.len());
        self.sources.push(SourceFile { path: path.clone(), layer, bytes });
        // If a file is not UTF-8, only its valid beginning is kept, so that the error can quote the line where that
        // ends.
        let (Ok(valid_prefix) | Err(valid_prefix)) = text;
        let authority = Authority::of(layer, self.trust);
        let mut file =
            ConfigFile::new(path, &contents.real, valid_prefix, (layer, authority), context);
        match (text, &item.kind) {
            (Err(valid_prefix), _) => {
                let at = PositionTracker::new(valid_prefix).position(valid_prefix.len());
                file.error(at, messages::not_text);
                self.mark_broken(item, at);
            }
            (Ok(text), ConfigFileKind::Json) => self.read_json(&mut file, item, text),
            (Ok(text), ConfigFileKind::McpJson) => self.read_mcp_json(&mut file, text),
            (Ok(text), ConfigFileKind::ClaudeSettings) => {
                if let ParsedJson::Complete(node) = jsonc::parse(text)
                    && let ConfigValue::Map(entries) = &node.data
                {
                    for hooks in entries.iter().filter(|entry| entry.key == "hooks") {
                        self.scripts.read_hooks(&mut file, &hooks.value);
                    }
                }
            }
            (Ok(text), ConfigFileKind::Agent { name, primary }) => {
                let mode = if *primary { AgentMode::Primary } else { AgentMode::All };
                self.read_markdown(&mut file, item, (name, mode), text);
            }
            (Ok(text), ConfigFileKind::Command { name }) => {
                let (commands, needs_trust) = (&mut self.commands, &mut self.needs_trust);
                commands::read_markdown(&mut file, name, text, commands, needs_trust);
            }
            (Ok(text), ConfigFileKind::Skill) => {
                let skill = skills::read_skill(&mut file, text);
                match authority {
                    Authority::Full => self.skills.extend(skill),
                    Authority::RestrictOnly => {
                        self.needs_trust.extend(skill.map(|it| it.into_trust_line(&file)));
                    }
                }
            }
        }
        self.problems.extend(file.into_problems());
    }

    /// Fails closed: a file that could not be interpreted may have contained denies.
    fn mark_broken(&mut self, item: &GatheredFile, at: Position) {
        let Position { line, column } = at;
        let source = Source::File { path: item.path.clone(), line, column };
        match &item.kind {
            ConfigFileKind::Json => self.rules(item.layer).mark_broken(source),
            // Such files contain no rules.
            ConfigFileKind::McpJson
            | ConfigFileKind::ClaudeSettings
            | ConfigFileKind::Command { .. }
            | ConfigFileKind::Skill => {}
            ConfigFileKind::Agent { name, .. } => self.agents.mark_broken(name, source, item.layer),
        }
    }

    fn rules(&mut self, layer: ConfigLayer) -> &mut RuleList {
        match layer {
            ConfigLayer::User => &mut self.user,
            ConfigLayer::Project => &mut self.project,
        }
    }

    fn read_json(&mut self, file: &mut ConfigFile<'_>, item: &GatheredFile, text: &str) {
        let (node, is_complete) = match jsonc::parse(text) {
            ParsedJson::Empty => return,
            ParsedJson::Complete(node) => (node, true),
            ParsedJson::Broken { before, at, why } => {
                file.error(at, || why);
                self.mark_broken(item, at);
                let Some(node) = before else { return };
                (node, false)
            }
        };
        match &node.data {
            ConfigValue::Map(entries) if is_complete => self.read_entries(file, entries),
            ConfigValue::Map(entries) => self.read_partial(file, entries),
            other if is_complete => {
                file.error(node.at, || messages::not_an_object(other));
                self.mark_broken(item, node.at);
            }
            _ => {}
        }
    }

    fn read_mcp_json(&mut self, file: &mut ConfigFile<'_>, text: &str) {
        let node = match jsonc::parse(text) {
            ParsedJson::Empty => return,
            ParsedJson::Complete(node) => node,
            ParsedJson::Broken { at, why, .. } => return file.error(at, || why),
        };
        let ConfigValue::Map(entries) = &node.data else {
            return file.error(node.at, || messages::not_an_object(&node.data));
        };
        if let Some(section) = mcp_json::to_mcp_section(file, entries) {
            mcp::read_section(file, &section, &mut self.servers, &mut self.needs_trust);
        }
    }

    /// Reads from a file with a syntax error only what restricts policy.
    fn read_partial(&mut self, file: &mut ConfigFile<'_>, entries: &[ConfigEntry]) {
        self.rules(file.layer).read(file, entries);
        for entry in entries {
            match entry.key.as_str() {
                "agent" | "mode" => self.agents.read_partial(file, &entry.value),
                "sandbox" => programs::read_sandbox(file, &entry.value, &mut self.sandbox),
                _ => {}
            }
        }
    }

    fn read_entries(&mut self, file: &mut ConfigFile<'_>, entries: &[ConfigEntry]) {
        self.rules(file.layer).read(file, entries);
        for (again, first) in repeated(entries) {
            if !matches!(again.key.as_str(), "permission" | "tools") {
                file.warn(again.at, || messages::repeated(&again.key, first.at));
            }
        }
        for entry in entries {
            self.read_entry(file, entry);
        }
    }

    fn read_entry(&mut self, file: &mut ConfigFile<'_>, entry: &ConfigEntry) {
        let (key, node) = (entry.key.as_str(), &entry.value);
        match key {
            "agent" => {
                self.agents.read_section(file, (key, node), AgentMode::All, &mut self.needs_trust)
            }
            "mode" => self.agents.read_section(
                file,
                (key, node),
                AgentMode::Primary,
                &mut self.needs_trust,
            ),
            "command" | "commands" => {
                commands::read_section(file, (key, node), &mut self.commands, &mut self.needs_trust)
            }
            "mcp" => mcp::read_section(file, node, &mut self.servers, &mut self.needs_trust),
            "sandbox" => programs::read_sandbox(file, node, &mut self.sandbox),
            "plugin" => self.scripts.read_plugins(file, node),
            "programs" => self.scripts.read_programs(file, node),
            "hooks" => {
                let unused = self.scripts.read_hooks(file, node);
                self.unused_keys.extend(unused);
            }
            "environment" => {
                let section = &mut self.environment;
                programs::read_environment(file, node, section, &mut self.needs_trust);
            }
            "shell" | "bash" | "default_agent" | "subagent_depth" | "tool_output" | "edit"
            | "files" | "web" | "javascript" | "model" | "small_model" | "provider"
            | "enabled_providers" | "disabled_providers" | "compaction" | "lsp" | "formatter" => {
                match file.authority {
                    Authority::Full => self.read_setting(file, key, node),
                    Authority::RestrictOnly => {
                        self.needs_trust.push(SettingLine::needing_trust(file, &[], entry))
                    }
                }
            }
            other if keys::READ_ELSEWHERE.contains(&other) => {}
            other if keys::TOP.contains(&other) => {
                let source = file.source(entry.at);
                self.unused_keys.push(WithSource::new(other.to_owned(), source));
            }
            other => file
                .warn(entry.at, || messages::unknown_key(other, keys::nearest(other, keys::TOP))),
        }
    }

    fn read_setting(&mut self, file: &mut ConfigFile<'_>, key: &str, node: &ConfigNode) {
        match key {
            "tool_output" => read_tool_output(file, node, &mut self.tool_output),
            "edit" => self.edit.read_edit(file, node),
            "files" => self.edit.read_files(file, node),
            "web" => self.web.read(file, node),
            "javascript" => self.scripts.read_javascript(file, node),
            "lsp" | "formatter" => self.languages.read(file, key, node),
            "shell" => programs::read_shell(file, node, &mut self.shell),
            "bash" => programs::read_bash(file, node, &mut self.bash),
            "model" | "small_model" | "provider" | "enabled_providers" | "disabled_providers"
            | "compaction" => {
                self.models.read(file, key, node);
            }
            "subagent_depth" => {
                let depth = file.positive(key, node, MAX_SUBAGENT_DEPTH);
                self.subagent_depth = depth.or(self.subagent_depth.take());
            }
            _ => {
                let agent = file.text(key, node, ExpandMode::Lenient);
                if let (ConfigLayer::User, Some(agent)) = (file.layer, &agent) {
                    self.user_default_agent = Some(agent.value.clone());
                }
                self.default_agent = agent.or(self.default_agent.take());
            }
        }
    }

    fn read_markdown(
        &mut self,
        file: &mut ConfigFile<'_>,
        item: &GatheredFile,
        (name, mode): (&str, AgentMode),
        text: &str,
    ) {
        let markdown = yaml::parse(text);
        let (node, at) = match markdown.front_matter {
            FrontMatter::None => (None, Position::START),
            FrontMatter::Fields(node) => {
                let at = node.at;
                (Some(node), at)
            }
            FrontMatter::Broken { at, why } => {
                file.error(at, || messages::in_agent(why));
                self.mark_broken(item, at);
                (None, at)
            }
        };
        let fields = match node.as_ref().map(|node| &node.data) {
            Some(ConfigValue::Map(fields)) => fields.as_slice(),
            Some(other) => {
                file.error(at, || messages::not_an_object(other));
                self.mark_broken(item, at);
                &[]
            }
            None => &[],
        };
        let body = (!markdown.body.trim().is_empty()).then(|| {
            let start = text.len() - markdown.body.trim_start().len();
            let at = PositionTracker::new(text).position(start);
            WithSource::new(markdown.body.trim().to_owned(), file.source(at))
        });
        let named = fields.iter().rev().find_map(|field| match &field.value.data {
            ConfigValue::Text(text) if field.key == "name" && !text.trim().is_empty() => Some(text),
            _ => None,
        });
        let name = named.map_or(name, |name| name.trim());
        self.agents.read_agent(
            file,
            AgentEntry { name, at, fields, body, mode },
            &mut self.needs_trust,
        );
    }

    fn finish(self, files: &ConfigFiles) -> Config {
        let (user_rules, user_tool_switches) = self.user.finish();
        let (project_rules, project_tool_switches) = self.project.finish();
        let FinishedAgents { enabled: agents, disabled } = self.agents.finish();
        let mut problems = self.problems;
        let skills = skills::without_repeated(self.skills, &mut problems);
        let default_agent = self.default_agent.filter(|name| {
            // A plugin may bring the agent.
            let severity =
                if self.scripts.plugins.is_empty() { Severity::Error } else { Severity::Warning };
            let problem = check_default(name, &agents, files, severity);
            let is_valid = problem.is_none();
            problems.extend(problem);
            is_valid
        });
        let is_project = |source: &Source| {
            let Source::File { path, .. } = source else { return false };
            let item = files.items.iter().find(|item| item.path == *path);
            item.is_some_and(|item| item.layer == ConfigLayer::Project)
        };
        let user_agent = self.user_default_agent.as_deref().unwrap_or(DEFAULT_AGENT);
        let is_disabled = |(agent, disabled_by): &(Agent, Source)| {
            agent.name == user_agent && is_project(disabled_by)
        };
        let is_replaced = default_agent.as_ref().is_some_and(|it| is_project(&it.source))
            || disabled.iter().any(is_disabled);
        let disabled = disabled.iter().map(|(agent, _)| agent);
        let replaced_agent = is_replaced
            .then(|| replaced_agent(agents.iter().chain(disabled), self.user_default_agent))
            .flatten();
        problems.extend(files.instructions.iter().filter_map(instruction_problem));
        Config {
            user_rules,
            project_rules,
            user_tool_switches,
            project_tool_switches,
            agents,
            tool_output: self.tool_output,
            edit: self.edit,
            web: self.web,
            scripts: self.scripts,
            languages: self.languages,
            models: self.models,
            servers: self.servers,
            default_agent,
            replaced_agent,
            subagent_depth: self.subagent_depth,
            shell: self.shell,
            bash: self.bash,
            sandbox: self.sandbox,
            environment: self.environment,
            instructions: files.instructions.clone(),
            commands: self.commands,
            skills,
            skill_folders: files.skill_folders.clone(),
            problems,
            sources: self.sources,
            digest: files.digest().to_owned(),
            needs_trust: self.needs_trust,
            trust: self.trust,
            root: files.root.clone(),
            user_folders: files.user_folders.clone(),
            unused_keys: self.unused_keys,
            digested_files: files.digested_files.clone(),
        }
    }
}

/// Reports an instruction file that cannot be used.
fn instruction_problem(file: &InstructionFile) -> Option<ConfigProblem> {
    let text = match &file.content {
        Err(why) => messages::unreadable(why),
        Ok(contents) if std::str::from_utf8(&contents.bytes).is_err() => {
            messages::include_is_not_text(&file.path)
        }
        Ok(_) => return None,
    };
    Some(ConfigProblem::of_file(file.path.as_path().into(), Severity::Warning, text))
}

fn read_tool_output(file: &mut ConfigFile<'_>, node: &ConfigNode, limits: &mut ToolOutputLimits) {
    let Some(fields) = file.map("tool_output", node) else { return };
    for field in fields {
        let name = messages::key_path(&["tool_output", &field.key]);
        let (slot, max) = match field.key.as_str() {
            "max_lines" => (&mut limits.max_lines, MAX_LINES),
            "max_bytes" => (&mut limits.max_bytes, MAX_BYTES),
            other => {
                let nearest = keys::nearest(other, keys::TOOL_OUTPUT);
                file.warn(field.at, || messages::unknown_key(other, nearest));
                continue;
            }
        };
        if let Some(count) = file.positive(&name, &field.value, max) {
            *slot = Some(count);
        }
    }
}

/// Returns the user's default agent, which a project replaced with another one.
fn replaced_agent<'a>(
    mut agents: impl Iterator<Item = &'a Agent>,
    named_by_user: Option<String>,
) -> Option<Agent> {
    let name = named_by_user.as_deref().unwrap_or(DEFAULT_AGENT);
    let mut agent = agents.find(|agent| agent.name == name)?.clone();
    if named_by_user.is_none() {
        agent.rules.retain(|rule| rule.source != Source::Builtin);
    }
    Some(agent)
}

/// Checks that the default agent exists and that a person can start it.
fn check_default(
    name: &WithSource<String>,
    agents: &[Agent],
    files: &ConfigFiles,
    severity: Severity,
) -> Option<ConfigProblem> {
    let found = agents.iter().find(|agent| agent.name == name.value);
    if found.is_some_and(Agent::is_startable_by_person) {
        return None;
    }
    let names: Vec<_> = agents
        .iter()
        .filter(|agent| agent.is_startable_by_person())
        .map(|agent| agent.name.as_str())
        .collect();
    let message = match found {
        Some(_) => messages::agent_is_not_primary(name.as_written(), &names),
        None => messages::no_such_agent(name.as_written(), &names),
    };
    let Source::File { path, line, column } = &name.source else { return None };
    let item = files.items.iter().find(|item| item.path == *path);
    let text = item.and_then(GatheredFile::text).and_then(Result::ok).unwrap_or_default();
    let at = Position { line: *line, column: *column };
    Some(ConfigProblem::in_text(path.clone(), severity, message, (text, at)))
}
