//! Everything that is in force, line by line, each with the place it comes from.

use helve_core::Switch;
use helve_core::permission::{Rule, Source};
use helve_core::process::Network;

use super::agent::Mode;
use super::page::Page;
use super::tree::{Entry, Node, What};
use super::{Agent, Config, Given, Server, Transport, rules, words};

/// One line of what `helve config` shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// The way to the value: `permission.bash."git *"`.
    pub key: String,
    pub value: String,
    pub source: Source,
    pub state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    InForce,
    /// Of a project that nobody has trusted yet.
    WaitsForTrust,
}

impl Listed {
    fn new(key: &[&str], value: impl Into<String>, source: &Source) -> Self {
        let (key, value) = (words::key_path(key), words::shown(&value.into()));
        Self { key, value, source: source.clone(), state: State::InForce }
    }

    /// An entry of an untrusted project, as it is written.
    pub(super) fn waiting(page: &Page<'_>, above: &[&str], entry: &Entry) -> Self {
        let key: Vec<_> = above.iter().copied().chain([entry.key.as_str()]).collect();
        let value = shown_node(&entry.value);
        let source = page.source(entry.at);
        Self { state: State::WaitsForTrust, ..Self::new(&key, value, &source) }
    }

    pub(super) fn waiting_text(key: &[&str], text: &Given<String>) -> Self {
        Self { state: State::WaitsForTrust, ..Self::new(key, text.shown(), &text.source) }
    }
}

impl Config {
    /// Everything in force in the order in which it decides, then what waits for trust.
    pub fn explain(&self) -> impl Iterator<Item = Listed> + '_ {
        let rules = list_rules(&[], &self.user).chain(list_rules(&[], &self.project));
        let switches = self.switches.iter().chain(&self.project_switches);
        let text = |key: &'static str, given: &Option<Given<String>>| {
            given.as_ref().map(|it| Listed::new(&[key], it.shown(), &it.source))
        };
        let count = |key: &'static str, given: &Option<Given<u64>>| {
            let path = ["tool_output", key];
            given.as_ref().map(|it| Listed::new(&path, it.value.to_string(), &it.source))
        };
        rules
            .chain(switches.map(|switch| list_switch(&[], switch)))
            .chain(text("default_agent", &self.default_agent))
            .chain(self.list_programs())
            .chain(count("max_lines", &self.tool_output.max_lines))
            .chain(count("max_bytes", &self.tool_output.max_bytes))
            .chain(
                self.changes
                    .each()
                    .into_iter()
                    .map(|(key, word)| Listed::new(&key, word.value, &word.source)),
            )
            .chain(self.agents.iter().flat_map(list_agent))
            .chain(self.servers.iter().flat_map(list_server))
            .chain(self.waiting.iter().cloned())
    }
}

impl Config {
    fn list_programs(&self) -> Vec<Listed> {
        let Config { shell, bash, sandbox, environment, .. } = self;
        let mut all = Vec::new();
        if let Some(program) = shell.first() {
            let words: Vec<_> = shell.iter().map(Given::shown).collect();
            all.push(Listed::new(&["shell"], words.join(" "), &program.source));
        }
        let times = [("timeout", &bash.timeout), ("max_timeout", &bash.max_timeout)];
        for (key, time) in times.into_iter().filter_map(|(key, it)| it.as_ref().map(|it| (key, it)))
        {
            all.push(Listed::new(&["bash", key], time.value.to_string(), &time.source));
        }
        if let Some(mode) = &sandbox.mode {
            all.push(Listed::new(&["sandbox"], mode.value.word(), &mode.source));
        }
        if let Some(network) = &sandbox.network {
            let on = matches!(network.value, Network::On);
            all.push(Listed::new(&["sandbox", "network"], on.to_string(), &network.source));
        }
        if let Some(inherit) = &environment.inherit {
            let key = ["environment", "inherit"];
            all.push(Listed::new(&key, inherit.value.word(), &inherit.source));
        }
        for (key, patterns) in
            [("include", &environment.include), ("exclude", &environment.exclude)]
        {
            let line =
                |it: &Given<String>| Listed::new(&["environment", key], it.shown(), &it.source);
            all.extend(patterns.iter().map(line));
        }
        for (name, value) in &environment.set {
            // Variables are where people keep tokens.
            let shown = value.written.as_deref().unwrap_or(words::HIDDEN);
            all.push(Listed::new(&["environment", "set", name], shown, &value.source));
        }
        all
    }
}

fn list_rules<'a>(above: &'a [&'a str], rules: &'a [Rule]) -> impl Iterator<Item = Listed> + 'a {
    rules.iter().map(move |rule| {
        let mut key = above.to_vec();
        key.extend(["permission", &rule.permission, rule.pattern.as_str()]);
        Listed::new(&key, rules::action_word(rule.action), &rule.source)
    })
}

fn list_switch(above: &[&str], switch: &Switch) -> Listed {
    let mut key = above.to_vec();
    key.extend(["tools", &switch.pattern]);
    Listed::new(&key, switch.on.to_string(), &switch.source)
}

fn list_agent(agent: &Agent) -> Vec<Listed> {
    let above = ["agent", agent.name.as_str()];
    let line = |key: &str, value: String, source: &Source| {
        Listed::new(&["agent", &agent.name, key], value, source)
    };
    let text = |key: &str, given: &Option<Given<String>>| {
        given.as_ref().map(|it| line(key, it.shown().to_owned(), &it.source))
    };
    let number = |key: &str, given: &Option<Given<f64>>| {
        given.as_ref().map(|it| line(key, it.value.to_string(), &it.source))
    };
    let mut all = vec![line("mode", mode_word(*agent.mode).to_owned(), &agent.mode.source)];
    all.extend(text("description", &agent.description));
    all.extend(text("model", &agent.model));
    all.extend(text("prompt", &agent.prompt));
    if *agent.hidden {
        all.push(line("hidden", "true".to_owned(), &agent.hidden.source));
    }
    all.extend(number("temperature", &agent.temperature));
    all.extend(number("top_p", &agent.top_p));
    all.extend(agent.steps.as_ref().map(|it| line("steps", it.value.to_string(), &it.source)));
    all.extend(list_rules(&above, &agent.rules));
    all.extend(list_rules(&above, &agent.project_rules));
    let switches = agent.switches.iter().chain(&agent.project_switches);
    all.extend(switches.map(|switch| list_switch(&above, switch)));
    all
}

fn mode_word(mode: Mode) -> &'static str {
    match mode {
        Mode::Primary => "primary",
        Mode::Subagent => "subagent",
        Mode::All => "all",
    }
}

fn list_server(server: &Server) -> Vec<Listed> {
    let line = |key: &[&str], value: &str, source: &Source| {
        let key: Vec<_> = ["mcp", &server.name].into_iter().chain(key.iter().copied()).collect();
        Listed { state: server.state, ..Listed::new(&key, value, source) }
    };
    // Headers and variables are where people keep tokens.
    let secret = |key: &str, (name, given): &(String, Given<String>)| {
        line(&[key, name], given.written.as_deref().unwrap_or(words::HIDDEN), &given.source)
    };
    let mut all = Vec::new();
    match &server.transport {
        Transport::Local { command, environment, cwd } => {
            let words: Vec<_> = command.iter().map(Given::shown).collect();
            let source = command.first().map_or(&server.source, |program| &program.source);
            all.push(line(&["command"], &words.join(" "), source));
            all.extend(environment.iter().map(|pair| secret("environment", pair)));
            all.extend(cwd.as_ref().map(|cwd| line(&["cwd"], cwd.shown(), &cwd.source)));
        }
        Transport::Remote { url, headers } => {
            all.push(line(&["url"], url.shown(), &url.source));
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

/// A value as it is written, its parts left out.
fn shown_node(node: &Node) -> String {
    match &node.what {
        What::Null => "null".to_owned(),
        What::Bool(flag) => flag.to_string(),
        What::Number(number) => number.clone(),
        What::Text(text) => text.clone(),
        What::List(_) => "[…]".to_owned(),
        What::Map(_) => "{…}".to_owned(),
    }
}
