//! Parses file names in diffs: quoted, prefixed, or followed by a timestamp.

/// A file name in a diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DiffName {
    /// `/dev/null`: the file does not exist on this side.
    DevNull,
    File(String),
}

/// Why a name is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BadDiffName {
    Empty,
    /// An invalid escape, a missing closing quote, or a NUL character.
    Quoting,
}

/// Parses the name after `---`, `+++`, `rename from` and the like. Text after a tab is a timestamp.
pub(super) fn parse_name(text: &str) -> Result<DiffName, BadDiffName> {
    let text = text.trim_start();
    let name = match text.strip_prefix('"') {
        Some(quoted) => unquote(quoted).ok_or(BadDiffName::Quoting)?.0,
        None => text.split('\t').next().unwrap_or_default().trim_end().to_owned(),
    };
    match name.as_str() {
        "" => Err(BadDiffName::Empty),
        "/dev/null" => Ok(DiffName::DevNull),
        name if name.contains('\0') => Err(BadDiffName::Quoting),
        _ => Ok(DiffName::File(name)),
    }
}

/// Splits the two names after `diff --git`. Unquoted names can be split only if they are the same.
pub(super) fn split_git_names(text: &str) -> Option<(String, String)> {
    if let Some(quoted) = text.strip_prefix('"') {
        let (old, rest) = unquote(quoted)?;
        let rest = rest.strip_prefix(' ')?;
        let new = match rest.strip_prefix('"') {
            Some(quoted) => unquote(quoted)?.0,
            None => rest.to_owned(),
        };
        return Some((old, new));
    }
    if let Some((old, quoted)) = text.split_once(" \"") {
        return Some((old.to_owned(), unquote(quoted)?.0));
    }
    let mut gaps = text.match_indices(' ').map(|(gap, _)| (&text[..gap], &text[gap + 1..]));
    let (old, new) = gaps.find(|(old, new)| match strip_prefixes(old, new) {
        Some((old, new)) => old == new,
        None => old == new,
    })?;
    Some((old.to_owned(), new.to_owned()))
}

/// Returns both names without git's prefixes (`a/` and `b/`), or `None` if they do not have them.
pub(super) fn strip_prefixes<'a>(old: &'a str, new: &'a str) -> Option<(&'a str, &'a str)> {
    let (before, old) = old.split_once('/')?;
    let (after, new) = new.split_once('/')?;
    // `a` and `b`, or the initials of commit, index, object and work tree.
    let is_pair = matches!(
        (before, after),
        ("a", "b") | ("b", "a") | ("c" | "i" | "o", "i" | "o" | "w") | ("w", "c" | "i")
    );
    (is_pair && before != after).then_some((old, new))
}

/// Parses a quoted name after its opening quote. Returns the name, and the text after the closing quote. Bytes above
/// ASCII are written in octal.
fn unquote(text: &str) -> Option<(String, &str)> {
    let mut bytes = Vec::new();
    let mut rest = text;
    loop {
        let special_at = rest.find(['"', '\\'])?;
        bytes.extend_from_slice(&rest.as_bytes()[..special_at]);
        let after = &rest[special_at + 1..];
        if rest.as_bytes()[special_at] == b'"' {
            return Some((String::from_utf8(bytes).ok()?, after));
        }
        let (byte, length) = parse_escape(after.as_bytes())?;
        bytes.push(byte);
        rest = &after[length..];
    }
}

/// Returns the byte that an escape stands for, and its length without the backslash.
fn parse_escape(after: &[u8]) -> Option<(u8, usize)> {
    let byte = match after.first()? {
        b'a' => 7,
        b'b' => 8,
        b't' => b'\t',
        b'n' => b'\n',
        b'v' => 11,
        b'f' => 12,
        b'r' => b'\r',
        byte @ (b'"' | b'\\') => *byte,
        b'0'..=b'3' => {
            let digits = after
                .get(..3)
                .filter(|digits| digits.iter().all(|digit| matches!(digit, b'0'..=b'7')))?;
            return Some((digits.iter().fold(0, |byte, digit| byte << 3 | (digit - b'0')), 3));
        }
        _ => return None,
    };
    Some((byte, 1))
}

#[cfg(test)]
mod tests {
    use super::{BadDiffName, DiffName, parse_name, split_git_names, strip_prefixes};

    #[test]
    fn names_are_parsed() {
        let file = |name: &str| Ok(DiffName::File(name.to_owned()));
        for (text, expected) in [
            ("a/x.rs", file("a/x.rs")),
            ("x y.rs\t2024-01-01 10:00:00 +0100", file("x y.rs")),
            ("with space\t", file("with space")),
            (r#""a/\303\251\t\"\\.txt""#, file("a/é\t\"\\.txt")),
            (r#""x"	2024-01-01"#, file("x")),
            ("/dev/null", Ok(DiffName::DevNull)),
            ("/dev/null\t1970-01-01", Ok(DiffName::DevNull)),
            ("", Err(BadDiffName::Empty)),
            (r#""open"#, Err(BadDiffName::Quoting)),
            (r#""\q""#, Err(BadDiffName::Quoting)),
            (r#""\400""#, Err(BadDiffName::Quoting)),
            (r#""\30""#, Err(BadDiffName::Quoting)),
            (r#""\000""#, Err(BadDiffName::Quoting)),
            (r#""\377""#, Err(BadDiffName::Quoting)),
            (r#""é\""#, Err(BadDiffName::Quoting)),
        ] {
            assert_eq!(parse_name(text), expected, "{text}");
        }
    }

    #[test]
    fn git_headers_are_split_into_two_names() {
        for (text, expected) in [
            ("a/x b/x", Some(("a/x", "b/x"))),
            ("a/x y b/x y", Some(("a/x y", "b/x y"))),
            ("x x", Some(("x", "x"))),
            ("i/x w/x", Some(("i/x", "w/x"))),
            (r#""a/\303\251" "b/\303\251""#, Some(("a/é", "b/é"))),
            (r#"a/x "b/\303\251""#, Some(("a/x", "b/é"))),
            ("a/x b/y", None),
            ("", None),
        ] {
            let expected =
                expected.map(|(old, new): (&str, &str)| (old.to_owned(), new.to_owned()));
            assert_eq!(split_git_names(text), expected, "{text}");
        }
        assert_eq!(strip_prefixes("a/x", "b/y"), Some(("x", "y")));
        assert_eq!(strip_prefixes("a/x", "a/x"), None);
        assert_eq!(strip_prefixes("old/x", "new/x"), None);
    }
}
