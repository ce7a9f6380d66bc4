//! What a program does with a value or an operand, by its role.

use super::grammar::is_name;
use super::options::{Reading, Use};
use super::role::Role;
use super::state::{State, join_path};
use super::walk::{Feed, Walker, unknown};
use super::{
    Access, DoubtKind, Part, RiskKind, Unknown, Word, argument, awk, builtins, jq, picks, printed,
    sed, values,
};

pub(super) fn apply(
    walker: &mut Walker<'_>,
    wanted: &Use,
    words: &[Word],
    run: usize,
    reading: &Reading,
    state: &mut State,
) {
    let value = &wanted.value;
    let at = wanted.word;
    let shown = words[at].shown().to_string();
    if let Word::Glob(_) = value {
        walker.touch(value, Access::Fill, state, Some(run));
    }
    let mut risk = |kind| walker.risk(run, at, &shown, kind);
    match wanted.role {
        Role::Text | Role::Mode | Role::Module | Role::Command | Role::Shell | Role::Split => {}
        Role::Look => walker.touch(value, Access::Look, state, Some(run)),
        Role::List => {
            let closed = reading.has_any(&reading.block.closed);
            let entered = !closed && !reading.is_shallow();
            // Any of these may be the name of a link to a folder.
            let may_lead = |kind| match kind {
                Unknown::Number | Unknown::Commit | Unknown::Found { regular: false } => true,
                Unknown::Anything
                | Unknown::Revision
                | Unknown::Pipe
                | Unknown::Found { regular: true } => false,
            };
            let leads = matches!(value, Word::Dynamic(it) if may_lead(it.kind));
            let value = if entered && leads { &unknown(&shown) } else { value };
            // Names that are filled in were looked at already.
            if !(closed && matches!(value, Word::Glob(_))) {
                walker.touch(value, Access::Look, state, Some(run));
            }
        }
        Role::Read => {
            let access = match wanted.flag {
                Some(_) if reading.writes() => Access::Write,
                Some(_) | None if reading.block.traits.deep_always => Access::ReadAll,
                Some(_) | None => Access::Read,
            };
            walker.touch(value, access, state, Some(run));
            if wanted.flag.is_none() && reading.rewrites() {
                walker.touch(value, Access::Write, state, Some(run));
            }
        }
        Role::Revision if reading.has_any(&reading.block.deep) => {
            walker.touch(value, Access::ReadAll, state, Some(run));
        }
        Role::Revision => {
            for picked in value.literal().map_or_else(Vec::new, picks::of_git) {
                walker.touch(&picked, Access::Read, state, Some(run));
            }
            let is_revision = |kind| matches!(kind, Unknown::Commit | Unknown::Revision);
            let known = matches!(value, Word::Dynamic(it) if is_revision(it.kind));
            if !known {
                walker.touch(value, Access::Perhaps, state, Some(run));
            }
        }
        Role::Write => {
            let spared = reading.has_any(&reading.block.sparing);
            let access = if spared { Access::Look } else { Access::Write };
            walker.touch(value, access, state, Some(run));
        }
        Role::Take => {
            walker.touch(value, Access::Read, state, Some(run));
            walker.touch(value, Access::Write, state, Some(run));
        }
        Role::Pick => {
            for picked in picks::picked(value.shown()) {
                walker.touch(&picked, Access::Read, state, Some(run));
            }
        }
        Role::Absent => {
            let pattern =
                |it: &str| it.contains(['*', '?', '[', '\\', ':', ' ']) || it.starts_with('^');
            if value.literal().is_some_and(pattern) {
                // No name of a commit looks like this, but files may be meant.
                let subcommand = reading.parts.iter().rposition(|part| *part == Part::Subcommand);
                let blamed = subcommand.unwrap_or(at);
                walker.risk(run, blamed, words[blamed].shown(), RiskKind::Destroys);
            }
            walker.touch(value, Access::Name, state, Some(run));
        }
        Role::Enter => {
            walker.touch(value, Access::Enter, state, Some(run));
            worked_in(value, state);
        }
        Role::Variable => builtins::fill(walker, value, state),
        Role::Script => script(walker, value, state, run),
        Role::Argument => argument::note(walker, value, state, run),
        Role::Code => risk(RiskKind::Code),
        Role::Sed => match value.literal().and_then(sed::files_read) {
            Some(files) => reads(walker, &files, state, run),
            None => risk(RiskKind::Code),
        },
        Role::Awk => {
            if !value.literal().is_some_and(awk::is_harmless) {
                risk(RiskKind::Code);
            }
        }
        Role::Jq => {
            if !value.literal().is_some_and(jq::is_harmless) {
                risk(RiskKind::Code);
            }
        }
        Role::Sql => {
            if !value.literal().is_some_and(values::is_query) {
                risk(RiskKind::Code);
            }
        }
        Role::Format => {
            if !value.start().starts_with('+') {
                risk(RiskKind::Unlisted);
            }
        }
        Role::Url => {
            if !values::is_url(value) {
                risk(RiskKind::Unlisted);
            }
        }
        Role::Data => {
            if !values::is_data(value) {
                risk(RiskKind::Unlisted);
            }
        }
        Role::Fixed => {
            if value.literal().is_none_or(|it| it.starts_with('@')) {
                risk(RiskKind::Unlisted);
            }
        }
        Role::Typed => {
            if value.literal().is_none_or(|it| it.contains(char::is_control)) {
                risk(RiskKind::Unlisted);
            }
        }
        Role::Count => {
            let digits = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '-' | '+');
            if !value.literal().is_some_and(|it| it.chars().all(digits)) {
                risk(RiskKind::Unlisted);
            }
        }
        Role::Printed => {
            if value.literal().is_none_or(printed::sets_variables) {
                let may_name = |word: &&Word| word.literal().is_none_or(is_name);
                for name in words[at + 1..].iter().filter(may_name) {
                    builtins::fill(walker, name, state);
                }
            }
        }
        Role::Encoded => {
            let start = value.start();
            let named = start.find(['@', '=']).map(|at| start[at..].starts_with('='));
            if !named.unwrap_or_else(|| value.literal().is_some()) {
                risk(RiskKind::Unlisted);
            }
        }
        Role::Cookie => {
            if value.start().starts_with('@') || !value.start().contains('=') {
                risk(RiskKind::Unlisted);
            }
        }
        Role::Field => {
            if !value.literal().is_some_and(values::is_plain_field) {
                risk(RiskKind::Unlisted);
            }
        }
        Role::Without => {
            if !value.start().starts_with("no:") {
                blame_flag(walker, wanted, words, run);
            }
        }
        Role::Name => {
            if value.literal().is_none_or(|it| it.contains(['/', '.'])) {
                risk(RiskKind::Runs);
            }
        }
        Role::Key => {
            if value.literal().is_none_or(|it| it.contains("signature")) {
                risk(RiskKind::Runs);
            }
        }
        Role::Remote => {
            // A host that starts with a dash is a flag for who connects.
            let runs = |it: &str| ["::", "://-", "@-"].iter().any(|odd| it.contains(odd));
            if value.literal().is_none_or(|it| runs(it) || it.starts_with("file:")) {
                risk(RiskKind::Runs);
            }
            walker.touch(value, Access::Look, state, Some(run));
        }
        Role::Target => {
            if value.literal().is_none_or(|it| it.contains([':', '/', '.', '@'])) {
                risk(RiskKind::Runs);
            }
            // A folder of that name may be a repository, whose hooks run.
            walker.touch(value, Access::Name, state, Some(run));
        }
        Role::Setting => {
            if !value.literal().is_some_and(values::is_harmless_setting) {
                blame_flag(walker, wanted, words, run);
            }
        }
        Role::Option => {
            if !value.literal().is_some_and(values::is_harmless_option) {
                blame_flag(walker, wanted, words, run);
            }
        }
        Role::Refspec => {
            let place = |it: &str| it.contains("::") || it.starts_with(['/', '.', '~', '-']);
            if value.literal().is_none_or(|it| it.starts_with(['+', ':'])) {
                risk(RiskKind::Destroys);
            } else if value.literal().is_some_and(place) {
                // No name of a branch: it may be where to fetch from after all.
                risk(RiskKind::Runs);
            }
        }
        Role::Dd => operand_of_dd(walker, value, state, run, &shown, at),
        Role::Goal => {
            let is_harmless = |it: &str| it.split_once('=').is_none_or(values::is_plain_variable);
            if !value.literal().is_some_and(is_harmless) {
                risk(RiskKind::Runs);
            }
        }
        Role::Expression => {
            for word in words[at..].iter().filter(|it| matches!(it, Word::Glob(_))) {
                walker.touch(word, Access::Fill, state, Some(run));
            }
            builtins::expression(walker, &words[at..], state, Some(run));
        }
    }
}

/// Marks the flag that a value belongs to, which may be in the same word.
fn blame_flag(walker: &mut Walker<'_>, wanted: &Use, words: &[Word], run: usize) {
    let shown = words[wanted.word].shown();
    let flag = if shown.starts_with('-') { wanted.word } else { wanted.word.saturating_sub(1) };
    let spelled = wanted.flag.as_deref().unwrap_or(shown);
    walker.risk(run, flag, spelled, RiskKind::Runs);
}

/// What follows from the command as a whole.
pub(super) fn afterwards(
    walker: &mut Walker<'_>,
    reading: &Reading,
    run: usize,
    state: &State,
    feed: &Feed,
) {
    // A word that may become several may as well be only the first of the operands.
    let writes =
        reading.uses.iter().any(|it| it.role == Role::Write && it.value.literal().is_some());
    if let Some(missing) = reading.block.missing.filter(|_| !writes) {
        walker.touch(&Word::Literal(missing.to_string()), Access::Write, state, Some(run));
    }
    let is_code = |it: &Use| {
        matches!(
            it.role,
            Role::Script | Role::Code | Role::Module | Role::Command | Role::Shell | Role::Split
        )
    };
    let traits = reading.block.traits;
    let given = reading.uses.iter().any(is_code)
        || traits.input && reading.uses.iter().any(|it| it.role == Role::Argument);
    let runs_input = traits.input || traits.fed && !matches!(feed, Feed::Nothing);
    if runs_input && !given && !reading.has_any(&reading.block.tamed) {
        code_from_input(walker, run);
    }
}

/// A program that runs whatever it is fed.
pub(super) fn code_from_input(walker: &mut Walker<'_>, run: usize) {
    let name = walker.script.runs[run].words.first().map_or("", Word::shown).to_string();
    walker.doubt(DoubtKind::Input, &name);
}

/// Files named from here on may be meant from this folder.
fn worked_in(value: &Word, state: &mut State) {
    let folders = match (value.literal(), &state.folders) {
        (Some(path), Some(folders)) => {
            let inner = folders.iter().map(|folder| join_path(folder, path)).collect();
            super::state::either(&state.folders, &Some(inner))
        }
        _ => None,
    };
    state.folders = folders;
}

fn reads(walker: &mut Walker<'_>, files: &[String], state: &State, run: usize) {
    for file in files {
        walker.touch(&Word::Literal(file.clone()), Access::Read, state, Some(run));
    }
}

/// A file whose code is run.
pub(super) fn script(walker: &mut Walker<'_>, value: &Word, state: &State, run: usize) {
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
    walker.touch(value, Access::Read, state, Some(run));
}

fn operand_of_dd(
    walker: &mut Walker<'_>,
    value: &Word,
    state: &State,
    run: usize,
    shown: &str,
    at: usize,
) {
    let (access, path) = match value.literal().and_then(|text| text.split_once('=')) {
        Some(("if", path)) => (Access::Read, path),
        Some(("of", path)) => (Access::Write, path),
        Some((name, _)) if is_name(name) => return,
        _ => return walker.risk(run, at, shown, RiskKind::Unlisted),
    };
    walker.touch(&Word::Literal(path.to_string()), access, state, Some(run));
}
