//! Lines that only stand for others: dots, and perhaps words and a comment around them.

use std::collections::HashSet;

use super::fold::parts;

pub(super) fn is_elision(line: &str) -> bool {
    words(line).is_some_and(|words| words.is_empty() || says_so(&words))
}

/// The first of some new lines that says in words that code is left out, as none of the old ones does.
pub fn left_out<'a>(
    old: impl IntoIterator<Item = &'a str>,
    new: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let mut marks =
        new.into_iter().map(|line| parts(line).body).filter(|line| is_worded(line)).peekable();
    marks.peek()?;
    let old: HashSet<&str> = old.into_iter().map(|line| parts(line).body).collect();
    marks.find(|line| !old.contains(line))
}

/// More words than this are a sentence about something.
const WORDS: usize = 8;

/// A comment, or nothing but dots and words, that says what is left out.
fn is_worded(line: &str) -> bool {
    let opens =
        ["//", "#", "--", "/*", "<!--", "{/*", ";", "%", "*", "...", "\u{2026}", "(...", "[..."];
    opens.iter().any(|open| line.starts_with(open))
        && words(line).is_some_and(|words| words.len() <= WORDS && says_so(&words))
}

/// The words around dots; `None` without dots.
fn words(line: &str) -> Option<Vec<String>> {
    let line = parts(line).body;
    let dots = ["...", "\u{2026}"].into_iter().find(|dots| line.contains(dots))?;
    let rest = line.replace(dots, " ");
    let words = rest.split(|character: char| !character.is_alphanumeric());
    Some(words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect())
}

fn says_so(words: &[String]) -> bool {
    const SAID: [&str; 6] = ["existing", "rest", "unchanged", "remaining", "omitted", "same"];
    words.iter().any(|word| SAID.contains(&word.as_str()))
}
