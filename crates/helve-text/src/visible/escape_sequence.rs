//! Finds the end of a terminal escape sequence.

/// Maximum length of a control sequence. Longer sequences are invalid, because the parameters are only a few numbers.
const MAX_CONTROL: usize = 128;
/// Maximum length of a control string, such as a title, a link or clipboard contents.
const MAX_STRING: usize = 64 * 1024;

/// The escape sequence at the start of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EscapeSequence {
    /// The text does not start with an escape sequence.
    None,
    /// A complete sequence with its length in bytes.
    Complete(usize),
    /// An invalid sequence. Contains the length of its introducer, such as `ESC [`.
    Invalid(usize),
    /// A sequence cut off by the end of the text. Contains the length of its introducer.
    Incomplete(usize),
}

/// Measures the escape sequence at the start of `text`.
pub fn escape_sequence(text: &str) -> EscapeSequence {
    let mut chars = text.chars();
    match chars.next() {
        Some('\u{1b}') => {}
        Some('\u{9b}') => return measure_control_sequence(text, 2),
        Some('\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}') => return measure_control_string(text, 2),
        Some(_) | None => return EscapeSequence::None,
    }
    match chars.next() {
        None => EscapeSequence::Incomplete(1),
        Some('[') => measure_control_sequence(text, 2),
        Some(']' | 'P' | 'X' | '^' | '_') => measure_control_string(text, 2),
        Some('\u{20}'..='\u{7e}') => measure_short_sequence(text),
        Some(_) => EscapeSequence::Invalid(1),
    }
}

/// Measures a control sequence: parameter bytes, intermediate bytes, one final byte.
fn measure_control_sequence(text: &str, introducer_len: usize) -> EscapeSequence {
    let bytes = text.as_bytes();
    let mut at = introducer_len;
    at += bytes[at..].iter().take_while(|byte| (0x30..=0x3f).contains(*byte)).count();
    at += bytes[at..].iter().take_while(|byte| (0x20..=0x2f).contains(*byte)).count();
    match bytes.get(at) {
        _ if at > MAX_CONTROL => EscapeSequence::Invalid(introducer_len),
        None => EscapeSequence::Incomplete(introducer_len),
        Some(0x40..=0x7e) => EscapeSequence::Complete(at + 1),
        Some(_) => EscapeSequence::Invalid(introducer_len),
    }
}

/// Measures a control string: printable characters up to BEL or the string terminator.
fn measure_control_string(text: &str, introducer_len: usize) -> EscapeSequence {
    let body = &text[introducer_len..];
    let length = body.find(|c: char| c.is_control() && c != '\t').unwrap_or(body.len());
    if length > MAX_STRING {
        return EscapeSequence::Invalid(introducer_len);
    }
    let end = &body[length..];
    let terminator =
        ["\u{7}", "\u{9c}", "\u{1b}\\"].into_iter().find(|terminator| end.starts_with(terminator));
    match terminator {
        Some(terminator) => EscapeSequence::Complete(introducer_len + length + terminator.len()),
        None if end.is_empty() || end == "\u{1b}" => EscapeSequence::Incomplete(introducer_len),
        None => EscapeSequence::Invalid(introducer_len),
    }
}

/// Measures a short sequence: ESC, intermediate bytes, one final byte.
fn measure_short_sequence(text: &str) -> EscapeSequence {
    let bytes = text.as_bytes();
    let at = 1 + bytes[1..].iter().take_while(|byte| (0x20..=0x2f).contains(*byte)).count();
    match bytes.get(at) {
        _ if at > MAX_CONTROL => EscapeSequence::Invalid(1),
        None => EscapeSequence::Incomplete(1),
        Some(0x30..=0x7e) => EscapeSequence::Complete(at + 1),
        Some(_) => EscapeSequence::Invalid(1),
    }
}
