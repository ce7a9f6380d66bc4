//! Bracket expressions in patterns, as far as all dialects agree on where they end.

/// Returns the length of a bracket expression after its `[`, including the `]`. Returns `None` if dialects differ,
/// which they do on a delimiter inside.
pub(super) fn length(rest: &str, delimiter: char) -> Option<usize> {
    let start = rest.strip_prefix('^').unwrap_or(rest);
    let inner = start.strip_prefix(']').unwrap_or(start);
    // If some dialects have already seen the end, another bracket would open a new expression only for them. After `[]`
    // this does not matter: a dialect that sees an end there sees the end of the other expression at the next `]` too.
    let mut closed_to_some = false;
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
                closed_to_some |= escaped == ']';
                at += escaped.len_utf8();
            }
            '[' if rest[at..].starts_with([':', '.', '=']) => {
                at += class(&rest[at..], delimiter)?;
                closed_to_some = true;
            }
            '[' if closed_to_some => return None,
            _ => {}
        }
    }
    None
}

/// Returns the length of a character class like `:alpha:]`.
fn class(rest: &str, delimiter: char) -> Option<usize> {
    let sign = rest.chars().next()?;
    let end = rest[1..].find(']')? + 1;
    let name = rest[1..end].strip_suffix(sign)?;
    let plain =
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() && c != delimiter);
    plain.then_some(end + 1)
}

#[cfg(test)]
mod tests {
    use super::length;

    #[test]
    fn where_brackets_end() {
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
