//! Drops errors that are likely caused by the grammar, not by the text.

use super::{Language, LocatedError, SyntaxErrorKind};
use crate::shell::{self, DoubtKind, ShellContext};

pub(super) fn drop_false_positives(language: Language, text: &str, errors: &mut Vec<LocatedError>) {
    match language {
        Language::Bash => {
            if !errors.is_empty() && !is_refused_by_shell_parser(text) {
                errors.clear();
            }
        }
        Language::C | Language::Cpp => {
            // Code with macros confuses the grammar. Two kinds of errors are reliable: brackets if they are unbalanced,
            // and otherwise missing semicolons after statements that cannot be macros.
            let has_balanced_brackets = has_balanced_brackets(text);
            errors.retain(|located| {
                if has_balanced_brackets {
                    lacks_semicolon(text, located)
                } else {
                    is_bracket(&located.error.kind)
                }
            });
        }
        // The grammar does not support `()` as a type in a `where` clause.
        Language::Rust => errors.retain(|located| match &located.error.kind {
            SyntaxErrorKind::Missing(what) => what != "type_identifier",
            SyntaxErrorKind::Unexpected(_) => true,
        }),
        Language::Go
        | Language::Java
        | Language::JavaScript
        | Language::Json
        | Language::JsonWithComments
        | Language::Python
        | Language::Ruby
        | Language::Tsx
        | Language::TypeScript
        | Language::Yaml => {}
    }
}

/// Whether our own shell parser refuses a script too. The bash grammar reports errors in many valid scripts.
fn is_refused_by_shell_parser(text: &str) -> bool {
    let script = shell::analyze(text, &ShellContext::default());
    script.doubts.iter().any(|doubt| doubt.kind == DoubtKind::Syntax)
}

/// Whether an error is a missing semicolon after a statement that cannot be a macro. Macros look like extra words and
/// missing semicolons, because the preprocessor is not run.
fn lacks_semicolon(text: &str, located: &LocatedError) -> bool {
    let before = text.get(..located.byte).unwrap_or(text);
    let line = before.lines().next_back().unwrap_or("").trim_start();
    let is_jump =
        ["return ", "break", "continue", "goto "].iter().any(|word| line.starts_with(word));
    let is_assignment = line.contains(" = ") && !line.contains(['#', '@']);
    located.error.kind == SyntaxErrorKind::Missing(";".to_string()) && (is_jump || is_assignment)
}

fn is_bracket(kind: &SyntaxErrorKind) -> bool {
    let (SyntaxErrorKind::Missing(what) | SyntaxErrorKind::Unexpected(what)) = kind;
    matches!(what.as_str(), "}" | ")" | "]")
}

/// Whether all kinds of brackets are balanced, outside strings and comments.
fn has_balanced_brackets(text: &str) -> bool {
    let mut depth = [0_isize; 3];
    let mut rest = text.bytes().peekable();
    while let Some(byte) = rest.next() {
        match byte {
            b'(' => depth[0] += 1,
            b')' => depth[0] -= 1,
            b'[' => depth[1] += 1,
            b']' => depth[1] -= 1,
            b'{' => depth[2] += 1,
            b'}' => depth[2] -= 1,
            b'/' if rest.peek() == Some(&b'/') => {
                rest.by_ref().find(|byte| *byte == b'\n');
            }
            b'/' if rest.peek() == Some(&b'*') => {
                let mut previous = 0;
                rest.by_ref()
                    .find(|byte| std::mem::replace(&mut previous, *byte) == b'*' && *byte == b'/');
            }
            quote @ (b'"' | b'\'') => {
                while let Some(inner) = rest.next() {
                    match inner {
                        b'\\' => drop(rest.next()),
                        b'\n' => break,
                        other if other == quote => break,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    depth == [0; 3]
}
