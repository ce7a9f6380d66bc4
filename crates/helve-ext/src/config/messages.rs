//! Messages about configuration files.

use std::path::Path;

use helve_core::{Rule, Source};
use helve_text::shell::ShellLanguage;
use helve_text::url::UrlError;
use helve_text::visible;
use jsonc_parser::ParseStringErrorKind;
use jsonc_parser::errors::ParseErrorKind;

use super::load::{ConfigReadError, MAX_FILE_BYTES};
use super::tree::{ConfigValue, Position};
use super::{keys, rules};

/// What is wrong, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProblemText {
    pub(super) what: String,
    pub(super) suggestion: Option<String>,
}

fn problem(what: impl Into<String>) -> ProblemText {
    ProblemText { what: what.into(), suggestion: None }
}

impl ProblemText {
    fn hint(self, suggestion: impl Into<String>) -> ProblemText {
        ProblemText { suggestion: Some(suggestion.into()), ..self }
    }
}

/// Replaces a value that may be a secret.
pub(super) const HIDDEN: &str = "(not shown)";
/// What a mistake in a list of rules leads to.
const ASKS_UNTIL_FIXED: &str =
    "until this is fixed, this file allows nothing without asking; denies still apply";
const ACTIONS: &[&str] = &["allow", "ask", "deny"];
/// Maximum number of characters of a value that a message repeats.
const MAX_DISPLAYED: usize = 120;

/// Escapes control characters and cuts long text.
pub(super) fn display_text(text: &str) -> String {
    let mut chars = text.chars();
    let start: String = chars.by_ref().take(MAX_DISPLAYED).collect();
    let end = if chars.next().is_some() { "…" } else { "" };
    format!("{}{end}", visible::escape_line(&start))
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", display_text(text))
}

/// Joins keys to a path: `permission.bash."git *"`.
pub(super) fn key_path(parts: &[&str]) -> String {
    let is_plain = |part: &str| {
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '$' | '/');
        !part.is_empty() && part.chars().all(plain)
    };
    let rendered =
        parts.iter().map(|part| if is_plain(part) { display_text(part) } else { quoted(part) });
    rendered.collect::<Vec<_>>().join(".")
}

fn type_name(value: &ConfigValue) -> &'static str {
    match value {
        ConfigValue::Null => "null",
        ConfigValue::Bool(true) => "true",
        ConfigValue::Bool(false) => "false",
        ConfigValue::Number(_) => "a number",
        ConfigValue::Text(_) => "a string",
        ConfigValue::List(_) => "a list",
        ConfigValue::Map(_) => "an object",
    }
}

fn describe(value: &ConfigValue) -> String {
    match value {
        ConfigValue::Number(number) => display_text(number),
        ConfigValue::Text(text) => quoted(text),
        ConfigValue::List(items) if items.is_empty() => "an empty list".to_owned(),
        ConfigValue::Null | ConfigValue::Bool(_) | ConfigValue::List(_) | ConfigValue::Map(_) => {
            type_name(value).to_owned()
        }
    }
}

// Files

pub(super) fn unreadable(why: &ConfigReadError) -> ProblemText {
    match why {
        ConfigReadError::Missing => problem("the file does not exist"),
        ConfigReadError::DeadLink => problem("this is a broken link"),
        ConfigReadError::OutsideProject(target) => {
            let target = display_text(&target.to_string_lossy());
            problem(format!("this link leads out of the project, to {target}, and is not read"))
                .hint("put the file into the project, or name it with --config")
        }
        ConfigReadError::NotAFile(kind) => problem(format!("this is {kind}, not a file")),
        ConfigReadError::TooLarge => {
            problem(format!("this is larger than {} KiB", MAX_FILE_BYTES / 1024))
        }
        ConfigReadError::Failed(why) => {
            problem(format!("the file cannot be read: {}", display_text(why)))
        }
    }
}

pub(super) fn not_text() -> ProblemText {
    problem("invalid UTF-8 from here on").hint("save the file as UTF-8")
}

pub(super) fn linked_folder() -> ProblemText {
    problem("this is a link to a folder; links to folders in a project are not followed")
}

pub(super) fn name_is_not_text() -> ProblemText {
    problem("the file name is not UTF-8, so it cannot name an agent")
}

pub(super) fn too_many_agent_files(max: usize, max_depth: usize) -> ProblemText {
    problem(format!(
        "not all files here are read: the limits are {max} files and {max_depth} folder levels"
    ))
}

pub(super) fn too_many_skills(max: usize, max_depth: usize) -> ProblemText {
    problem(format!(
        "not all skills here are read: the limits are {max} skills and {max_depth} folder levels"
    ))
}

pub(super) fn skill_without_name(max: usize) -> ProblemText {
    problem(format!("the skill has no usable name of 1 to {max} bytes"))
        .hint("add front matter: ---, name: …, description: …, ---")
}

pub(super) fn skill_without_description() -> ProblemText {
    problem("the skill has neither a description nor a body")
        .hint("add front matter: ---, name: …, description: …, ---")
}

pub(super) fn skill_is_replaced(by: &Path) -> ProblemText {
    problem(format!("a skill of the same name is used instead: {}", by.display()))
}

pub(super) fn command_without_template(name: &str) -> ProblemText {
    problem(format!("the command `{name}` has no template"))
        .hint("set \"template\", or write the prompt below the front matter")
}

pub(super) fn command_limits(max: usize, max_name: usize) -> ProblemText {
    problem(format!("there may be at most {max} commands, with names of 1 to {max_name} bytes"))
}

pub(super) fn more_problems(count: usize) -> ProblemText {
    problem(format!("{count} more problems in this file are not listed"))
}

// Syntax

pub(super) fn syntax(kind: &ParseErrorKind) -> ProblemText {
    use ParseErrorKind as K;
    match kind {
        K::ExpectedComma => problem("missing comma"),
        K::ExpectedColonAfterObjectKey => problem("a key must be followed by a colon"),
        K::ExpectedObjectValue => problem("this key has no value"),
        K::ExpectedStringObjectProperty => problem("a key must be in double quotes"),
        K::SingleQuotedStringsNotAllowed => {
            problem("strings must be in double quotes, not single quotes")
        }
        K::UnterminatedObject => problem("this { is never closed"),
        K::UnterminatedArray => problem("this [ is never closed"),
        K::UnterminatedCommentBlock => problem("this comment is never closed"),
        K::String(ParseStringErrorKind::UnterminatedStringLiteral) => {
            problem("this string is never closed")
        }
        K::MultipleRootJsonValues => problem("there is text after the end of the JSON value"),
        K::NestingDepthExceeded => problem("this is nested too deeply"),
        K::UnexpectedWord | K::UnexpectedToken => {
            problem("this is not a value; strings must be in double quotes")
        }
        K::UnexpectedTokenInObject => problem("expected a key in double quotes"),
        K::UnexpectedCloseBrace | K::UnexpectedCloseBracket | K::UnexpectedComma => {
            problem("expected a value before this")
        }
        other => problem(format!("this is not valid JSON: {}", other.to_string().to_lowercase())),
    }
    .hint(ASKS_UNTIL_FIXED)
}

pub(super) fn bad_yaml(why: &str) -> ProblemText {
    // Cuts off the position in the parser's message, because the problem itself reports the position in the file.
    let why = why.lines().next().unwrap_or_default();
    let why = why.split_once(" at line ").map_or(why, |(why, _)| why);
    let too_much = why.starts_with("budget breached") || why.starts_with("recursion limit");
    let why = if too_much { "it is too large or nested too deeply" } else { why };
    problem(format!("the front matter is not valid YAML: {}", display_text(why)))
}

/// Adds the consequence of broken front matter in an agent's file.
pub(super) fn in_agent(text: ProblemText) -> ProblemText {
    match text.suggestion {
        Some(_) => text,
        None => text.hint("until this is fixed, every tool call of the agent needs approval"),
    }
}

pub(super) fn front_matter_too_long(max: usize) -> ProblemText {
    problem(format!("front matter may have at most {} KiB", max / 1024))
}

pub(super) fn front_matter_is_unclosed() -> ProblemText {
    problem("the front matter is never closed").hint("end it with a `---` line")
}

pub(super) fn not_an_object(value: &ConfigValue) -> ProblemText {
    problem(format!("settings must be an object, not {}", type_name(value))).hint(ASKS_UNTIL_FIXED)
}

pub(super) fn repeated(key: &str, first: Position) -> ProblemText {
    problem(format!("{} is already set on line {}", quoted(key), first.line))
        .hint("remove one of them")
}

// Values

pub(super) fn wrong_type(name: &str, expected: &str, value: &ConfigValue) -> ProblemText {
    problem(format!("{name} must be {expected}, not {}", describe(value)))
}

pub(super) fn lacks(name: &str, key: &str) -> ProblemText {
    problem(format!("{name} has no `{key}`"))
}

pub(super) fn positive_up_to(max: u64) -> String {
    format!("a whole number from 1 to {max}")
}

pub(super) fn number_up_to(max: f64) -> String {
    format!("a number from 0 to {max}")
}

pub(super) fn not_a_choice(name: &str, known: &[&str], value: &str) -> ProblemText {
    let all: Vec<String> = known.iter().map(|choice| quoted(choice)).collect();
    let message = problem(format!("{name} must be {}, not {}", all.join(" or "), quoted(value)));
    match keys::nearest(value, known) {
        Some(nearest) => message.hint(format!("did you mean {}?", quoted(nearest))),
        None => message,
    }
}

pub(super) fn unknown_key(key: &str, nearest: Option<&str>) -> ProblemText {
    let message = problem(format!("unknown key {}; it has no effect", quoted(key)));
    match nearest {
        Some(nearest) => message.hint(format!("did you mean {}?", quoted(nearest))),
        None => message,
    }
}

pub(super) fn unset(name: &str) -> ProblemText {
    problem(format!(
        "the variable {} is not set; an empty string is used instead",
        display_text(name)
    ))
}

pub(super) fn unset_in_rules(name: &str) -> ProblemText {
    problem(format!("the variable {} is not set, so this rule is invalid", display_text(name)))
        .hint(ASKS_UNTIL_FIXED)
}

pub(super) fn reference_needs_trust() -> ProblemText {
    problem("this is ignored until the project is trusted, because it contains {env:…} or {file:…}")
        .hint("run `helve trust`, or write the value directly")
}

pub(super) fn no_home() -> ProblemText {
    problem("the home folder is unknown").hint("write the full path")
}

pub(super) fn unreadable_include(path: &Path, why: &ConfigReadError) -> ProblemText {
    let why = unreadable(why).what;
    problem(format!("{} cannot be included: {why}", display_text(&path.to_string_lossy())))
}

pub(super) fn unreadable_ca(path: &Path, why: &ConfigReadError) -> ProblemText {
    let why = unreadable(why).what;
    problem(format!("{} cannot be used: {why}", display_text(&path.to_string_lossy())))
        .hint("name a file with certificates in PEM format")
}

pub(super) fn ca_without_certificates(path: &Path, found: &str) -> ProblemText {
    problem(format!("{} cannot be used: {found}", display_text(&path.to_string_lossy()))).hint(
        "name a file with certificates in PEM format; `openssl x509 -inform der` converts from DER",
    )
}

pub(super) fn ca_of_project() -> ProblemText {
    problem("web.ca has no effect in a project").hint("set it in your own configuration")
}

pub(super) fn missing_search_url(section: &str) -> ProblemText {
    problem(format!("{section}.url is missing"))
        .hint("name the URL of your instance, such as \"http://localhost:8080\"")
}

pub(super) fn bad_url(name: &str, value: &str, why: &UrlError) -> ProblemText {
    problem(format!("{name} is not a valid URL: {}: {why}", quoted(value)))
}

pub(super) fn includes_itself() -> ProblemText {
    problem("a file cannot include itself")
}

pub(super) fn include_is_not_text(path: &Path) -> ProblemText {
    problem(format!("{} is not UTF-8", display_text(&path.to_string_lossy())))
}

pub(super) fn too_many_includes(max: usize) -> ProblemText {
    problem(format!("a configuration file may include at most {max} files"))
}

pub(super) fn value_too_large(max: usize) -> ProblemText {
    problem(format!("with included files this value is larger than {} KiB", max / 1024))
}

// Rules

pub(super) fn wrong_permission(name: &str, value: &ConfigValue) -> ProblemText {
    let name = display_text(name);
    let expected = "\"allow\", \"ask\", \"deny\" or an object of these";
    problem(format!("{name} must be {expected}, not {}", describe(value))).hint(ASKS_UNTIL_FIXED)
}

pub(super) fn wrong_action(value: &ConfigValue) -> ProblemText {
    problem(format!("an action must be \"allow\", \"ask\" or \"deny\", not {}", describe(value)))
        .hint(ASKS_UNTIL_FIXED)
}

pub(super) fn unknown_action(value: &str) -> ProblemText {
    let message =
        problem(format!("an action must be \"allow\", \"ask\" or \"deny\", not {}", quoted(value)));
    match keys::nearest(value, ACTIONS) {
        Some(nearest) => {
            message.hint(format!("did you mean {}? {ASKS_UNTIL_FIXED}", quoted(nearest)))
        }
        None => message.hint(ASKS_UNTIL_FIXED),
    }
}

pub(super) fn misspelled_permission(key: &str, nearest: &str) -> ProblemText {
    problem(format!("Helve has no tool {}", quoted(key))).hint(format!(
        "did you mean {}? Ignore this if you have a tool with this name",
        quoted(nearest)
    ))
}

pub(super) fn replaced_by_permission(tool: &str, key: &str) -> ProblemText {
    problem(format!(
        "{} has no effect, because {} already covers this tool",
        key_path(&["tools", tool]),
        key_path(&["permission", key])
    ))
    .hint("remove one of them")
}

pub(super) fn pattern_too_long(max: usize) -> ProblemText {
    problem(format!("a pattern may have at most {max} bytes")).hint(ASKS_UNTIL_FIXED)
}

pub(super) fn too_many_rules(max: usize) -> ProblemText {
    problem(format!("a permission section may have at most {max} rules")).hint(ASKS_UNTIL_FIXED)
}

pub(super) fn too_many_tools(max: usize) -> ProblemText {
    problem(format!("a tools section may have at most {max} entries")).hint(ASKS_UNTIL_FIXED)
}

/// `later` matches everything that `rules` match.
pub(super) fn never_decide(rules: &[&Rule], later: &Rule, at: Position) -> Option<ProblemText> {
    let (first, others) = rules.split_first()?;
    let (key, action) = rules::key_and_action(first);
    let (later_key, later_action) = rules::key_and_action(later);
    let (subject, verb, object) = match others.len() {
        0 => (format!("{key}: {action}"), "applies", "it matches"),
        1 => (format!("{key}: {action} and one more rule"), "apply", "they match"),
        count => (format!("{key}: {action} and {count} more rules"), "apply", "they match"),
    };
    let text = problem(format!(
        "{subject} never {verb}, because {later_key}: {later_action} on line {} matches everything {object}",
        at.line
    ));
    Some(text.hint("the last match decides: put the general rule first"))
}

/// Why a pattern matches nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NeverMatches {
    Empty,
    Spaces,
    SeveralCommands,
    Redirect,
    RelativeFolder,
    FolderWithoutContents,
    ParentFolder,
    NotUrl(UrlError),
}

pub(super) fn never_matches(rule: &Rule, why: NeverMatches) -> ProblemText {
    let (key, action) = rules::key_and_action(rule);
    let (why, hint) = match why {
        NeverMatches::Empty => ("the pattern is empty", "write \"*\" for everything"),
        NeverMatches::Spaces => ("a space at the start or end never matches", "remove the space"),
        NeverMatches::SeveralCommands => (
            "each command of a script is judged by itself",
            "write a rule for each of the commands",
        ),
        NeverMatches::Redirect => (
            "an allow rule does not see redirects, which are judged under \"edit\" and \"read\"",
            "remove the redirect, and allow the file under \"edit\"",
        ),
        NeverMatches::RelativeFolder => (
            "this permission applies to folders outside the project, whose paths are absolute",
            "write the full path, or one that begins with ~/ or ../",
        ),
        NeverMatches::FolderWithoutContents => (
            "a folder outside the project is matched as its path followed by /*",
            "add /* at the end",
        ),
        NeverMatches::ParentFolder => ("paths never contain ..", "write the path without .."),
        NeverMatches::NotUrl(why) => {
            let text = format!("{key}: {action} matches nothing: {why}");
            return problem(text).hint("write a URL, such as https://docs.rs/* or *.example.com");
        }
    };
    problem(format!("{key}: {action} matches nothing: {why}")).hint(hint)
}

/// `overruling` asks about or denies everything that `rules` of an agent allow.
pub(super) fn overruled_allows(
    agent: &str,
    rules: &[&Rule],
    overruling: &Rule,
) -> Option<ProblemText> {
    let (first, others) = rules.split_first()?;
    let (key, _) = rules::key_and_action(first);
    let more = match others.len() {
        0 => String::new(),
        1 => " and one more rule".into(),
        count => format!(" and {count} more rules"),
    };
    let (overruling_key, action) = rules::key_and_action(overruling);
    let place = match &overruling.source {
        Source::File { path, line, .. } => {
            format!(" ({}:{line})", display_text(&path.to_string_lossy()))
        }
        Source::Builtin | Source::Flag(_) | Source::Approved(_) | Source::Program => String::new(),
    };
    let text = problem(format!(
        "agent.{}.{key}: allow{more} has no effect, because {overruling_key}: {action}{place} takes precedence",
        display_text(agent)
    ));
    Some(text.hint(
        "a rule of an agent can allow something only if no other rule asks about or denies it",
    ))
}

// Agents

pub(super) fn agent_limits(max: usize, max_name: usize) -> ProblemText {
    problem(format!("there may be at most {max} agents, with names of 1 to {max_name} bytes"))
}

pub(super) fn unknown_mode(mode: &str) -> ProblemText {
    problem(format!(
        "an agent's mode must be \"primary\", \"subagent\" or \"all\", not {}",
        quoted(mode)
    ))
}

pub(super) fn no_such_agent(name: &str, names: &[&str]) -> ProblemText {
    let message = problem(format!("no such agent: {}", quoted(name)));
    match keys::nearest(name, names) {
        Some(nearest) => message.hint(format!("did you mean {}?", quoted(nearest))),
        None => message.hint(format!("agents: {}", display_text(&names.join(", ")))),
    }
}

pub(super) fn agent_is_not_primary(name: &str, names: &[&str]) -> ProblemText {
    problem(format!(
        "{} cannot be the default agent, because only other agents may start it",
        quoted(name)
    ))
    .hint(format!("choose one of: {}", display_text(&names.join(", "))))
}

// Programs

pub(super) fn empty_shell() -> ProblemText {
    problem("the shell is empty").hint("write \"bash\", or a list of the program and its arguments")
}

pub(super) fn unsupported_shell(program: &str) -> ProblemText {
    let known: Vec<&str> = ShellLanguage::SHELLS.iter().map(|(name, _)| *name).collect();
    problem(format!("scripts for {} cannot be judged, so commands run in bash", quoted(program)))
        .hint(format!("use one of {}", known.join(", ")))
}

pub(super) fn unknown_sandbox(value: &ConfigValue) -> ProblemText {
    problem(format!(
        "the sandbox must be \"off\", \"workspace-write\" or \"read-only\", not {}",
        describe(value)
    ))
    .hint("until this is fixed, programs run read-only")
}

pub(super) fn not_a_writable_folder(folder: &str, max: usize) -> ProblemText {
    problem(format!("{} cannot be made writable in the sandbox", quoted(folder)))
        .hint(format!("write an absolute path or one that starts with ~/, at most {max} in total"))
}

pub(super) fn project_loosens_sandbox() -> ProblemText {
    problem("a project cannot loosen the sandbox; this has no effect")
        .hint("set it in your own configuration")
}

pub(super) fn unknown_inherit(value: &str) -> ProblemText {
    problem(format!(
        "environment.inherit must be \"all\", \"core\" or \"none\", not {}",
        quoted(value)
    ))
    .hint("until this is fixed, only the variables that programs need to run are passed on")
}

pub(super) fn not_a_variable(name: &str) -> ProblemText {
    problem(format!("{} cannot be set: a name must not be empty or contain = or NUL", quoted(name)))
}

pub(super) fn too_many_variables(max: usize) -> ProblemText {
    problem(format!("environment may have at most {max} names and patterns"))
}

// MCP servers

pub(super) fn no_such_server(name: &str) -> ProblemText {
    problem(format!("no server {} is configured, so \"enabled\" has no effect", quoted(name)))
}

pub(super) fn too_many_servers(max: usize) -> ProblemText {
    problem(format!("there may be at most {max} servers"))
}

pub(super) fn server_without_type(name: &str, likely_type: &str) -> ProblemText {
    problem(format!("the server {} has no type", quoted(name)))
        .hint(format!("add \"type\": {}", quoted(likely_type)))
}

pub(super) fn unknown_server_type(kind: &str) -> ProblemText {
    problem(format!("a server's type must be \"local\" or \"remote\", not {}", quoted(kind)))
}

pub(super) fn unknown_mcp_json_type(kind: &str) -> ProblemText {
    let message =
        problem(format!("a server's type must be \"stdio\" or \"http\", not {}", quoted(kind)));
    match kind {
        "sse" => message.hint("try \"http\": the older SSE transport is not supported"),
        _ => message,
    }
}

pub(super) fn server_prompts_for_value(server: &str, input: &str) -> ProblemText {
    problem(format!(
        "the server {} needs the value ${{input:{}}}",
        quoted(server),
        display_text(input)
    ))
    .hint(format!(
        "Helve does not prompt for values; write ${{{}}} and set that variable",
        display_text(&input.to_uppercase().replace('-', "_"))
    ))
}

pub(super) fn server_lacks(name: &str, key: &str) -> ProblemText {
    problem(format!("the server {} has no {key}", quoted(name)))
}

pub(super) fn command_is_a_string(line: &str) -> ProblemText {
    let words: Vec<_> = line.split_whitespace().map(quoted).collect();
    problem("a command must be a list of the program and its arguments")
        .hint(format!("write [{}]", display_text(&words.join(", "))))
}

pub(super) fn empty_command(name: &str) -> ProblemText {
    problem(format!("the command of the server {} is empty", quoted(name)))
}

pub(super) fn not_a_web_url(url: &str) -> ProblemText {
    problem(format!("{} does not begin with https:// or http://", quoted(url)))
}
