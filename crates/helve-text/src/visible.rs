//! Makes control and invisible characters harmless or visible.

use std::borrow::Cow;

mod escape_sequence;

pub use escape_sequence::{EscapeSequence, escape_sequence};

/// Removes escape sequences and control characters, for a model to read.
///
/// Newlines and tabs are kept. Carriage returns before a newline or at the end are removed. Other carriage returns
/// become a newline, so that nothing is overwritten and no two words run together. Of an unterminated sequence, only
/// the first characters (`ESC [`) are removed.
pub fn strip_invisible(text: &str) -> Cow<'_, str> {
    let Some(first_control) = find_control(text) else { return Cow::Borrowed(text) };
    let mut clean = String::with_capacity(text.len());
    clean.push_str(&text[..first_control]);
    let mut rest = &text[first_control..];
    while let Some(control) = rest.chars().next() {
        rest = match escape_sequence(rest) {
            EscapeSequence::Complete(length) => &rest[length..],
            EscapeSequence::Invalid(introducer_len)
            | EscapeSequence::Incomplete(introducer_len) => &rest[introducer_len..],
            EscapeSequence::None if control == '\r' => {
                let after = rest.trim_start_matches('\r');
                if !after.is_empty() && !after.starts_with('\n') {
                    clean.push('\n');
                }
                after
            }
            EscapeSequence::None => &rest[control.len_utf8()..],
        };
        let plain_len = find_control(rest).unwrap_or(rest.len());
        clean.push_str(&rest[..plain_len]);
        rest = &rest[plain_len..];
    }
    Cow::Owned(clean)
}

fn is_control(c: char) -> bool {
    c.is_control() && c != '\n' && c != '\t'
}

/// Returns the position of the first control character other than newline and tab.
pub(crate) fn find_control(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    // C1 control characters are encoded as this byte and a second byte from 0x80 to 0x9f.
    let may_start_control =
        |byte: u8| byte < 0x20 && byte != b'\n' && byte != b'\t' || byte == 0x7f || byte == 0xc2;
    let is_control_at = |at: &usize| {
        may_start_control(bytes[*at])
            && (bytes[*at] != 0xc2 || bytes.get(at + 1).is_some_and(|next| *next < 0xa0))
    };
    let mut start = 0;
    for chunk in bytes.chunks(64) {
        // The loop has no branch per byte, so that it can be vectorized.
        if chunk.iter().fold(false, |any, byte| any | may_start_control(*byte))
            && let Some(control_start) = (start..start + chunk.len()).find(is_control_at)
        {
            return Some(control_start);
        }
        start += chunk.len();
    }
    None
}

/// Escapes control, bidirectional, zero-width and other invisible characters as `\u{202e}`, for a person to read.
///
/// Newlines and tabs are kept. Text that is already of the form `\u{202e}` is kept too, so the escaping cannot be
/// reversed.
pub fn escape(text: &str) -> Cow<'_, str> {
    escape_matching(text, |c| is_control(c) || is_hidden(c))
}

/// Escapes like [`escape`], but also shows newlines and tabs as `\n` and `\t`. The result is a single line.
pub fn escape_line(text: &str) -> Cow<'_, str> {
    escape_matching(text, is_invisible)
}

/// Makes untrusted text, such as a web page, safe to show to a model.
///
/// Control and bidirectional characters, Unicode tag characters and other carriers of hidden messages are escaped as
/// `\u{202e}`. Characters that only affect layout, such as a soft hyphen or a variation selector, are removed. Unusual
/// spaces become ordinary ones. Joiners are kept between characters that need them. Newlines, tabs and carriage returns
/// are kept.
pub fn escape_hidden(text: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| (0x20..0x7f).contains(&byte) || matches!(byte, b'\n' | b'\t' | b'\r');
    let Some(first_special) = text.bytes().position(|byte| !is_plain(byte)) else {
        return Cow::Borrowed(text);
    };
    let start = text.floor_char_boundary(first_special);
    let needs_change = |c: char| (is_control(c) && c != '\r') || is_hidden(c);
    let Some(first_change) = text[start..].find(needs_change) else { return Cow::Borrowed(text) };
    let mut shown = String::with_capacity(text.len() + 16);
    shown.push_str(&text[..start + first_change]);
    for c in text[start + first_change..].chars() {
        match c {
            c if !needs_change(c) => shown.push(c),
            '\u{c}'
            | '\u{a0}'
            | '\u{1680}'
            | '\u{2000}'..='\u{200a}'
            | '\u{202f}'
            | '\u{205f}'
            | '\u{3000}' => {
                shown.push(' ');
            }
            '\u{2028}' | '\u{2029}' => shown.push('\n'),
            '\u{ad}' | '\u{200b}' | '\u{2060}' | '\u{feff}' | '\u{fe00}'..='\u{fe0f}' => {}
            '\u{200c}' | '\u{200d}' if shown.chars().next_back().is_some_and(|c| !c.is_ascii()) => {
                shown.push(c)
            }
            c => shown.extend(c.escape_unicode()),
        }
    }
    Cow::Owned(shown)
}

/// Whether a character is a control character (newlines and tabs included) or otherwise invisible.
pub(crate) fn is_invisible(c: char) -> bool {
    c.is_control() || is_hidden(c)
}

fn escape_matching(text: &str, must_escape: impl Fn(char) -> bool) -> Cow<'_, str> {
    let Some(first_escaped) = text.find(&must_escape) else { return Cow::Borrowed(text) };
    let mut shown = String::with_capacity(text.len() + 16);
    shown.push_str(&text[..first_escaped]);
    for c in text[first_escaped..].chars() {
        match c {
            '\n' if must_escape(c) => shown.push_str("\\n"),
            '\t' if must_escape(c) => shown.push_str("\\t"),
            c if must_escape(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// Whether a character is invisible, or moves or alters its neighbours invisibly.
fn is_hidden(c: char) -> bool {
    if c.is_ascii() {
        return false;
    }
    matches!(c,
        // spaces other than the ASCII space
        '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{2800}' | '\u{3000}'
        // zero width, joiners, soft hyphen, line and paragraph separators
        | '\u{ad}' | '\u{34f}' | '\u{200b}'..='\u{200d}' | '\u{2028}' | '\u{2029}' | '\u{2060}'..='\u{2065}' | '\u{feff}'
        // marks, embeddings, overrides and isolates of writing direction
        | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        // retired and script-specific format characters
        | '\u{600}'..='\u{605}' | '\u{6dd}' | '\u{70f}' | '\u{890}' | '\u{891}' | '\u{8e2}'
        | '\u{206a}'..='\u{206f}' | '\u{fff0}'..='\u{fffb}'
        | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        // fillers and vowels without a shape
        | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{3164}' | '\u{ffa0}'
        // variation selectors and tags, which can carry whole messages
        | '\u{180b}'..='\u{180f}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0000}'..='\u{e0fff}'
        | '\u{fdd0}'..='\u{fdef}'
    ) || u32::from(c) & 0xfffe == 0xfffe
}

#[cfg(test)]
mod tests;
