//! Which texts can be checked, and how they are made ready for it.

use std::borrow::Cow;

use super::{LONGEST, Language};

pub(super) fn checkable(language: Language, text: &str) -> bool {
    // A grammar takes NUL for the end of the text.
    text.len() <= LONGEST
        && u32::try_from(text.len()).is_ok()
        && !text.contains('\0')
        && !template(text)
        && match language {
            Language::Bash => shell(text),
            Language::JavaScript => !head(text).contains("@flow"),
            Language::Python => shallow(text),
            Language::Ruby => few_documents(text),
            // Translations of Qt end in `.ts` too.
            Language::TypeScript => !text.trim_start().starts_with('<'),
            Language::Yaml => !text.lines().any(placeholder),
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

fn head(text: &str) -> &str {
    &text[..text.floor_char_boundary(1024)]
}

/// Lines that only a template engine understands.
fn template(text: &str) -> bool {
    const STARTS: [&str; 6] = ["{%", "{{#", "{{/", "{{-", "<%", "%}"];
    text.lines().any(|line| STARTS.iter().any(|start| line.trim_start().starts_with(start)))
}

/// A value to be filled in that YAML itself cannot read: `{{` outside quotes and not part of `${{`.
fn placeholder(line: &str) -> bool {
    line.match_indices("{{").any(|(at, _)| {
        let before = &line[..at];
        !before.ends_with('$') && !before.contains(['"', '\''])
    })
}

/// Other shells call their scripts `.sh` too.
fn shell(text: &str) -> bool {
    let Some(first) = text.lines().next().filter(|line| line.starts_with("#!")) else {
        return true;
    };
    let program = first.split(['/', ' ']).rfind(|word| word.ends_with("sh"));
    matches!(program, Some("sh" | "bash" | "dash" | "ash"))
}

/// The scanner of Python keeps one entry per level of indentation in a small buffer that it can overrun.
fn shallow(text: &str) -> bool {
    const DEEPEST: usize = 200;
    let mut run = 0;
    let mut last = '\n';
    text.chars().all(|c| {
        let goes_on =
            matches!(c, ' ' | '\t' | '\\' | '\r') || c == '\n' && matches!(last, '\\' | '\r');
        run = if goes_on { run + 1 } else { 0 };
        last = c;
        run <= DEEPEST
    })
}

/// The scanner of Ruby keeps the end words of open here-documents in a small buffer that it can overrun.
fn few_documents(text: &str) -> bool {
    const LONGEST_WORD: usize = 64;
    const IN_LINE: usize = 4;
    const INSIDE: usize = 8;
    let mut inside = 0;
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
            if length > LONGEST_WORD {
                return false;
            }
            count += 1;
        }
        start += line.len();
        inside += usize::from(count > 0 && line.contains("#{"));
        count <= IN_LINE && inside <= INSIDE
    })
}

/// The text as its grammar can read it, each byte at its place.
pub(super) fn prepared(language: Language, text: &str) -> Cow<'_, str> {
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

/// The grammar of JSON knows comments, but no comma before a closing bracket.
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

/// Where `what` ends, from `from` on; the end of the text without it.
fn find_from(text: &str, from: usize, what: &str) -> usize {
    let rest = text.as_bytes().get(from..).unwrap_or(&[]);
    memchr::memmem::find(rest, what.as_bytes())
        .map_or(text.len(), |found| from + found + what.len())
}
