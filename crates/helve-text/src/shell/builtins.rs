//! Records the effects of shell builtins on variables and the working directory.

use super::args::ParsedArgs;
use super::ast::Piece;
use super::grammar::is_name;
use super::names::{self, NameGroup};
use super::state::{
    PossibleDirs, ShellState, StateAfterSuccessfulCd, Value, normalize, union_dirs,
};
use super::test_command::is_number;
use super::variables::{
    affects_programs, command_words, is_harmless, may_be_file_or_code, may_load_code,
    reaches_programs,
};
use super::walk::{StdinSource, Walker, unknown};
use super::{
    AccessKind, Approval, DoubtKind, Risk, RiskKind, ShellLanguage, Word, guarantees,
    variable_files,
};

/// Values of `set -o` that do not change what later commands mean.
const HARMLESS_SET_OPTIONS: &[&str] =
    &["pipefail", "errexit", "nounset", "xtrace", "verbose", "noclobber"];
/// Flags of `set` that do not change what later commands mean.
const HARMLESS_SET_LETTERS: &str = "euxvnCfb";
/// Flags of `declare` after which a variable still holds the assigned text. The others make a reference (`-n`), a
/// number (`-i`), an associative array (`-A`) or an exported variable (`-x`), or convert the case (`-l`, `-u`).
const HARMLESS_DECLARE_LETTERS: &str = "garpfFt";

/// Builtins whose operands zsh and the Korn shell evaluate as arithmetic, which may run commands: `exit 'a[$(x)]'`.
const ARITHMETIC_OPERANDS: [&str; 8] =
    ["printf", "print", "read", "exit", "return", "break", "continue", "shift"];

/// Adds a doubt for each operand that the shell may evaluate and that is not a number.
fn record_evaluated_operands(walker: &mut Walker<'_>, name: &str, words: &[Word]) {
    if !walker.has_more_arithmetic() {
        return;
    }
    let operands = match name {
        "printf" => printf_numbers(words),
        "print" => print_numbers(words),
        "read" => return record_timeout(walker, words),
        _ => words.get(1..).unwrap_or_default(),
    };
    for operand in operands.iter().filter(|it| !is_number(it)) {
        walker.add_doubt(DoubtKind::Arithmetic, operand.shown());
    }
}

/// Returns the operands of `printf`, if its format may evaluate them: only conversions of text, like `%s`, do not.
fn printf_numbers(words: &[Word]) -> &[Word] {
    let mut at = 1;
    while let Some(flag) = words.get(at).and_then(Word::literal).filter(|it| it.starts_with('-')) {
        match flag {
            "-v" => at += 2,
            "--" => {
                at += 1;
                break;
            }
            _ if flag.starts_with("-v") => at += 1,
            _ => break,
        }
    }
    let is_text = |conversion: &str| {
        let kind = conversion.trim_start_matches(|it| "-+ #.0123456789".contains(it));
        kind.starts_with(['s', 'b', 'c', 'q'])
    };
    let rest = words.get(at..).unwrap_or_default();
    match rest.split_first() {
        Some((Word::Literal(format), operands)) => {
            let mut conversions = format.split('%').skip(1).filter(|it| !it.is_empty());
            if conversions.all(is_text) { &[] } else { operands }
        }
        Some(_) | None => rest,
    }
}

/// Returns the operands of `print` if it has a format: `print -f %d x`.
fn print_numbers(words: &[Word]) -> &[Word] {
    let is_flag = |it: &&Word| it.literal().is_none_or(|it| it.starts_with('-') && it.len() > 1);
    let mut flags = words.iter().skip(1).take_while(is_flag);
    let has_format = flags.any(|it| it.literal().is_some_and(|it| it.contains('f')));
    if has_format { words.get(1..).unwrap_or_default() } else { &[] }
}

/// Adds a doubt for the timeout of `read -t`, if it is not a number.
fn record_timeout(walker: &mut Walker<'_>, words: &[Word]) {
    let is_timeout = |it: &str| it.bytes().all(|it| it.is_ascii_digit() || it == b'.');
    for (at, word) in words.iter().enumerate().skip(1) {
        let flags = word.literal().and_then(|it| it.strip_prefix('-'));
        let Some((_, glued)) = flags.and_then(|it| it.split_once('t')) else { continue };
        let next = words.get(at + 1).filter(|_| glued.is_empty());
        let is_safe = next.is_none_or(|it| it.literal().is_some_and(is_timeout));
        if !is_safe || !is_timeout(glued) {
            walker.add_doubt(DoubtKind::Arithmetic, word.shown());
        }
    }
}

/// Whether a name is a builtin that `programs.txt` does not list.
pub(super) fn is_unlisted_builtin(name: &str) -> bool {
    names::contains(NameGroup::Builtin, name)
}

/// Records the effects of a builtin. Does nothing for other commands.
pub(super) fn apply(
    walker: &mut Walker<'_>,
    name: &str,
    words: &[Word],
    run: usize,
    state: &mut ShellState,
) {
    if ARITHMETIC_OPERANDS.contains(&name) {
        record_evaluated_operands(walker, name, words);
    }
    match name {
        "cd" | "chdir" => change_dir(walker, words, run, state),
        "pushd" => push_dir(walker, words, run, state),
        "popd" => pop_dir(walker, words, run, state),
        // A flag may clear the stack.
        "dirs" if words.len() > 1 => state.stack = None,
        "export" | "declare" | "typeset" | "readonly" | "local" => {
            record_declaration(walker, words, run, state);
        }
        "set" => {
            if words.len() == 1 {
                // Without arguments, `set` prints all variables, some of which may be secret.
                walker.script.runs[run].approval = Approval::Required;
            }
            record_set(walker, words, state);
            let is_flag = |word: &&Word| word.prefix().starts_with(['-', '+']);
            let flags = words[1..].iter().take_while(is_flag).count();
            walker.visible_values.add_positional(&words[1 + flags..]);
        }
        "shift" => {
            state.forget_positional();
            walker.visible_values.add_positional(&[]);
        }
        "let" => {
            for word in &words[1..] {
                match word.literal() {
                    Some(text) => {
                        let pieces = [Piece::Text { text: text.to_string(), quoted: false }];
                        walker.record_arithmetic(&pieces, word.shown(), state);
                    }
                    None => walker.add_doubt(DoubtKind::Arithmetic, word.shown()),
                }
            }
        }
        "trap" => {
            walker.add_doubt(DoubtKind::State, "trap");
            let action = words[1..].iter().find(|it| it.literal() != Some("--"));
            if let Some(Word::Literal(action)) = action {
                walker.walk_inner_text(run, action, &mut state.clone(), &StdinSource::Nothing);
            }
        }
        name if names::contains(NameGroup::StateBuiltin, name) => {
            walker.add_doubt(DoubtKind::State, name)
        }
        _ => {}
    }
}

/// Records `pushd`, which may fail. If the stack was empty before, a later `popd` ends in the same directory in both
/// cases. Otherwise the stack is only known if `pushd` succeeds.
fn push_dir(walker: &mut Walker<'_>, words: &[Word], run: usize, state: &mut ShellState) {
    if words.len() == 1 {
        // Without arguments, `pushd` swaps the top two directories.
        walker.record_access(&unknown("pushd"), AccessKind::Enter, state, Some(run));
        (state.dirs, state.previous) = (None, None);
        state.stack = None;
        return;
    }
    let mut stack = state.stack.take();
    if let Some(stack) = &mut stack {
        stack.push(state.dirs.clone());
    }
    change_dir(walker, words, run, state);
    state.stack = stack.clone().filter(|stack| stack.len() == 1);
    if let Some(state_if_cd_succeeds) = &mut state.state_if_cd_succeeds {
        state_if_cd_succeeds.stack = stack;
    }
}

fn pop_dir(walker: &mut Walker<'_>, words: &[Word], run: usize, state: &mut ShellState) {
    let popped = match (&mut state.stack, words.len()) {
        (Some(stack), 1) => stack.pop().flatten(),
        (Some(_) | None, _) => None,
    };
    if popped.is_none() {
        walker.record_access(&unknown("popd"), AccessKind::Enter, state, Some(run));
        state.stack = None;
    }
    state.dirs = popped;
    state.previous = None;
}

/// Records a change of the working directory, which may fail.
fn change_dir(walker: &mut Walker<'_>, words: &[Word], run: usize, state: &mut ShellState) {
    let before = state.dirs.clone();
    let after = new_dir(walker, words, run, state);
    state.state_if_cd_succeeds = Some(StateAfterSuccessfulCd {
        dirs: after.clone(),
        previous: before.clone(),
        stack: state.stack.clone(),
    });
    if guarantees::cd_succeeds(walker, words, &before, &after) {
        state.previous = before;
        state.dirs = after;
    } else {
        state.previous = union_dirs(&state.previous, &before);
        state.dirs = union_dirs(&before, &after);
    }
}

/// Returns the working directory after a `cd` that succeeds.
fn new_dir(
    walker: &mut Walker<'_>,
    words: &[Word],
    run: usize,
    state: &ShellState,
) -> PossibleDirs {
    let is_cd = words[0].literal() == Some("cd");
    let mut resolves_links = false;
    let mut operands: Vec<&Word> = Vec::new();
    for word in &words[1..] {
        match word.literal() {
            Some("--" | "-L") if is_cd => {}
            Some("-P") if is_cd => resolves_links = true,
            _ => operands.push(word),
        }
    }
    let home;
    let target = match operands.as_slice() {
        [] => {
            let value = state.value("HOME");
            home = value.text().map(|text| Word::Literal(text.to_string()));
            home.as_ref()
        }
        [word] => Some(*word),
        _ => None,
    };
    match (target, &state.dirs) {
        (Some(Word::Literal(path)), _) if path == "-" && state.previous.is_some() => {
            state.previous.clone()
        }
        // A leading sign means a flag or an index into the stack.
        (Some(Word::Literal(path)), Some(dirs)) if !path.starts_with(['-', '+']) => {
            walker.record_access(&Word::Literal(path.clone()), AccessKind::Enter, state, Some(run));
            let is_anchored = path.starts_with('/') || path.starts_with('.');
            let uses_cdpath = !is_anchored && walker.context.exported.contains("CDPATH");
            let entered = dirs.iter().map(|dir| normalize(dir, path)).collect();
            (!resolves_links && !uses_cdpath).then_some(entered)
        }
        _ => {
            let target = unknown(target.map_or("cd", Word::shown));
            walker.record_access(&target, AccessKind::Enter, state, Some(run));
            None
        }
    }
}

/// A command like `export` or `declare`.
struct Declaration<'w> {
    run: usize,
    words: &'w [Word],
    exports: bool,
    /// Whether the command certainly sets its variables. If not, they may keep their old values.
    is_certain: bool,
}

/// Records `export a=b` and similar commands.
fn record_declaration(walker: &mut Walker<'_>, words: &[Word], run: usize, state: &mut ShellState) {
    let name = words.first().and_then(Word::literal);
    let has_flag = |flag: char| {
        let mut texts = words.iter().skip(1).filter_map(Word::literal);
        texts.any(|text| text.starts_with('-') && text.contains(flag))
    };
    // `local` fails outside of functions. POSIX shells only have `export` and `readonly`.
    let is_supported = match walker.language {
        ShellLanguage::Bash | ShellLanguage::Korn | ShellLanguage::Zsh => name != Some("local"),
        ShellLanguage::Posix => matches!(name, Some("export" | "readonly")),
    };
    let only_prints = ['p', 'f', 'F'].into_iter().any(has_flag);
    let is_certain = is_supported && !only_prints && !walker.may_skip_rest;
    // A later assignment to a read-only variable fails, and the shell skips the rest of its line.
    walker.may_skip_rest |= name == Some("readonly") || has_flag('r');
    let declaration = Declaration { run, words, exports: name == Some("export"), is_certain };
    for at in 1..words.len() {
        declaration.declare_word(walker, at, state);
    }
}

impl Declaration<'_> {
    fn declare_word(&self, walker: &mut Walker<'_>, at: usize, state: &mut ShellState) {
        let word = &self.words[at];
        let Some(text) = word.literal() else { return self.declare_dynamic(walker, word, state) };
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        if let Some(flags) = name.strip_prefix('-') {
            if !flags.chars().all(|c| HARMLESS_DECLARE_LETTERS.contains(c)) {
                walker.add_doubt(DoubtKind::Variable, text);
            }
            return;
        }
        if !is_name(name) {
            return walker.add_doubt(DoubtKind::Indirect, text);
        }
        let changes_programs = affects_programs(name, walker.context, walker.language);
        // Programs may evaluate the values of their variables, as `make` does.
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.,:/@%+=- ".contains(c);
        let is_plain_value = value.is_some_and(|it| it.chars().all(is_plain));
        let may_load = may_load_code(text) || !is_plain_value;
        if changes_programs || self.exports && !is_harmless(name) && may_load {
            let risk = Risk { word: at, spelled: text.to_string(), kind: RiskKind::Code };
            walker.script.runs[self.run].risks.push(risk);
        }
        if let Some(value) = value.filter(|_| self.exports) {
            walker.mentioned_texts.add_passed(value);
        }
        if self.exports {
            let current = state.value(name);
            if let Some(value) = value.or(current.text()) {
                variable_files::record(walker, (name, value), self.run, state);
            }
            let words = command_words(text);
            walker.script.runs[self.run].unparsed_words.extend(words);
        }
        if changes_programs || value.is_some() && may_be_file_or_code(name, value) {
            walker.add_doubt(DoubtKind::Variable, text);
        }
        if let Some(value) = value {
            walker.visible_values.add(name, vec![value.to_string()]);
        }
        let value = value.map(|value| Value::Text(value.to_string()));
        if let Some(value) = &value {
            walker.record_evaluated_value(name, value);
        }
        match value {
            Some(value) if self.is_certain => state.set(name, value),
            Some(value) => state.maybe_set(name, &value),
            // The variable may become read-only. Later assignments to it then fail, so its value is unknown.
            None if walker.may_skip_rest => state.maybe_set(name, &Value::Unknown),
            None => {}
        }
    }

    fn declare_dynamic(&self, walker: &mut Walker<'_>, word: &Word, state: &mut ShellState) {
        let name = word.prefix().split('=').next().unwrap_or("");
        let is_harmless = word.prefix().contains('=')
            && is_name(name)
            && !affects_programs(name, walker.context, walker.language)
            && !self.exports;
        if !is_harmless {
            walker.add_doubt(DoubtKind::Variable, word.shown());
        }
        walker.record_evaluated_value(name, &Value::Unknown);
        state.set(name, Value::Unknown);
    }
}

fn record_set(walker: &mut Walker<'_>, words: &[Word], state: &mut ShellState) {
    state.forget_positional();
    let mut words = words[1..].iter();
    while let Some(word) = words.next() {
        match word.literal() {
            Some("--" | "-") => return,
            Some("-o" | "+o") => match words.next().map(|it| it.literal().unwrap_or("")) {
                None => {}
                Some(option) if HARMLESS_SET_OPTIONS.contains(&option) => {}
                Some(_) => walker.add_doubt(DoubtKind::State, "set -o"),
            },
            Some(flags) if flags.starts_with(['-', '+']) => {
                let (letters, has_option) = match flags[1..].strip_suffix('o') {
                    Some(letters) => (letters, true),
                    None => (&flags[1..], false),
                };
                if !letters.chars().all(|c| HARMLESS_SET_LETTERS.contains(c)) {
                    walker.add_doubt(DoubtKind::State, flags);
                }
                if has_option && words.next().and_then(Word::literal) != Some("pipefail") {
                    walker.add_doubt(DoubtKind::State, flags);
                }
            }
            Some(_) => return,
            None => return walker.add_doubt(DoubtKind::State, word.shown()),
        }
    }
}

/// Records that a command stores an unknown value in the variable that a word names.
pub(super) fn assign_unknown(walker: &mut Walker<'_>, word: &Word, state: &mut ShellState) {
    match word.literal() {
        Some(name) if is_name(name) => {
            let is_default_target = matches!(name, "REPLY" | "MAPFILE");
            if !is_default_target && reaches_programs(name, walker.context, walker.language) {
                walker.add_doubt(DoubtKind::Variable, name);
            }
            walker.record_evaluated_value(name, &Value::Unknown);
            state.set(name, Value::Unknown);
        }
        _ => walker.add_doubt(DoubtKind::Indirect, word.shown()),
    }
}

/// Records the variables that `read` and `mapfile` set if they are given no name.
pub(super) fn assign_defaults(name: &str, args: &ParsedArgs, state: &mut ShellState) {
    if args.operand_count == 0 {
        match name {
            "read" => state.set("REPLY", Value::Unknown),
            "mapfile" | "readarray" => state.set("MAPFILE", Value::Unknown),
            _ => {}
        }
    }
}
