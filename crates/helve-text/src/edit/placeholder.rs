//! Placeholder lines for omitted code, such as `// ... existing code ...`.

mod phrase;
mod stub;

use std::{collections::HashSet, ops::Range};

use self::phrase::Certainty;
pub(super) use self::phrase::is_comment;
use super::{NewText, normalize::split_line, text_kind::TextKind};
use crate::diff;

/// Whether a line is a placeholder.
pub(super) fn is_placeholder(line: &str) -> bool {
    phrase::classify(line, TextKind::Code).is_some()
}

/// Returns the first new line that is a placeholder and replaces old lines.
///
/// A placeholder is harmless if no line is removed with it. A comment that only resembles a placeholder counts if more
/// lines are removed than added.
pub(super) fn find_placeholder<'a>(text: &NewText<'a>) -> Option<&'a str> {
    let NewText { old, new, kind, .. } = *text;
    let candidates: Vec<(usize, Certainty)> = new
        .lines()
        .enumerate()
        .filter_map(|(index, line)| Some((index, phrase::classify(line, kind)?)))
        .collect();
    if candidates.is_empty() {
        return None;
    }
    let bodies = |text: &'a str| text.lines().map(|line| split_line(line).body).collect::<Vec<_>>();
    let new = bodies(new);
    let old: Vec<&str> = old.lines().map(|line| split_line(line).body).collect();
    let old_set: HashSet<&str> = old.iter().copied().collect();
    let new_set: HashSet<&str> = new.iter().copied().collect();
    let mut candidates = candidates;
    candidates.retain(|(index, certainty)| {
        !old_set.contains(new[*index])
            && (*certainty != Certainty::Possible || !stub::is_stub_body(text, &new[..*index]))
    });
    let is_candidate = |index: usize| candidates.iter().any(|(at, _)| *at == index);
    for (old_range, new_range) in joined_hunks(&old, &new) {
        let removed: Vec<&str> = old[old_range]
            .iter()
            .copied()
            .filter(|line| has_words(line) && !new_set.contains(*line))
            .filter(|line| phrase::classify(line, kind).is_none())
            .collect();
        // One comment may replace another. That loses no code.
        let removed = match removed.as_slice() {
            [only] if is_comment(only, kind) => 0,
            removed => removed.len(),
        };
        let added = new_range
            .clone()
            .filter(|index| has_words(new[*index]) && !is_candidate(*index))
            .filter(|index| !old_set.contains(new[*index]))
            .count();
        let placeholder = candidates.iter().find(|(index, certainty)| {
            new_range.contains(index)
                && match certainty {
                    Certainty::Certain => removed > 0,
                    Certainty::Likely => removed > added,
                    Certainty::IfAlone => removed > 0 && added == 0,
                    Certainty::Possible => removed > added && removed > 1,
                }
        });
        if let Some((index, _)) = placeholder {
            return Some(new[*index]);
        }
    }
    None
}

/// Whether a line has letters or digits. A line without them, such as a closing bracket, is not worth protecting.
fn has_words(line: &str) -> bool {
    line.contains(char::is_alphanumeric)
}

/// Returns the changed ranges of two texts. Changes with nothing but blank lines and brackets between them are joined.
fn joined_hunks(old: &[&str], new: &[&str]) -> Vec<(Range<usize>, Range<usize>)> {
    let mut joined: Vec<(Range<usize>, Range<usize>)> = Vec::new();
    for hunk in diff::hunks(old, new) {
        match joined.last_mut() {
            Some((last_old, last_new))
                if !old[last_old.end..hunk.old.start].iter().any(|line| has_words(line)) =>
            {
                last_old.end = hunk.old.end;
                last_new.end = hunk.new.end;
            }
            Some(_) | None => joined.push((hunk.old, hunk.new)),
        }
    }
    joined
}
