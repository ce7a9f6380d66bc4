//! Agents from JSON, Markdown and the built-in list, merged field by field. Each field keeps its source.

use helve_core::ToolSwitch;
use helve_core::{Action, Rule, Source};

use super::config_file::{Authority, ConfigFile, ExpandMode};
use super::explain::SettingLine;
use super::rules::RuleList;
use super::tree::{ConfigEntry, ConfigNode, ConfigValue, Position, repeated};
use super::{ConfigLayer, WithSource, builtin, keys, messages};

/// A named agent with a prompt and permission rules of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Agent {
    pub name: String,
    /// Who first defined the agent. Later files may have added to it.
    pub origin: AgentOrigin,
    /// Where the agent is first mentioned.
    pub source: Source,
    pub description: Option<WithSource<String>>,
    pub mode: WithSource<AgentMode>,
    pub model: Option<WithSource<String>>,
    pub prompt: Option<WithSource<String>>,
    pub hidden: WithSource<bool>,
    pub temperature: Option<WithSource<f64>>,
    pub top_p: Option<WithSource<f64>>,
    pub steps: Option<WithSource<u64>>,
    /// Built-in and user rules. They form a wall, which can only forbid more.
    pub rules: Vec<Rule>,
    /// Project rules. They form a wall of their own while the project is untrusted, and extend the wall of `rules` once
    /// it is trusted.
    pub project_rules: Vec<Rule>,
    /// Tools that the key `tools` switches on or off.
    pub tool_switches: Vec<ToolSwitch>,
    pub project_tool_switches: Vec<ToolSwitch>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentOrigin {
    Builtin,
    User,
    Project,
}

/// How an agent may be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentMode {
    /// By a person.
    Primary,
    /// By another agent.
    Subagent,
    All,
}

/// Maximum number of agents.
const MAX_AGENTS: usize = 500;
/// Maximum length of a name in bytes.
const MAX_NAME: usize = 200;
const MAX_TEMPERATURE: f64 = 10.0;
const MAX_STEPS: u64 = 1_000_000;

/// An agent as written in one file.
pub(super) struct AgentEntry<'n> {
    pub(super) name: &'n str,
    pub(super) at: Position,
    pub(super) fields: &'n [ConfigEntry],
    /// The body of a Markdown file.
    pub(super) body: Option<WithSource<String>>,
    /// The mode of an agent that sets none. Agents from a `modes` folder or from the old key `mode` are primary ones.
    pub(super) mode: AgentMode,
}

/// All agents while they are being merged.
pub(super) struct Agents(Vec<AgentDraft>);

/// All agents once they are merged.
pub(super) struct FinishedAgents {
    pub(super) enabled: Vec<Agent>,
    /// Each with the place that disables it.
    pub(super) disabled: Vec<(Agent, Source)>,
}

struct AgentDraft {
    agent: Agent,
    user: RuleList,
    project: RuleList,
    /// Where the agent is disabled.
    disabled: Option<Source>,
    /// Whether a file without syntax errors defines the agent.
    defined: bool,
}

impl Agents {
    pub(super) fn builtin() -> Self {
        let draft = |(agent, rules)| AgentDraft {
            agent,
            user: RuleList::builtin(rules),
            project: RuleList::default(),
            disabled: None,
            defined: true,
        };
        Self(builtin::agents().into_iter().map(draft).collect())
    }

    /// Reads an `agent` or `mode` section.
    pub(super) fn read_section(
        &mut self,
        file: &mut ConfigFile<'_>,
        (key, node): (&str, &ConfigNode),
        mode: AgentMode,
        needs_trust: &mut Vec<SettingLine>,
    ) {
        let Some(entries) = file.map(key, node) else { return };
        for entry in entries {
            let name = entry.key.as_str();
            if let ConfigValue::Map(fields) = &entry.value.data {
                let agent = AgentEntry { name, at: entry.at, fields, body: None, mode };
                self.read_agent(file, agent, needs_trust);
            } else {
                file.wrong_type::<()>(&messages::key_path(&[key, name]), &entry.value, "an object");
                self.mark_broken(name, file.source(entry.at), file.layer);
            }
        }
    }

    /// Reads the agents of a file with a syntax error. Only their rules are used.
    pub(super) fn read_partial(&mut self, file: &mut ConfigFile<'_>, node: &ConfigNode) {
        let ConfigValue::Map(entries) = &node.data else { return };
        for entry in entries {
            let source = file.source(entry.at);
            self.mark_broken(&entry.key, source.clone(), file.layer);
            if let (ConfigValue::Map(fields), Some(draft)) =
                (&entry.value.data, self.draft(&entry.key, source, file.layer))
            {
                draft.rules_of(file.layer).read(file, fields);
            }
        }
    }

    /// Makes an agent ask for everything, because something about it could not be interpreted.
    pub(super) fn mark_broken(&mut self, name: &str, source: Source, layer: ConfigLayer) {
        if let Some(draft) = self.draft(name, source.clone(), layer) {
            draft.rules_of(layer).mark_broken(source);
        }
    }

    pub(super) fn read_agent(
        &mut self,
        file: &mut ConfigFile<'_>,
        entry: AgentEntry<'_>,
        needs_trust: &mut Vec<SettingLine>,
    ) {
        let AgentEntry { name, at, fields, body, mode } = entry;
        let Some(draft) = self.draft(name, file.source(at), file.layer) else {
            return file.error(at, || messages::agent_limits(MAX_AGENTS, MAX_NAME));
        };
        draft.rules_of(file.layer).read(file, fields);
        // An untrusted project may define agents of its own, which nobody uses before trust, but only restrict others.
        if file.authority == Authority::RestrictOnly && draft.agent.origin != AgentOrigin::Project {
            let rest = fields.iter().filter(|field| !is_rules_field(field));
            needs_trust.extend(
                rest.map(|field| SettingLine::needing_trust(file, &["agent", name], field)),
            );
            needs_trust.extend(
                body.map(|body| SettingLine::text_needing_trust(&["agent", name, "prompt"], &body)),
            );
            return;
        }
        if !draft.defined {
            draft.defined = true;
            draft.agent.mode.value = mode;
        }
        for (again, first) in repeated(fields).iter().filter(|(again, _)| !is_rules_field(again)) {
            file.warn(again.at, || messages::repeated(&again.key, first.at));
        }
        for field in fields {
            draft.read_field(file, field);
        }
        if let Some(body) = body {
            draft.agent.prompt = Some(body);
        }
    }

    fn draft(&mut self, name: &str, source: Source, layer: ConfigLayer) -> Option<&mut AgentDraft> {
        let known = self.0.iter().position(|draft| draft.agent.name == name);
        let can_add = (1..=MAX_NAME).contains(&name.len()) && self.0.len() < MAX_AGENTS;
        if known.is_none() && !can_add {
            return None;
        }
        let index = known.unwrap_or_else(|| {
            self.0.push(AgentDraft::new(name, source, layer));
            self.0.len() - 1
        });
        self.0.get_mut(index)
    }

    /// Returns all agents that are defined, including disabled ones.
    pub(super) fn finish(self) -> FinishedAgents {
        let mut finished = FinishedAgents { enabled: Vec::new(), disabled: Vec::new() };
        for draft in self.0.into_iter().filter(|draft| draft.defined) {
            match draft.disabled.clone() {
                Some(source) => finished.disabled.push((draft.finish(), source)),
                None => finished.enabled.push(draft.finish()),
            }
        }
        finished
    }
}

impl AgentDraft {
    fn new(name: &str, source: Source, layer: ConfigLayer) -> Self {
        let origin = match layer {
            ConfigLayer::User => AgentOrigin::User,
            ConfigLayer::Project => AgentOrigin::Project,
        };
        let agent = Agent::new(name, origin, source, AgentMode::All);
        let (user, project) = (RuleList::default(), RuleList::default());
        Self { agent, user, project, disabled: None, defined: false }
    }

    fn rules_of(&mut self, layer: ConfigLayer) -> &mut RuleList {
        match layer {
            ConfigLayer::User => &mut self.user,
            ConfigLayer::Project => &mut self.project,
        }
    }

    fn read_field(&mut self, file: &mut ConfigFile<'_>, field: &ConfigEntry) {
        let agent = &mut self.agent;
        let (node, name) = (&field.value, messages::key_path(&["agent", &agent.name, &field.key]));
        match field.key.as_str() {
            "description" => {
                replace(&mut agent.description, file.text(&name, node, ExpandMode::Lenient))
            }
            "model" => replace(&mut agent.model, file.text(&name, node, ExpandMode::Lenient)),
            "prompt" => replace(&mut agent.prompt, file.text(&name, node, ExpandMode::Lenient)),
            "temperature" => {
                replace(&mut agent.temperature, file.number(&name, node, MAX_TEMPERATURE))
            }
            "top_p" => replace(&mut agent.top_p, file.number(&name, node, 1.0)),
            "steps" | "maxSteps" => {
                replace(&mut agent.steps, file.positive(&name, node, MAX_STEPS))
            }
            "mode" => {
                if let Some(mode) = read_mode(file, &name, node) {
                    agent.mode = mode;
                }
            }
            "hidden" => {
                if let Some(hidden) = file.flag(&name, node) {
                    agent.hidden = hidden;
                }
            }
            "disable" => {
                if let Some(disable) = file.flag(&name, node) {
                    self.disabled = disable.value.then_some(disable.source);
                }
            }
            other => {
                if let Some(nearest) = keys::misspelled(other, keys::AGENT) {
                    file.warn(field.at, || messages::unknown_key(other, Some(nearest)));
                }
            }
        }
    }

    fn finish(self) -> Agent {
        let (rules, tool_switches) = self.user.finish();
        let (project_rules, project_tool_switches) = self.project.finish();
        Agent { rules, tool_switches, project_rules, project_tool_switches, ..self.agent }
    }
}

impl Agent {
    /// An agent that may do nothing, for looking at a configuration without a usable agent.
    pub fn powerless() -> Self {
        let mut agent =
            Self::new("none", AgentOrigin::Builtin, Source::Builtin, AgentMode::Primary);
        agent.rules.push(Rule::new("*", "*", Action::Deny, Source::Builtin));
        agent
    }

    /// Whether a person may start the agent.
    pub fn is_startable_by_person(&self) -> bool {
        *self.mode != AgentMode::Subagent && !*self.hidden
    }

    pub(super) fn new(name: &str, origin: AgentOrigin, source: Source, mode: AgentMode) -> Self {
        Self {
            name: name.to_owned(),
            origin,
            description: None,
            mode: WithSource::new(mode, source.clone()),
            model: None,
            prompt: None,
            hidden: WithSource::new(false, source.clone()),
            temperature: None,
            top_p: None,
            steps: None,
            source,
            rules: Vec::new(),
            project_rules: Vec::new(),
            tool_switches: Vec::new(),
            project_tool_switches: Vec::new(),
        }
    }
}

fn is_rules_field(field: &ConfigEntry) -> bool {
    matches!(field.key.as_str(), "permission" | "tools")
}

/// Keeps the earlier value if the new one is invalid.
fn replace<T>(slot: &mut Option<WithSource<T>>, value: Option<WithSource<T>>) {
    if value.is_some() {
        *slot = value;
    }
}

fn read_mode(
    file: &mut ConfigFile<'_>,
    name: &str,
    node: &ConfigNode,
) -> Option<WithSource<AgentMode>> {
    let text = file.text(name, node, ExpandMode::Lenient)?;
    let value = match text.value.as_str() {
        "primary" => AgentMode::Primary,
        "subagent" => AgentMode::Subagent,
        "all" => AgentMode::All,
        _ => {
            file.error(node.at, || messages::unknown_mode(text.as_written()));
            return None;
        }
    };
    Some(WithSource { value, source: text.source, raw: text.raw })
}
