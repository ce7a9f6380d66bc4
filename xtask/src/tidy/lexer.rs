//! Which bytes of a Rust file are code, which comment, which text in quotes.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Code,
    Comment,
    /// Inside a string or character literal; its quotes are code.
    Quoted,
}

/// One class for each byte of `source`. Broken source gets some classes; it never fails.
pub(super) fn classify(source: &str) -> Vec<Class> {
    let bytes = source.as_bytes();
    let mut classes = Vec::with_capacity(bytes.len());
    while classes.len() < bytes.len() {
        let at = classes.len();
        let rest = &source.as_bytes()[at..];
        match rest {
            [b'/', b'/', ..] => extend(&mut classes, line_length(rest), Class::Comment),
            [b'/', b'*', ..] => extend(&mut classes, block_length(rest), Class::Comment),
            [b'"', ..] => quoted(&mut classes, 1, string_length(&rest[1..]), 1),
            [b'\'', ..] => match character_length(source, at + 1) {
                Some(length) => quoted(&mut classes, 1, length, 1),
                None => classes.push(Class::Code),
            },
            [first, ..] if is_word(*first) => word(&mut classes, rest),
            _ => classes.push(Class::Code),
        }
        classes.truncate(bytes.len());
    }
    classes
}

/// The source with everything but code blanked; every byte and line stays where it was.
pub(super) fn code_only(source: &str) -> String {
    let blanked = source.bytes().zip(classify(source)).map(|(byte, class)| match class {
        Class::Code => byte,
        Class::Comment | Class::Quoted if byte == b'\n' => byte,
        Class::Comment | Class::Quoted => b' ',
    });
    String::from_utf8_lossy(&blanked.collect::<Vec<_>>()).into_owned()
}

/// The identifiers and keywords of `code`, with their places.
pub(super) fn words(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let bytes = code.as_bytes();
        let start = at + bytes.get(at..)?.iter().position(|&byte| is_word(byte))?;
        let length = bytes[start..].iter().take_while(|&&byte| is_word(byte)).count();
        at = start + length;
        code.get(start..at).map(|word| (start, word))
    })
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

fn extend(classes: &mut Vec<Class>, length: usize, class: Class) {
    classes.extend(std::iter::repeat_n(class, length));
}

fn quoted(classes: &mut Vec<Class>, before: usize, inside: usize, after: usize) {
    extend(classes, before, Class::Code);
    extend(classes, inside, Class::Quoted);
    extend(classes, after, Class::Code);
}

/// A word, and the raw string that it may begin (`r"`, `br##"`).
fn word(classes: &mut Vec<Class>, rest: &[u8]) {
    let length = rest.iter().take_while(|&&byte| is_word(byte)).count();
    extend(classes, length, Class::Code);
    if !matches!(&rest[..length], b"r" | b"br" | b"cr") {
        return;
    }
    let hashes = rest[length..].iter().take_while(|&&byte| byte == b'#').count();
    if rest.get(length + hashes) == Some(&b'"') {
        let inside = &rest[length + hashes + 1..];
        let end =
            std::iter::once(b'"').chain(std::iter::repeat_n(b'#', hashes)).collect::<Vec<_>>();
        let inside =
            inside.windows(end.len()).position(|window| window == end).unwrap_or(inside.len());
        quoted(classes, hashes + 1, inside, end.len());
    }
}

fn line_length(rest: &[u8]) -> usize {
    rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len())
}

fn block_length(rest: &[u8]) -> usize {
    let mut depth = 0usize;
    let mut at = 0;
    while at < rest.len() {
        match &rest[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth.saturating_sub(1), at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

fn string_length(inside: &[u8]) -> usize {
    let mut at = 0;
    while at < inside.len() && inside[at] != b'"' {
        at += if inside[at] == b'\\' { 2 } else { 1 };
    }
    at.min(inside.len())
}

/// The length of what a character literal holds, if the quote before `at` begins one and not a lifetime.
fn character_length(source: &str, at: usize) -> Option<usize> {
    let inside = source.get(at..)?;
    let first = inside.chars().next()?;
    if first == '\\' {
        let closing = inside.char_indices().skip(2).find(|&(_, c)| c == '\'' || c == '\n')?;
        return (closing.1 == '\'').then_some(closing.0);
    }
    inside[first.len_utf8()..].starts_with('\'').then_some(first.len_utf8())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(source: &str, code: &str) {
        assert_eq!(code_only(source), code);
        assert_eq!(classify(source).len(), source.len());
    }

    #[test]
    fn comments_are_blank() {
        check("a // b\nc", "a     \nc");
        check("a /* b /* c */ d */ e", "a                   e");
        check("a /* open\nb", "a        \n ");
    }

    #[test]
    fn strings_are_blank_and_their_quotes_stay() {
        check(r#"f("a\"b", 1)"#, r#"f("    ", 1)"#);
        check(r####"f(r#"a"b"#, br"\")"####, r####"f(r#"   "#, br" ")"####);
        check("\"open\nb", "\"    \n ");
        check("r#type + r", "r#type + r");
    }

    #[test]
    fn characters_are_told_from_lifetimes() {
        check("x('\"', '\\'', 'é')", "x(' ', '  ', '  ')");
        check("fn f<'a>(x: &'a str) { \"q\" }", "fn f<'a>(x: &'a str) { \" \" }");
        check("'\\u{1F600}'", "'         '");
    }

    #[test]
    fn broken_source_keeps_its_length() {
        for source in ["'", "'\\", "\"\\", "r#\"", "/*", "é'é", "br###"] {
            assert_eq!(classify(source).len(), source.len(), "{source}");
            assert_eq!(code_only(source).lines().count(), source.lines().count());
        }
    }

    #[test]
    fn words_come_with_their_places() {
        assert_eq!(words("a::bc!(d_1)").collect::<Vec<_>>(), [(0, "a"), (3, "bc"), (7, "d_1")]);
    }
}
