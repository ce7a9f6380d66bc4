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
    let first = new.lines().next()?;
    let last = new.lines().next_back()?;
    let fence =
        ["```", "~~~"].into_iter().find(|fence| first.starts_with(fence) || last == *fence)?;
    let (opens, closes) = (is_opening(first, fence), last == fence && new.lines().count() > 1);
    if !opens && !closes {
        return None;
    }
    let is_quoted = |line: &str| text.old.lines().any(|old| old.trim() == line.trim());
    if opens && is_quoted(first) || closes && !opens && is_quoted(last) {
        return None;
    }
    if opens && closes {
        let inner = new.split_once('\n').and_then(|(_, rest)| rest.rsplit_once('\n'));
        let inner = inner.map_or("", |(inner, _)| inner);
        // The edit does nothing but add the fence.
        let is_wrapped = !text.old.trim().is_empty() && inner.trim() == text.old.trim();
        return (!is_wrapped).then_some(first);
    }
    // A single fence may be half of a pair in a comment or a string.
    (!text.file.contains(fence)).then_some(if opens { first } else { last })
}

/// Whether a line opens a fence: the fence, then at most one word.
fn is_opening(line: &str, fence: &str) -> bool {
    line.strip_prefix(fence).is_some_and(|language| {
        let language = language.trim_end();
        !language.contains(char::is_whitespace) && !language.contains('`')
    })
}
