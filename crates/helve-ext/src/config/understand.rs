//! From files to a configuration.

use helve_core::permission::Source;

use super::agent::{Agent, Agents, Mode, Written};
use super::explain::Listed;
use super::gather::{Gathered, Item, Kind};
use super::jsonc::{self, Parsed};
use super::load::Outside;
use super::page::{Page, Reading, Standing, Surroundings};
use super::problem::{Problem, Severity};
use super::programs::{self, Bash, EnvironmentSection, SandboxSection};
use super::rules::Rules;
use super::tree::{At, Entry, Node, Places, What, repeated};
use super::yaml::{self, Fields};
use super::{
    Changes, Config, FileRead, Given, Layer, Server, ToolOutput, Trust, keys, mcp, mcp_json, words,
};

/// The most that `tool_output` may ask for.
const MOST_LINES: u64 = 1_000_000;
const MOST_BYTES: u64 = 16 << 20;

pub(super) fn understand(gathered: &Gathered, outside: &dyn Outside, trust: Trust) -> Config {
    let surroundings = Surroundings { outside, home: gathered.home.as_deref() };
    let mut draft = Draft::new(trust, gathered.problems.clone());
    for item in &gathered.items {
        draft.item(item, &surroundings);
    }
    draft.finish(gathered)
}

struct Draft {
    trust: Trust,
    user: Rules,
    project: Rules,
    agents: Agents,
    tool_output: ToolOutput,
    changes: Changes,
    servers: Vec<Server>,
    default_agent: Option<Given<String>>,
    shell: Vec<Given<String>>,
    bash: Bash,
    sandbox: SandboxSection,
    environment: EnvironmentSection,
    problems: Vec<Problem>,
    sources: Vec<FileRead>,
    waiting: Vec<Listed>,
}

impl Draft {
    fn new(trust: Trust, problems: Vec<Problem>) -> Self {
        Self {
            trust,
            user: Rules::default(),
            project: Rules::default(),
            agents: Agents::builtin(),
            tool_output: ToolOutput::default(),
            changes: Changes::default(),
            servers: Vec::new(),
            default_agent: None,
            shell: Vec::new(),
            bash: Bash::default(),
            sandbox: SandboxSection::default(),
            environment: EnvironmentSection::default(),
            problems,
            sources: Vec::new(),
            waiting: Vec::new(),
        }
    }

    fn item(&mut self, item: &Item, surroundings: &Surroundings<'_>) {
        let (Ok(taken), Some(text)) = (&item.content, item.text()) else {
            if let Err(why) = &item.content {
                let said = words::unreadable(why);
                self.problems.push(Problem::of_file(item.path.clone(), Severity::Error, said));
            }
            return self.breaks(item, At::START);
        };
        let (path, layer, bytes) = (item.path.clone(), item.layer, taken.bytes.len());
        self.sources.push(FileRead { path: path.clone(), layer, bytes });
        let (Ok(readable) | Err(readable)) = text;
        let standing = Standing::of(layer, self.trust);
        let mut page = Page::new(path, &taken.real, readable, (layer, standing), surroundings);
        match (text, &item.kind) {
            (Err(good), _) => {
                let at = Places::new(good).of(good.len());
                page.error(at, words::not_text);
                self.breaks(item, at);
            }
            (Ok(text), Kind::Json) => self.json(&mut page, item, text),
            (Ok(text), Kind::McpJson) => self.mcp_json(&mut page, text),
            (Ok(text), Kind::Agent { name, primary }) => {
                let mode = if *primary { Mode::Primary } else { Mode::All };
                self.note(&mut page, item, (name, mode), text);
            }
        }
        self.problems.extend(page.into_problems());
    }

    /// A file that could not be understood may have held denies.
    fn breaks(&mut self, item: &Item, at: At) {
        let At { line, column } = at;
        let place = Source::File { path: item.path.clone(), line, column };
        match &item.kind {
            Kind::Json => self.rules(item.layer).breaks(place),
            // It holds no rules.
            Kind::McpJson => {}
            Kind::Agent { name, .. } => self.agents.breaks(name, place, item.layer),
        }
    }

    fn rules(&mut self, layer: Layer) -> &mut Rules {
        match layer {
            Layer::User => &mut self.user,
            Layer::Project => &mut self.project,
        }
    }

    fn json(&mut self, page: &mut Page<'_>, item: &Item, text: &str) {
        let (node, whole) = match jsonc::parse(text) {
            Parsed::Empty => return,
            Parsed::Whole(node) => (node, true),
            Parsed::Broken { before, at, why } => {
                page.error(at, || why);
                self.breaks(item, at);
                let Some(node) = before else { return };
                (node, false)
            }
        };
        match &node.what {
            What::Map(entries) if whole => self.entries(page, entries),
            What::Map(entries) => self.remnant(page, entries),
            other if whole => {
                page.error(node.at, || words::not_an_object(other));
                self.breaks(item, node.at);
            }
            _ => {}
        }
    }

    fn mcp_json(&mut self, page: &mut Page<'_>, text: &str) {
        let node = match jsonc::parse(text) {
            Parsed::Empty => return,
            Parsed::Whole(node) => node,
            Parsed::Broken { at, why, .. } => return page.error(at, || why),
        };
        let What::Map(entries) = &node.what else {
            return page.error(node.at, || words::not_an_object(&node.what));
        };
        if let Some(section) = mcp_json::section(page, entries) {
            mcp::section(page, &section, &mut self.servers, &mut self.waiting);
        }
    }

    /// Of a file that stops in the middle only what narrows is taken.
    fn remnant(&mut self, page: &mut Page<'_>, entries: &[Entry]) {
        self.rules(page.layer).read(page, entries);
        for entry in entries {
            match entry.key.as_str() {
                "agent" | "mode" => self.agents.remnant(page, &entry.value),
                "sandbox" => programs::sandbox(page, &entry.value, &mut self.sandbox),
                _ => {}
            }
        }
    }

    fn entries(&mut self, page: &mut Page<'_>, entries: &[Entry]) {
        self.rules(page.layer).read(page, entries);
        for (again, first) in repeated(entries) {
            if !matches!(again.key.as_str(), "permission" | "tools") {
                page.warn(again.at, || words::repeated(&again.key, first.at));
            }
        }
        for entry in entries {
            self.entry(page, entry);
        }
    }

    fn entry(&mut self, page: &mut Page<'_>, entry: &Entry) {
        let (key, node) = (entry.key.as_str(), &entry.value);
        match key {
            "agent" => self.agents.section(page, (key, node), Mode::All, &mut self.waiting),
            "mode" => self.agents.section(page, (key, node), Mode::Primary, &mut self.waiting),
            "mcp" => mcp::section(page, node, &mut self.servers, &mut self.waiting),
            "sandbox" => programs::sandbox(page, node, &mut self.sandbox),
            "environment" => {
                let section = &mut self.environment;
                programs::environment(page, node, section, &mut self.waiting);
            }
            "shell" | "bash" | "default_agent" | "tool_output" | "edit" | "files" => {
                match page.standing {
                    Standing::Full => self.setting(page, key, node),
                    Standing::Narrows => self.waiting.push(Listed::waiting(page, &[], entry)),
                }
            }
            other if keys::TOP.contains(&other) => {}
            other => {
                page.warn(entry.at, || words::unknown_key(other, keys::nearest(other, keys::TOP)))
            }
        }
    }

    fn setting(&mut self, page: &mut Page<'_>, key: &str, node: &Node) {
        match key {
            "tool_output" => tool_output(page, node, &mut self.tool_output),
            "edit" => self.changes.edit(page, node),
            "files" => self.changes.files(page, node),
            "shell" => programs::shell(page, node, &mut self.shell),
            "bash" => programs::bash(page, node, &mut self.bash),
            _ => {
                let agent = page.text(key, node, Reading::Usual);
                self.default_agent = agent.or(self.default_agent.take());
            }
        }
    }

    fn note(&mut self, page: &mut Page<'_>, item: &Item, (name, mode): (&str, Mode), text: &str) {
        let note = yaml::parse(text);
        let (node, at) = match note.fields {
            Fields::None => (None, At::START),
            Fields::Whole(node) => {
                let at = node.at;
                (Some(node), at)
            }
            Fields::Broken { at, why } => {
                page.error(at, || why);
                self.breaks(item, at);
                (None, at)
            }
        };
        let fields = match node.as_ref().map(|node| &node.what) {
            Some(What::Map(fields)) => fields.as_slice(),
            Some(other) => {
                page.error(at, || words::not_an_object(other));
                self.breaks(item, at);
                &[]
            }
            None => &[],
        };
        let body = (!note.body.trim().is_empty()).then(|| {
            let start = text.len() - note.body.trim_start().len();
            Given::new(note.body.trim().to_owned(), page.source(Places::new(text).of(start)))
        });
        self.agents.read(page, Written { name, at, fields, body, mode }, &mut self.waiting);
    }

    fn finish(self, gathered: &Gathered) -> Config {
        let (user, switches) = self.user.finish();
        let (project, project_switches) = self.project.finish();
        let agents = self.agents.finish();
        let mut problems = self.problems;
        let default_agent = self.default_agent.filter(|wanted| {
            let problem = check_default(wanted, &agents, gathered);
            let good = problem.is_none();
            problems.extend(problem);
            good
        });
        Config {
            user,
            project,
            switches,
            project_switches,
            agents,
            tool_output: self.tool_output,
            changes: self.changes,
            servers: self.servers,
            default_agent,
            shell: self.shell,
            bash: self.bash,
            sandbox: self.sandbox,
            environment: self.environment,
            problems,
            sources: self.sources,
            digest: gathered.digest().to_owned(),
            waiting: self.waiting,
        }
    }
}

fn tool_output(page: &mut Page<'_>, node: &Node, limits: &mut ToolOutput) {
    let Some(fields) = page.map("tool_output", node) else { return };
    for field in fields {
        let name = words::key_path(&["tool_output", &field.key]);
        let (slot, most) = match field.key.as_str() {
            "max_lines" => (&mut limits.max_lines, MOST_LINES),
            "max_bytes" => (&mut limits.max_bytes, MOST_BYTES),
            other => {
                let meant = keys::nearest(other, keys::TOOL_OUTPUT);
                page.warn(field.at, || words::unknown_key(other, meant));
                continue;
            }
        };
        if let Some(count) = page.count(&name, &field.value, most) {
            *slot = Some(count);
        }
    }
}

/// The default agent must be one that a person can start.
fn check_default(wanted: &Given<String>, agents: &[Agent], gathered: &Gathered) -> Option<Problem> {
    let fits = |agent: &&Agent| *agent.mode != Mode::Subagent && !*agent.hidden;
    let found = agents.iter().find(|agent| agent.name == wanted.value);
    if found.as_ref().is_some_and(fits) {
        return None;
    }
    let names: Vec<_> = agents.iter().filter(fits).map(|agent| agent.name.as_str()).collect();
    let said = match found {
        Some(_) => words::agent_is_not_primary(wanted.shown(), &names),
        None => words::no_such_agent(wanted.shown(), &names),
    };
    let Source::File { path, line, column } = &wanted.source else { return None };
    let item = gathered.items.iter().find(|item| item.path == *path);
    let text = item.and_then(Item::text).and_then(Result::ok).unwrap_or_default();
    let at = At { line: *line, column: *column };
    Some(Problem::in_text(path.clone(), Severity::Error, said, (text, at)))
}
