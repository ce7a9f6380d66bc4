//! What a program does with a value or an operand, by its role.

use super::arg_role::ArgRole;
use super::args::{Argument, ParsedArgs};
use super::grammar::is_name;
use super::state::{ShellState, join_path};
use super::walk::{StdinSource, Walker, unknown};
use super::{
    AccessKind, DoubtKind, DynamicKind, RiskKind, Word, WordRole, awk, builtins, command_output,
    file_patterns, jq, path_args, safe_values, sed,
};

pub(super) fn apply(
    walker: &mut Walker<'_>,
    argument: &Argument,
    words: &[Word],
    run: usize,
    parsed: &ParsedArgs,
    state: &mut ShellState,
) {
    let value = &argument.value;
    let at = argument.word;
    let shown = words[at].shown().to_string();
    if let Word::Glob(_) = value {
        walker.access(value, AccessKind::Expand, state, Some(run));
    }
    let mut risk = |kind| walker.risk(run, at, &shown, kind);
    match argument.role {
        ArgRole::Text
        | ArgRole::Mode
        | ArgRole::Module
        | ArgRole::Command
        | ArgRole::Shell
        | ArgRole::Split => {}
        ArgRole::Stat => walker.access(value, AccessKind::Stat, state, Some(run)),
        ArgRole::List => {
            let closed = parsed.has_any(&parsed.spec.no_list);
            let entered = !closed && !parsed.is_shallow();
            // Any of these may be the name of a link to a folder.
            let may_lead = |kind| match kind {
                DynamicKind::Number
                | DynamicKind::Commit
                | DynamicKind::FindResult { regular: false } => true,
                DynamicKind::Anything
                | DynamicKind::Revision
                | DynamicKind::Pipe
                | DynamicKind::FindResult { regular: true } => false,
            };
            let leads = matches!(value, Word::Dynamic(it) if may_lead(it.kind));
            let value = if entered && leads { &unknown(&shown) } else { value };
            // Names that are filled in were looked at already.
            if !(closed && matches!(value, Word::Glob(_))) {
                walker.access(value, AccessKind::Stat, state, Some(run));
            }
        }
        ArgRole::Read => {
            let access = match argument.flag {
                Some(_) if parsed.writes() => AccessKind::Write,
                Some(_) | None if parsed.spec.traits.read_tree => AccessKind::ReadTree,
                Some(_) | None => AccessKind::Read,
            };
            walker.access(value, access, state, Some(run));
            if argument.flag.is_none() && parsed.rewrites() {
                walker.access(value, AccessKind::Write, state, Some(run));
            }
        }
        ArgRole::Revision if parsed.has_any(&parsed.spec.read_tree) => {
            walker.access(value, AccessKind::ReadTree, state, Some(run));
        }
        ArgRole::Revision => {
            for picked in value.literal().map_or_else(Vec::new, file_patterns::of_git) {
                walker.access(&picked, AccessKind::Read, state, Some(run));
            }
            let is_revision = |kind| matches!(kind, DynamicKind::Commit | DynamicKind::Revision);
            let known = matches!(value, Word::Dynamic(it) if is_revision(it.kind));
            if !known {
                walker.access(value, AccessKind::MaybeRead, state, Some(run));
            }
        }
        ArgRole::Write => {
            let spared = parsed.has_any(&parsed.spec.dry_run);
            let access = if spared { AccessKind::Stat } else { AccessKind::Write };
            walker.access(value, access, state, Some(run));
        }
        ArgRole::Consume => {
            walker.access(value, AccessKind::Read, state, Some(run));
            walker.access(value, AccessKind::Write, state, Some(run));
        }
        ArgRole::Pattern => {
            for picked in file_patterns::picked(value.shown()) {
                walker.access(&picked, AccessKind::Read, state, Some(run));
            }
        }
        ArgRole::NameOnly => {
            let pattern =
                |it: &str| it.contains(['*', '?', '[', '\\', ':', ' ']) || it.starts_with('^');
            if value.literal().is_some_and(pattern) {
                // No name of a commit looks like this, but files may be meant.
                let subcommand =
                    parsed.roles.iter().rposition(|part| *part == WordRole::Subcommand);
                let blamed = subcommand.unwrap_or(at);
                walker.risk(run, blamed, words[blamed].shown(), RiskKind::Destroys);
            }
            walker.access(value, AccessKind::NameOnly, state, Some(run));
        }
        ArgRole::Enter => {
            walker.access(value, AccessKind::Enter, state, Some(run));
            worked_in(value, state);
        }
        ArgRole::Variable => builtins::fill(walker, value, state),
        ArgRole::Script => script(walker, value, state, run),
        ArgRole::Argument => path_args::note(walker, value, state, run),
        ArgRole::Code => risk(RiskKind::Code),
        ArgRole::Sed => match value.literal().and_then(sed::files_read) {
            Some(files) => reads(walker, &files, state, run),
            None => risk(RiskKind::Code),
        },
        ArgRole::Awk => {
            if !value.literal().is_some_and(awk::is_harmless) {
                risk(RiskKind::Code);
            }
        }
        ArgRole::Jq => {
            if !value.literal().is_some_and(jq::is_harmless) {
                risk(RiskKind::Code);
            }
        }
        ArgRole::Sql => {
            if !value.literal().is_some_and(safe_values::is_query) {
                risk(RiskKind::Code);
            }
        }
        ArgRole::Format => {
            if !value.prefix().starts_with('+') {
                risk(RiskKind::Unlisted);
            }
        }
        ArgRole::Url => {
            if !safe_values::is_url(value) {
                risk(RiskKind::Unlisted);
            }
        }
        ArgRole::Data => {
            if !safe_values::is_data(value) {
                risk(RiskKind::Unlisted);
            }
        }
        ArgRole::Literal => {
            if value.literal().is_none_or(|it| it.starts_with('@')) {
                risk(RiskKind::Unlisted);
            }
        }
        ArgRole::Keystrokes => {
            if value.literal().is_none_or(|it| it.contains(char::is_control)) {
                risk(RiskKind::Unlisted);
            }
        }
        ArgRole::Count => {
            let digits = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '-' | '+');
            if !value.literal().is_some_and(|it| it.chars().all(digits)) {
                risk(RiskKind::Unlisted);
            }
        }
        ArgRole::PrintfFormat => {
            if value.literal().is_none_or(command_output::sets_variables) {
                let may_name = |word: &&Word| word.literal().is_none_or(is_name);
                for name in words[at + 1..].iter().filter(may_name) {
                    builtins::fill(walker, name, state);
                }
            }
        }
        ArgRole::Encoded => {
            let start = value.prefix();
            let named = start.find(['@', '=']).map(|at| start[at..].starts_with('='));
            if !named.unwrap_or_else(|| value.literal().is_some()) {
                risk(RiskKind::Unlisted);
            }
        }
        ArgRole::Cookie => {
            if value.prefix().starts_with('@') || !value.prefix().contains('=') {
                risk(RiskKind::Unlisted);
            }
        }
        ArgRole::Field => {
            if !value.literal().is_some_and(safe_values::is_plain_field) {
                risk(RiskKind::Unlisted);
            }
        }
        ArgRole::PluginOff => {
            if !value.prefix().starts_with("no:") {
                blame_flag(walker, argument, words, run);
            }
        }
        ArgRole::BareName => {
            if value.literal().is_none_or(|it| it.contains(['/', '.'])) {
                risk(RiskKind::Runs);
            }
        }
        ArgRole::SortKey => {
            if value.literal().is_none_or(|it| it.contains("signature")) {
                risk(RiskKind::Runs);
            }
        }
        ArgRole::Remote => {
            // A host that starts with a dash is a flag for who connects.
            let runs = |it: &str| ["::", "://-", "@-"].iter().any(|odd| it.contains(odd));
            if value.literal().is_none_or(|it| runs(it) || it.starts_with("file:")) {
                risk(RiskKind::Runs);
            }
            walker.access(value, AccessKind::Stat, state, Some(run));
        }
        ArgRole::RemoteName => {
            if value.literal().is_none_or(|it| it.contains([':', '/', '.', '@'])) {
                risk(RiskKind::Runs);
            }
            // A folder of that name may be a repository, whose hooks run.
            walker.access(value, AccessKind::NameOnly, state, Some(run));
        }
        ArgRole::GitSetting => {
            if !value.literal().is_some_and(safe_values::is_harmless_setting) {
                blame_flag(walker, argument, words, run);
            }
        }
        ArgRole::SshOption => {
            if !value.literal().is_some_and(safe_values::is_harmless_option) {
                blame_flag(walker, argument, words, run);
            }
        }
        ArgRole::Refspec => {
            let place = |it: &str| it.contains("::") || it.starts_with(['/', '.', '~', '-']);
            if value.literal().is_none_or(|it| it.starts_with(['+', ':'])) {
                risk(RiskKind::Destroys);
            } else if value.literal().is_some_and(place) {
                // No name of a branch: it may be where to fetch from after all.
                risk(RiskKind::Runs);
            }
        }
        ArgRole::Dd => operand_of_dd(walker, value, state, run, &shown, at),
        ArgRole::MakeGoal => {
            let is_harmless =
                |it: &str| it.split_once('=').is_none_or(safe_values::is_plain_variable);
            if !value.literal().is_some_and(is_harmless) {
                risk(RiskKind::Runs);
            }
        }
        ArgRole::Test => {
            for word in words[at..].iter().filter(|it| matches!(it, Word::Glob(_))) {
                walker.access(word, AccessKind::Expand, state, Some(run));
            }
            builtins::expression(walker, &words[at..], state, Some(run));
        }
    }
}

/// Marks the flag that a value belongs to, which may be in the same word.
fn blame_flag(walker: &mut Walker<'_>, argument: &Argument, words: &[Word], run: usize) {
    let shown = words[argument.word].shown();
    let flag = if shown.starts_with('-') { argument.word } else { argument.word.saturating_sub(1) };
    let spelled = argument.flag.as_deref().unwrap_or(shown);
    walker.risk(run, flag, spelled, RiskKind::Runs);
}

/// What follows from the command as a whole.
pub(super) fn afterwards(
    walker: &mut Walker<'_>,
    parsed: &ParsedArgs,
    run: usize,
    state: &ShellState,
    stdin: &StdinSource,
) {
    // A word that may become several may as well be only the first of the operands.
    let writes =
        parsed.uses.iter().any(|it| it.role == ArgRole::Write && it.value.literal().is_some());
    if let Some(missing) = parsed.spec.default_output.filter(|_| !writes) {
        walker.access(&Word::Literal(missing.to_string()), AccessKind::Write, state, Some(run));
    }
    let is_code = |it: &Argument| {
        matches!(
            it.role,
            ArgRole::Script
                | ArgRole::Code
                | ArgRole::Module
                | ArgRole::Command
                | ArgRole::Shell
                | ArgRole::Split
        )
    };
    let traits = parsed.spec.traits;
    let given = parsed.uses.iter().any(is_code)
        || traits.runs_stdin && parsed.uses.iter().any(|it| it.role == ArgRole::Argument);
    let runs_input =
        traits.runs_stdin || traits.runs_fed_stdin && !matches!(stdin, StdinSource::Nothing);
    if runs_input && !given && !parsed.has_any(&parsed.spec.harmless_with) {
        code_from_input(walker, run);
    }
}

/// A program that runs whatever it is fed.
pub(super) fn code_from_input(walker: &mut Walker<'_>, run: usize) {
    let name = walker.script.runs[run].words.first().map_or("", Word::shown).to_string();
    walker.doubt(DoubtKind::Input, &name);
}

/// Files named from here on may be meant from this folder.
fn worked_in(value: &Word, state: &mut ShellState) {
    let folders = match (value.literal(), &state.folders) {
        (Some(path), Some(folders)) => {
            let inner = folders.iter().map(|folder| join_path(folder, path)).collect();
            super::state::either(&state.folders, &Some(inner))
        }
        _ => None,
    };
    state.folders = folders;
}

fn reads(walker: &mut Walker<'_>, files: &[String], state: &ShellState, run: usize) {
    for file in files {
        walker.access(&Word::Literal(file.clone()), AccessKind::Read, state, Some(run));
    }
}

/// A file whose code is run.
pub(super) fn script(walker: &mut Walker<'_>, value: &Word, state: &ShellState, run: usize) {
    let stream = match value {
        Word::Literal(text) => {
            let text = text.to_ascii_lowercase();
            let elsewhere = ["/dev/", "/proc/", "http:", "https:", "data:", "blob:"];
            text == "-" || elsewhere.iter().any(|it| text.starts_with(it))
        }
        Word::Glob(_) => true,
        Word::Dynamic(_) => true,
    };
    if stream {
        code_from_input(walker, run);
    }
    walker.access(value, AccessKind::Read, state, Some(run));
}

fn operand_of_dd(
    walker: &mut Walker<'_>,
    value: &Word,
    state: &ShellState,
    run: usize,
    shown: &str,
    at: usize,
) {
    let (access, path) = match value.literal().and_then(|text| text.split_once('=')) {
        Some(("if", path)) => (AccessKind::Read, path),
        Some(("of", path)) => (AccessKind::Write, path),
        Some((name, _)) if is_name(name) => return,
        _ => return walker.risk(run, at, shown, RiskKind::Unlisted),
    };
    walker.access(&Word::Literal(path.to_string()), access, state, Some(run));
}
