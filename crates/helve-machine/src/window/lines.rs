//! Extracts the requested lines from consecutive blocks of bytes.

use std::ops::Range;

use bytes::Bytes;
use helve_core::machine::{ContentFingerprint, LineSpan, WindowLines, WindowRequest};
use memchr::{memchr, memchr_iter};

/// Upper limit on the requested number of lines, because even an empty line needs a [`LineSpan`].
const MAX_LINES: u64 = 1 << 20;
/// How many kept bytes may be removed again at the end of a line: a carriage return, or a truncated character.
const MAX_TRIMMED_BYTES: usize = 4;

/// Whether more bytes can change the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WindowStatus {
    NeedsMore,
    Done,
}

pub(super) struct LineWindow {
    request: WindowRequest,
    terminator: Terminator,
    /// Newlines still to skip before the window begins.
    to_skip: u64,
    /// Newlines skipped before the window.
    skipped_lines: u64,
    /// Whether there are bytes after the last skipped newline.
    has_partial_line: bool,
    bytes: Vec<u8>,
    spans: Vec<LineSpan>,
    line: CurrentLine,
    /// Whether the window is full and more lines follow. Nothing is kept from then on.
    more: bool,
    /// Total size of the blocks fed before this one.
    fed: u64,
    /// The range of the window within all bytes fed.
    covered_range: Option<Range<u64>>,
}

/// Which character ends a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Terminator {
    /// No line feed seen yet.
    Undecided { has_carriage_return: bool },
    /// Line feeds, optionally after a carriage return.
    LineFeed,
    /// Carriage returns, in a file without line feeds.
    CarriageReturn,
}

/// The line that is being read.
#[derive(Default)]
struct CurrentLine {
    /// Where the line begins in the kept bytes.
    start: usize,
    length: u64,
    ends_in_carriage_return: bool,
}

impl LineWindow {
    pub(super) fn new(request: WindowRequest) -> Self {
        Self::with_terminator(request, Terminator::Undecided { has_carriage_return: false })
    }

    /// Splits at carriage returns, for a file without line feeds.
    pub(super) fn with_carriage_returns(request: WindowRequest) -> Self {
        Self::with_terminator(request, Terminator::CarriageReturn)
    }

    fn with_terminator(request: WindowRequest, terminator: Terminator) -> Self {
        let request = WindowRequest {
            first: request.first.max(1),
            lines: request.lines.min(MAX_LINES),
            ..request
        };
        Self {
            request,
            terminator,
            to_skip: request.first - 1,
            skipped_lines: 0,
            has_partial_line: false,
            bytes: Vec::new(),
            spans: Vec::new(),
            line: CurrentLine::default(),
            more: false,
            fed: 0,
            covered_range: None,
        }
    }

    pub(super) fn feed(&mut self, block: &[u8]) -> WindowStatus {
        self.detect_terminator(block);
        let terminator_byte = self.terminator_byte();
        let mut rest = self.skip_lines(block);
        let offset = |rest: &[u8], fed: u64| fed + (block.len() - rest.len()) as u64;
        if self.to_skip == 0 && self.covered_range.is_none() {
            let start = offset(rest, self.fed);
            self.covered_range = Some(start..start);
        }
        while !rest.is_empty() && !self.more {
            if self.spans.len() as u64 >= self.request.lines {
                self.more = true;
                break;
            }
            let newline = memchr(terminator_byte, rest);
            self.extend_line(&rest[..newline.unwrap_or(rest.len())]);
            rest = match newline {
                Some(newline) => {
                    self.end_line(LineEnd::Newline);
                    let after = &rest[newline + 1..];
                    self.extend_range(offset(after, self.fed));
                    after
                }
                None => &[],
            };
        }
        self.fed += block.len() as u64;
        if self.more { WindowStatus::Done } else { WindowStatus::NeedsMore }
    }

    /// Extends the covered range after a complete line.
    fn extend_range(&mut self, end: u64) {
        if let Some(covered_range) = &mut self.covered_range
            && !self.more
        {
            covered_range.end = end;
        }
    }

    /// Returns the window; `None` if the file has carriage returns but no line feed, so that it has to be scanned
    /// again.
    pub(super) fn finish(mut self) -> Option<WindowLines> {
        if self.terminator == (Terminator::Undecided { has_carriage_return: true }) {
            return None;
        }
        if self.line.length > 0 && !self.more {
            self.end_line(LineEnd::File);
            self.extend_range(self.fed);
        }
        let lines_before = self.skipped_lines + u64::from(self.has_partial_line);
        Some(WindowLines {
            lines_read: lines_before + self.spans.len() as u64,
            bytes: Bytes::from(self.bytes),
            lines: self.spans,
            first: self.request.first,
            has_more: self.more,
            later_lines: (!self.more).then_some(0),
            size: 0,
            range: self.covered_range.unwrap_or(self.fed..self.fed),
            fingerprint: ContentFingerprint::Nothing,
            whole: None,
            sample: Bytes::new(),
        })
    }

    fn detect_terminator(&mut self, block: &[u8]) {
        if let Terminator::Undecided { has_carriage_return } = self.terminator {
            self.terminator = match memchr(b'\n', block) {
                Some(_) => Terminator::LineFeed,
                None => Terminator::Undecided {
                    has_carriage_return: has_carriage_return || memchr(b'\r', block).is_some(),
                },
            };
        }
    }

    fn terminator_byte(&self) -> u8 {
        match self.terminator {
            Terminator::Undecided { .. } | Terminator::LineFeed => b'\n',
            Terminator::CarriageReturn => b'\r',
        }
    }

    /// Skips the part before the window. This takes most of the time in a large file.
    fn skip_lines<'a>(&mut self, block: &'a [u8]) -> &'a [u8] {
        if self.to_skip == 0 || block.is_empty() {
            return block;
        }
        let terminator_byte = self.terminator_byte();
        let count = memchr_iter(terminator_byte, block).count() as u64;
        if count < self.to_skip {
            self.to_skip -= count;
            self.skipped_lines += count;
            self.has_partial_line = block.last() != Some(&terminator_byte);
            return &[];
        }
        let nth = usize::try_from(self.to_skip - 1).unwrap_or(usize::MAX);
        let last = memchr_iter(terminator_byte, block).nth(nth).unwrap_or(block.len() - 1);
        self.skipped_lines += self.to_skip;
        self.to_skip = 0;
        self.has_partial_line = false;
        &block[last + 1..]
    }

    fn extend_line(&mut self, part: &[u8]) {
        let Some(last) = part.last() else { return };
        let free = self.request.line_bytes.saturating_sub(self.bytes.len() - self.line.start);
        self.bytes.extend_from_slice(&part[..part.len().min(free)]);
        self.line.length += part.len() as u64;
        self.line.ends_in_carriage_return = *last == b'\r';
        let exceeds_limit =
            self.bytes.len() > self.request.max_bytes.saturating_add(MAX_TRIMMED_BYTES);
        if exceeds_limit && !self.spans.is_empty() {
            self.drop_current_line();
        }
    }

    fn end_line(&mut self, line_end: LineEnd) {
        if self.more {
            return;
        }
        let line = std::mem::take(&mut self.line);
        let has_carriage_return = line.ends_in_carriage_return && line_end == LineEnd::Newline;
        let length = line.length - u64::from(has_carriage_return);
        let line_bytes = &self.bytes[line.start..];
        let mut kept = line_bytes.len().min(usize::try_from(length).unwrap_or(usize::MAX));
        if (kept as u64) < length {
            kept = complete_characters_len(&self.bytes[line.start..line.start + kept]);
        }
        let end = line.start + kept;
        self.line.start = line.start;
        if end > self.request.max_bytes && !self.spans.is_empty() {
            return self.drop_current_line();
        }
        self.bytes.truncate(end);
        self.line.start = end;
        self.spans.push(LineSpan { end, skipped: length - kept as u64 });
    }

    /// Ends the window before the current line.
    fn drop_current_line(&mut self) {
        self.bytes.truncate(self.line.start);
        self.more = true;
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LineEnd {
    Newline,
    /// The end of the file without a newline; a carriage return before it is part of the line.
    File,
}

/// Returns the length without a truncated UTF-8 character at the end.
fn complete_characters_len(bytes: &[u8]) -> usize {
    let tail = bytes.len().saturating_sub(3);
    let Some(lead) = bytes[tail..].iter().rposition(|byte| byte & 0xC0 != 0x80) else {
        return bytes.len();
    };
    let needed = match bytes[tail + lead] {
        0xC2..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF4 => 4,
        _ => 1,
    };
    if tail + lead + needed > bytes.len() { tail + lead } else { bytes.len() }
}

#[cfg(test)]
mod tests;
