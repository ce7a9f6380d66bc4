//! Commands and files that are named in code for database clients, editors and interpreters: `\! rm x`, `.output x`,
//! `system("rm x")`.
//!
//! `programs.txt` lists for each program the words after which they follow. A word like `\!` or `.shell` begins a command
//! of the program. A word of letters counts at the start of a statement, and everywhere if a string follows. It is not
//! certain that the program treats such a word as a command; if it does not, the decision is only stricter.

use super::programs::ProgramSpec;
use super::state::ShellState;
use super::walk::{StdinSource, Walker, unknown};
use super::{AccessKind, ShellLanguage, Word, rough_scan, shells};

/// Maximum number of commands and files that are recorded for one text.
const MAX_FOUND: usize = 64;
/// Characters before a file name that turn it into a command.
const COMMAND_SIGNS: [char; 3] = ['|', '!', '<'];
const QUOTES: [char; 3] = ['"', '\'', '`'];

/// What follows a word of the code.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    /// Text for a shell.
    Shell,
    /// Something that may be text for a shell.
    MayRun,
    Read,
    Write,
}

/// Records the commands and files in the code that a program runs.
pub(super) fn record(
    walker: &mut Walker<'_>,
    (spec, code): (&ProgramSpec, &str),
    run: usize,
    state: &ShellState,
) {
    let lists = [
        (Found::Shell, &spec.shell_after),
        (Found::MayRun, &spec.may_run_after),
        (Found::Read, &spec.reads_after),
        (Found::Write, &spec.writes_after),
    ];
    if lists.iter().all(|(_, words)| words.is_empty()) {
        return;
    }
    // `printf` turns `\n` into a line break.
    let lines = code.lines().flat_map(|line| {
        let has_escapes = line.contains("\\n");
        std::iter::once(line).chain(line.split("\\n").filter(move |_| has_escapes))
    });
    let found = lines.flat_map(|line| arguments(line, &lists)).take(MAX_FOUND);
    for (kind, argument) in found {
        match kind {
            Found::Shell => walk_command(walker, argument.text(), run, state),
            Found::MayRun => {
                let text = argument.call().replace([',', '[', ']'], " ");
                walker.script.runs[run].unparsed_words.extend(rough_scan::words(&text));
            }
            // Some functions, like `fsdir` of sqlite, read a folder with everything below it.
            Found::Read => record_files(walker, (argument, AccessKind::ReadTree), run, state),
            Found::Write => record_files(walker, (argument, AccessKind::Write), run, state),
        }
    }
}

/// Records the command in a value like `|gzip`, which many programs run instead of opening a file. Returns whether the
/// value is one.
pub(super) fn record_piped(
    walker: &mut Walker<'_>,
    value: &Word,
    run: usize,
    state: &ShellState,
) -> bool {
    let Some(command) = value.prefix().trim_start().strip_prefix('|') else { return false };
    match value {
        Word::Literal(_) if command.trim().is_empty() => return false,
        Word::Literal(_) => walk_command(walker, command, run, state),
        Word::Glob(_) | Word::Dynamic(_) => {
            shells::record_dynamic_text(walker, &unknown(value.shown()), run, state);
        }
    }
    true
}

/// Analyzes a text that a program passes to `sh`.
fn walk_command(walker: &mut Walker<'_>, text: &str, run: usize, state: &ShellState) {
    let outer = std::mem::replace(&mut walker.language, ShellLanguage::Posix);
    walker.walk_inner_text(run, text, &mut state.clone(), &StdinSource::Nothing);
    walker.language = outer;
}

/// Records the files in an argument, or the command that stands in place of a file.
fn record_files(
    walker: &mut Walker<'_>,
    (argument, kind): (Argument<'_>, AccessKind),
    run: usize,
    state: &ShellState,
) {
    if let Some(command) = argument.text().trim_start().strip_prefix(COMMAND_SIGNS) {
        return walk_command(walker, command, run, state);
    }
    for file in argument.files() {
        let file = match file.starts_with('~') {
            true => unknown(file),
            false => Word::Literal(file.to_string()),
        };
        walker.record_access(&file, kind, state, Some(run));
    }
}

/// What follows a word of the code, up to the end of the line.
#[derive(Clone, Copy)]
struct Argument<'t> {
    rest: &'t str,
    /// The string that follows, if it is the argument.
    quoted: Option<&'t str>,
}

impl<'t> Argument<'t> {
    fn text(self) -> &'t str {
        self.quoted.unwrap_or(self.rest)
    }

    /// Returns the arguments of a call like `run(["rm", "x"])`.
    fn call(self) -> &'t str {
        let mut depth = 0_usize;
        let end = self.rest.find(|c| match c {
            '(' => {
                depth += 1;
                false
            }
            ')' => {
                depth = depth.saturating_sub(1);
                depth == 0
            }
            _ => false,
        });
        &self.rest[..end.unwrap_or(self.rest.len())]
    }

    /// Returns the words that may be names of files.
    fn files(self) -> impl Iterator<Item = &'t str> {
        const MAX_FILES: usize = 4;
        let is_flag = |it: &&str| it.starts_with(['-', '\\']);
        let is_number = |it: &str| it.bytes().all(|byte| byte.is_ascii_digit());
        let end = self.rest.find([';', '|']).unwrap_or(self.rest.len());
        let words = self.rest[..end].split_whitespace().filter(move |it| !is_flag(it));
        let words = words.map(|it| it.trim_matches(|c| QUOTES.contains(&c) || "()".contains(c)));
        let words = words.filter(move |it| !is_number(it)).take(MAX_FILES);
        let is_quoted = self.quoted.is_some();
        self.quoted.into_iter().chain(words.filter(move |_| !is_quoted))
    }
}

/// Returns what follows the listed words in a line of code.
fn arguments<'t>(
    line: &'t str,
    lists: &[(Found, &Vec<&'static str>)],
) -> Vec<(Found, Argument<'t>)> {
    let mut found = Vec::new();
    let mut quote = None;
    let (mut is_start, mut previous) = (true, ' ');
    let is_paired = |quote: char| line.matches(quote).count().is_multiple_of(2);
    let (single, double) = (is_paired('\''), is_paired('"'));
    for (at, c) in line.char_indices() {
        if quote.is_none() {
            for (kind, words) in lists {
                let place = Place { rest: &line[at..], is_start, previous };
                let argument = words.iter().find_map(|word| place.argument_of(word));
                found.extend(argument.map(|it| (*kind, it)));
            }
        }
        match quote {
            Some(open) if open == c => quote = None,
            None if c == '\'' && single || c == '"' && double => quote = Some(c),
            Some(_) | None => {}
        }
        // An editor accepts a range of lines before a command.
        let keeps_start = c.is_whitespace()
            || c.is_ascii_digit()
            || matches!(c, ':' | '+' | '%' | '$' | ',' | '.');
        is_start = quote.is_none() && (matches!(c, ';' | '|' | '{') || is_start && keeps_start);
        previous = c;
    }
    found
}

/// A place in a line of code.
struct Place<'t> {
    rest: &'t str,
    /// Whether a statement may start here.
    is_start: bool,
    /// The character before.
    previous: char,
}

impl<'t> Place<'t> {
    /// Returns what follows a listed word, if the word stands here.
    fn argument_of(&self, word: &str) -> Option<Argument<'t>> {
        if let Some((word, second)) = word.split_once("..") {
            let rest = self.argument_of(word)?.rest;
            let second = format!(" {second} ");
            let at = rest.to_ascii_lowercase().rfind(&second)?;
            let rest = &rest[at + second.len()..];
            return Some(Argument { rest, quoted: string_at(rest) });
        }
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        if word.len() == 1 && word.starts_with('`') {
            let text = self.rest.strip_prefix(word)?;
            let quoted = text.split('`').next();
            return Some(Argument { rest: text, quoted });
        }
        let is_symbol = !word.starts_with(is_name);
        let len = match word.strip_prefix('.') {
            // Commands with a dot may be abbreviated.
            Some(name) => 1 + abbreviation_length(self.rest.strip_prefix('.')?, name)?,
            None if is_symbol => self.rest.starts_with(word).then_some(word.len())?,
            None => {
                let text = self.rest.get(..word.len())?;
                text.eq_ignore_ascii_case(word).then_some(word.len())?
            }
        };
        let rest = &self.rest[len..];
        let ends_here = !word.ends_with(is_name) || !rest.starts_with(is_name);
        if !ends_here || !is_symbol && !self.is_start && is_name(self.previous) {
            return None;
        }
        if is_symbol {
            let is_anywhere = word.starts_with('\\') || self.previous.is_whitespace();
            let is_dot = word.starts_with('.');
            let quoted = word.ends_with(is_name).then(|| string_at(rest)).flatten();
            return (self.is_start || is_anywhere && !is_dot).then_some(Argument { rest, quoted });
        }
        // `w!` of an editor.
        let rest = rest.strip_prefix('!').unwrap_or(rest);
        let quoted = string_at(rest);
        let is_call = rest.trim_start().starts_with('(');
        (self.is_start || quoted.is_some() || is_call).then_some(Argument { rest, quoted })
    }
}

/// Returns the length of the word at the start of a text, if a name begins with it.
fn abbreviation_length(text: &str, name: &str) -> Option<usize> {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(text.len());
    (end > 0 && name.starts_with(&text[..end])).then_some(end)
}

/// Returns the string at the start of a text, without its quotes.
fn string_at(text: &str) -> Option<&str> {
    let text = text.trim_start_matches(|c: char| c.is_whitespace() || c == '(');
    let quote = text.chars().next().filter(|c| QUOTES.contains(c))?;
    text[1..].split(quote).next()
}

#[cfg(test)]
mod tests {
    use super::{Found, arguments};

    fn found(line: &str, words: &[&'static str]) -> Vec<String> {
        let words = words.to_vec();
        let found = arguments(line, &[(Found::Read, &words)]);
        found.into_iter().map(|(_, it)| it.files().collect::<Vec<_>>().join(",")).collect()
    }

    #[track_caller]
    fn check(line: &str, words: &[&'static str], expected: &[&str]) {
        assert_eq!(found(line, words), expected, "{line}");
    }

    #[test]
    fn commands_count_at_the_start_of_a_statement() {
        check("source a.sql", &["source"], &["a.sql"]);
        check("select 1; SOURCE a.sql;", &["source"], &["a.sql"]);
        check("select source from t", &["source"], &[]);
        check("select 'x; source y'", &["source"], &[]);
        check("sources a", &["source"], &[]);
        check("1,5w x", &["w"], &["x"]);
        check(":w! x|q", &["w"], &["x"]);
        check("a.read x", &[".read"], &[]);
        check(".rea x", &[".read"], &["x"]);
        check(".import --csv \"a\" t", &[".import"], &["a,t"]);
    }

    #[test]
    fn words_with_a_string_count_everywhere() {
        check("select readfile('a')", &["readfile"], &["a"]);
        check("select 1 into outfile \"a b\"", &["outfile"], &["a b"]);
        check("select 1 \\g a", &["\\g"], &["a"]);
        check("select 1 \\gset a", &["\\g"], &[]);
    }
}
