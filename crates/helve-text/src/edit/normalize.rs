//! Classes of characters (blank, typographic), and the parts of a line.

/// A class of characters that have a plain form and typographic forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GlyphKind {
    SingleQuote,
    DoubleQuote,
    Dash,
    Space,
}

impl GlyphKind {
    /// Whether two kinds are the same. Single and double quotes count as the same.
    pub(super) fn is_like(self, other: GlyphKind) -> bool {
        let is_quote =
            |glyph_kind| matches!(glyph_kind, GlyphKind::SingleQuote | GlyphKind::DoubleQuote);
        self == other || is_quote(self) && is_quote(other)
    }
}

/// Returns the kind of a typographic character. Plain quotes and dashes are not typographic.
pub(super) fn typographic_kind(character: char) -> Option<GlyphKind> {
    match character {
        '\u{2018}'..='\u{201b}' | '\u{2032}' => Some(GlyphKind::SingleQuote),
        '\u{201c}'..='\u{201f}' | '\u{2033}' => Some(GlyphKind::DoubleQuote),
        '\u{2010}'..='\u{2015}' | '\u{2212}' => Some(GlyphKind::Dash),
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => {
            Some(GlyphKind::Space)
        }
        _ => None,
    }
}

/// Returns the kind of a character that has typographic forms, whether it is plain or typographic itself.
pub(super) fn glyph_kind(character: char) -> Option<GlyphKind> {
    match character {
        '\'' => Some(GlyphKind::SingleQuote),
        '"' => Some(GlyphKind::DoubleQuote),
        '-' => Some(GlyphKind::Dash),
        ' ' => Some(GlyphKind::Space),
        other => typographic_kind(other),
    }
}

/// Returns the plain character of a kind: `-` for dashes.
pub(super) fn plain_char(glyph_kind: GlyphKind) -> char {
    match glyph_kind {
        GlyphKind::SingleQuote => '\'',
        GlyphKind::DoubleQuote => '"',
        GlyphKind::Dash => '-',
        GlyphKind::Space => ' ',
    }
}

/// Returns the plain form of a character.
pub(super) fn to_plain(character: char) -> char {
    typographic_kind(character).map_or(character, plain_char)
}

/// Whether a character is white space within a line.
pub(super) fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r') || typographic_kind(character) == Some(GlyphKind::Space)
}

/// The parts of a line: indentation, content and trailing white space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LineParts<'a> {
    /// The indentation.
    pub(super) lead: &'a str,
    /// The content. Empty if the line is blank.
    pub(super) body: &'a str,
    /// The white space at the end.
    pub(super) trail: &'a str,
}

pub(super) fn split_line(line: &str) -> LineParts<'_> {
    let body = line.trim_start_matches(is_blank);
    let (lead, body) = line.split_at(line.len() - body.len());
    let (body, trail) = body.split_at(body.trim_end_matches(is_blank).len());
    LineParts { lead, body, trail }
}

/// Returns the indentation of a line, or `None` if the line is blank.
pub(super) fn lead(line: &str) -> Option<&str> {
    let length = line.bytes().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r')).count();
    if line.as_bytes().get(length)?.is_ascii() {
        return Some(&line[..length]);
    }
    let LineParts { lead, body, .. } = split_line(line);
    (!body.is_empty()).then_some(lead)
}

pub(super) fn is_blank_line(line: &str) -> bool {
    line.chars().all(is_blank)
}

/// Hashes a line so that lines differing only in white space and typography get the same hash.
pub(super) fn line_key(line: &str) -> u64 {
    let body = split_line(line).body;
    let mut hash = PackedHasher::new();
    let mut after_blank = false;
    let mut at = 0;
    while let Some(&byte) = body.as_bytes().get(at) {
        let character = if byte.is_ascii() {
            at += 1;
            char::from(byte)
        } else {
            let character = body[at..].chars().next().unwrap_or_default();
            at += character.len_utf8();
            to_plain(character)
        };
        if matches!(character, ' ' | '\t' | '\r') {
            after_blank = true;
            continue;
        }
        if after_blank {
            hash.add(' ');
            after_blank = false;
        }
        hash.add(character);
    }
    hash.finish()
}

/// Hashes characters, eight ASCII characters at a time.
struct PackedHasher {
    hash: LineHasher,
    /// ASCII characters that are not hashed yet.
    word: u64,
    /// Number of characters in `word`.
    count: u32,
}

impl PackedHasher {
    fn new() -> PackedHasher {
        PackedHasher { hash: LineHasher::new(), word: 0, count: 0 }
    }

    fn add(&mut self, character: char) {
        if !character.is_ascii() {
            self.flush();
            self.hash.add(u64::from(character));
            return;
        }
        self.word = self.word << 8 | u64::from(character);
        self.count += 1;
        if self.count == u64::BITS / 8 {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if self.count > 0 {
            self.hash.add(self.word);
            (self.word, self.count) = (0, 0);
        }
    }

    fn finish(mut self) -> u64 {
        self.flush();
        self.hash.finish()
    }
}

/// A fast hash. A collision cannot cause a wrong edit, because matching lines are compared before they are edited.
pub(super) struct LineHasher(u64);

impl LineHasher {
    pub(super) fn new() -> LineHasher {
        LineHasher(0)
    }

    pub(super) fn add(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    pub(super) fn finish(self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}

/// Splits text into words, runs of blanks, and single other characters.
pub(super) fn tokens(text: &str) -> Vec<&str> {
    #[derive(PartialEq)]
    enum Class {
        Word,
        Blank,
        Other,
    }
    let class = |character: char| {
        if character.is_alphanumeric() || character == '_' {
            Class::Word
        } else if is_blank(character) {
            Class::Blank
        } else {
            Class::Other
        }
    };
    let mut tokens = Vec::new();
    let mut start = 0;
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        let current = class(character);
        let joins_next = |next: char| current != Class::Other && class(next) == current;
        if characters.peek().is_none_or(|(_, next)| !joins_next(*next)) {
            let end = at + character.len_utf8();
            tokens.push(&text[start..end]);
            start = end;
        }
    }
    tokens
}
