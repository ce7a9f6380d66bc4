//! Everything that this crate says to people.

use std::path::Path;

use helve_core::permission::Rule;
use helve_text::visible;
use jsonc_parser::ParseStringErrorKind;
use jsonc_parser::errors::ParseErrorKind;

use super::load::{MOST_BYTES, Unreadable};
use super::tree::{At, What};
use super::{keys, rules};

/// What is wrong, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) what: String,
    pub(super) suggestion: Option<String>,
}

fn say(what: impl Into<String>) -> Said {
    Said { what: what.into(), suggestion: None }
}

impl Said {
    fn hint(self, suggestion: impl Into<String>) -> Said {
        Said { suggestion: Some(suggestion.into()), ..self }
    }
}

/// In place of a value that may be a secret.
pub(super) const HIDDEN: &str = "(not shown)";
/// What happens to a list of rules with a mistake in it.
const CLOSED: &str = "until this is mended nothing here is allowed without asking; denies hold";
const ACTIONS: &[&str] = &["allow", "ask", "deny"];
/// How much of a value a sentence or a listing repeats.
const MOST_SHOWN: usize = 120;

/// On one line, in full where it is short, with nothing in it that steers a terminal.
pub(super) fn shown(text: &str) -> String {
    let mut chars = text.chars();
    let start: String = chars.by_ref().take(MOST_SHOWN).collect();
    let end = if chars.next().is_some() { "…" } else { "" };
    format!("{}{end}", visible::escape_line(&start))
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", shown(text))
}

/// `permission.bash."git *"`.
pub(super) fn key_path(parts: &[&str]) -> String {
    let is_plain = |part: &str| {
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '$' | '/');
        !part.is_empty() && part.chars().all(plain)
    };
    let spelled = parts.iter().map(|part| if is_plain(part) { shown(part) } else { quoted(part) });
    spelled.collect::<Vec<_>>().join(".")
}

fn name_of(what: &What) -> &'static str {
    match what {
        What::Null => "null",
        What::Bool(true) => "true",
        What::Bool(false) => "false",
        What::Number(_) => "a number",
        What::Text(_) => "a text",
        What::List(_) => "a list",
        What::Map(_) => "an object",
    }
}

fn found(what: &What) -> String {
    match what {
        What::Number(number) => shown(number),
        What::Text(text) => quoted(text),
        What::Null | What::Bool(_) | What::List(_) | What::Map(_) => name_of(what).to_owned(),
    }
}

// Files

pub(super) fn unreadable(why: &Unreadable) -> Said {
    match why {
        Unreadable::Missing => say("there is no such file"),
        Unreadable::DeadLink => say("this is a link that leads nowhere"),
        Unreadable::Elsewhere(to) => {
            let to = shown(&to.to_string_lossy());
            say(format!("this leads out of the project, to {to}, and is not read"))
                .hint("put the file itself into the project, or name it with --config")
        }
        Unreadable::NotAFile(kind) => say(format!("this is {kind}, not a file")),
        Unreadable::TooLarge => say(format!("this is larger than {} KiB", MOST_BYTES / 1024)),
        Unreadable::Failed(why) => say(format!("this cannot be read: {}", shown(why))),
    }
}

pub(super) fn not_text() -> Said {
    say("from here on this is not UTF-8").hint("save the file as UTF-8")
}

pub(super) fn linked_folder() -> Said {
    say("this is a link to a folder; in a project such links are not followed")
}

pub(super) fn name_is_not_text() -> Said {
    say("the name of this file is not UTF-8, so no agent can be named after it")
}

pub(super) fn too_many_notes(most: usize, deepest: usize) -> Said {
    say(format!("not everything here is read: at most {most} files, and {deepest} folders deep"))
}

pub(super) fn more_problems(count: usize) -> Said {
    say(format!("{count} more problems in this file are not listed"))
}

// Syntax

pub(super) fn syntax(kind: &ParseErrorKind) -> Said {
    use ParseErrorKind as K;
    match kind {
        K::ExpectedComma => say("a comma is missing here"),
        K::ExpectedColonAfterObjectKey => say("a key must be followed by a colon"),
        K::ExpectedObjectValue => say("this key has no value"),
        K::ExpectedStringObjectProperty => say("a key must stand in double quotes"),
        K::SingleQuotedStringsNotAllowed => say("texts stand in double quotes, not single ones"),
        K::UnterminatedObject => say("this { is never closed"),
        K::UnterminatedArray => say("this [ is never closed"),
        K::UnterminatedCommentBlock => say("this comment is never closed"),
        K::String(ParseStringErrorKind::UnterminatedStringLiteral) => {
            say("this text is never closed")
        }
        K::MultipleRootJsonValues => say("the file goes on after its end"),
        K::NestingDepthExceeded => say("this is nested too deeply"),
        K::UnexpectedWord | K::UnexpectedToken => {
            say("this is not a value; texts stand in double quotes")
        }
        K::UnexpectedTokenInObject => say("a key in double quotes is missing here"),
        K::UnexpectedCloseBrace | K::UnexpectedCloseBracket | K::UnexpectedComma => {
            say("a value is missing before this")
        }
        other => say(format!("this is not JSON: {}", other.to_string().to_lowercase())),
    }
    .hint(CLOSED)
}

pub(super) fn bad_yaml(why: &str) -> Said {
    // The place is told by the problem itself, in lines of the whole file.
    let why = why.lines().next().unwrap_or_default();
    let why = why.split_once(" at line ").map_or(why, |(why, _)| why);
    let too_much = why.starts_with("budget breached") || why.starts_with("recursion limit");
    let why = if too_much { "it holds too much or nests too deeply" } else { why };
    say(format!("the front matter is not YAML: {}", shown(why)))
        .hint("until this is mended the agent asks for everything")
}

pub(super) fn front_matter_too_long(most: usize) -> Said {
    say(format!("front matter has at most {} KiB", most / 1024))
        .hint("until this is mended the agent asks for everything")
}

pub(super) fn front_matter_is_open() -> Said {
    say("the front matter that begins here is never closed").hint("end it with a line ---")
}

pub(super) fn not_an_object(what: &What) -> Said {
    say(format!("settings must be an object, and this is {}", name_of(what))).hint(CLOSED)
}

pub(super) fn repeated(key: &str, first: At) -> Said {
    say(format!("{} is already set on line {}", quoted(key), first.line))
        .hint("keep one of the two")
}

// Values

pub(super) fn wrong_type(name: &str, wanted: &str, what: &What) -> Said {
    say(format!("{name} must be {wanted}, and this is {}", found(what)))
}

pub(super) fn count_up_to(most: u64) -> String {
    format!("a whole number from 1 to {most}")
}

pub(super) fn number_up_to(most: f64) -> String {
    format!("a number from 0 to {most}")
}

pub(super) fn not_a_choice(name: &str, known: &[&str], word: &str) -> Said {
    let all: Vec<String> = known.iter().map(|word| quoted(word)).collect();
    let said = say(format!("{name} is {}, not {}", all.join(" or "), quoted(word)));
    match keys::nearest(word, known) {
        Some(meant) => said.hint(format!("did you mean {}?", quoted(meant))),
        None => said,
    }
}

pub(super) fn unknown_key(key: &str, meant: Option<&str>) -> Said {
    let said = say(format!("{} is not a key that Helve knows; it has no effect", quoted(key)));
    match meant {
        Some(meant) => said.hint(format!("did you mean {}?", quoted(meant))),
        None => said,
    }
}

pub(super) fn unset(name: &str) -> Said {
    say(format!("the variable {} is not set; it counts as empty", shown(name)))
}

pub(super) fn unset_in_rules(name: &str) -> Said {
    say(format!("the variable {} is not set, so this rule has no meaning", shown(name)))
        .hint(CLOSED)
}

pub(super) fn reference_needs_trust() -> Said {
    say("{env:…} and {file:…} of a project are only looked up once the project is trusted")
        .hint("write the value itself, or trust the project")
}

pub(super) fn no_home() -> Said {
    say("the home folder is not known").hint("write the path in full")
}

pub(super) fn unreadable_include(path: &Path, why: &Unreadable) -> Said {
    let why = unreadable(why).what;
    say(format!("{} cannot be taken in: {why}", shown(&path.to_string_lossy())))
}

pub(super) fn includes_itself() -> Said {
    say("a file cannot take itself in")
}

pub(super) fn include_is_not_text(path: &Path) -> Said {
    say(format!("{} is not UTF-8", shown(&path.to_string_lossy())))
}

pub(super) fn too_many_files(most: usize) -> Said {
    say(format!("a configuration file may take in {most} files"))
}

pub(super) fn value_too_large(most: usize) -> Said {
    say(format!("with its files put in this value is larger than {} KiB", most / 1024))
}

// Rules

pub(super) fn wrong_permission(name: &str, what: &What) -> Said {
    let name = shown(name);
    let wanted = "\"allow\", \"ask\", \"deny\" or an object of these";
    say(format!("{name} must be {wanted}, and this is {}", found(what))).hint(CLOSED)
}

pub(super) fn wrong_action(what: &What) -> Said {
    say(format!("a rule says \"allow\", \"ask\" or \"deny\", and this is {}", found(what)))
        .hint(CLOSED)
}

pub(super) fn unknown_action(word: &str) -> Said {
    let said = say(format!("a rule says \"allow\", \"ask\" or \"deny\", not {}", quoted(word)));
    match keys::nearest(word, ACTIONS) {
        Some(meant) => said.hint(format!("did you mean {}? {CLOSED}", quoted(meant))),
        None => said.hint(CLOSED),
    }
}

pub(super) fn misspelt_permission(key: &str, meant: &str) -> Said {
    say(format!("no tool of Helve is called {}", quoted(key))).hint(format!(
        "did you mean {}? If a tool of yours has this name, all is well",
        quoted(meant)
    ))
}

pub(super) fn pattern_too_long(most: usize) -> Said {
    say(format!("a pattern has at most {most} bytes")).hint(CLOSED)
}

pub(super) fn too_many_rules(most: usize) -> Said {
    say(format!("a permission section has at most {most} rules")).hint(CLOSED)
}

pub(super) fn too_many_tools(most: usize) -> Said {
    say(format!("a tools section has at most {most} entries")).hint(CLOSED)
}

pub(super) fn never_decides(rule: &Rule, later: &Rule, at: At) -> Said {
    let (key, action) = rules::spelled(rule);
    let (later_key, later_action) = rules::spelled(later);
    say(format!(
        "{key}: {action} never decides, because {later_key}: {later_action} on line {} comes later and matches all of it",
        at.line
    ))
    .hint("the last match decides: put the general rule first and this one after it")
}

// Agents

pub(super) fn no_such_agent_possible(most: usize, longest: usize) -> Said {
    say(format!("there are at most {most} agents, with names of 1 to {longest} bytes"))
}

pub(super) fn unknown_mode(mode: &str) -> Said {
    say(format!("an agent's mode is \"primary\", \"subagent\" or \"all\", not {}", quoted(mode)))
}

pub(super) fn no_such_agent(name: &str, names: &[&str]) -> Said {
    let said = say(format!("there is no agent {}", quoted(name)));
    match keys::nearest(name, names) {
        Some(meant) => said.hint(format!("did you mean {}?", quoted(meant))),
        None => said.hint(format!("there are: {}", shown(&names.join(", ")))),
    }
}

pub(super) fn agent_is_not_primary(name: &str, names: &[&str]) -> Said {
    say(format!("{} cannot be the default: only other agents start it", quoted(name)))
        .hint(format!("these can: {}", shown(&names.join(", "))))
}

// Programs

pub(super) fn empty_shell() -> Said {
    say("the shell has no name").hint("write \"bash\", or a list: the program, then each argument")
}

pub(super) fn unknown_sandbox(what: &What) -> Said {
    say(format!(
        "a sandbox is \"off\", \"workspace-write\" or \"read-only\", and this is {}",
        found(what)
    ))
    .hint("until this is mended programs run read-only")
}

pub(super) fn project_loosens_sandbox() -> Said {
    say("a project cannot loosen the sandbox; this has no effect")
        .hint("set it in your own configuration")
}

pub(super) fn unknown_inherit(word: &str) -> Said {
    say(format!("environment.inherit is \"all\", \"core\" or \"none\", not {}", quoted(word)))
        .hint("until this is mended only what programs need to run is passed on")
}

pub(super) fn not_a_variable(name: &str) -> Said {
    say(format!(
        "{} cannot be set: a name is not empty, and neither = nor NUL is in it",
        quoted(name)
    ))
}

pub(super) fn too_many_variables(most: usize) -> Said {
    say(format!("environment has at most {most} names and patterns"))
}

// MCP servers

pub(super) fn no_such_server(name: &str) -> Said {
    say(format!("no server {} is set up that could be switched", quoted(name)))
}

pub(super) fn too_many_servers(most: usize) -> Said {
    say(format!("there are at most {most} servers"))
}

pub(super) fn server_without_type(name: &str, meant: &str) -> Said {
    say(format!("the server {} has no type", quoted(name)))
        .hint(format!("add \"type\": {}", quoted(meant)))
}

pub(super) fn unknown_server_type(kind: &str) -> Said {
    say(format!("a server's type is \"local\" or \"remote\", not {}", quoted(kind)))
}

pub(super) fn unknown_mcp_json_type(kind: &str) -> Said {
    let said = say(format!("a server's type is \"stdio\" or \"http\", not {}", quoted(kind)));
    match kind {
        "sse" => said.hint("\"http\" reaches servers that speak the newer of the two; \"sse\" alone is not spoken here"),
        _ => said,
    }
}

pub(super) fn server_lacks(name: &str, key: &str) -> Said {
    say(format!("the server {} has no {key}", quoted(name)))
}

pub(super) fn command_is_a_line(line: &str) -> Said {
    let words: Vec<_> = line.split_whitespace().map(quoted).collect();
    say("a command is a list: the program, then each argument")
        .hint(format!("write [{}]", shown(&words.join(", "))))
}

pub(super) fn empty_command(name: &str) -> Said {
    say(format!("the command of the server {} is empty", quoted(name)))
}

pub(super) fn not_a_web_address(url: &str) -> Said {
    say(format!("{} does not begin with https:// or http://", quoted(url)))
}
