//! Finds a Markdown code fence around text for a file that has none.

use super::NewText;
use crate::edit::text_kind::TextKind;

const FENCES: [&str; 2] = ["```", "~~~"];

/// Returns the line that opens or closes the fence.
pub(super) fn find<'a>(text: &NewText<'a>) -> Option<&'a str> {
    match text.kind {
        TextKind::Prose | TextKind::Unknown => return find_around_document(text),
        TextKind::Code
        | TextKind::Python
        | TextKind::PythonStub
        | TextKind::Markup
        | TextKind::Data => {}
    }
    let new = text.new.trim_matches(['\n', '\r', ' ']);
    let first_line = new.lines().next()?;
    let last_line = new.lines().next_back()?.trim_start();
    let fence =
        FENCES.into_iter().find(|fence| first_line.starts_with(fence) || last_line == *fence)?;
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
        // An edit that only puts a fence around an example in a comment is intended.
        let is_intended = inner(new).trim() == text.old.trim() && text.is_in_comment();
        return (!is_intended).then_some(first_line);
    }
    // A single fence may be half of a pair in a comment or a string.
    (!text.file.contains(fence)).then_some(if opens { first_line } else { last_line })
}

/// Returns the text between the first and the last line.
fn inner(text: &str) -> &str {
    let inner = text.split_once('\n').and_then(|(_, rest)| rest.rsplit_once('\n'));
    inner.map_or("", |(inner, _)| inner)
}

/// Finds a fence around the new content of an existing document that did not start with it: a model answers with
/// ```` ```markdown ````, perhaps after a sentence.
fn find_around_document<'a>(text: &NewText<'a>) -> Option<&'a str> {
    if !text.is_whole_file() || text.old.trim().is_empty() {
        return None;
    }
    let first_old_line = text.old.trim_start().lines().next()?;
    let mut new = text.new.trim();
    // A sentence such as `Here is the updated file:`.
    let first_line = new.lines().next()?;
    if first_line.ends_with(':') && first_line != first_old_line.trim() {
        new = new[first_line.len()..].trim_start();
    }
    let opening = new.lines().next()?;
    let fence = &opening[..opening.len() - opening.trim_start_matches(['`', '~']).len()];
    let is_closed = new.lines().next_back().is_some_and(|last| last == fence);
    if !FENCES.iter().any(|known| fence.starts_with(known))
        || !is_opening(opening, fence)
        || !is_closed
        || opening == first_old_line.trim()
    {
        return None;
    }
    let language = opening[fence.len()..].trim().to_ascii_lowercase();
    let is_markdown = matches!(language.as_str(), "markdown" | "md" | "mdx");
    let starts_like_old = || inner(new).trim_start().lines().next() == Some(first_old_line);
    (is_markdown && is_closed_at_end(new, fence) || starts_like_old()).then_some(opening)
}

/// Whether the fence in the first line is closed by the last line rather than earlier. A line with a language opens
/// another fence.
fn is_closed_at_end(text: &str, fence: &str) -> bool {
    let mut open = 0_usize;
    let closing = text.lines().map(str::trim).position(|line| {
        match line.strip_prefix(fence) {
            Some("") => open -= 1,
            Some(_) if is_opening(line, fence) => open += 1,
            Some(_) | None => {}
        }
        open == 0
    });
    closing.map(|line| line + 1) == Some(text.lines().count())
}

/// Whether a line opens a fence: the fence, then at most one word.
fn is_opening(line: &str, fence: &str) -> bool {
    line.strip_prefix(fence).is_some_and(|language| {
        let language = language.trim_end();
        !language.contains(char::is_whitespace) && !language.contains('`')
    })
}
