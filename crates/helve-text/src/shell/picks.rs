//! Names that a search is told to pick: what they stand for is asked about like a file that is named outright.

use super::state::Folders;
use super::{Word, bracket};
use crate::wildcard;

/// Names of files that are not read unasked, for patterns to match.
const SECRET: &[&str] = &[".env", ".env.local", "id_rsa", "key.pem"];

/// Flags of `find` that pick by name.
const BY_NAME: &[&str] =
    &["-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-samefile"];

/// Those that pick by an expression.
const BY_EXPRESSION: &[&str] = &["-regex", "-iregex"];

/// Patterns for everything that is hidden.
const HIDDEN: &[&str] = &[".*", ".?*", ".[!.]*", ".[^.]*"];

/// Patterns with more alternatives than this are taken to pick anything.
const ALTERNATIVES: usize = 32;

/// Names that `find` prints.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) regular: bool,
    /// Each is ended by a NUL, so none can be taken for two.
    pub(super) exact: bool,
    /// Files that it is told to find.
    pub(super) picked: Vec<Word>,
    /// Where it looks from.
    pub(super) folders: Folders,
}

/// The file that a name or a pattern picks; `None` where it picks too much to be meant for one.
pub(super) fn picked(value: &str) -> Option<Word> {
    if value.starts_with('!') {
        return None;
    }
    // A kind of files is named before its pattern.
    let named =
        value.split_once(':').filter(|(kind, _)| kind.bytes().all(|c| c.is_ascii_alphanumeric()));
    let value = named.map_or(value, |(_, pattern)| pattern).to_ascii_lowercase();
    if !value.contains(['*', '?', '[', '{', '\\']) {
        return Some(Word::Literal(value));
    }
    let mut patterns = vec![value];
    while let Some(at) = patterns.iter().position(|it| alternatives(it).is_some()) {
        let more = alternatives(&patterns.swap_remove(at)).unwrap_or_default();
        patterns.extend(more);
        if patterns.len() > ALTERNATIVES {
            return Some(Word::Literal(SECRET[0].to_string()));
        }
    }
    patterns.iter().find_map(|pattern| secret(pattern))
}

/// `a{b,c}` is `ab` and `ac`.
fn alternatives(pattern: &str) -> Option<Vec<String>> {
    let end = pattern.find('}')?;
    let start = pattern[..end].rfind('{')?;
    let (before, after) = (&pattern[..start], &pattern[end + 1..]);
    Some(pattern[start + 1..end].split(',').map(|it| format!("{before}{it}{after}")).collect())
}

fn secret(pattern: &str) -> Option<Word> {
    let last = pattern.rsplit('/').next().unwrap_or(pattern);
    let name = plain(last);
    let letters = name.contains(|character: char| character.is_alphanumeric());
    let hidden = name.starts_with('.') && !HIDDEN.contains(&last);
    let meant = |secret: &&&str| (letters || hidden) && wildcard::matches(&name, secret);
    SECRET.iter().find(meant).map(|secret| Word::Literal((*secret).to_string()))
}

/// The file whose name an expression spells, whatever stands around it.
fn spelled(expression: &str) -> Option<Word> {
    const SPELLED: &[(&str, &str)] = &[("env", ".env"), ("id_rsa", "id_rsa"), ("pem", "key.pem")];
    let expression = expression.replace('\\', "").to_ascii_lowercase();
    let ends = |rest: &str| !rest.starts_with(|next: char| next.is_ascii_alphanumeric());
    let has = |(part, _): &&(&str, &str)| {
        expression.match_indices(part).any(|(at, _)| ends(&expression[at + part.len()..]))
    };
    SPELLED.iter().find(has).map(|(_, secret)| Word::Literal((*secret).to_string()))
}

/// The file that a revision with a path, or a path of git's own kind, picks: `HEAD:.env`, `:(top).env`, `'.en?'`.
pub(super) fn of_git(text: &str) -> Option<Word> {
    let path = match text.strip_prefix(":(") {
        Some(magic) => {
            let (magic, path) = magic.split_once(')')?;
            (!magic.split(',').any(|word| word == "exclude")).then_some(path)?
        }
        None => match text.split_once(':') {
            Some((_, path)) => path.trim_start_matches(['/', '0', '1', '2', '3', ':']),
            None => {
                // What is not there any more may be in the history.
                let is_hidden = text.rsplit('/').next().is_some_and(|name| name.starts_with('.'));
                let is_pattern = text.contains(['*', '?', '[', '\\']);
                (is_pattern || is_hidden && !text.contains("..")).then_some(text)?
            }
        },
    };
    let is_left_out = path.starts_with(['!', '^']) || path.is_empty();
    picked(path).filter(|_| !is_left_out)
}

/// What `find` is told to pick: the names in its tests, and hidden files that it starts from.
pub(super) fn of_find(words: &[Word]) -> Vec<Word> {
    let texts: Vec<&str> = words.iter().map(|word| word.literal().unwrap_or("")).collect();
    let starts = texts.iter().skip(1).take_while(|text| !text.starts_with(['-', '(', '!']));
    let hidden = |text: &&&str| {
        let name = text.rsplit('/').next().unwrap_or(text);
        name.starts_with('.') && name.len() > 1 && name != ".."
    };
    let starts = starts.filter(hidden).map(|text| Word::Literal((*text).to_string()));
    let tests = texts.windows(3).filter_map(|test| match test {
        ["!" | "-not", ..] => None,
        [_, flag, value] if BY_NAME.contains(flag) => picked(value),
        [_, flag, value] if BY_EXPRESSION.contains(flag) => spelled(value),
        _ => None,
    });
    starts.chain(tests).collect()
}

/// A pattern without its escapes, and with any character in the place of each bracket.
fn plain(pattern: &str) -> String {
    let mut plain = String::new();
    let mut rest = pattern;
    while let Some(at) = rest.find(['[', '\\']) {
        plain.push_str(&rest[..at]);
        let (sign, inside) = rest[at..].split_at(1);
        if sign == "\\" {
            rest = inside;
            continue;
        }
        let negated = usize::from(inside.starts_with('!'));
        let Some(length) = bracket::length(&inside[negated..], '/') else { return plain + "*" };
        plain.push('?');
        rest = &inside[negated + length..];
    }
    plain + rest
}
