//! Paths in the home directory, in the spellings that rules may have.

use super::{ProgramRun, ShellContext, WordRole};

/// How rules may write the home directory.
pub(super) const HOME_SPELLINGS: [&str; 3] = ["~", "$HOME", "${HOME}"];

/// Returns a text with each path in the home directory as rules may write it: `/home/me/x` → `~/x`, `$HOME/x`,
/// `${HOME}/x`. The list is empty if the text has no such path.
pub(super) fn home_spellings(text: &str, context: &ShellContext) -> Vec<String> {
    let home = context.home.as_deref().unwrap_or("").trim_end_matches('/');
    if home.len() < 2 || !text.contains(home) {
        return Vec::new();
    }
    let starts: Vec<usize> = text.match_indices(home).map(|(at, _)| at).collect();
    let is_whole = |at: &usize| {
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '/' | '_' | '-' | '.');
        // A flag may be glued to the path: `-C/home/me`.
        !text[..*at].ends_with(|c: char| is_name(c) && !c.is_ascii_alphabetic())
            && !text[at + home.len()..].starts_with(|c: char| is_name(c) && c != '/')
    };
    let starts: Vec<usize> = starts.into_iter().filter(is_whole).collect();
    let respell = |spelling: &&str| {
        let (mut respelled, mut end) = (String::new(), 0);
        for start in &starts {
            respelled.push_str(&text[end..*start]);
            respelled.push_str(spelling);
            end = start + home.len();
        }
        respelled + &text[end..]
    };
    let spellings = HOME_SPELLINGS.iter().filter(|_| !starts.is_empty());
    spellings.map(respell).collect()
}

/// Returns a command with the words that start with the home directory in each spelling that rules may have.
pub(super) fn in_home(run: &ProgramRun, context: &ShellContext) -> Vec<Vec<(String, WordRole)>> {
    let home = context.home.as_deref().unwrap_or("").trim_end_matches('/');
    let is_in_home = |word: &str| {
        let rest = word.strip_prefix(home).filter(|_| home.len() > 1);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    if !run.words.iter().any(|word| is_in_home(word.shown())) {
        return Vec::new();
    }
    let respell = |spelling: &str| {
        let words = run.words.iter().map(|word| match word.shown() {
            text if is_in_home(text) => format!("{spelling}{}", &text[home.len()..]),
            text => text.to_string(),
        });
        words.zip(run.roles.iter().copied()).collect()
    };
    HOME_SPELLINGS.map(respell).into()
}
