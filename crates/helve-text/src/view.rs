//! A file decoded as text: its lines, each with its bytes and its line ending.

pub(crate) mod encoding;
mod lines;

#[cfg(test)]
mod tests;

use std::{borrow::Cow, ops::Range};

use memchr::{memchr, memchr_iter, memchr2_iter};

pub use self::encoding::Encoding;
use self::encoding::Guess;
use self::lines::{LineIndex, LineStart, PlainLines, end_of_line};

/// Bytes decoded as text.
///
/// The text consists of the lines joined by `\n`, whatever their endings in the file, without a byte-order mark. The
/// last line is the text after the last ending. It is empty in a file that ends with a line ending.
#[derive(Debug, Clone)]
pub struct View<'a> {
    bytes: &'a [u8],
    text: Cow<'a, str>,
    lines: LineIndex,
    encoding: Encoding,
    /// Whether some bytes are invalid in the encoding.
    damaged: bool,
}

/// The line ending after a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LineEnding {
    Lf,
    CrLf,
    /// A lone carriage return ends a line only in a file without any line feed. In other files, it is an ordinary
    /// character.
    Cr,
    /// The last line has no ending.
    None,
}

impl LineEnding {
    pub fn as_str(self) -> &'static str {
        match self {
            LineEnding::Lf => "\n",
            LineEnding::CrLf => "\r\n",
            LineEnding::Cr => "\r",
            LineEnding::None => "",
        }
    }
}

/// Whether a lone carriage return ends a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CarriageReturns {
    /// Only in a text without line feeds.
    ByContent,
    /// Always.
    EndLines,
}

/// The bytes are not text: they contain NULs and are not UTF-16.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Binary;

impl<'a> View<'a> {
    /// Decodes the bytes so that every carriage return ends a line, also in a file with line feeds.
    ///
    /// Returns `None` if [`View::new`] would split the same lines, or if the encoding is UTF-16.
    pub fn with_carriage_returns(bytes: &'a [u8]) -> Option<View<'a>> {
        let guess = encoding::guess_encoding(bytes).ok()?;
        let is_lone = |at: usize| bytes.get(at + 1) != Some(&b'\n');
        match guess.encoding {
            Encoding::Utf16Le | Encoding::Utf16Be => None,
            Encoding::Utf8 | Encoding::Unclear | Encoding::Legacy(_) => {
                (memchr(b'\n', bytes).is_some() && memchr_iter(b'\r', bytes).any(is_lone))
                    .then(|| View::byte_view(bytes, &guess, CarriageReturns::EndLines))
            }
        }
    }

    /// Detects the encoding and decodes the bytes.
    pub fn new(bytes: &'a [u8]) -> Result<View<'a>, Binary> {
        if let Some(text) = encoding::plain_text(bytes) {
            let bom_len = if text.starts_with('\u{feff}') { 3 } else { 0 };
            let guess = Guess { encoding: Encoding::Utf8, bom_len, damaged: false };
            return Ok(View::borrowed_view(bytes, &text[bom_len..], &guess));
        }
        let guess = encoding::guess_encoding(bytes)?;
        let body = &bytes[guess.bom_len..];
        match guess.encoding {
            Encoding::Utf16Le | Encoding::Utf16Be => View::utf16_view(bytes, &guess),
            Encoding::Utf8 if !guess.damaged => match std::str::from_utf8(body) {
                Ok(text) if memchr(b'\r', body).is_none() => {
                    Ok(View::borrowed_view(bytes, text, &guess))
                }
                Ok(_) | Err(_) => Ok(View::byte_view(bytes, &guess, CarriageReturns::ByContent)),
            },
            Encoding::Utf8 | Encoding::Unclear | Encoding::Legacy(_) => {
                Ok(View::byte_view(bytes, &guess, CarriageReturns::ByContent))
            }
        }
    }

    /// Returns the lines joined by `\n`.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Whether some bytes are invalid in the encoding. The text has U+FFFD in place of such bytes.
    pub fn is_damaged(&self) -> bool {
        self.damaged
    }

    /// Returns the length of the byte-order mark.
    pub fn bom_len(&self) -> usize {
        match &self.lines {
            LineIndex::Plain(lines) => lines.bom_len,
            LineIndex::Listed(lines) => lines.first().map_or(0, |line| line.byte),
        }
    }

    /// Returns the number of lines, which is at least one. The text after the last ending counts as a line.
    pub fn line_count(&self) -> usize {
        match &self.lines {
            LineIndex::Plain(lines) => lines.count(&self.text),
            LineIndex::Listed(lines) => lines.len(),
        }
    }

    /// Whether the file ends with a line ending.
    pub fn ends_with_newline(&self) -> bool {
        self.line_count() > 1 && self.line(self.line_count() - 1).is_empty()
    }

    /// Returns the text of a line without its ending. Lines are counted from 0.
    pub fn line(&self, index: usize) -> &str {
        &self.text[self.text_range(index)]
    }

    pub fn ending(&self, index: usize) -> LineEnding {
        match &self.lines {
            LineIndex::Plain(_) if self.text_range(index).end < self.text.len() => LineEnding::Lf,
            LineIndex::Plain(_) => LineEnding::None,
            LineIndex::Listed(lines) => lines[index].ending,
        }
    }

    /// Returns the range of a line in the text, without its ending.
    pub fn text_range(&self, index: usize) -> Range<usize> {
        match &self.lines {
            LineIndex::Plain(lines) => {
                let start = lines.start(&self.text, index).unwrap_or(self.text.len());
                start..end_of_line(&self.text, start)
            }
            LineIndex::Listed(lines) => {
                let end = lines.get(index + 1).map_or(self.text.len(), |next| next.text - 1);
                lines[index].text..end
            }
        }
    }

    /// Returns the range of a line in the bytes, without its ending.
    pub fn byte_range(&self, index: usize) -> Range<usize> {
        let with_ending = self.whole_range(index);
        let ending = self.ending(index).as_str().len() * self.encoding.ascii_width();
        with_ending.start..with_ending.end - ending
    }

    /// Returns the range of a line in the bytes, with its ending.
    pub fn whole_range(&self, index: usize) -> Range<usize> {
        match &self.lines {
            LineIndex::Plain(lines) => {
                let Range { start, end } = self.text_range(index);
                let end = if end < self.text.len() { end + 1 } else { end };
                lines.bom_len + start..lines.bom_len + end
            }
            LineIndex::Listed(lines) => {
                let end = lines.get(index + 1).map_or(self.bytes.len(), |next| next.byte);
                lines[index].byte..end
            }
        }
    }

    /// Returns the line that contains an offset of the text.
    pub fn line_at(&self, offset: usize) -> usize {
        match &self.lines {
            LineIndex::Plain(lines) => lines.line_at(&self.text, offset),
            LineIndex::Listed(lines) => {
                lines.partition_point(|line| line.text <= offset).saturating_sub(1)
            }
        }
    }

    /// Returns the byte offset of a column of a line. The column is a byte offset in the line's text, at a character
    /// boundary.
    pub fn byte_offset(&self, index: usize, column: usize) -> usize {
        let range = self.byte_range(index);
        range.start
            + encoding::encoded_len(self.encoding, &self.bytes[range], &self.line(index)[..column])
    }

    /// Returns the most common ending, or `\n` if no line has an ending.
    pub fn dominant_ending(&self) -> LineEnding {
        let LineIndex::Listed(lines) = &self.lines else { return LineEnding::Lf };
        let count = |ending| lines.iter().filter(|line| line.ending == ending).count();
        let dominant = [LineEnding::Lf, LineEnding::CrLf, LineEnding::Cr]
            .into_iter()
            .rev()
            .max_by_key(|&ending| count(ending));
        dominant.unwrap_or(LineEnding::Lf)
    }

    /// Encodes text in the file's encoding, or returns the first character that the encoding cannot represent.
    pub fn encode(&self, text: &str) -> Result<Vec<u8>, char> {
        if self.damaged && text.contains(char::REPLACEMENT_CHARACTER) {
            return Err(char::REPLACEMENT_CHARACTER);
        }
        self.encoding.encode(text)
    }

    /// Decodes bytes in the file's encoding.
    pub(crate) fn decode(&self, bytes: &[u8]) -> String {
        let mut text = String::with_capacity(bytes.len());
        encoding::decode(self.encoding, bytes, &mut text);
        text
    }

    /// Borrows valid UTF-8 without carriage returns.
    fn borrowed_view(bytes: &'a [u8], text: &'a str, guess: &Guess) -> View<'a> {
        let lines = LineIndex::Plain(PlainLines::new(guess.bom_len));
        let (encoding, damaged) = (guess.encoding, guess.damaged);
        View { bytes, text: Cow::Borrowed(text), lines, encoding, damaged }
    }

    /// Decodes text in an encoding in which the line feed byte is never part of another character.
    fn byte_view(bytes: &'a [u8], guess: &Guess, returns: CarriageReturns) -> View<'a> {
        let is_ending = match returns {
            CarriageReturns::ByContent => memchr(b'\n', bytes).is_none(),
            CarriageReturns::EndLines => true,
        };
        let mut text = String::with_capacity(bytes.len() + bytes.len() / 8);
        let mut lines = vec![LineStart { text: 0, byte: guess.bom_len, ending: LineEnding::None }];
        let mut damaged = false;
        let mut start = guess.bom_len;
        for at in memchr2_iter(b'\n', b'\r', bytes) {
            let ending = match (bytes[at], is_ending) {
                _ if at < start => continue,
                (b'\r', _) if bytes.get(at + 1) == Some(&b'\n') => LineEnding::CrLf,
                (b'\r', false) => continue,
                (b'\r', true) => LineEnding::Cr,
                _ => LineEnding::Lf,
            };
            damaged |= encoding::decode(guess.encoding, &bytes[start..at], &mut text);
            text.push('\n');
            start = at + ending.as_str().len();
            end_line(&mut lines, ending);
            lines.push(LineStart { text: text.len(), byte: start, ending: LineEnding::None });
        }
        damaged |= encoding::decode(guess.encoding, &bytes[start..], &mut text);
        let lines = LineIndex::Listed(lines);
        View { bytes, text: Cow::Owned(text), lines, encoding: guess.encoding, damaged }
    }

    /// Decodes UTF-16.
    fn utf16_view(bytes: &'a [u8], guess: &Guess) -> Result<View<'a>, Binary> {
        let body = &bytes[guess.bom_len..];
        let mut text = String::with_capacity(body.len() / 2 + body.len() / 8);
        let damaged = encoding::decode(guess.encoding, body, &mut text);
        if text.contains('\0') {
            return Err(Binary);
        }
        let has_line_feeds = text.contains('\n');
        let mut joined = String::with_capacity(text.len());
        let mut lines = vec![LineStart { text: 0, byte: guess.bom_len, ending: LineEnding::None }];
        let mut start = guess.bom_len;
        let mut rest = text.as_str();
        while let Some((line, ending, after)) = first_line(rest, has_line_feeds) {
            joined.push_str(line);
            joined.push('\n');
            start += encoding::encoded_len(guess.encoding, &bytes[start..], line)
                + 2 * ending.as_str().len();
            end_line(&mut lines, ending);
            lines.push(LineStart { text: joined.len(), byte: start, ending: LineEnding::None });
            rest = after;
        }
        joined.push_str(rest);
        let lines = LineIndex::Listed(lines);
        Ok(View { bytes, text: Cow::Owned(joined), lines, encoding: guess.encoding, damaged })
    }
}

fn end_line(lines: &mut [LineStart], ending: LineEnding) {
    if let Some(line) = lines.last_mut() {
        line.ending = ending;
    }
}

/// Splits off the first line; `None` if no line ending is left.
fn first_line(text: &str, has_line_feeds: bool) -> Option<(&str, LineEnding, &str)> {
    let newline = if has_line_feeds { b'\n' } else { b'\r' };
    let at = memchr(newline, text.as_bytes())?;
    let after = &text[at + 1..];
    if !has_line_feeds {
        return Some((&text[..at], LineEnding::Cr, after));
    }
    match text[..at].strip_suffix('\r') {
        Some(line) => Some((line, LineEnding::CrLf, after)),
        None => Some((&text[..at], LineEnding::Lf, after)),
    }
}
