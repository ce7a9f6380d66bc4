//! Finds the two characters `\n` in a text where a line break is meant.

use memchr::memmem;

use super::NewText;
use crate::edit::interpretation::inner_escapes::{is_in_pattern, is_in_string};
use crate::edit::text_kind::TextKind;

/// Maximum number of escapes that are examined.
const MAX_EXAMINED: usize = 200;
/// Maximum length of the lines that are examined, in bytes.
const MAX_LINE: usize = 4096;

/// Returns the first line of the new text with a `\n` that seems to be meant as a line break.
pub(super) fn find(text: &NewText<'_>) -> Option<String> {
    let escapes =
        memmem::find_iter(text.new.as_bytes(), b"\\n").take(MAX_EXAMINED).collect::<Vec<_>>();
    if escapes.is_empty()
        || text.kind == TextKind::Prose && !text.is_whole_file()
        || text.old.contains("\\n")
    {
        return None;
    }
    let (last_line, mut full_line) = (text.new.rfind('\n').map_or(0, |at| at + 1), String::new());
    for at in escapes {
        let start = text.new[..at].rfind('\n').map_or(0, |at| at + 1);
        let end = text.new[at..].find('\n').map_or(text.new.len(), |end| at + end);
        if end - start > MAX_LINE || text.new[..at].ends_with('\\') {
            continue;
        }
        // The line as it will be in the file.
        full_line.clear();
        full_line.push_str(if start == 0 { text.before } else { "" });
        let offset = full_line.len();
        full_line.push_str(&text.new[start..end]);
        full_line.push_str(if start == last_line { text.after } else { "" });
        let (before, after) =
            (&full_line[..offset + at - start], &full_line[offset + at - start + 2..]);
        if is_line_break(text, before, after) {
            return Some(full_line[offset..].trim().to_owned());
        }
    }
    None
}

/// Whether an escape separates two lines of code. Escapes in strings and regular expressions do not.
fn is_line_break(text: &NewText<'_>, before: &str, after: &str) -> bool {
    if is_in_string(before, after) || is_in_pattern(before, after) {
        return false;
    }
    let line_before = before.rsplit("\\n").next().unwrap_or(before);
    let line_after = after.split("\\n").next().unwrap_or(after);
    let ends_statement = line_before.trim_end().ends_with([';', '{', '}', ',', ')']);
    let is_indented =
        after.starts_with("  ") || after.starts_with('\t') || after.starts_with("\\t");
    let old = text.old.trim();
    let repeats_old = old.len() > 3
        && !old.contains('\n')
        && (line_before.trim() == old || line_after.trim() == old);
    let holds_for_both =
        |test: fn(&str) -> bool| test(line_before.trim()) && test(line_after.trim());
    is_indented && !line_before.trim().is_empty()
        || ends_statement
            && (line_after
                .starts_with(|next: char| next.is_alphabetic() || "}])\"'#/@_$ ".contains(next)))
        || repeats_old && !line_before.trim().is_empty() && !line_after.trim().is_empty()
        || holds_for_both(is_statement)
}

/// Whether a piece of text looks like a statement: a name, then `=`, `(` or `:`.
fn is_statement(piece: &str) -> bool {
    let name =
        piece.find(|character: char| !character.is_alphanumeric() && !"_.-".contains(character));
    let Some(name) = name.filter(|name| *name > 0) else { return false };
    let rest = piece[name..].trim_start();
    rest.starts_with("= ")
        || rest.starts_with('(') && piece.ends_with(')')
        || rest.starts_with(": ")
}
