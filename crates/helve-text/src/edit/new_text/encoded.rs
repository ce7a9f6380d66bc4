//! Finds characters that were encoded for another place: HTML entities in code, and escaped backquotes.

use super::NewText;
use crate::edit::interpretation::inner_escapes::is_in_string;
use crate::edit::nearest::entities::{decode, first_entity};
use crate::edit::placeholder::is_comment;
use crate::edit::text_kind::TextKind;

/// Returns the first line with an entity where the old text has the character: `n-&gt;next` for `n->name`.
pub(super) fn find_entities<'a>(text: &NewText<'a>) -> Option<&'a str> {
    let is_possible = match text.kind {
        TextKind::Code | TextKind::Python | TextKind::PythonStub | TextKind::Data => true,
        TextKind::Markup | TextKind::Prose | TextKind::Unknown => false,
    };
    if !is_possible
        || !text.new.contains('&')
        || text.is_whole_file()
        || decode(text.old) != text.old
    {
        return None;
    }
    let line =
        text.new.lines().find(|line| !is_comment(line, text.kind) && is_encoded(text, line))?;
    // Code with tags may have text with entities.
    let may_be_text =
        text.file.contains("</") || text.kind != TextKind::Data && text.is_in_comment();
    (!may_be_text).then_some(line)
}

/// Whether the first entity of a line stands for a character that the old text has in the same place.
fn is_encoded(text: &NewText<'_>, line: &str) -> bool {
    let Some((at, entity, plain)) = first_entity(line) else { return false };
    let (before, after) = (&line[..at], decode(&line[at + entity.len()..]));
    // In data, text may have entities, but quotes belong to the syntax.
    let may_be_text = text.kind == TextKind::Data && !matches!(plain, "\"" | "'")
        || is_in_string(before, &after)
        || ["//", "/*", " # "].iter().any(|comment| before.contains(comment));
    let count = |text: &str| text.matches(plain).count();
    let near_before: String =
        before.chars().skip(before.chars().count().saturating_sub(2)).collect();
    let near_after: String = after.chars().take(2).collect();
    let is_in_old = |near: &str| near.trim().len() > plain.len() && text.old.contains(near);
    !may_be_text
        && count(text.new) < count(text.old)
        && (is_in_old(&format!("{near_before}{plain}"))
            || is_in_old(&format!("{plain}{near_after}")))
}

/// Returns the first line with escaped backquotes, if the new text escapes all of them and the old text none.
pub(super) fn find_escaped_backquotes<'a>(text: &NewText<'a>) -> Option<&'a str> {
    let count = |text: &str, searched: &str| text.matches(searched).count();
    let is_possible = match text.kind {
        TextKind::Code | TextKind::Markup => !text.file.starts_with("#!"),
        TextKind::Python
        | TextKind::PythonStub
        | TextKind::Prose
        | TextKind::Data
        | TextKind::Unknown => false,
    };
    let escaped = count(text.new, "\\`");
    if !is_possible
        || escaped < 2
        || escaped != count(text.new, "`")
        || count(text.old, "`") < 2
        || text.old.contains("\\`")
        || text.is_whole_file()
    {
        return None;
    }
    text.new.lines().find(|line| line.contains("\\`"))
}
