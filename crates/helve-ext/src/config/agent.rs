//! Agents: from JSON, from Markdown, built in; merged field by field, each field with its origin.

use helve_core::Switch;
use helve_core::permission::{Rule, Source};

use super::explain::Listed;
use super::page::{Page, Reading, Standing};
use super::rules::Rules;
use super::tree::{At, Entry, Node, What, repeated};
use super::{Given, Layer, builtin, keys, words};

/// Someone who works under a name, with a prompt and a wall of their own.
#[derive(Clone, Debug, PartialEq)]
pub struct Agent {
    pub name: String,
    /// Who brought it into being; others may have added to it.
    pub origin: Origin,
    /// Where it is first mentioned.
    pub source: Source,
    pub description: Option<Given<String>>,
    pub mode: Given<Mode>,
    pub model: Option<Given<String>>,
    pub prompt: Option<Given<String>>,
    pub hidden: Given<bool>,
    pub temperature: Option<Given<f64>>,
    pub top_p: Option<Given<f64>>,
    pub steps: Option<Given<u64>>,
    /// Built-in rules and the user's: a wall that narrows.
    pub rules: Vec<Rule>,
    /// The project's: another narrowing wall while it is untrusted, later rules of the same wall afterwards.
    pub project_rules: Vec<Rule>,
    pub switches: Vec<Switch>,
    pub project_switches: Vec<Switch>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    Builtin,
    User,
    Project,
}

/// How an agent may be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// By a person.
    Primary,
    /// By another agent.
    Subagent,
    All,
}

/// The most agents in all.
const MOST: usize = 500;
/// The longest name.
const LONGEST_NAME: usize = 200;
const WARMEST: f64 = 10.0;
const MOST_STEPS: u64 = 1_000_000;

/// How an agent is written down.
pub(super) struct Written<'n> {
    pub(super) name: &'n str,
    pub(super) at: At,
    pub(super) fields: &'n [Entry],
    /// The body of a Markdown file.
    pub(super) body: Option<Given<String>>,
    /// The mode where none is given; `modes` folders and the key `mode` mean primary ones.
    pub(super) mode: Mode,
}

/// All agents while they are being merged.
pub(super) struct Agents(Vec<Draft>);

struct Draft {
    agent: Agent,
    own: Rules,
    project: Rules,
    disabled: bool,
    /// Whether anything but a broken remnant spoke of it.
    defined: bool,
}

impl Agents {
    pub(super) fn builtin() -> Self {
        let draft = |(agent, rules)| Draft {
            agent,
            own: Rules::builtin(rules),
            project: Rules::default(),
            disabled: false,
            defined: true,
        };
        Self(builtin::agents().into_iter().map(draft).collect())
    }

    /// An `agent` or `mode` section.
    pub(super) fn section(
        &mut self,
        page: &mut Page<'_>,
        (key, node): (&str, &Node),
        mode: Mode,
        waiting: &mut Vec<Listed>,
    ) {
        let Some(entries) = page.map(key, node) else { return };
        for entry in entries {
            let name = entry.key.as_str();
            if let What::Map(fields) = &entry.value.what {
                let written = Written { name, at: entry.at, fields, body: None, mode };
                self.read(page, written, waiting);
            } else {
                page.wrong::<()>(&words::key_path(&[key, name]), &entry.value, "an object");
                self.breaks(name, page.source(entry.at), page.layer);
            }
        }
    }

    /// What a file that stops in the middle still says about agents: only their rules count.
    pub(super) fn remnant(&mut self, page: &mut Page<'_>, node: &Node) {
        let What::Map(entries) = &node.what else { return };
        for entry in entries {
            let source = page.source(entry.at);
            self.breaks(&entry.key, source.clone(), page.layer);
            if let (What::Map(fields), Some(draft)) =
                (&entry.value.what, self.draft(&entry.key, source, page.layer))
            {
                draft.side(page.layer).read(page, fields);
            }
        }
    }

    /// Something about an agent could not be understood, so it asks for everything.
    pub(super) fn breaks(&mut self, name: &str, source: Source, layer: Layer) {
        if let Some(draft) = self.draft(name, source.clone(), layer) {
            draft.side(layer).breaks(source);
        }
    }

    pub(super) fn read(
        &mut self,
        page: &mut Page<'_>,
        written: Written<'_>,
        waiting: &mut Vec<Listed>,
    ) {
        let Written { name, at, fields, body, mode } = written;
        let Some(draft) = self.draft(name, page.source(at), page.layer) else {
            return page.error(at, || words::no_such_agent_possible(MOST, LONGEST_NAME));
        };
        draft.side(page.layer).read(page, fields);
        if page.standing == Standing::Narrows && draft.agent.origin != Origin::Project {
            let rest =
                fields.iter().filter(|it| !matches!(it.key.as_str(), "permission" | "tools"));
            waiting.extend(rest.map(|field| Listed::waiting(page, &["agent", name], field)));
            waiting
                .extend(body.map(|body| Listed::waiting_text(&["agent", name, "prompt"], &body)));
            return;
        }
        if !draft.defined {
            draft.defined = true;
            draft.agent.mode.value = mode;
        }
        for (again, first) in repeated(fields).iter().filter(|(again, _)| !is_about_rules(again)) {
            page.warn(again.at, || words::repeated(&again.key, first.at));
        }
        for field in fields {
            draft.field(page, field);
        }
        if let Some(body) = body {
            draft.agent.prompt = Some(body);
        }
    }

    fn draft(&mut self, name: &str, source: Source, layer: Layer) -> Option<&mut Draft> {
        let known = self.0.iter().position(|draft| draft.agent.name == name);
        let fits = (1..=LONGEST_NAME).contains(&name.len()) && self.0.len() < MOST;
        if known.is_none() && !fits {
            return None;
        }
        let index = known.unwrap_or_else(|| {
            self.0.push(Draft::new(name, source, layer));
            self.0.len() - 1
        });
        self.0.get_mut(index)
    }

    pub(super) fn finish(self) -> Vec<Agent> {
        let in_use = self.0.into_iter().filter(|draft| draft.defined && !draft.disabled);
        in_use.map(Draft::finish).collect()
    }
}

impl Draft {
    fn new(name: &str, source: Source, layer: Layer) -> Self {
        let origin = match layer {
            Layer::User => Origin::User,
            Layer::Project => Origin::Project,
        };
        let agent = Agent::new(name, origin, source, Mode::All);
        let (own, project) = (Rules::default(), Rules::default());
        Self { agent, own, project, disabled: false, defined: false }
    }

    fn side(&mut self, layer: Layer) -> &mut Rules {
        match layer {
            Layer::User => &mut self.own,
            Layer::Project => &mut self.project,
        }
    }

    fn field(&mut self, page: &mut Page<'_>, field: &Entry) {
        let agent = &mut self.agent;
        let (node, name) = (&field.value, words::key_path(&["agent", &agent.name, &field.key]));
        match field.key.as_str() {
            "description" => {
                replace(&mut agent.description, page.text(&name, node, Reading::Usual))
            }
            "model" => replace(&mut agent.model, page.text(&name, node, Reading::Usual)),
            "prompt" => replace(&mut agent.prompt, page.text(&name, node, Reading::Usual)),
            "temperature" => replace(&mut agent.temperature, page.share(&name, node, WARMEST)),
            "top_p" => replace(&mut agent.top_p, page.share(&name, node, 1.0)),
            "steps" | "maxSteps" => replace(&mut agent.steps, page.count(&name, node, MOST_STEPS)),
            "mode" => {
                if let Some(mode) = mode(page, &name, node) {
                    agent.mode = mode;
                }
            }
            "hidden" => {
                if let Some(hidden) = page.flag(&name, node) {
                    agent.hidden = hidden;
                }
            }
            "disable" => {
                if let Some(disable) = page.flag(&name, node) {
                    self.disabled = disable.value;
                }
            }
            other => {
                if let Some(meant) = keys::misspelt(other, keys::AGENT) {
                    page.warn(field.at, || words::unknown_key(other, Some(meant)));
                }
            }
        }
    }

    fn finish(self) -> Agent {
        let (rules, switches) = self.own.finish();
        let (project_rules, project_switches) = self.project.finish();
        Agent { rules, switches, project_rules, project_switches, ..self.agent }
    }
}

impl Agent {
    pub(super) fn new(name: &str, origin: Origin, source: Source, mode: Mode) -> Self {
        Self {
            name: name.to_owned(),
            origin,
            description: None,
            mode: Given::new(mode, source.clone()),
            model: None,
            prompt: None,
            hidden: Given::new(false, source.clone()),
            temperature: None,
            top_p: None,
            steps: None,
            source,
            rules: Vec::new(),
            project_rules: Vec::new(),
            switches: Vec::new(),
            project_switches: Vec::new(),
        }
    }
}

fn is_about_rules(field: &Entry) -> bool {
    matches!(field.key.as_str(), "permission" | "tools")
}

/// A value that is wrong leaves the one before it.
fn replace<T>(slot: &mut Option<Given<T>>, value: Option<Given<T>>) {
    if value.is_some() {
        *slot = value;
    }
}

fn mode(page: &mut Page<'_>, name: &str, node: &Node) -> Option<Given<Mode>> {
    let text = page.text(name, node, Reading::Usual)?;
    let value = match text.value.as_str() {
        "primary" => Mode::Primary,
        "subagent" => Mode::Subagent,
        "all" => Mode::All,
        _ => {
            page.error(node.at, || words::unknown_mode(text.shown()));
            return None;
        }
    };
    Some(Given { value, source: text.source, written: text.written })
}
