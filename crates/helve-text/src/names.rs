//! Displays file names on one line, even if they contain arbitrary bytes, and parses the displayed form without loss.

use std::borrow::Cow;

use crate::visible::is_invisible;

/// Displays one name. A name with invisible characters or invalid UTF-8 is quoted with escapes: `"a\nb"`, `"\xff"`.
pub fn show(name: &[u8]) -> Cow<'_, str> {
    match str::from_utf8(name) {
        Ok(plain) if !plain.contains(is_invisible) && !looks_quoted(plain) => Cow::Borrowed(plain),
        Ok(_) | Err(_) => Cow::Owned(quote(name)),
    }
}

/// Displays a path, with each component as in [`show`].
pub fn show_path(path: &[u8]) -> Cow<'_, str> {
    match str::from_utf8(path) {
        Ok(plain) if !plain.contains(is_invisible) && !plain.split('/').any(looks_quoted) => {
            Cow::Borrowed(plain)
        }
        Ok(_) | Err(_) => {
            let names: Vec<_> = path.split(|byte| *byte == b'/').map(show).collect();
            Cow::Owned(names.join("/"))
        }
    }
}

/// Parses a path as displayed by [`show_path`]. Any other text is taken as it is.
pub fn parse_path(text: &str) -> Cow<'_, [u8]> {
    if !text.split('/').any(looks_quoted) {
        return Cow::Borrowed(text.as_bytes());
    }
    let names: Vec<_> = text.split('/').map(parse).collect();
    Cow::Owned(names.join(&b'/'))
}

fn parse(text: &str) -> Cow<'_, [u8]> {
    // Only the form that `show` writes is accepted, so that escapes cannot hide `..` or a slash.
    match unquote(text).filter(|name| show(name) == text) {
        Some(name) => Cow::Owned(name),
        None => Cow::Borrowed(text.as_bytes()),
    }
}

fn looks_quoted(text: &str) -> bool {
    text.len() > 2 && text.starts_with('"') && text.ends_with('"') && text.contains('\\')
}

fn quote(name: &[u8]) -> String {
    let mut text = String::from("\"");
    for chunk in name.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '"' => text.push_str("\\\""),
                '\\' => text.push_str("\\\\"),
                '\n' => text.push_str("\\n"),
                '\r' => text.push_str("\\r"),
                '\t' => text.push_str("\\t"),
                c if c.is_ascii_control() => text.push_str(&format!("\\x{:02x}", u32::from(c))),
                c if is_invisible(c) => text.extend(c.escape_unicode()),
                c => text.push(c),
            }
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text + "\""
}

fn unquote(text: &str) -> Option<Vec<u8>> {
    let mut rest = text.strip_prefix('"')?.strip_suffix('"')?;
    let mut name = Vec::new();
    while let Some((plain, escape)) = rest.split_once('\\') {
        name.extend_from_slice(plain.as_bytes());
        let kind = escape.chars().next()?;
        rest = &escape[kind.len_utf8()..];
        match kind {
            '"' | '\\' => name.push(u8::try_from(kind).ok()?),
            'n' => name.push(b'\n'),
            'r' => name.push(b'\r'),
            't' => name.push(b'\t'),
            'x' => {
                name.push(u8::from_str_radix(rest.get(..2)?, 16).ok()?);
                rest = &rest[2..];
            }
            'u' => {
                let (digits, after) = rest.strip_prefix('{')?.split_once('}')?;
                let c = char::from_u32(u32::from_str_radix(digits, 16).ok()?)?;
                name.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                rest = after;
            }
            _ => return None,
        }
    }
    name.extend_from_slice(rest.as_bytes());
    Some(name)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_displayed_on_one_line() {
        let check = |name: &[u8], shown: &str| {
            assert_eq!(show_path(name), shown);
            assert_eq!(parse_path(shown), name, "{shown}");
        };
        check(b"src/main.rs", "src/main.rs");
        check("a b'c\"d\\e/ü".as_bytes(), "a b'c\"d\\e/ü");
        check(b"a\nb.txt", r#""a\nb.txt""#);
        check(b"src/\x1b]0;x\x07/a", r#"src/"\x1b]0;x\x07"/a"#);
        check(b"\xff\xfe", r#""\xff\xfe""#);
        check(b"caf\xe9 \"1\"", r#""caf\xe9 \"1\"""#);
        check("rlo\u{202e}.txt".as_bytes(), r#""rlo\u{202e}.txt""#);
        check(br#""a\nb""#, r#""\"a\\nb\"""#);
        check(br#""plain""#, r#""plain""#);
    }

    #[test]
    fn text_that_is_not_quoted_like_a_displayed_name_stands_for_itself() {
        for text in [r#""\x2e\x2e""#, r#""a\x2fb""#, r#""\u{1b}""#, r#""a\q""#, r#""\""#] {
            assert_eq!(parse_path(text), text.as_bytes());
        }
    }

    proptest! {
        #[test]
        fn any_path_round_trips(path in proptest::collection::vec(any::<u8>(), 0..40)) {
            let shown = show_path(&path);
            prop_assert!(!shown.contains(char::is_control));
            let parsed = parse_path(&shown);
            prop_assert_eq!(&parsed[..], &path[..]);
        }

        #[test]
        fn any_text_parses_as_a_path(text in "[\"\\\\/a-fnx0-9{}u.]{0,12}") {
            let path = parse_path(&text);
            let again = parse_path(&show_path(&path)).into_owned();
            prop_assert_eq!(&again[..], &path[..]);
        }
    }
}
