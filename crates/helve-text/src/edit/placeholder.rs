//! Placeholder lines for omitted code, such as `// ... existing code ...`.

use std::collections::HashSet;

use super::normalize::split_line;

/// Whether a line is a placeholder: an ellipsis alone, or an ellipsis with words that say that code is omitted.
pub(super) fn is_placeholder(line: &str) -> bool {
    words_around_ellipsis(line).is_some_and(|words| words.is_empty() || mentions_omission(&words))
}

/// Returns the first new line that is a placeholder with words (`... rest ...`) and does not occur in the old lines.
pub fn find_placeholder<'a>(
    old: impl IntoIterator<Item = &'a str>,
    new: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let mut placeholders = new
        .into_iter()
        .map(|line| split_line(line).body)
        .filter(|line| is_worded_placeholder(line))
        .peekable();
    placeholders.peek()?;
    let old: HashSet<&str> = old.into_iter().map(|line| split_line(line).body).collect();
    placeholders.find(|line| !old.contains(line))
}

/// Maximum number of words in a placeholder. A longer comment is an ordinary sentence.
const MAX_WORDS: usize = 8;

/// Whether a line says that code is omitted, and is a comment or starts with an ellipsis.
fn is_worded_placeholder(line: &str) -> bool {
    let starts =
        ["//", "#", "--", "/*", "<!--", "{/*", ";", "%", "*", "...", "\u{2026}", "(...", "[..."];
    starts.iter().any(|start| line.starts_with(start))
        && words_around_ellipsis(line)
            .is_some_and(|words| words.len() <= MAX_WORDS && mentions_omission(&words))
}

/// Returns the words around an ellipsis, or `None` if the line has no ellipsis.
fn words_around_ellipsis(line: &str) -> Option<Vec<String>> {
    let line = split_line(line).body;
    let dots = ["...", "\u{2026}"].into_iter().find(|dots| line.contains(dots))?;
    let rest = line.replace(dots, " ");
    let words = rest.split(|character: char| !character.is_alphanumeric());
    Some(words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect())
}

fn mentions_omission(words: &[String]) -> bool {
    const OMISSION_WORDS: [&str; 6] =
        ["existing", "rest", "unchanged", "remaining", "omitted", "same"];
    words.iter().any(|word| OMISSION_WORDS.contains(&word.as_str()))
}
