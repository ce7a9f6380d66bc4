//! The fixture language. A fixture lists files, rules, replies and calls; running it gives a log of asks,
//! results and changed files.
//!
//! ```text
//! --- file src/main.rs
//! fn main() {}
//! --- bytes old.txt        (a file that is not UTF-8, in hexadecimal)
//! 63 61 66 e9 0a
//! --- link latest -> src/main.rs
//! --- fifo pipe            (also: unreadable NAME, device NAME)
//! --- rule edit src/* deny
//! --- agent edit * deny    (a rule of the agent's wall)
//! --- project bash * ask   (a rule of the project's configuration)
//! --- trusted              (the project's configuration is trusted)
//! --- allow bash ls* allow (a rule of the `--allow` option)
//! --- reply once           (session, project, everywhere, no, no: a reason)
//! --- call read {"filePath": "src/main.rs"}
//! --- write src/main.rs    (a change by another program between calls)
//! fn main() { println!() }
//! --- interrupted CALL a.txt (a call that was killed before it wrote this text)
//! fn main() { todo() }
//! ```
//!
//! In the log, the answer of a call is followed by each changed file, as `>> NAME` and the content. The root is
//! `/w`, the home folder `/home/u`. Paths are relative to the root unless absolute.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use expect_test::Expect;
use helve_core::Source;
use helve_core::builtin::{ConfiguredRules, policy};
use helve_core::journal::{BeforeImage, FileImage, Journal, JournalEntry, LazyHash};
use helve_core::{
    Action, AnyTool, Caller, Content, Dialect, Engine, Extensions, FileKind, Gate, Host, Input,
    Layer, Registry, Reply, Rule, Scope, Session, ToolCall, ToolResult, Workspace,
};
use tokio_util::sync::CancellationToken;

use crate::journal::MemoryJournal;
use crate::machine::{MODE, MemoryMachine};
use crate::person::ScriptedPerson;
use crate::store::{MemoryOutputs, MemoryStore};
use crate::tree::MemoryNode;

/// The workspace root of fixtures.
pub const ROOT: &str = "/w";

/// Runs a fixture and compares the log.
pub fn check(
    dialect: &'static Dialect,
    tools: Vec<Arc<dyn AnyTool>>,
    fixture: &str,
    expected: Expect,
) {
    expected.assert_eq(&run(dialect, tools, fixture));
}

/// Runs a fixture and returns a log of asks, answers and changed files.
pub fn run(dialect: &'static Dialect, tools: Vec<Arc<dyn AnyTool>>, fixture: &str) -> String {
    let sections = sections(fixture);
    let machine = Arc::new(MemoryMachine::default());
    machine.write(Path::new(ROOT).join(".keep"), "");
    let sections_named = |name: &'static str| {
        sections.iter().filter(move |(head, _)| head.split(' ').next() == Some(name))
    };
    let rules = |name| sections_named(name).map(|(head, _)| rule(head)).collect::<Vec<_>>();
    let person = Arc::new(ScriptedPerson::with_replies(
        sections_named("reply").map(|(head, _)| reply(head)),
    ));
    let configured = ConfiguredRules {
        user: rules("rule"),
        project: rules("project"),
        is_project_trusted: sections_named("trusted").next().is_some(),
        flag_rules: rules("allow"),
        agents: vec![("tester".into(), rules("agent"))],
        root: ROOT.into(),
        ..ConfiguredRules::default()
    };
    let store = Arc::new(MemoryStore::default());
    let policy = policy(configured, &[Path::new("/data")]);
    let gate = Gate::new(policy, person.clone(), store.clone(), "s", ROOT.into());
    let journal = Arc::new(MemoryJournal::default());
    let workspace = Workspace::new(
        ROOT.into(),
        Host::new(machine.clone(), Vec::new(), Some("/home/u".into())),
        journal.clone(),
        Extensions::default(),
        None,
    );
    let registry: Arc<Registry> = Arc::default();
    for tool in tools {
        registry.register(Layer::Builtin, tool).permanent();
    }
    let session = Arc::new(Session {
        id: "s".into(),
        caller: Caller::default(),
        workspace,
        gate,
        dialect,
        limits: dialect.limits,
        switches: Vec::new(),
        store: store.clone(),
        outputs: Arc::new(MemoryOutputs::on(machine.clone())),
        seen_files: Default::default(),
        parent: None,
    });
    let engine = Engine::new(store);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.unwrap_or_else(|err| panic!("cannot start a runtime: {err}"));
    let (mut log, mut calls) = (String::new(), 0);
    for (head, body) in &sections {
        let (keyword, rest) = head.split_once(' ').unwrap_or((head, ""));
        match keyword {
            "call" => {
                let (tool, input) = rest.split_once(' ').unwrap_or((rest, "{}"));
                let input = if body.is_empty() { input.to_string() } else { body.clone() };
                let mut call = ToolCall::new(tool, Input::Raw(input));
                calls += 1;
                call.id = format!("call_{calls}");
                let tools = registry.offer_to(&session);
                let running = engine.call(&session, &tools, call, CancellationToken::new());
                let before = machine.nodes.lock().clone();
                let result = runtime.block_on(running);
                log.push_str(&person.take_asked().concat());
                log.push_str(&render(&result));
                log.push_str(&changed_files(&before, &machine.nodes.lock()));
            }
            "interrupted" => {
                let entry = interrupted_entry(&machine, rest, body);
                runtime.block_on(journal.begin(&entry)).unwrap_or_else(|err| panic!("{err}"));
            }
            "rule" | "agent" | "project" | "allow" | "reply" | "trusted" => {}
            _ => write_node(&machine, keyword, rest, body),
        }
    }
    log
}

/// Splits a fixture into sections: each `--- ` line without the dashes, and the text below it.
fn sections(fixture: &str) -> Vec<(String, String)> {
    let mut sections: Vec<(String, String)> = Vec::new();
    for line in fixture.split_inclusive('\n') {
        match (line.strip_prefix("--- "), sections.last_mut()) {
            (Some(head), _) => sections.push((head.trim_end().into(), String::new())),
            (None, Some((_, body))) => body.push_str(line),
            (None, None) => assert!(line.trim().is_empty(), "text before the first --- line"),
        }
    }
    sections
}

/// Creates what a section like `file`, `link` or `fifo` describes.
fn write_node(machine: &MemoryMachine, keyword: &str, rest: &str, body: &str) {
    let path = |name: &str| Path::new(ROOT).join(name);
    let node = match keyword {
        "file" | "write" => MemoryNode::File(Bytes::copy_from_slice(body.as_bytes())),
        "bytes" => MemoryNode::File(parse_hexadecimal(body).into()),
        "fifo" => MemoryNode::Special(FileKind::Fifo),
        "device" => MemoryNode::Special(FileKind::Device),
        "unreadable" => MemoryNode::Unreadable,
        "link" => {
            let (name, target) =
                rest.split_once(" -> ").unwrap_or_else(|| panic!("`link NAME -> TARGET`: {rest}"));
            machine.nodes.lock().insert(path(name), MemoryNode::Link(target.into()));
            return;
        }
        other => panic!("the fixture language has no `{other}`"),
    };
    machine.nodes.lock().insert(path(rest), node);
}

/// Returns the journal entry of a call that is about to write.
fn interrupted_entry(machine: &MemoryMachine, rest: &str, body: &str) -> JournalEntry {
    let (call, name) =
        rest.split_once(' ').unwrap_or_else(|| panic!("`interrupted CALL NAME`: {rest}"));
    let path = Path::new(ROOT).join(name);
    let image = match machine.nodes.lock().get(&path) {
        Some(MemoryNode::File(bytes)) => Some(FileImage::new(bytes.clone(), MODE)),
        Some(MemoryNode::Link(_) | MemoryNode::Special(_) | MemoryNode::Unreadable) | None => None,
    };
    let intended = Some(LazyHash::of(Bytes::copy_from_slice(body.as_bytes())));
    JournalEntry {
        call: call.into(),
        session: "s".into(),
        tool: "edit".into(),
        root: ROOT.into(),
        at: 0,
        undoes: Vec::new(),
        files: vec![BeforeImage { path, image, intended }],
    }
}

/// Parses bytes written in hexadecimal.
fn parse_hexadecimal(body: &str) -> Vec<u8> {
    let byte = |pair| u8::from_str_radix(pair, 16).unwrap_or_else(|err| panic!("{pair}: {err}"));
    body.split_whitespace().map(byte).collect()
}

fn rule(head: &str) -> Rule {
    let words: Vec<&str> = head.split(' ').collect();
    let [_, permission, pattern @ .., action] = words.as_slice() else {
        panic!("`rule PERMISSION PATTERN ACTION`: {head}");
    };
    let action = match *action {
        "allow" => Action::Allow,
        "ask" => Action::Ask,
        "deny" => Action::Deny,
        other => panic!("unknown action `{other}`"),
    };
    Rule::new(permission, &pattern.join(" "), action, Source::Program)
}

fn reply(head: &str) -> Reply {
    match head.strip_prefix("reply ").unwrap_or("") {
        "once" => Reply::Yes(Scope::Once),
        "session" => Reply::Yes(Scope::Session),
        "project" => Reply::Yes(Scope::Project),
        "everywhere" => Reply::Yes(Scope::Everywhere),
        "no" => Reply::No { note: None },
        other => match other.strip_prefix("no: ") {
            Some(note) => Reply::No { note: Some(note.into()) },
            None => panic!("unknown reply `{other}`"),
        },
    }
}

/// Formats the files below the root that a call changed.
fn changed_files(before: &Nodes, after: &Nodes) -> String {
    let mut text = String::new();
    let names: BTreeSet<&PathBuf> = before.keys().chain(after.keys()).collect();
    for path in names {
        let Ok(name) = path.strip_prefix(ROOT) else { continue };
        match (before.get(path), after.get(path)) {
            (old, new) if old == new => {}
            (_, Some(MemoryNode::File(bytes))) => {
                let content = String::from_utf8_lossy(bytes).replace('\r', "␍");
                let end = if content.ends_with('\n') { "" } else { "(no newline)\n" };
                text.push_str(&format!(">> {}\n{content}{end}", name.display()));
            }
            (_, Some(MemoryNode::Link(target))) => {
                text.push_str(&format!(">> {} -> {}\n", name.display(), target.display()));
            }
            (_, _) => text.push_str(&format!(">> {} is gone\n", name.display())),
        }
    }
    text
}

type Nodes = BTreeMap<PathBuf, MemoryNode>;

/// Formats a result for a log.
pub fn render(result: &ToolResult) -> String {
    match &result.outcome {
        Ok(output) => {
            let mut text = format!("== {}\n{}\n", output.title, output.joined_text().trim_end());
            for content in &output.content {
                if let Content::Media { mime, data } = content {
                    text.push_str(&format!("++ {mime}, {} bytes\n", data.len()));
                }
            }
            text
        }
        Err(err) => format!("!! {:?}\n{}\n", err.kind, err.full_message().trim_end()),
    }
}
