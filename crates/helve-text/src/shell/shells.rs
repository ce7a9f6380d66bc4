//! Commands that run text as a shell script: `sh -c`, `eval`, `source`.

use super::commands::CommandLine;
use super::names::{self, NameGroup};
use super::state::{ShellState, Value};
use super::walk::{StdinSource, Walker, unknown};
use super::{
    AccessKind, DoubtKind, RiskKind, ShellLanguage, Word, WordRole, arg_effects, path_args,
    rough_scan, without_version,
};

/// Long flags of shells that do not change what a script does.
const HARMLESS_FLAGS: &[&str] =
    &["--norc", "--noprofile", "--posix", "--verbose", "--version", "--help", "--restricted"];
/// One-letter flags of shells that do not change what a script does.
const HARMLESS_LETTERS: &str = "euxvnfChbmBETl";
/// Values of `-o` that do not change what a script does.
const HARMLESS_OPTIONS: &[&str] =
    &["errexit", "nounset", "pipefail", "xtrace", "verbose", "noclobber", "noglob", "noexec"];

/// Whether the scripts of a shell can be analyzed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShellKind {
    Analyzed(ShellLanguage),
    /// A shell with another language, like fish.
    Other,
}

/// Returns the kind of a shell, or `None` for a program that is not a shell.
pub(super) fn shell_kind(base: &str) -> Option<ShellKind> {
    match ShellLanguage::of(base) {
        Some(language) => Some(ShellKind::Analyzed(language)),
        None => names::contains(NameGroup::OtherShell, without_version(base))
            .then_some(ShellKind::Other),
    }
}

/// Records `sh -c TEXT`, `sh FILE`, or a shell that reads its standard input.
pub(super) fn record_shell(
    walker: &mut Walker<'_>,
    line: CommandLine,
    kind: ShellKind,
    state: &ShellState,
    stdin: &StdinSource,
) {
    let words = &line.words;
    let run = walker.record_run(words.clone(), line.assignments, None);
    walker.script.runs[run].is_known = true;
    walker.script.runs[run].is_interpreter = true;
    let outer = walker.language;
    match kind {
        ShellKind::Analyzed(language) => walker.language = language,
        ShellKind::Other => walker.add_doubt(DoubtKind::Wrapper, words[0].shown()),
    }
    let (operand_at, takes_text) = parse_shell_flags(walker, words, run);
    match (words.get(operand_at), takes_text) {
        (Some(Word::Literal(text)), true) => {
            let mut inner = state.for_new_shell(walker.context, walker.language);
            set_positional(&mut inner, &words[operand_at + 1..]);
            walker.walk_inner_text(run, text, &mut inner, stdin);
        }
        (Some(word), true) => record_dynamic_text(walker, word, run, state),
        (Some(word), false) => {
            walker.script.runs[run].roles[operand_at] = WordRole::Script;
            arg_effects::record_script(walker, (operand_at, word), state, run);
            for word in &words[operand_at + 1..] {
                path_args::record_paths(walker, word, state, run);
            }
        }
        (None, _) => {
            let only_prints_info =
                words.iter().any(|it| matches!(it.literal(), Some("--version" | "--help")));
            if !only_prints_info {
                arg_effects::record_code_from_input(walker, run);
            }
            if let StdinSource::Pipe(Some(output)) = stdin {
                for code in output.known_texts() {
                    path_args::record_paths_in_code(walker, code, state, run);
                }
                let words = output.known_texts().flat_map(rough_scan::words);
                walker.script.runs[run].unparsed_words.extend(words);
            }
            if let StdinSource::Text(Some(text)) = stdin {
                let mut inner = state.for_new_shell(walker.context, walker.language);
                walker.walk_inner_text(run, text, &mut inner, &StdinSource::Nothing);
            }
        }
    }
    walker.language = outer;
}

/// Sets `$0` to `$9` to the words after the text of `sh -c`.
fn set_positional(state: &mut ShellState, words: &[Word]) {
    for n in 0..10_usize {
        let value = match words.get(n) {
            Some(Word::Literal(text)) => Value::Text(text.clone()),
            Some(Word::Glob(_) | Word::Dynamic(_)) | None => Value::Unknown,
        };
        state.replace(&n.to_string(), value);
    }
}

/// Returns the index of the first operand, and whether that operand is the text to run.
fn parse_shell_flags(walker: &mut Walker<'_>, words: &[Word], run: usize) -> (usize, bool) {
    let mut takes_text = false;
    let mut at = 1;
    while let Some(Word::Literal(text)) = words.get(at) {
        if text == "--" || text == "-" {
            return (at + 1, takes_text);
        }
        if !text.starts_with(['-', '+']) || text.len() == 1 {
            break;
        }
        let flag_at = at;
        at += 1;
        if text.starts_with("--") {
            if !HARMLESS_FLAGS.contains(&text.as_str()) {
                walker.add_risk(run, flag_at, text, RiskKind::Runs);
                at += usize::from(matches!(text.as_str(), "--rcfile" | "--init-file"));
            }
            continue;
        }
        for letter in text[1..].chars() {
            match letter {
                'c' => takes_text = true,
                // An option may change how words expand, or which files the shell reads and writes.
                'o' | 'O' => {
                    let is_harmless = |it: &str| letter == 'o' && HARMLESS_OPTIONS.contains(&it);
                    if !words.get(at).and_then(Word::literal).is_some_and(is_harmless) {
                        walker.add_risk(run, flag_at, text, RiskKind::Runs);
                    }
                    at += 1;
                }
                's' => arg_effects::record_code_from_input(walker, run),
                letter if HARMLESS_LETTERS.contains(letter) => {}
                _ => walker.add_risk(run, flag_at, text, RiskKind::Runs),
            }
        }
    }
    (at, takes_text)
}

/// Records a shell text that is only known at run time. Commands that are visible in its source are listed.
pub(super) fn record_dynamic_text(
    walker: &mut Walker<'_>,
    word: &Word,
    run: usize,
    state: &ShellState,
) {
    walker.add_doubt(DoubtKind::Wrapper, word.shown());
    walker.record_find_results(AccessKind::PassedToUnknown, Some(run));
    walker.with_parent(run, |walker| {
        for words in rough_scan::commands(&rough_scan::replace_quotes(word.shown())) {
            let line = CommandLine::new(words.into_iter().map(Word::Literal).collect());
            walker.record_command(line, &mut state.clone(), &StdinSource::Nothing);
        }
    });
}

/// Records `eval`, which runs its words in the current shell.
pub(super) fn record_eval(
    walker: &mut Walker<'_>,
    words: &[Word],
    run: usize,
    state: &mut ShellState,
    stdin: &StdinSource,
) {
    // Some shells do not accept `--` here and run it as a program, but no program has this name.
    let double_dash = usize::from(words.get(1).and_then(Word::literal) == Some("--"));
    let words = &words[1 + double_dash..];
    let texts: Option<Vec<&str>> = words.iter().map(Word::literal).collect();
    match texts {
        Some(texts) => walker.walk_inner_text(run, &texts.join(" "), state, stdin),
        None => {
            let shown: Vec<&str> = words.iter().map(Word::shown).collect();
            record_dynamic_text(walker, &unknown(&shown.join(" ")), run, state);
            state.forget_all();
        }
    }
}

/// Records `source FILE`. Afterwards all variables and the working directory are unknown.
pub(super) fn record_source(
    walker: &mut Walker<'_>,
    words: &[Word],
    run: usize,
    state: &mut ShellState,
) {
    walker.script.runs[run].is_interpreter = true;
    let at = if words.get(1).and_then(Word::literal) == Some("--") { 2 } else { 1 };
    if let Some(file) = words.get(at) {
        walker.script.runs[run].roles[at] = WordRole::Script;
        arg_effects::record_script(walker, (at, file), state, run);
    }
    for word in words.iter().skip(at + 1) {
        path_args::record_paths(walker, word, state, run);
    }
    // The activation script of a virtual environment is well known and does not change the directory.
    let file = words.get(at).and_then(Word::literal);
    if file.is_some_and(|it| it.ends_with("/bin/activate")) {
        state.forget_variables();
    } else {
        state.forget_all();
    }
}
