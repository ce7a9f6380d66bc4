//! Names that a search is told to pick: what they stand for is asked about like a file that is named outright.

use super::Word;
use crate::wildcard;

/// Names of files that are not read unasked, for patterns to match.
const SECRET: &[&str] = &[".env", ".env.local", "id_rsa", "key.pem"];

/// Flags of `find` that pick by name.
const BY_NAME: &[&str] =
    &["-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-samefile"];

/// The file that a name or a pattern picks; `None` where it picks too much to be meant for one.
pub(super) fn picked(value: &str) -> Option<Word> {
    let value = value.to_ascii_lowercase();
    if value.starts_with('!') {
        return None;
    }
    if !value.contains(['*', '?', '[']) {
        return Some(Word::Literal(value));
    }
    let name = plain(value.rsplit('/').next().unwrap_or(&value));
    let says_something = name.contains(|character: char| character.is_alphanumeric());
    let secret = SECRET.iter().find(|secret| says_something && wildcard::matches(&name, secret))?;
    Some(Word::Literal((*secret).to_string()))
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
    let tests = texts.windows(2).filter(|pair| BY_NAME.contains(&pair[0]));
    starts.chain(tests.filter_map(|pair| picked(pair[1]))).collect()
}

/// A pattern with any character in the place of each bracket.
fn plain(pattern: &str) -> String {
    let mut plain = String::new();
    let mut rest = pattern;
    while let Some(at) = rest.find('[') {
        plain.push_str(&rest[..at]);
        let Some(end) = rest[at + 1..].get(1..).and_then(|it| it.find(']')) else {
            return plain + "*";
        };
        plain.push('?');
        rest = &rest[at + 1 + 1 + end + 1..];
    }
    plain + rest
}
