//! From blocks of bytes to the wanted lines.

use std::ops::Range;

use bytes::Bytes;
use helve_core::machine::{Mark, Span, Window, Windowed};
use memchr::{memchr, memchr_iter};

/// How many lines are kept whatever was asked for, because each costs a [`Span`] even when it is empty.
const MOST_LINES: u64 = 1 << 20;
/// How many kept bytes the end of a line can take back: a carriage return, or a character that was cut.
const TAKEN_BACK: usize = 4;

/// Whether more bytes would change the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wants {
    Bytes,
    Nothing,
}

pub(super) struct Lines {
    want: Window,
    ends: Ends,
    /// Newlines still to pass before the window begins.
    ahead: u64,
    /// Newlines passed before the window.
    passed: u64,
    /// Whether bytes came after the last newline that was passed.
    is_open: bool,
    kept: Vec<u8>,
    spans: Vec<Span>,
    line: Line,
    more: bool,
    /// Bytes of the blocks before this one.
    fed: u64,
    /// Where the window begins and ends among all bytes that were fed.
    covered: Option<Range<u64>>,
}

/// What ends a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    /// Line feeds, with or without a carriage return before; none was seen yet.
    FeedsSoFarNone {
        has_return: bool,
    },
    Feeds,
    /// Carriage returns, in a file that has no line feed.
    Returns,
}

/// The line that is being read.
#[derive(Default)]
struct Line {
    /// Where it begins in the kept bytes.
    start: usize,
    length: u64,
    ends_in_return: bool,
}

impl Lines {
    pub(super) fn new(want: Window) -> Self {
        Self::ended_by(want, Ends::FeedsSoFarNone { has_return: false })
    }

    /// For a file that has no line feed.
    pub(super) fn ended_by_returns(want: Window) -> Self {
        Self::ended_by(want, Ends::Returns)
    }

    fn ended_by(want: Window, ends: Ends) -> Self {
        let want = Window { first: want.first.max(1), lines: want.lines.min(MOST_LINES), ..want };
        Self {
            want,
            ends,
            ahead: want.first - 1,
            passed: 0,
            is_open: false,
            kept: Vec::new(),
            spans: Vec::new(),
            line: Line::default(),
            more: false,
            fed: 0,
            covered: None,
        }
    }

    pub(super) fn feed(&mut self, block: &[u8]) -> Wants {
        self.look_for_feeds(block);
        let ending = self.ending();
        let mut rest = self.pass(block);
        let at = |rest: &[u8], fed: u64| fed + (block.len() - rest.len()) as u64;
        if self.ahead == 0 && self.covered.is_none() {
            let start = at(rest, self.fed);
            self.covered = Some(start..start);
        }
        while !rest.is_empty() && !self.more {
            if self.spans.len() as u64 >= self.want.lines {
                self.more = true;
                break;
            }
            let newline = memchr(ending, rest);
            self.extend(&rest[..newline.unwrap_or(rest.len())]);
            rest = match newline {
                Some(newline) => {
                    self.end(Ending::Newline);
                    let after = &rest[newline + 1..];
                    self.cover(at(after, self.fed));
                    after
                }
                None => &[],
            };
        }
        self.fed += block.len() as u64;
        if self.more { Wants::Nothing } else { Wants::Bytes }
    }

    /// A line of the window is complete.
    fn cover(&mut self, end: u64) {
        if let Some(covered) = &mut self.covered
            && !self.more
        {
            covered.end = end;
        }
    }

    /// `None` if the file has carriage returns but no line feed, so that they end its lines.
    pub(super) fn finish(mut self) -> Option<Windowed> {
        if self.ends == (Ends::FeedsSoFarNone { has_return: true }) {
            return None;
        }
        if self.line.length > 0 && !self.more {
            self.end(Ending::File);
            self.cover(self.fed);
        }
        let before = self.passed + u64::from(self.is_open);
        Some(Windowed {
            seen: before + self.spans.len() as u64,
            bytes: Bytes::from(self.kept),
            lines: self.spans,
            first: self.want.first,
            more: self.more,
            size: 0,
            range: self.covered.unwrap_or(self.fed..self.fed),
            mark: Mark::Nothing,
            sample: Bytes::new(),
        })
    }

    fn look_for_feeds(&mut self, block: &[u8]) {
        if let Ends::FeedsSoFarNone { has_return } = self.ends {
            self.ends = match memchr(b'\n', block) {
                Some(_) => Ends::Feeds,
                None => Ends::FeedsSoFarNone {
                    has_return: has_return || memchr(b'\r', block).is_some(),
                },
            };
        }
    }

    fn ending(&self) -> u8 {
        match self.ends {
            Ends::FeedsSoFarNone { .. } | Ends::Feeds => b'\n',
            Ends::Returns => b'\r',
        }
    }

    /// Skips what lies before the window; this is where the time goes in a large file.
    fn pass<'a>(&mut self, block: &'a [u8]) -> &'a [u8] {
        if self.ahead == 0 || block.is_empty() {
            return block;
        }
        let ending = self.ending();
        let count = memchr_iter(ending, block).count() as u64;
        if count < self.ahead {
            self.ahead -= count;
            self.passed += count;
            self.is_open = block.last() != Some(&ending);
            return &[];
        }
        let nth = usize::try_from(self.ahead - 1).unwrap_or(usize::MAX);
        let last = memchr_iter(ending, block).nth(nth).unwrap_or(block.len() - 1);
        self.passed += self.ahead;
        self.ahead = 0;
        self.is_open = false;
        &block[last + 1..]
    }

    fn extend(&mut self, part: &[u8]) {
        let Some(last) = part.last() else { return };
        let room = self.want.line_bytes.saturating_sub(self.kept.len() - self.line.start);
        self.kept.extend_from_slice(&part[..part.len().min(room)]);
        self.line.length += part.len() as u64;
        self.line.ends_in_return = *last == b'\r';
        let surely_too_long = self.kept.len() > self.want.most_bytes.saturating_add(TAKEN_BACK);
        if surely_too_long && !self.spans.is_empty() {
            self.leave_out();
        }
    }

    fn end(&mut self, ending: Ending) {
        if self.more {
            return;
        }
        let line = std::mem::take(&mut self.line);
        let has_return = line.ends_in_return && ending == Ending::Newline;
        let length = line.length - u64::from(has_return);
        let kept = &self.kept[line.start..];
        let mut kept = kept.len().min(usize::try_from(length).unwrap_or(usize::MAX));
        if (kept as u64) < length {
            kept = whole_characters(&self.kept[line.start..line.start + kept]);
        }
        let end = line.start + kept;
        self.line.start = line.start;
        if end > self.want.most_bytes && !self.spans.is_empty() {
            return self.leave_out();
        }
        self.kept.truncate(end);
        self.line.start = end;
        self.spans.push(Span { end, skipped: length - kept as u64 });
    }

    /// The window ends before the line that is being read.
    fn leave_out(&mut self) {
        self.kept.truncate(self.line.start);
        self.more = true;
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    Newline,
    /// The file ends without a newline, so a carriage return there ends nothing.
    File,
}

/// How many of the bytes remain when a UTF-8 character that was cut at the end goes.
fn whole_characters(bytes: &[u8]) -> usize {
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
