//! Finds a Markdown code fence around text for a file that is not Markdown.

use super::NewText;
use crate::edit::text_kind::TextKind;

/// Returns the line that opens or closes the fence.
pub(super) fn find<'a>(text: &NewText<'a>) -> Option<&'a str> {
    match text.kind {
        TextKind::Prose | TextKind::Unknown => return None,
        TextKind::Code | TextKind::Python | TextKind::Markup | TextKind::Data => {}
    }
    let new = text.new.trim_matches(['\n', '\r', ' ']);
    let first_line = new.lines().next()?;
    let last_line = new.lines().next_back()?;
    let fence = ["```", "~~~"]
        .into_iter()
        .find(|fence| first_line.starts_with(fence) || last_line == *fence)?;
    let (opens, closes) =
        (is_opening(first_line, fence), last_line == fence && new.lines().count() > 1);
    if !opens && !closes {
        return None;
    }
    let is_in_old_text = |line: &str| text.old.lines().any(|old| old.trim() == line.trim());
    if opens && is_in_old_text(first_line) || closes && !opens && is_in_old_text(last_line) {
        return None;
    }
    if opens && closes {
        let inner = new.split_once('\n').and_then(|(_, rest)| rest.rsplit_once('\n'));
        let inner = inner.map_or("", |(inner, _)| inner);
        // An edit that only puts a fence around the old text is intended.
        let only_adds_fence = !text.old.trim().is_empty() && inner.trim() == text.old.trim();
        return (!only_adds_fence).then_some(first_line);
    }
    // A single fence may be half of a pair in a comment or a string.
    (!text.file.contains(fence)).then_some(if opens { first_line } else { last_line })
}

/// Whether a line opens a fence: the fence, then at most one word.
fn is_opening(line: &str, fence: &str) -> bool {
    line.strip_prefix(fence).is_some_and(|language| {
        let language = language.trim_end();
        !language.contains(char::is_whitespace) && !language.contains('`')
    })
}
