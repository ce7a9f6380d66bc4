//! A file as text: bytes seen as lines, each of which knows the bytes it came from and its own ending.

mod encoding;

#[cfg(test)]
mod tests;

use std::{borrow::Cow, ops::Range};

use memchr::{memchr, memchr_iter, memchr2_iter};

pub use self::encoding::Encoding;
use self::encoding::Guess;

/// Bytes seen as text.
///
/// The text is that of the lines joined by `\n`, whatever their endings are in the file; a byte-order mark is no part of it.
/// The last line is what follows the last ending: empty in a file that ends with one.
#[derive(Debug, Clone)]
pub struct View<'a> {
    bytes: &'a [u8],
    text: Cow<'a, str>,
    lines: Vec<Line>,
    encoding: Encoding,
    damaged: bool,
}

/// Where a line begins, in the text and in the bytes, and how it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Line {
    text: usize,
    byte: usize,
    ending: Ending,
}

/// What separates a line from the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ending {
    Lf,
    CrLf,
    /// Only in a file without a single line feed; elsewhere a lone carriage return is a character.
    Cr,
    /// The last line has none.
    None,
}

impl Ending {
    pub fn as_str(self) -> &'static str {
        match self {
            Ending::Lf => "\n",
            Ending::CrLf => "\r\n",
            Ending::Cr => "\r",
            Ending::None => "",
        }
    }
}

/// The bytes are not text: they hold NULs and are not UTF-16.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Binary;

impl<'a> View<'a> {
    pub fn new(bytes: &'a [u8]) -> Result<View<'a>, Binary> {
        let guess = encoding::guess(bytes)?;
        let body = &bytes[guess.mark..];
        match guess.encoding {
            Encoding::Utf16Le | Encoding::Utf16Be => View::wide(bytes, &guess),
            Encoding::Utf8 if !guess.damaged => match std::str::from_utf8(body) {
                Ok(text) if memchr(b'\r', body).is_none() => {
                    Ok(View::borrowed(bytes, text, &guess))
                }
                Ok(_) | Err(_) => Ok(View::narrow(bytes, &guess)),
            },
            Encoding::Utf8 | Encoding::Unclear | Encoding::Legacy(_) => {
                Ok(View::narrow(bytes, &guess))
            }
        }
    }

    /// The lines joined by `\n`.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Whether some bytes mean nothing in the encoding; the text has U+FFFD in their place.
    pub fn is_damaged(&self) -> bool {
        self.damaged
    }

    /// Length of the byte-order mark.
    pub fn mark(&self) -> usize {
        self.lines.first().map_or(0, |line| line.byte)
    }

    /// How many lines there are, the one after the last ending included: at least one.
    pub fn count(&self) -> usize {
        self.lines.len()
    }

    /// Whether the last line with something on it has an ending.
    pub fn ends_with_newline(&self) -> bool {
        self.count() > 1 && self.line(self.count() - 1).is_empty()
    }

    /// The text of a line without its ending; counted from 0.
    pub fn line(&self, index: usize) -> &str {
        &self.text[self.text_range(index)]
    }

    pub fn ending(&self, index: usize) -> Ending {
        self.lines[index].ending
    }

    /// Where a line lies in the text, its ending left out.
    pub fn text_range(&self, index: usize) -> Range<usize> {
        let end = self.lines.get(index + 1).map_or(self.text.len(), |next| next.text - 1);
        self.lines[index].text..end
    }

    /// Where a line lies in the bytes, its ending left out.
    pub fn byte_range(&self, index: usize) -> Range<usize> {
        let whole = self.whole_range(index);
        let ending = self.ending(index).as_str().len() * self.encoding.unit();
        whole.start..whole.end - ending
    }

    /// Where a line lies in the bytes, with its ending.
    pub fn whole_range(&self, index: usize) -> Range<usize> {
        let end = self.lines.get(index + 1).map_or(self.bytes.len(), |next| next.byte);
        self.lines[index].byte..end
    }

    /// The line that holds an offset of the text.
    pub fn line_at(&self, offset: usize) -> usize {
        self.lines.partition_point(|line| line.text <= offset).saturating_sub(1)
    }

    /// Where a column of a line (bytes of its text, at a character's edge) lies in the bytes of the file.
    pub fn byte_at(&self, index: usize, column: usize) -> usize {
        let range = self.byte_range(index);
        range.start
            + encoding::width(self.encoding, &self.bytes[range], &self.line(index)[..column])
    }

    /// The ending that most lines have; `\n` where no line has any.
    pub fn usual_ending(&self) -> Ending {
        let count = |ending| self.lines.iter().filter(|line| line.ending == ending).count();
        let usual = [Ending::Lf, Ending::CrLf, Ending::Cr]
            .into_iter()
            .rev()
            .max_by_key(|&ending| count(ending));
        usual.unwrap_or(Ending::Lf)
    }

    /// The bytes of a text in this file's encoding, or the first character that it cannot carry.
    pub fn encode(&self, text: &str) -> Result<Vec<u8>, char> {
        if self.damaged && text.contains(char::REPLACEMENT_CHARACTER) {
            return Err(char::REPLACEMENT_CHARACTER);
        }
        self.encoding.encode(text)
    }

    /// The text of bytes in this file's encoding.
    pub(crate) fn decode(&self, bytes: &[u8]) -> String {
        let mut text = String::with_capacity(bytes.len());
        encoding::decode(self.encoding, bytes, &mut text);
        text
    }

    fn borrowed(bytes: &'a [u8], text: &'a str, guess: &Guess) -> View<'a> {
        let mark = guess.mark;
        let mut lines = vec![Line { text: 0, byte: mark, ending: Ending::None }];
        for at in memchr_iter(b'\n', text.as_bytes()) {
            end_line(&mut lines, Ending::Lf);
            lines.push(Line { text: at + 1, byte: mark + at + 1, ending: Ending::None });
        }
        View {
            bytes,
            text: Cow::Borrowed(text),
            lines,
            encoding: guess.encoding,
            damaged: guess.damaged,
        }
    }

    /// Encodings in which a line feed is one byte that occurs nowhere else.
    fn narrow(bytes: &'a [u8], guess: &Guess) -> View<'a> {
        let feeds = memchr(b'\n', bytes).is_some();
        let mut text = String::with_capacity(bytes.len() + bytes.len() / 8);
        let mut lines = vec![Line { text: 0, byte: guess.mark, ending: Ending::None }];
        let mut damaged = false;
        let mut start = guess.mark;
        for at in memchr2_iter(b'\n', b'\r', bytes) {
            let ending = match (bytes[at], feeds) {
                _ if at < start => continue,
                (b'\r', true) if bytes.get(at + 1) == Some(&b'\n') => Ending::CrLf,
                (b'\r', true) => continue,
                (b'\r', false) => Ending::Cr,
                _ => Ending::Lf,
            };
            damaged |= encoding::decode(guess.encoding, &bytes[start..at], &mut text);
            text.push('\n');
            start = at + ending.as_str().len();
            end_line(&mut lines, ending);
            lines.push(Line { text: text.len(), byte: start, ending: Ending::None });
        }
        damaged |= encoding::decode(guess.encoding, &bytes[start..], &mut text);
        View { bytes, text: Cow::Owned(text), lines, encoding: guess.encoding, damaged }
    }

    fn wide(bytes: &'a [u8], guess: &Guess) -> Result<View<'a>, Binary> {
        let body = &bytes[guess.mark..];
        let mut text = String::with_capacity(body.len() / 2 + body.len() / 8);
        let damaged = encoding::decode(guess.encoding, body, &mut text);
        if text.contains('\0') {
            return Err(Binary);
        }
        let feeds = text.contains('\n');
        let mut joined = String::with_capacity(text.len());
        let mut lines = vec![Line { text: 0, byte: guess.mark, ending: Ending::None }];
        let mut start = guess.mark;
        let mut rest = text.as_str();
        while let Some((line, ending, after)) = first_line(rest, feeds) {
            joined.push_str(line);
            joined.push('\n');
            start +=
                encoding::width(guess.encoding, &bytes[start..], line) + 2 * ending.as_str().len();
            end_line(&mut lines, ending);
            lines.push(Line { text: joined.len(), byte: start, ending: Ending::None });
            rest = after;
        }
        joined.push_str(rest);
        Ok(View { bytes, text: Cow::Owned(joined), lines, encoding: guess.encoding, damaged })
    }
}

fn end_line(lines: &mut [Line], ending: Ending) {
    if let Some(line) = lines.last_mut() {
        line.ending = ending;
    }
}

/// Cuts the first line off a text that still has an ending.
fn first_line(text: &str, feeds: bool) -> Option<(&str, Ending, &str)> {
    let mark = if feeds { b'\n' } else { b'\r' };
    let at = memchr(mark, text.as_bytes())?;
    let after = &text[at + 1..];
    if !feeds {
        return Some((&text[..at], Ending::Cr, after));
    }
    match text[..at].strip_suffix('\r') {
        Some(line) => Some((line, Ending::CrLf, after)),
        None => Some((&text[..at], Ending::Lf, after)),
    }
}
