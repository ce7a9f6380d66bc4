//! What counts as blank and as typography, and the parts of a line.

/// What a typographic character stands in for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Single,
    Double,
    Dash,
    Space,
}

impl Kind {
    /// Quotes are quotes, single or double.
    pub(super) fn is_like(self, other: Kind) -> bool {
        let quote = |kind| matches!(kind, Kind::Single | Kind::Double);
        self == other || quote(self) && quote(other)
    }
}

/// The kind of a typographic character; `None` for any other, plain quotes and dashes included.
pub(super) fn typographic(character: char) -> Option<Kind> {
    match character {
        '\u{2018}'..='\u{201b}' | '\u{2032}' => Some(Kind::Single),
        '\u{201c}'..='\u{201f}' | '\u{2033}' => Some(Kind::Double),
        '\u{2010}'..='\u{2015}' | '\u{2212}' => Some(Kind::Dash),
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => {
            Some(Kind::Space)
        }
        _ => None,
    }
}

/// The kind of a character that typography knows, plain or not.
pub(super) fn kind(character: char) -> Option<Kind> {
    match character {
        '\'' => Some(Kind::Single),
        '"' => Some(Kind::Double),
        '-' => Some(Kind::Dash),
        ' ' => Some(Kind::Space),
        other => typographic(other),
    }
}

pub(super) fn plain(kind: Kind) -> char {
    match kind {
        Kind::Single => '\'',
        Kind::Double => '"',
        Kind::Dash => '-',
        Kind::Space => ' ',
    }
}

/// The character as a plain keyboard has it.
pub(super) fn fold(character: char) -> char {
    typographic(character).map_or(character, plain)
}

pub(super) fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r') || typographic(character) == Some(Kind::Space)
}

/// Indentation, what the line says, and blanks at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Parts<'a> {
    pub(super) lead: &'a str,
    pub(super) body: &'a str,
    pub(super) trail: &'a str,
}

pub(super) fn parts(line: &str) -> Parts<'_> {
    let body = line.trim_start_matches(is_blank);
    let (lead, body) = line.split_at(line.len() - body.len());
    let (body, trail) = body.split_at(body.trim_end_matches(is_blank).len());
    Parts { lead, body, trail }
}

pub(super) fn is_blank_line(line: &str) -> bool {
    line.chars().all(is_blank)
}

/// A hash that lines share when nothing but blanks and typography tells them apart.
pub(super) fn key(line: &str) -> u64 {
    let body = parts(line).body;
    let mut hash = Packed::new();
    let mut blank = false;
    let mut at = 0;
    while let Some(&byte) = body.as_bytes().get(at) {
        let character = if byte.is_ascii() {
            at += 1;
            char::from(byte)
        } else {
            let character = body[at..].chars().next().unwrap_or_default();
            at += character.len_utf8();
            fold(character)
        };
        if matches!(character, ' ' | '\t' | '\r') {
            blank = true;
            continue;
        }
        if blank {
            hash.add(' ');
            blank = false;
        }
        hash.add(character);
    }
    hash.end()
}

/// A hash of characters that takes in eight of ASCII at a time.
struct Packed {
    hash: Hash,
    word: u64,
    count: u32,
}

impl Packed {
    fn new() -> Packed {
        Packed { hash: Hash::new(), word: 0, count: 0 }
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

    fn end(mut self) -> u64 {
        self.flush();
        self.hash.end()
    }
}

/// Fast, and good enough where every hit is compared afterwards.
pub(super) struct Hash(u64);

impl Hash {
    pub(super) fn new() -> Hash {
        Hash(0)
    }

    pub(super) fn add(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    pub(super) fn end(self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}

/// Words, runs of blanks, and every other character by itself.
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
        let this = class(character);
        let joins = |next: char| this != Class::Other && class(next) == this;
        if characters.peek().is_none_or(|(_, next)| !joins(*next)) {
            let end = at + character.len_utf8();
            tokens.push(&text[start..end]);
            start = end;
        }
    }
    tokens
}
