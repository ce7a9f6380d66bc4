//! Programs that start other programs: what they start is read like any command.

use super::args::{Argument, ParsedArgs};
use super::commands::basename;
use super::file_patterns::{self, FindOutput};
use super::flags::exec_end;
use super::state::{ShellState, Value};
use super::walk::{StdinSource, Walker, unknown};
use super::{
    AccessKind, DoubtKind, DynamicKind, DynamicWord, RiskKind, ShellLanguage, Word, WordRole,
    arg_effects, builtins, path_args, rough_scan, variables, without_version,
};

/// Whose language a shell speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShellKind {
    /// The one that is read here.
    Ours(ShellLanguage),
    Other,
}

pub(super) fn shell_kind(base: &str) -> Option<ShellKind> {
    const OTHERS: &[&str] =
        &["fish", "csh", "tcsh", "pwsh", "powershell", "nu", "elvish", "xonsh", "cmd"];
    match ShellLanguage::of(base) {
        Some(language) => Some(ShellKind::Ours(language)),
        None => OTHERS.contains(&without_version(base)).then_some(ShellKind::Other),
    }
}

/// `sh -c text`, `sh file`, or a shell that reads its standard input.
pub(super) fn shell(
    walker: &mut Walker<'_>,
    words: Vec<Word>,
    assignments: Vec<String>,
    kind: ShellKind,
    state: &ShellState,
    stdin: &StdinSource,
) {
    let run = walker.run(words.clone(), assignments, None);
    walker.script.runs[run].is_known = true;
    walker.script.runs[run].is_interpreter = true;
    let outer = walker.language;
    match kind {
        ShellKind::Ours(language) => walker.language = language,
        ShellKind::Other => walker.doubt(DoubtKind::Wrapper, words[0].shown()),
    }
    let (operands, takes_text) = shell_flags(walker, &words, run);
    match (words.get(operands), takes_text) {
        (Some(Word::Literal(text)), true) => {
            let mut inner = state.of_another_shell(walker.context, walker.language);
            for n in 0..10_usize {
                let value = match words.get(operands + 1 + n) {
                    Some(Word::Literal(text)) => Value::Text(text.clone()),
                    Some(Word::Glob(_) | Word::Dynamic(_)) | None => Value::Unknown,
                };
                inner.replace(&n.to_string(), value);
            }
            builtins::inside(walker, run, text, &mut inner, stdin);
        }
        (Some(word), true) => unread(walker, word, run, state),
        (Some(word), false) => {
            walker.script.runs[run].roles[operands] = WordRole::Script;
            arg_effects::script(walker, word, state, run);
            for word in &words[operands + 1..] {
                path_args::note(walker, word, state, run);
            }
        }
        (None, _) => {
            let informs =
                words.iter().any(|it| matches!(it.literal(), Some("--version" | "--help")));
            if !informs {
                arg_effects::code_from_input(walker, run);
            }
            if let StdinSource::Text(Some(text)) = stdin {
                let mut inner = state.of_another_shell(walker.context, walker.language);
                builtins::inside(walker, run, text, &mut inner, &StdinSource::Nothing);
            }
        }
    }
    walker.language = outer;
}

/// Where the operands start, and whether the first is a text to run.
fn shell_flags(walker: &mut Walker<'_>, words: &[Word], run: usize) -> (usize, bool) {
    const HARMLESS: &[&str] =
        &["--norc", "--noprofile", "--posix", "--verbose", "--version", "--help", "--restricted"];
    const HARMLESS_OPTIONS: &[&str] =
        &["errexit", "nounset", "pipefail", "xtrace", "verbose", "noclobber", "noglob", "noexec"];
    let mut takes_text = false;
    let mut at = 1;
    while let Some(Word::Literal(text)) = words.get(at) {
        if text == "--" || text == "-" {
            return (at + 1, takes_text);
        }
        if !text.starts_with(['-', '+']) || text.len() == 1 {
            break;
        }
        let place = at;
        at += 1;
        if text.starts_with("--") {
            if !HARMLESS.contains(&text.as_str()) {
                walker.risk(run, place, text, RiskKind::Runs);
                at += usize::from(matches!(text.as_str(), "--rcfile" | "--init-file"));
            }
            continue;
        }
        for letter in text[1..].chars() {
            match letter {
                'c' => takes_text = true,
                // What shapes names, or reads and writes other files, changes what the text means.
                'o' | 'O' => {
                    let harmless = |it: &str| letter == 'o' && HARMLESS_OPTIONS.contains(&it);
                    if !words.get(at).and_then(Word::literal).is_some_and(harmless) {
                        walker.risk(run, place, text, RiskKind::Runs);
                    }
                    at += 1;
                }
                's' => arg_effects::code_from_input(walker, run),
                'e' | 'u' | 'x' | 'v' | 'n' | 'f' | 'C' | 'h' | 'b' | 'm' | 'B' | 'E' | 'T'
                | 'l' => {}
                _ => walker.risk(run, place, text, RiskKind::Runs),
            }
        }
    }
    (at, takes_text)
}

/// A text for a shell that is not fully known: what shows of it is searched all the same.
fn unread(walker: &mut Walker<'_>, word: &Word, run: usize, state: &ShellState) {
    walker.doubt(DoubtKind::Wrapper, word.shown());
    walker.inside(run, |walker| {
        for words in rough_scan::commands(&rough_scan::unquoted(word.shown())) {
            let words = words.into_iter().map(Word::Literal).collect();
            walker.launch(words, Vec::new(), &mut state.clone(), &StdinSource::Nothing);
        }
    });
}

/// `eval` runs its words in the shell itself.
pub(super) fn eval(
    walker: &mut Walker<'_>,
    words: &[Word],
    run: usize,
    state: &mut ShellState,
    stdin: &StdinSource,
) {
    // Where it ends nothing, no program has this name.
    let ended = usize::from(words.get(1).and_then(Word::literal) == Some("--"));
    let words = &words[1 + ended..];
    let texts: Option<Vec<&str>> = words.iter().map(Word::literal).collect();
    match texts {
        Some(texts) => builtins::inside(walker, run, &texts.join(" "), state, stdin),
        None => {
            let shown: Vec<&str> = words.iter().map(Word::shown).collect();
            unread(walker, &unknown(&shown.join(" ")), run, state);
            state.forget();
        }
    }
}

/// `source file`: afterwards nothing that was known of variables and folders holds.
pub(super) fn source(walker: &mut Walker<'_>, words: &[Word], run: usize, state: &mut ShellState) {
    walker.script.runs[run].is_interpreter = true;
    let at = if words.get(1).and_then(Word::literal) == Some("--") { 2 } else { 1 };
    if let Some(file) = words.get(at) {
        walker.script.runs[run].roles[at] = WordRole::Script;
        arg_effects::script(walker, file, state, run);
    }
    for word in words.iter().skip(at + 1) {
        path_args::note(walker, word, state, run);
    }
    // What virtual environments bring is well known, and stays where it is.
    let activates =
        words.get(at).and_then(Word::literal).is_some_and(|it| it.ends_with("/bin/activate"));
    if activates {
        state.forget_variables();
    } else {
        state.forget();
    }
}

/// A program in the words of another.
pub(super) fn command(
    walker: &mut Walker<'_>,
    argument: &Argument,
    words: &[Word],
    run: usize,
    parsed: &ParsedArgs,
    state: &mut ShellState,
    stdin: &StdinSource,
) {
    let name = words[0].literal().map_or("", basename);
    let mut inner = words[argument.word..argument.end].to_vec();
    let mut assignments = Vec::new();
    let mut around = state.clone();
    if parsed.spec.runs_in_other_dir(argument.flag.as_deref()) {
        around.folders = None;
    }
    let mut found_in = walker.find_ran_in.clone();
    if matches!(name, "find" | "xargs" | "gxargs") && found_in != state.folders {
        inner.iter_mut().for_each(lose);
    }
    match name {
        "env" | "sudo" | "doas" => assignments = take_assignments(&mut inner),
        "xargs" | "gxargs" => {
            if let StdinSource::Pipe(Some(found)) = stdin {
                for picked in &found.picked {
                    walker.access(picked, AccessKind::Read, state, Some(run));
                }
                found_in.clone_from(&found.folders);
            }
            fed_words(&mut inner, parsed, stdin);
        }
        // `flock FILE -c TEXT`: the flag comes after the file, where other programs have ended their own.
        "flock" if matches!(inner[0].literal(), Some("-c" | "--command")) => {
            return match inner.get(1) {
                Some(Word::Literal(text)) => {
                    builtins::inside(walker, run, text, &mut state.clone(), stdin);
                }
                Some(word) => unread(walker, word, run, state),
                None => walker.doubt(DoubtKind::Wrapper, "flock -c"),
            };
        }
        "find" => {
            let regular = no_links(words, argument.word);
            for picked in file_patterns::of_find(words) {
                walker.access(&picked, AccessKind::Read, state, Some(run));
            }
            for word in &mut inner {
                replace(word, "{}", DynamicKind::FindResult { regular });
            }
            found_in.clone_from(&around.folders);
        }
        _ => {}
    }
    let outer = std::mem::replace(&mut walker.find_ran_in, found_in);
    walker.inside(run, |walker| {
        // These run in the shell itself, so what the inner command changes stays.
        if matches!(name, "command" | "builtin" | "exec" | "noglob" | "nocorrect") {
            walker.launch(inner, assignments, state, stdin);
        } else {
            walker.launch(inner, assignments, &mut around, stdin);
        }
    });
    walker.find_ran_in = outer;
}

/// A name that was found is none where another search begins.
fn lose(word: &mut Word) {
    if let Word::Dynamic(dynamic) = word
        && let DynamicKind::FindResult { .. } = dynamic.kind
    {
        dynamic.kind = DynamicKind::Anything;
    }
}

/// `NAME=value` before the program, as `env` takes them. Those that are not harmless are returned.
fn take_assignments(words: &mut Vec<Word>) -> Vec<String> {
    let name = |word: &Word| -> Option<String> {
        // Any text with `=` is one to them, even where no shell would take it for an assignment.
        word.prefix().split_once('=').map(|(name, _)| name.to_string())
    };
    let count = words.iter().take_while(|word| name(word).is_some()).count();
    let taken: Vec<Word> = words.drain(..count).collect();
    let harmful = |word: &&Word| {
        let value = word.literal().and_then(|text| Some(text.split_once('=')?.1));
        !name(word).is_some_and(|it| variables::is_harmless_before("", &it, value))
    };
    taken.iter().filter(harmful).map(|word| word.shown().to_string()).collect()
}

/// What `xargs` adds to the words it has: names it reads, which may be anything.
fn fed_words(inner: &mut Vec<Word>, parsed: &ParsedArgs, stdin: &StdinSource) {
    let exact = parsed.flags.iter().any(|flag| flag == "-0" || flag == "--null");
    let kind = match stdin {
        StdinSource::Pipe(Some(FindOutput { regular, exact: true, .. }))
            if exact && !parsed.has_any(&["-a", "--arg-file"]) =>
        {
            DynamicKind::FindResult { regular: *regular }
        }
        StdinSource::Nothing | StdinSource::Pipe(_) | StdinSource::Text(_) | StdinSource::File => {
            DynamicKind::Anything
        }
    };
    const REPLACING: &[&str] = &["-I", "-i", "--replace"];
    const APPENDING: &[&str] = &["-n", "-L", "-l", "--max-args", "--max-lines"];
    let given = |it: &&Argument| it.flag.as_deref().is_some_and(|flag| REPLACING.contains(&flag));
    let mut tokens: Vec<&str> =
        parsed.uses.iter().filter(given).map(|it| it.value.shown()).collect();
    if parsed.has_any(&["-i", "--replace"]) {
        tokens.push("{}");
    }
    // The last of them counts, and any may be the last.
    for token in &tokens {
        inner.iter_mut().for_each(|word| replace(word, token, kind));
    }
    if tokens.is_empty() || parsed.has_any(APPENDING) {
        let prefix = if kind == DynamicKind::Anything { "" } else { "./" };
        inner.push(Word::Dynamic(DynamicWord {
            shown: "…".into(),
            prefix: prefix.into(),
            kind,
            may_split: true,
            may_end_at_prefix: true,
        }));
    }
}

/// Makes a word that contains `token` one that is only known when it runs.
fn replace(word: &mut Word, token: &str, kind: DynamicKind) {
    let Word::Literal(text) = word else { return };
    let Some((before, after)) = text.split_once(token).filter(|_| !token.is_empty()) else {
        return;
    };
    let whole = before.is_empty() && after.is_empty();
    let prefix = match kind {
        DynamicKind::FindResult { .. } if whole => "./".to_string(),
        _ => before.to_string(),
    };
    let kind = if whole { kind } else { DynamicKind::Anything };
    *word = Word::Dynamic(DynamicWord {
        shown: text.clone(),
        prefix,
        kind,
        may_split: false,
        may_end_at_prefix: false,
    });
}

/// Whether what `find` comes upon before this word can only be files and folders themselves: a link would lead elsewhere.
pub(super) fn no_links(words: &[Word], before: usize) -> bool {
    const EITHER: &[&str] =
        &["-o", "-or", "!", "-not", ",", "(", "-L", "-follow", "-fprintf", "-files0-from", ""];
    const COMMANDS: &[&str] = &["-exec", "-execdir", "-ok", "-okdir"];
    let texts: Vec<&str> = words.iter().map(|word| word.literal().unwrap_or("")).collect();
    let mut at = 1;
    let mut tested = false;
    while at < texts.len() {
        if COMMANDS.contains(&texts[at]) {
            at = exec_end(words, at + 1, texts[at]) + 1;
            continue;
        }
        if EITHER.contains(&texts[at]) {
            return false;
        }
        let is_test = texts[at] == "-type" && matches!(texts.get(at + 1), Some(&("f" | "d")));
        tested |= is_test && at < before;
        at += 1;
    }
    tested
}

/// A wrapper whose own words are not known: each word that may be the inner program is taken for it.
pub(super) fn loose(walker: &mut Walker<'_>, words: &[Word], run: usize, state: &ShellState) {
    const CANDIDATES: usize = 3;
    const WORDS: usize = 64;
    const GUESSES: usize = 2;
    if walker.loose >= GUESSES {
        return;
    }
    walker.loose += 1;
    let mut seen = 0;
    for at in 1..words.len() {
        let Word::Literal(text) = &words[at] else { continue };
        if text.contains([' ', '\t', '\n']) {
            builtins::inside(walker, run, text, &mut state.clone(), &StdinSource::Nothing);
        } else if !text.starts_with('-') && seen < CANDIDATES {
            seen += 1;
            let inner = words[at..].iter().take(WORDS).cloned().collect();
            walker.inside(run, |walker| {
                walker.launch(inner, Vec::new(), &mut state.clone(), &StdinSource::Nothing);
            });
        }
    }
    walker.loose -= 1;
}
