//! Finds the two characters `\n` in a text where a line break is meant.

use std::collections::HashSet;

use memchr::memmem;

use super::NewText;
use crate::edit::interpretation::inner_escapes::{is_in_pattern, is_in_string};
use crate::edit::text_kind::TextKind;

/// Maximum number of escapes that are examined.
const MAX_EXAMINED: usize = 200;
/// Maximum length of the lines that are examined, in bytes.
const MAX_LINE: usize = 4096;

/// Commands of TeX that start with `n`. Raw strings of other languages have them too.
const TEX_COMMANDS: &[&str] = &[
    "nabla", "name", "nearrow", "neg", "neq", "nexists", "ngeq", "nleq", "nmid", "nocite", "node",
    "noindent", "nolimits", "nonumber", "norm", "not", "notag", "notin", "nu", "num",
];

/// Returns the first line of the new text with a `\n` that seems to be meant as a line break.
pub(super) fn find(text: &NewText<'_>) -> Option<String> {
    // Most texts have no such characters.
    memmem::find(text.new.as_bytes(), b"\\n")?;
    let found = find_joined_lines(text)
        .or_else(|| text.new.trim().lines().next().filter(|_| is_escaped_file(text)));
    if let Some(line) = found {
        return Some(line.trim().to_owned());
    }
    if text.kind == TextKind::Prose && !text.is_whole_file() {
        return None;
    }
    let line = find_line(text, text.new)?;
    // A text that has such escapes outside strings already may have more of them.
    find_line(text, text.old).is_none().then_some(line)
}

/// Returns the first new line in which a `\n` joins lines of the old text.
fn find_joined_lines<'a>(text: &NewText<'a>) -> Option<&'a str> {
    let old: HashSet<&str> =
        text.old.lines().map(str::trim).filter(|line| line.len() >= MIN_LINE).collect();
    let is_joined = |line: &str| {
        let pieces: HashSet<&str> =
            line.split("\\n").map(str::trim).filter(|piece| old.contains(piece)).collect();
        pieces.len() > 1
    };
    text.new.lines().find(|line| !old.contains(line.trim()) && is_joined(line))
}

/// Minimum length of a line that is recognized between two escapes, in bytes.
const MIN_LINE: usize = 4;

/// Whether the new text is a whole file on one line, with a `\n` for each line break.
fn is_escaped_file(text: &NewText<'_>) -> bool {
    let new = text.new.trim();
    if !text.is_whole_file() || new.contains('\n') {
        return false;
    }
    let breaks: Vec<usize> = memmem::find_iter(new.as_bytes(), b"\\n")
        .take(MAX_EXAMINED)
        .filter(|at| {
            let (before, after) = (&new[..*at], &new[at + 2..]);
            !before.ends_with('\\')
                && !is_mentioned(before, after)
                && !is_tex_command(text, &new[at + 1..])
                && !is_in_string(before, after)
                && !is_in_pattern(before, after)
        })
        .collect();
    let has_blank_line = || breaks.windows(2).any(|pair| pair[0] + 2 == pair[1]);
    let ends_with_break = || breaks.last().is_some_and(|last| last + 2 == new.len());
    breaks.len() > 2 && has_blank_line() || breaks.len() > 1 && ends_with_break()
}

/// Whether an escape between these texts is a word of a sentence: `Write \n for a line break.`
fn is_mentioned(before: &str, after: &str) -> bool {
    let before = before.trim_end_matches("\\n");
    let after = after.trim_start_matches("\\n");
    let stands_apart =
        |character: char| character.is_whitespace() || "\"'`()[],.;:/".contains(character);
    before.chars().next_back().is_none_or(|last| stands_apart(last) && !".:;".contains(last))
        && after.chars().next().is_some_and(stands_apart)
}

/// Returns the first line of the old or new text with a `\n` that separates two lines of code.
fn find_line(text: &NewText<'_>, examined: &str) -> Option<String> {
    let last_line = examined.rfind('\n').map_or(0, |at| at + 1);
    let mut full_line = String::new();
    for at in memmem::find_iter(examined.as_bytes(), b"\\n").take(MAX_EXAMINED) {
        let start = examined[..at].rfind('\n').map_or(0, |at| at + 1);
        let end = examined[at..].find('\n').map_or(examined.len(), |end| at + end);
        if end - start > MAX_LINE
            || examined[..at].ends_with('\\')
            || is_tex_command(text, &examined[at + 1..end])
        {
            continue;
        }
        // The line as it will be in the file.
        full_line.clear();
        full_line.push_str(if start == 0 { text.before } else { "" });
        let offset = full_line.len();
        full_line.push_str(&examined[start..end]);
        full_line.push_str(if start == last_line { text.after } else { "" });
        let (before, after) =
            (&full_line[..offset + at - start], &full_line[offset + at - start + 2..]);
        if is_line_break(text, before, after) {
            return Some(full_line[offset..].trim().to_owned());
        }
    }
    None
}

/// Whether the text after a backslash begins with the name of a TeX command.
fn is_tex_command(text: &NewText<'_>, after_backslash: &str) -> bool {
    let name = letters(after_backslash);
    TEX_COMMANDS.contains(&name) || name.starts_with("new") || name.len() > 1 && is_tex(text)
}

/// Whether the new text has commands of TeX. Then any name after a backslash may be one.
fn is_tex(text: &NewText<'_>) -> bool {
    let is_command = |at: usize| {
        let name = letters(&text.new[at + 1..]);
        name.starts_with("newcommand")
            || name == "begin"
            || text.kind == TextKind::Prose && name.len() > 1 && !name.starts_with(['n', 't', 'r'])
    };
    text.new.match_indices('\\').any(|(at, _)| is_command(at))
}

/// Returns the letters at the start of a text.
fn letters(text: &str) -> &str {
    &text[..text.bytes().take_while(u8::is_ascii_alphabetic).count()]
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
