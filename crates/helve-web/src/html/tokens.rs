//! Splits markup into tags and text.

use memchr::{memchr, memmem};

use super::tag::Tag;

/// How markup is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MarkupMode {
    Html,
    Xml,
}

/// A piece of markup. Texts are as in the source; character references are not yet decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    Start {
        name: &'a str,
        tag: Tag,
        attributes: &'a str,
        is_self_closing: bool,
    },
    End {
        name: &'a str,
    },
    Text(&'a str),
    /// Text without character references: a CDATA section, or the content of a script.
    RawText(&'a str),
    Comment(&'a str),
}

/// An attribute. Its value may contain character references.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attribute<'a> {
    pub(crate) name: &'a str,
    pub(crate) value: &'a str,
}

/// Iterates over the tokens of a document.
pub(crate) struct Tokens<'a> {
    source: &'a str,
    at: usize,
    mode: MarkupMode,
    /// The element whose content is text up to its end tag.
    raw: Option<&'a str>,
}

impl<'a> Tokens<'a> {
    pub(crate) fn new(source: &'a str, mode: MarkupMode) -> Self {
        Self { source, at: 0, mode, raw: None }
    }

    fn take_until(&mut self, end: usize) -> &'a str {
        let text = &self.source[self.at..end];
        self.at = end;
        text
    }

    /// Reads the content of a raw element, up to its end tag.
    fn read_raw_text(&mut self, name: &str) -> Option<Token<'a>> {
        let bytes = self.source.as_bytes();
        let mut from = self.at;
        let end = loop {
            let Some(found) = memmem::find(&bytes[from..], b"</") else { break bytes.len() };
            let start = from + found;
            let after = start + 2 + name.len();
            let is_name = bytes
                .get(start + 2..after)
                .is_some_and(|it| it.eq_ignore_ascii_case(name.as_bytes()));
            let name_ends = bytes
                .get(after)
                .is_none_or(|byte| matches!(byte, b'>' | b'/') || byte.is_ascii_whitespace());
            if is_name && name_ends {
                break start;
            }
            from = start + 2;
        };
        let text = self.take_until(end);
        // Titles and text areas may contain character references.
        let is_decoded = matches!(Tag::of(name), Tag::Title | Tag::Textarea);
        match text {
            "" => None,
            text if is_decoded => Some(Token::Text(text)),
            text => Some(Token::RawText(text)),
        }
    }

    /// Reads what starts with `<`; `None` if it is just text.
    fn read_markup(&mut self) -> Option<Token<'a>> {
        let rest = &self.source[self.at..];
        let bytes = rest.as_bytes();
        match bytes.get(1)? {
            b'!' | b'?' => Some(self.read_declaration(rest)),
            b'/' => {
                if !bytes.get(2)?.is_ascii_alphabetic() {
                    // `</>` and `</ x>` are dropped by browsers.
                    let end = memchr(b'>', bytes).map_or(bytes.len(), |at| at + 1);
                    self.at += end;
                    return Some(Token::Comment(""));
                }
                let name = tag_name(&rest[2..]);
                let end = 2 + tag_end(&rest[2..]);
                self.at += end;
                Some(Token::End { name })
            }
            first
                if first.is_ascii_alphabetic()
                    || self.mode == MarkupMode::Xml && *first == b'_' =>
            {
                let name = tag_name(&rest[1..]);
                let end = 1 + tag_end(&rest[1..]);
                self.at += end;
                let inside = rest[1 + name.len()..end].trim_end_matches('>');
                let is_self_closing = inside.ends_with('/');
                let tag = Tag::of(name);
                if self.mode == MarkupMode::Html && tag.is_raw() {
                    self.raw = Some(name);
                }
                Some(Token::Start { name, tag, attributes: inside, is_self_closing })
            }
            _ => None,
        }
    }

    fn read_declaration(&mut self, rest: &'a str) -> Token<'a> {
        let find_from = |marker: &str, from: usize| {
            memmem::find(&rest.as_bytes()[from..], marker.as_bytes()).map(|at| from + at)
        };
        if rest.starts_with("<!--") {
            // `<!-->` is a complete comment.
            let from = if rest.starts_with("<!-->") { 2 } else { 4 };
            let end = find_from("-->", from);
            self.at += end.map_or(rest.len(), |end| end + 3);
            return Token::Comment(rest.get(4..end.unwrap_or(rest.len())).unwrap_or_default());
        }
        if rest.starts_with("<![CDATA[") && self.mode == MarkupMode::Xml {
            let end = find_from("]]>", 9);
            self.at += end.map_or(rest.len(), |end| end + 3);
            return Token::RawText(&rest[9..end.unwrap_or(rest.len())]);
        }
        self.at += find_from(">", 2).map_or(rest.len(), |end| end + 1);
        Token::Comment("")
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        if let Some(name) = self.raw.take()
            && let Some(token) = self.read_raw_text(name)
        {
            return Some(token);
        }
        let bytes = self.source.as_bytes();
        if self.at >= bytes.len() {
            return None;
        }
        if bytes[self.at] == b'<'
            && let Some(token) = self.read_markup()
        {
            return Some(token);
        }
        // A `<` that starts no tag is text.
        let from = self.at + 1;
        let end = memchr(b'<', &bytes[from..]).map_or(bytes.len(), |at| from + at);
        Some(Token::Text(self.take_until(end)))
    }
}

fn tag_name(rest: &str) -> &str {
    let is_end = |byte: &u8| matches!(byte, b'>' | b'/') || byte.is_ascii_whitespace();
    let end = rest.as_bytes().iter().position(is_end);
    &rest[..end.unwrap_or(rest.len())]
}

/// Returns the offset after the `>` that ends a tag. A `>` inside quotes does not.
fn tag_end(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let mut at = 0;
    let mut after_equals = false;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'>' => return at + 1,
            b'"' | b'\'' if after_equals => {
                match memchr(*byte, &bytes[at + 1..]) {
                    Some(end) => at += end + 1,
                    None => return bytes.len(),
                }
                after_equals = false;
            }
            b'=' => after_equals = true,
            byte if byte.is_ascii_whitespace() => {}
            _ => after_equals = false,
        }
        at += 1;
    }
    bytes.len()
}

/// Returns the position of the first byte at or after `at` that is not skipped.
fn skip(bytes: &[u8], at: usize, is_skipped: impl Fn(u8) -> bool) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().position(|byte| !is_skipped(*byte)).unwrap_or(rest.len())
}

/// Iterates over the attributes of a tag.
pub(crate) fn attributes(text: &str) -> impl Iterator<Item = Attribute<'_>> {
    let bytes = text.as_bytes();
    let is_space = |byte: u8| byte.is_ascii_whitespace();
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = skip(bytes, at, |byte| is_space(byte) || byte == b'/');
        if start >= bytes.len() {
            return None;
        }
        // A name may start with `=`, but does not contain it.
        at = skip(bytes, start + 1, |byte| !is_space(byte) && !matches!(byte, b'=' | b'/'));
        let name = &text[start..at];
        let equals = skip(bytes, at, is_space);
        if bytes.get(equals) != Some(&b'=') {
            return Some(Attribute { name, value: "" });
        }
        let from = skip(bytes, equals + 1, is_space);
        let value = match bytes.get(from) {
            Some(quote @ (b'"' | b'\'')) => {
                let end = memchr(*quote, &bytes[from + 1..]);
                let end = end.map_or(bytes.len(), |end| from + 1 + end);
                at = end + 1;
                &text[from + 1..end]
            }
            Some(_) | None => {
                at = skip(bytes, from, |byte| !is_space(byte));
                &text[from..at]
            }
        };
        Some(Attribute { name, value })
    })
}
