//! Lists every setting in effect, with its source.

use helve_core::ToolSwitch;
use helve_core::process::Network;
use helve_core::{Action, Rule, Source, builtin};

use super::agent::AgentMode;
use super::config_file::ConfigFile;
use super::tree::{ConfigEntry, ConfigNode, ConfigValue};
use super::{Agent, Config, ServerConfig, ServerTransport, Trust, WithSource, messages, rules};

/// One line of the output of `helve config`.
#[derive(Clone, Debug, PartialEq)]
pub struct SettingLine {
    /// Path of the key: `permission.bash."git *"`.
    pub key: String,
    pub value: String,
    pub source: Source,
    pub state: SettingState,
    /// For a rule: its permission.
    pub permission: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingState {
    Active,
    /// Has no effect until the project is trusted.
    NeedsTrust,
}

impl SettingLine {
    pub(super) fn new(key: &[&str], value: impl Into<String>, source: &Source) -> Self {
        let (key, value) = (messages::key_path(key), messages::display_text(&value.into()));
        let (source, state) = (source.clone(), SettingState::Active);
        Self { key, value, source, state, permission: None }
    }

    /// The value of a key that no configuration sets.
    pub fn default_value(key: &[&str], value: impl Into<String>) -> Self {
        Self::new(key, value, &Source::Builtin)
    }

    /// An entry of an untrusted project, shown as written.
    pub(super) fn needing_trust(
        file: &ConfigFile<'_>,
        parent_keys: &[&str],
        entry: &ConfigEntry,
    ) -> Self {
        let key: Vec<_> = parent_keys.iter().copied().chain([entry.key.as_str()]).collect();
        let value = abbreviate(&entry.value);
        let source = file.source(entry.at);
        Self { state: SettingState::NeedsTrust, ..Self::new(&key, value, &source) }
    }

    pub(super) fn text_needing_trust(key: &[&str], text: &WithSource<String>) -> Self {
        Self { state: SettingState::NeedsTrust, ..Self::new(key, text.as_written(), &text.source) }
    }
}

impl Config {
    /// Returns the settings in effect, then those that have no effect until the project is trusted. Rules are in the
    /// order in which they are matched.
    pub fn explain(&self) -> impl Iterator<Item = SettingLine> + '_ {
        let rules = list_rules(&[], &self.user_rules)
            .chain(self.mark_if_untrusted(list_rules(&[], &self.project_rules)));
        let switches = self.user_tool_switches.iter().chain(&self.project_tool_switches);
        let text = |key: &'static str, given: &Option<WithSource<String>>| {
            given.as_ref().map(|given| SettingLine::new(&[key], given.as_written(), &given.source))
        };
        let number = |path: &[&str], given: &Option<WithSource<u64>>| {
            let given = given.as_ref()?;
            Some(SettingLine::new(path, given.value.to_string(), &given.source))
        };
        let count = |key: &str, given| number(&["tool_output", key], given);
        let wait = number(&["edit", "diagnostics_timeout"], &self.edit.diagnostics_timeout);
        rules
            .chain(switches.map(|switch| list_switch(&[], switch)))
            .chain(text("default_agent", &self.default_agent))
            .chain(number(&["subagent_depth"], &self.subagent_depth))
            .chain(self.list_programs())
            .chain(count("max_lines", &self.tool_output.max_lines))
            .chain(count("max_bytes", &self.tool_output.max_bytes))
            .chain(
                self.edit
                    .choices()
                    .into_iter()
                    .map(|(key, name)| SettingLine::new(&key, name.value, &name.source)),
            )
            .chain(wait)
            .chain(self.web.lines())
            .chain(self.scripts.lines(self.trust))
            .chain(self.languages.lines())
            .chain(self.models.lines())
            .chain(self.agents.iter().flat_map(|agent| self.list_agent(agent)))
            .chain(self.servers.iter().flat_map(list_server))
            .chain(self.needs_trust.iter().cloned())
    }
}

/// Returns the rules that apply before any configuration, in the order in which they are matched.
pub fn builtin_rules() -> Vec<SettingLine> {
    list_rules(&[], &builtin::rules()).collect()
}

impl Config {
    fn list_programs(&self) -> Vec<SettingLine> {
        let Config { shell, bash, sandbox, environment, .. } = self;
        let mut all = Vec::new();
        if let Some(program) = shell.first() {
            let command: Vec<_> = shell.iter().map(WithSource::as_written).collect();
            all.push(SettingLine::new(&["shell"], command.join(" "), &program.source));
        }
        let times = [("timeout", &bash.timeout), ("max_timeout", &bash.max_timeout)];
        for (key, time) in times {
            let Some(time) = time else { continue };
            all.push(SettingLine::new(&["bash", key], time.value.to_string(), &time.source));
        }
        if let Some(mode) = &sandbox.mode {
            all.push(SettingLine::new(&["sandbox"], mode.value.as_str(), &mode.source));
        }
        if let Some(network) = &sandbox.network {
            let on = matches!(network.value, Network::On);
            all.push(SettingLine::new(&["sandbox", "network"], on.to_string(), &network.source));
        }
        for folder in &sandbox.writable {
            let key = ["sandbox", "writable"];
            all.push(SettingLine::new(&key, folder.as_written(), &folder.source));
        }
        if let Some(caches) = &sandbox.caches {
            let key = ["sandbox", "caches"];
            all.push(SettingLine::new(&key, caches.value.to_string(), &caches.source));
        }
        for (key, limit) in [
            ("memory", &sandbox.memory),
            ("processes", &sandbox.processes),
            ("file_size", &sandbox.file_size),
        ] {
            if let Some(limit) = limit {
                let text = limit.value.to_string();
                all.push(SettingLine::new(&["sandbox", key], text, &limit.source));
            }
        }
        if let Some(inherit) = &environment.inherit {
            let key = ["environment", "inherit"];
            all.push(SettingLine::new(&key, inherit.value.as_str(), &inherit.source));
        }
        for (key, patterns) in
            [("include", &environment.include), ("exclude", &environment.exclude)]
        {
            let line = |pattern: &WithSource<String>| {
                SettingLine::new(&["environment", key], pattern.as_written(), &pattern.source)
            };
            all.extend(patterns.iter().map(line));
        }
        for (name, value) in &environment.set {
            // Variables often hold tokens.
            let shown = value.raw.as_deref().unwrap_or(messages::HIDDEN);
            all.push(SettingLine::new(&["environment", "set", name], shown, &value.source));
        }
        all
    }
}

fn list_rules<'a>(
    parent_keys: &'a [&'a str],
    rules: &'a [Rule],
) -> impl Iterator<Item = SettingLine> + 'a {
    rules.iter().map(move |rule| {
        let mut key = parent_keys.to_vec();
        key.extend(["permission", &rule.permission, rule.pattern.as_str()]);
        let line = SettingLine::new(&key, rules::action_name(rule.action), &rule.source);
        SettingLine { permission: Some(rule.permission.clone()), ..line }
    })
}

fn list_switch(parent_keys: &[&str], switch: &ToolSwitch) -> SettingLine {
    let mut key = parent_keys.to_vec();
    key.extend(["tools", &switch.pattern]);
    SettingLine::new(&key, switch.on.to_string(), &switch.source)
}

impl Config {
    /// Marks rules of the project that allow something, if the project is untrusted.
    fn mark_if_untrusted<'a>(
        &self,
        lines: impl Iterator<Item = SettingLine> + 'a,
    ) -> impl Iterator<Item = SettingLine> + 'a {
        let is_untrusted = self.trust == Trust::Untrusted;
        let allow = rules::action_name(Action::Allow);
        lines.map(move |line| match is_untrusted && line.value == allow {
            true => SettingLine { state: SettingState::NeedsTrust, ..line },
            false => line,
        })
    }

    fn list_agent(&self, agent: &Agent) -> Vec<SettingLine> {
        let mut all = list_agent_settings(agent);
        let parent_keys = ["agent", agent.name.as_str()];
        all.extend(self.mark_if_untrusted(list_rules(&parent_keys, &agent.project_rules)));
        let switches = agent.tool_switches.iter().chain(&agent.project_tool_switches);
        all.extend(switches.map(|switch| list_switch(&parent_keys, switch)));
        all
    }
}

fn list_agent_settings(agent: &Agent) -> Vec<SettingLine> {
    let parent_keys = ["agent", agent.name.as_str()];
    let line = |key: &str, value: String, source: &Source| {
        SettingLine::new(&["agent", &agent.name, key], value, source)
    };
    let text = |key: &str, given: &Option<WithSource<String>>| {
        given.as_ref().map(|given| line(key, given.as_written().to_owned(), &given.source))
    };
    let number = |key: &str, given: &Option<WithSource<f64>>| {
        given.as_ref().map(|given| line(key, given.value.to_string(), &given.source))
    };
    let mut all = vec![line("mode", mode_name(*agent.mode).to_owned(), &agent.mode.source)];
    all.extend(text("description", &agent.description));
    all.extend(text("model", &agent.model));
    all.extend(text("prompt", &agent.prompt));
    if *agent.hidden {
        all.push(line("hidden", "true".to_owned(), &agent.hidden.source));
    }
    all.extend(number("temperature", &agent.temperature));
    all.extend(number("top_p", &agent.top_p));
    all.extend(
        agent.steps.as_ref().map(|given| line("steps", given.value.to_string(), &given.source)),
    );
    all.extend(list_rules(&parent_keys, &agent.rules));
    all
}

fn mode_name(mode: AgentMode) -> &'static str {
    match mode {
        AgentMode::Primary => "primary",
        AgentMode::Subagent => "subagent",
        AgentMode::All => "all",
    }
}

fn list_server(server: &ServerConfig) -> Vec<SettingLine> {
    let line = |key: &[&str], value: &str, source: &Source| {
        let key: Vec<_> = ["mcp", &server.name].into_iter().chain(key.iter().copied()).collect();
        SettingLine { state: server.state, ..SettingLine::new(&key, value, source) }
    };
    // Headers and variables often hold tokens.
    let secret = |key: &str, (name, given): &(String, WithSource<String>)| {
        line(&[key, name], given.raw.as_deref().unwrap_or(messages::HIDDEN), &given.source)
    };
    let mut all = Vec::new();
    match &server.transport {
        ServerTransport::Local { command, environment, cwd } => {
            let command_line: Vec<_> = command.iter().map(WithSource::as_written).collect();
            let source = command.first().map_or(&server.source, |program| &program.source);
            all.push(line(&["command"], &command_line.join(" "), source));
            all.extend(environment.iter().map(|pair| secret("environment", pair)));
            all.extend(cwd.as_ref().map(|cwd| line(&["cwd"], cwd.as_written(), &cwd.source)));
        }
        ServerTransport::Remote { url, headers } => {
            all.push(line(&["url"], url.as_written(), &url.source));
            all.extend(headers.iter().map(|pair| secret("headers", pair)));
        }
    }
    if !*server.enabled {
        all.push(line(&["enabled"], "false", &server.enabled.source));
    }
    if let Some(timeout) = &server.timeout {
        all.push(line(&["timeout"], &timeout.as_millis().to_string(), &timeout.source));
    }
    all
}

/// A value as written. Lists and objects are shown without their members.
fn abbreviate(node: &ConfigNode) -> String {
    match &node.data {
        ConfigValue::Null => "null".to_owned(),
        ConfigValue::Bool(flag) => flag.to_string(),
        ConfigValue::Number(number) => number.clone(),
        ConfigValue::Text(text) => text.clone(),
        ConfigValue::List(_) => "[…]".to_owned(),
        ConfigValue::Map(_) => "{…}".to_owned(),
    }
}
