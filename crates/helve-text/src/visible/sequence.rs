//! Where a terminal's escape sequence ends.

/// Parameters of a control sequence are a few numbers.
const LONGEST_CONTROL: usize = 128;
/// Titles, links and clipboard contents are long, but not longer than this.
const LONGEST_STRING: usize = 64 * 1024;

/// What stands at the start of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sequence {
    /// No escape sequence.
    None,
    /// One of so many bytes.
    Whole(usize),
    /// One that cannot end well; its introducer has so many bytes.
    Broken(usize),
    /// One that the text ends in; its introducer has so many bytes.
    Unfinished(usize),
}

/// Measures the escape sequence that `text` starts with.
pub fn sequence(text: &str) -> Sequence {
    let mut chars = text.chars();
    match chars.next() {
        Some('\u{1b}') => {}
        Some('\u{9b}') => return control(text, 2),
        Some('\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}') => return string(text, 2),
        Some(_) | None => return Sequence::None,
    }
    match chars.next() {
        None => Sequence::Unfinished(1),
        Some('[') => control(text, 2),
        Some(']' | 'P' | 'X' | '^' | '_') => string(text, 2),
        Some('\u{20}'..='\u{7e}') => short(text),
        Some(_) => Sequence::Broken(1),
    }
}

/// Parameter bytes, intermediate bytes, one final byte.
fn control(text: &str, introducer: usize) -> Sequence {
    let bytes = text.as_bytes();
    let mut at = introducer;
    at += bytes[at..].iter().take_while(|byte| (0x30..=0x3f).contains(*byte)).count();
    at += bytes[at..].iter().take_while(|byte| (0x20..=0x2f).contains(*byte)).count();
    match bytes.get(at) {
        _ if at > LONGEST_CONTROL => Sequence::Broken(introducer),
        None => Sequence::Unfinished(introducer),
        Some(0x40..=0x7e) => Sequence::Whole(at + 1),
        Some(_) => Sequence::Broken(introducer),
    }
}

/// Anything printable up to BEL or the string terminator.
fn string(text: &str, introducer: usize) -> Sequence {
    let body = &text[introducer..];
    let length = body.find(|c: char| c.is_control() && c != '\t').unwrap_or(body.len());
    if length > LONGEST_STRING {
        return Sequence::Broken(introducer);
    }
    let end = &body[length..];
    let terminator = ["\u{7}", "\u{9c}", "\u{1b}\\"].into_iter().find(|it| end.starts_with(it));
    match terminator {
        Some(terminator) => Sequence::Whole(introducer + length + terminator.len()),
        None if end.is_empty() || end == "\u{1b}" => Sequence::Unfinished(introducer),
        None => Sequence::Broken(introducer),
    }
}

/// Escape, intermediate bytes, one final byte.
fn short(text: &str) -> Sequence {
    let bytes = text.as_bytes();
    let at = 1 + bytes[1..].iter().take_while(|byte| (0x20..=0x2f).contains(*byte)).count();
    match bytes.get(at) {
        _ if at > LONGEST_CONTROL => Sequence::Broken(1),
        None => Sequence::Unfinished(1),
        Some(0x30..=0x7e) => Sequence::Whole(at + 1),
        Some(_) => Sequence::Broken(1),
    }
}
