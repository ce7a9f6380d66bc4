//! The shell's own commands.

use super::args::ParsedArgs;
use super::ast::Piece;
use super::grammar::is_name;
use super::state::{AfterCd, ShellState, Value, either, enter_path};
use super::variables::{is_harmless, is_more_than_a_word, reaches, steers};
use super::walk::{StdinSource, Walker, unknown};
use super::{AccessKind, DoubtKind, DynamicKind, RiskKind, ShellLanguage, Word, certain};

/// Names that the shell keeps for itself and that are not in the table.
pub(super) fn is_own(name: &str) -> bool {
    matches!(
        name,
        "eval"
            | "source"
            | "."
            | "export"
            | "declare"
            | "typeset"
            | "readonly"
            | "local"
            | "set"
            | "let"
            | "trap"
            | "alias"
            | "unalias"
            | "shopt"
            | "kill"
    )
}

/// What one of the shell's own commands does to the script's state. Programs of other names do nothing to it.
pub(super) fn effect(
    walker: &mut Walker<'_>,
    name: &str,
    words: &[Word],
    run: usize,
    state: &mut ShellState,
) {
    match name {
        "cd" | "chdir" => enter(walker, words, run, state),
        "pushd" => push(walker, words, run, state),
        // It may clear the stack.
        "dirs" if words.len() > 1 => state.stack = None,
        "popd" => {
            let back = match (&mut state.stack, words.len()) {
                (Some(stack), 1) => stack.pop().flatten(),
                (Some(_) | None, _) => None,
            };
            if back.is_none() {
                walker.access(&unknown("popd"), AccessKind::Enter, state, Some(run));
                state.stack = None;
            }
            state.folders = back;
            state.previous = None;
        }
        "export" | "declare" | "typeset" | "readonly" | "local" => {
            declare(walker, words, run, state);
        }
        "set" => set(walker, words, run, state),
        "shift" => state.forget_operands(),
        "let" => {
            for word in &words[1..] {
                let plain = word
                    .literal()
                    .map(|text| vec![Piece::Text { text: text.to_string(), quoted: false }]);
                match plain {
                    Some(pieces) => walker.calculate(&pieces, word.shown(), state),
                    None => walker.doubt(DoubtKind::Arithmetic, word.shown()),
                }
            }
        }
        "trap" => {
            walker.doubt(DoubtKind::State, "trap");
            if let Some(Word::Literal(action)) =
                words[1..].iter().find(|it| it.literal() != Some("--"))
            {
                inside(walker, run, action, &mut state.clone(), &StdinSource::Nothing);
            }
        }
        "alias" | "unalias" | "hash" | "enable" | "shopt" | "setopt" | "unsetopt" | "bind"
        | "complete" | "compgen" | "compopt" | "fc" | "history" | "autoload" | "zmodload"
        | "emulate" | "bindkey" | "zle" | "ulimit" | "suspend" | "sched" | "vared"
        | "functions" => {
            walker.doubt(DoubtKind::State, name);
        }
        _ => {}
    }
}

/// Reads a text as what `run` starts.
pub(super) fn inside(
    walker: &mut Walker<'_>,
    run: usize,
    text: &str,
    state: &mut ShellState,
    stdin: &StdinSource,
) {
    walker.inside(run, |walker| walker.text(text, state, stdin));
}

/// `pushd`: it may fail, and then `popd` still comes back to the same folder if there is no other to come back to.
fn push(walker: &mut Walker<'_>, words: &[Word], run: usize, state: &mut ShellState) {
    if words.len() == 1 {
        // It changes places with the one before.
        walker.access(&unknown("pushd"), AccessKind::Enter, state, Some(run));
        (state.folders, state.previous) = (None, None);
        state.stack = None;
        return;
    }
    let mut stack = state.stack.take();
    if let Some(stack) = &mut stack {
        stack.push(state.folders.clone());
    }
    enter(walker, words, run, state);
    state.stack = stack.clone().filter(|stack| stack.len() == 1);
    if let Some(entered) = &mut state.entered {
        entered.stack = stack;
    }
}

fn enter(walker: &mut Walker<'_>, words: &[Word], run: usize, state: &mut ShellState) {
    let before = state.folders.clone();
    let mut physical = false;
    let mut to: Vec<&Word> = Vec::new();
    for word in &words[1..] {
        match word.literal() {
            Some("--" | "-L") if words[0].literal() == Some("cd") => {}
            Some("-P") if words[0].literal() == Some("cd") => physical = true,
            _ => to.push(word),
        }
    }
    let home;
    let target = match (to.as_slice(), &before) {
        ([], _) => {
            let known = state.value("HOME");
            home = known.text().map(|text| Word::Literal(text.to_string()));
            home.as_ref()
        }
        ([word], _) => Some(*word),
        _ => None,
    };
    let after = match (target, &before) {
        (Some(Word::Literal(path)), _) if path == "-" && state.previous.is_some() => {
            state.previous.clone()
        }
        // Other flags, and numbers of the stack.
        (Some(Word::Literal(path)), Some(folders)) if !path.starts_with(['-', '+']) => {
            walker.access(&Word::Literal(path.clone()), AccessKind::Enter, state, Some(run));
            let named = path.starts_with('/') || path.starts_with('.');
            let elsewhere = !named && walker.context.exported.contains("CDPATH");
            let entered = folders.iter().map(|folder| enter_path(folder, path)).collect();
            (!physical && !elsewhere).then_some(entered)
        }
        _ => {
            walker.access(
                &unknown(target.map_or("cd", Word::shown)),
                AccessKind::Enter,
                state,
                Some(run),
            );
            None
        }
    };
    state.entered = Some(AfterCd {
        folders: after.clone(),
        previous: before.clone(),
        stack: state.stack.clone(),
    });
    if certain::enters(walker, words, &before, &after) {
        state.previous = before;
        state.folders = after;
    } else {
        // It may fail, and the script goes on where it was.
        state.previous = either(&state.previous, &before);
        state.folders = either(&before, &after);
    }
}

/// `export a=b` and its like: an assignment to what may be handed to programs.
fn declare(walker: &mut Walker<'_>, words: &[Word], run: usize, state: &mut ShellState) {
    let name = words.first().and_then(Word::literal);
    let exports = name == Some("export");
    let flags = |flag: char| {
        let mut texts = words.iter().skip(1).filter_map(Word::literal);
        texts.any(|text| text.starts_with('-') && text.contains(flag))
    };
    // What is only shown is not set, `local` means nothing outside of functions, and not every shell knows the others.
    let known = match walker.language {
        ShellLanguage::Bash | ShellLanguage::Korn | ShellLanguage::Zsh => name != Some("local"),
        ShellLanguage::Posix => matches!(name, Some("export" | "readonly")),
    };
    let sure = known && !['p', 'f', 'F'].into_iter().any(flags) && !walker.skips;
    // What cannot be set any more stays as it is, and a line in which it is tried ends there.
    walker.skips |= name == Some("readonly") || flags('r');
    for (at, word) in words.iter().enumerate().skip(1) {
        let Some(text) = word.literal() else {
            let name = word.prefix().split('=').next().unwrap_or("");
            if !word.prefix().contains('=')
                || !is_name(name)
                || steers(name, walker.context, walker.language)
                || exports
            {
                walker.doubt(DoubtKind::Variable, word.shown());
            }
            state.set(name, Value::Unknown);
            continue;
        };
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        if let Some(flags) = name.strip_prefix('-') {
            // A reference to another name, an array's index, an exported value and one whose case changes reach further.
            if !flags.chars().all(|c| "garpfFt".contains(c)) {
                walker.doubt(DoubtKind::Variable, text);
            }
            continue;
        }
        if !is_name(name) {
            walker.doubt(DoubtKind::Indirect, text);
            continue;
        }
        let steers = steers(name, walker.context, walker.language);
        if steers || exports && !is_harmless(name) {
            walker.script.runs[run].risks.push(super::Risk {
                word: at,
                spelled: text.to_string(),
                kind: RiskKind::Code,
            });
        }
        if steers || value.is_some() && is_more_than_a_word(name, value) {
            walker.doubt(DoubtKind::Variable, text);
        }
        match value.map(|value| Value::Text(value.to_string())) {
            Some(value) if sure => state.set(name, value),
            Some(value) => state.perhaps(name, &value),
            // Without a value it may be made read-only as it is.
            None if walker.skips => state.perhaps(name, &Value::Unknown),
            None => {}
        }
    }
}

fn set(walker: &mut Walker<'_>, words: &[Word], _run: usize, state: &mut ShellState) {
    state.forget_operands();
    let mut words = words[1..].iter();
    while let Some(word) = words.next() {
        match word.literal() {
            Some("--" | "-") => return,
            Some("-o" | "+o") => {
                let known = ["pipefail", "errexit", "nounset", "xtrace", "verbose", "noclobber"];
                match words.next().map(|it| it.literal().unwrap_or("")) {
                    None => {}
                    Some(option) if known.contains(&option) => {}
                    Some(_) => walker.doubt(DoubtKind::State, "set -o"),
                }
            }
            Some(flags) if flags.starts_with(['-', '+']) => {
                let (letters, o) = match flags[1..].strip_suffix('o') {
                    Some(letters) => (letters, true),
                    None => (&flags[1..], false),
                };
                if !letters.chars().all(|c| "euxvnCfb".contains(c)) {
                    walker.doubt(DoubtKind::State, flags);
                }
                if o && words.next().and_then(Word::literal) != Some("pipefail") {
                    walker.doubt(DoubtKind::State, flags);
                }
            }
            Some(_) => return,
            None => return walker.doubt(DoubtKind::State, word.shown()),
        }
    }
}

const NUMBERS: &[&str] = &["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];

/// `test`, `[` and `[[`: which files are looked at, and whether anything is evaluated.
pub(super) fn expression(
    walker: &mut Walker<'_>,
    words: &[Word],
    state: &ShellState,
    run: Option<usize>,
) {
    const FILES: &str = "abcdefghkprstuwxGLNOS";
    for (at, word) in words.iter().enumerate() {
        let operand = |n: usize| words.get(n);
        // To `[[` an operator is only what is written as one.
        if run.is_some() && may_be_operator(word, operand(at + 1)) {
            walker.doubt(DoubtKind::Indirect, word.shown());
        }
        let Some(text) = word.literal() else { continue };
        if text == "-v" || text == "-R" {
            let plain = operand(at + 1).is_none_or(|it| it.literal().is_some_and(is_name));
            if !plain {
                walker.doubt(DoubtKind::Indirect, words[at + 1].shown());
            }
        } else if NUMBERS.contains(&text) {
            let sides = [at.checked_sub(1).and_then(operand), operand(at + 1)];
            // Bash takes what is no number for a mistake, unless it stands in `[[`.
            let computes = run.is_none() || walker.language != ShellLanguage::Bash;
            let is_safe = |it: &Word| is_number(it) || !computes && it.literal().is_none();
            for side in sides.into_iter().flatten().filter(|it| !is_safe(it)) {
                walker.doubt(DoubtKind::Arithmetic, side.shown());
            }
        } else if matches!(text, "-nt" | "-ot" | "-ef") {
            let sides = [at.checked_sub(1).and_then(operand), operand(at + 1)];
            for side in sides.into_iter().flatten() {
                walker.access(side, AccessKind::Stat, state, run);
            }
        } else if text.len() == 2 && text.starts_with('-') && FILES.contains(&text[1..])
            // After something it means "and".
            && (text != "-a" || at.checked_sub(1).and_then(operand).is_none_or(opens))
            && let Some(file) = operand(at + 1)
        {
            walker.access(file, AccessKind::Stat, state, run);
        }
    }
}

/// Whether a test begins after this word.
fn opens(before: &Word) -> bool {
    before.literal().is_none_or(|it| matches!(it, "!" | "(" | "-a" | "-o" | "&&" | "||"))
}

/// Whether a word may turn out to be an operator that evaluates what follows it.
fn may_be_operator(word: &Word, next: Option<&Word>) -> bool {
    const BETWEEN: &[&str] =
        &["=", "==", "=~", "!=", "<", ">", "&&", "||", "-a", "-o", "-nt", "-ot", "-ef", "]", ")"];
    let Word::Dynamic(dynamic) = word else { return false };
    let known = |next: &Word| {
        next.literal().is_some_and(|it| BETWEEN.contains(&it) || NUMBERS.contains(&it))
    };
    dynamic.kind == DynamicKind::Anything
        && "-v".starts_with(&*dynamic.prefix)
        && (dynamic.may_split || next.is_some_and(|next| !known(next)))
}

fn is_number(word: &Word) -> bool {
    match word {
        Word::Literal(text) => {
            let digits = text.strip_prefix('-').unwrap_or(text);
            digits.bytes().all(|it| it.is_ascii_digit())
        }
        Word::Glob(_) => false,
        Word::Dynamic(dynamic) => dynamic.kind == DynamicKind::Number,
    }
}

/// Marks variables that a command fills as unknown.
pub(super) fn fill(walker: &mut Walker<'_>, word: &Word, state: &mut ShellState) {
    match word.literal() {
        Some(name) if is_name(name) => {
            let own = matches!(name, "REPLY" | "MAPFILE");
            if !own && reaches(name, walker.context, walker.language) {
                walker.doubt(DoubtKind::Variable, name);
            }
            state.set(name, Value::Unknown);
        }
        _ => walker.doubt(DoubtKind::Indirect, word.shown()),
    }
}

/// `read` and `mapfile` without a name fill their own variables.
pub(super) fn fills_by_default(name: &str, parsed: &ParsedArgs, state: &mut ShellState) {
    if parsed.operands == 0 {
        match name {
            "read" => state.set("REPLY", Value::Unknown),
            "mapfile" | "readarray" => state.set("MAPFILE", Value::Unknown),
            _ => {}
        }
    }
}
