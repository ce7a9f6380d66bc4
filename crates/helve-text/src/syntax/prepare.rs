//! Decides which texts can be checked, and prepares them.

use std::borrow::Cow;

use super::{Language, MAX_LENGTH};

/// Whether the grammar can check a text. Templates and texts that could crash the grammar's scanner are excluded.
pub(super) fn is_checkable(language: Language, text: &str) -> bool {
    // Grammars treat NUL as the end of the text.
    text.len() <= MAX_LENGTH
        && u32::try_from(text.len()).is_ok()
        && !text.contains('\0')
        && !is_template(text)
        && match language {
            Language::Bash => is_supported_shell(text),
            Language::JavaScript => !first_kilobyte(text).contains("@flow"),
            Language::Python => has_shallow_indentation(text),
            Language::Ruby => has_few_heredocs(text),
            // Qt translation files end in `.ts` too.
            Language::TypeScript => !text.trim_start().starts_with('<'),
            Language::Yaml => !text.lines().any(has_placeholder),
            Language::C
            | Language::Cpp
            | Language::Go
            | Language::Java
            | Language::Json
            | Language::JsonWithComments
            | Language::Rust
            | Language::Tsx => true,
        }
}

fn first_kilobyte(text: &str) -> &str {
    &text[..text.floor_char_boundary(1024)]
}

/// Whether any line is template syntax.
fn is_template(text: &str) -> bool {
    const STARTS: [&str; 6] = ["{%", "{{#", "{{/", "{{-", "<%", "%}"];
    text.lines().any(|line| STARTS.iter().any(|start| line.trim_start().starts_with(start)))
}

/// Whether a line has a template placeholder that YAML cannot parse: `{{` outside quotes and not part of `${{`.
fn has_placeholder(line: &str) -> bool {
    line.match_indices("{{").any(|(at, _)| {
        let before = &line[..at];
        !before.ends_with('$') && !before.contains(['"', '\''])
    })
}

/// Whether a script is for a supported shell. Scripts for other shells end in `.sh` too.
fn is_supported_shell(text: &str) -> bool {
    let Some(shebang) = text.lines().next().filter(|line| line.starts_with("#!")) else {
        return true;
    };
    let program = shebang.split(['/', ' ']).rfind(|word| word.ends_with("sh"));
    matches!(program, Some("sh" | "bash" | "dash" | "ash"))
}

/// Whether indentation is shallow enough for Python's scanner, which stores one entry per level in a small buffer that
/// can overflow.
fn has_shallow_indentation(text: &str) -> bool {
    const MAX_INDENT: usize = 200;
    let mut blank_run = 0;
    let mut previous = '\n';
    text.chars().all(|c| {
        let continues =
            matches!(c, ' ' | '\t' | '\\' | '\r') || c == '\n' && matches!(previous, '\\' | '\r');
        blank_run = if continues { blank_run + 1 } else { 0 };
        previous = c;
        blank_run <= MAX_INDENT
    })
}

/// Whether here-documents are few and short enough for Ruby's scanner, which stores their delimiters in a small buffer
/// that can overflow.
fn has_few_heredocs(text: &str) -> bool {
    const MAX_DELIMITER: usize = 64;
    const MAX_IN_LINE: usize = 4;
    const MAX_NESTED: usize = 8;
    let mut nested = 0;
    let mut start = 0;
    text.split_inclusive('\n').all(|line| {
        let mut count = 0;
        for (at, _) in line.match_indices("<<") {
            let rest = text[start + at + 2..].trim_start_matches(['~', '-']);
            let length = match rest.chars().next() {
                Some(quote @ ('"' | '\'' | '`')) => rest[1..].find(quote).unwrap_or(rest.len()),
                Some(c) if c.is_alphanumeric() || c == '_' => {
                    rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
                }
                Some(_) | None => continue,
            };
            if length > MAX_DELIMITER {
                return false;
            }
            count += 1;
        }
        start += line.len();
        nested += usize::from(count > 0 && line.contains("#{"));
        count <= MAX_IN_LINE && nested <= MAX_NESTED
    })
}

/// Returns the text in a form that the grammar can parse, with unchanged byte offsets.
pub(super) fn prepare(language: Language, text: &str) -> Cow<'_, str> {
    match language {
        Language::JsonWithComments => Cow::Owned(without_trailing_commas(text)),
        Language::Bash
        | Language::C
        | Language::Cpp
        | Language::Go
        | Language::Java
        | Language::JavaScript
        | Language::Json
        | Language::Python
        | Language::Ruby
        | Language::Rust
        | Language::Tsx
        | Language::TypeScript
        | Language::Yaml => Cow::Borrowed(text),
    }
}

/// Replaces trailing commas with spaces. The JSON grammar supports comments, but not trailing commas.
fn without_trailing_commas(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    let mut comma = None;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let next = bytes.get(at + 1);
        let end = match (byte, next) {
            (b'"', _) => string_end(bytes, at),
            (b'/', Some(b'/')) => find_from(text, at, "\n"),
            (b'/', Some(b'*')) => find_from(text, at + 2, "*/"),
            _ => at + 1,
        };
        match byte {
            b',' => comma = Some(at),
            b'}' | b']' => {
                if let Some(comma) = comma.take() {
                    out.push_str(&text[copied..comma]);
                    out.push(' ');
                    copied = comma + 1;
                }
            }
            b'/' | b' ' | b'\t' | b'\r' | b'\n' => {}
            _ => comma = None,
        }
        at = end;
    }
    out.push_str(&text[copied..]);
    out
}

fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' | b'\n' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Returns the end of the first `what` from `from` on, or the end of the text.
fn find_from(text: &str, from: usize, what: &str) -> usize {
    let rest = text.as_bytes().get(from..).unwrap_or(&[]);
    memchr::memmem::find(rest, what.as_bytes())
        .map_or(text.len(), |found| from + found + what.len())
}
