//! Faults that are more likely the grammar's than the text's are dropped.

use super::{FaultKind, Language, Spot};
use crate::shell::{self, DoubtKind, ShellContext};

pub(super) fn keep_certain(language: Language, text: &str, spots: &mut Vec<Spot>) {
    match language {
        Language::Bash => {
            if !spots.is_empty() && !refused_by_our_reader(text) {
                spots.clear();
            }
        }
        Language::C | Language::Cpp => {
            let balanced = balanced(text);
            spots.retain(|spot| {
                if balanced {
                    unfinished_statement(text, spot)
                } else {
                    is_bracket(&spot.fault.kind)
                }
            });
        }
        // The grammar misses `()` as a type in a `where` clause.
        Language::Rust => spots.retain(|spot| match &spot.fault.kind {
            FaultKind::Missing(what) => what != "type_identifier",
            FaultKind::Unexpected(_) => true,
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

/// The grammar stumbles over much that a shell reads; what both readers refuse is wrong.
fn refused_by_our_reader(text: &str) -> bool {
    let script = shell::analyze(text, &ShellContext::default());
    script.doubts.iter().any(|doubt| doubt.kind == DoubtKind::Syntax)
}

/// Without the preprocessor, macros look like words too many and semicolons too few. Where brackets match, only a
/// statement that no macro could be is believed to lack its semicolon.
fn unfinished_statement(text: &str, spot: &Spot) -> bool {
    let before = text.get(..spot.byte).unwrap_or(text);
    let line = before.lines().next_back().unwrap_or("").trim_start();
    let jumps = ["return ", "break", "continue", "goto "].iter().any(|word| line.starts_with(word));
    let assigns = line.contains(" = ") && !line.contains(['#', '@']);
    spot.fault.kind == FaultKind::Missing(";".to_string()) && (jumps || assigns)
}

fn is_bracket(kind: &FaultKind) -> bool {
    let (FaultKind::Missing(what) | FaultKind::Unexpected(what)) = kind;
    matches!(what.as_str(), "}" | ")" | "]")
}

/// Whether as many brackets of each kind close as open, strings and comments aside.
fn balanced(text: &str) -> bool {
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
                let mut last = 0;
                rest.by_ref()
                    .find(|byte| std::mem::replace(&mut last, *byte) == b'*' && *byte == b'/');
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
