//! Bracket expressions like `[a-z]` in patterns, as far as all regex dialects agree on where they end.

/// Returns the length of a bracket expression after its `[`, including the `]`. Returns `None` if regex
/// dialects differ on where it ends. They differ if it contains the delimiter: `/[/]/`.
pub(super) fn length(rest: &str, delimiter: char) -> Option<usize> {
    let start = rest.strip_prefix('^').unwrap_or(rest);
    let inner = start.strip_prefix(']').unwrap_or(start);
    // In some dialects, `[\]` and `[[:alpha:]` are complete expressions. If a `[` follows, as in `[\][`, it opens a
    // new expression in those dialects only. `[][` is no problem: even if a dialect opens a new expression at the
    // second `[`, all dialects end at the next `]`.
    let mut some_dialect_closed = false;
    let mut at = rest.len() - inner.len();
    while let Some(c) = rest[at..].chars().next() {
        at += c.len_utf8();
        match c {
            ']' => return Some(at),
            '\n' => return None,
            c if c == delimiter => return None,
            '\\' => {
                let escaped = rest[at..].chars().next()?;
                if escaped == delimiter {
                    return None;
                }
                some_dialect_closed |= escaped == ']';
                at += escaped.len_utf8();
            }
            '[' if rest[at..].starts_with([':', '.', '=']) => {
                at += class_length(&rest[at..], delimiter)?;
                some_dialect_closed = true;
            }
            '[' if some_dialect_closed => return None,
            _ => {}
        }
    }
    None
}

/// Returns the length of a character class like `:alpha:]`.
fn class_length(rest: &str, delimiter: char) -> Option<usize> {
    let kind = rest.chars().next()?;
    let end = rest[1..].find(']')? + 1;
    let name = rest[1..end].strip_suffix(kind)?;
    let is_plain =
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() && c != delimiter);
    is_plain.then_some(end + 1)
}

#[cfg(test)]
mod tests {
    use super::length;

    #[test]
    fn bracket_expressions_are_measured() {
        let check = |rest: &str, expected: Option<usize>| {
            assert_eq!(length(rest, '/'), expected, "{rest}");
        };
        check("a-z]*", Some(4));
        check("]a]x", Some(3));
        check("^]]x", Some(3));
        check("^[]x", Some(3));
        check("[:alpha:]_]x", Some(11));
        check("^\\]]x", Some(4));
        check("a/]", None);
        check("]/]", None);
        check("[:alpha:]/]", None);
        check("[=a=]/]", None);
        check("[:alpha:][]/]", None);
        check("\\][]/]", None);
        check("][]/]", Some(3));
        check("^][]/", Some(4));
        check("][a]/", Some(4));
        check("][/]", None);
        check("]\\][/]", None);
        check("][:alpha:][]/]", None);
        check("[:al/pha:]]", None);
        check("a\\/]", None);
        check("a", None);
        check("a\n]", None);
    }
}
