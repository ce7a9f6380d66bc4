//! One file: whether it is text, in which encoding, and what it holds of the pattern.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use grep_regex::RegexMatcher;
use grep_searcher::{Encoding, Searcher, SearcherBuilder};
use helve_core::machine::Reach;
use helve_text::view::{self, View};
use memchr::memchr;
use rustix::io::Errno;

use super::lines::{Lines, Wanted};
use super::pattern::Pattern;
use crate::walk::Stop;

/// What is read at once. A file that fits is searched in one go.
const BLOCK: usize = 256 * 1024;
/// What tells text from other things.
const SAMPLE: usize = 8 * 1024;
/// A file that must be in memory as a whole.
const MOST_WHOLE: usize = 8 << 20;
/// The longest line of a file that does not fit into a block.
const LONGEST_LINE: usize = 8 << 20;
const UTF_8_MARK: &[u8] = b"\xEF\xBB\xBF";

/// What one thread needs to search files, kept from one to the next.
pub(super) struct Reader {
    pattern: Pattern,
    lines: Searcher,
    builder: SearcherBuilder,
    buffer: Vec<u8>,
    stop: Stop,
}

/// What a file turned out to be.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Looked {
    Text,
    Binary,
    TooLarge,
    /// The stop sign came before its end.
    Cut,
    Unreadable,
}

impl Reader {
    pub(super) fn new(pattern: Pattern, context: usize, stop: Stop) -> Self {
        let mut builder = SearcherBuilder::new();
        builder
            .line_terminator(pattern.ends)
            .line_number(true)
            .multi_line(pattern.reach == Reach::ManyLines)
            .before_context(context)
            .after_context(context)
            .heap_limit(Some(LONGEST_LINE))
            .bom_sniffing(false);
        let lines = builder.build();
        // Each thread has a matcher of its own, so that none waits for another's memory.
        let matcher = Arc::new(RegexMatcher::clone(&pattern.matcher));
        let pattern = Pattern { matcher, ..pattern };
        Self { pattern, lines, builder, buffer: Vec::new(), stop }
    }

    /// Searches an open file; what it has goes to `found`.
    pub(super) fn look(&mut self, file: &OwnedFd, size: u64, found: &mut Lines) -> Looked {
        let room = usize::try_from(size).unwrap_or(BLOCK).saturating_add(1).clamp(SAMPLE, BLOCK);
        let filled = match self.fill(file, 0, room) {
            Ok(filled) => filled,
            Err(_) => return Looked::Unreadable,
        };
        let sample = &self.buffer[..filled.min(SAMPLE)];
        let encoding = match wide(sample) {
            Ok(encoding) => encoding,
            Err(view::Binary) => return Looked::Binary,
        };
        if filled < room {
            return self.whole(filled, found);
        }
        let is_legacy = encoding.is_none() && self.is_other(&self.buffer[..filled]);
        if self.pattern.reach == Reach::OneLine && !is_legacy {
            return self.stream(file, filled, encoding, found);
        }
        match self.fill(file, filled, MOST_WHOLE) {
            _ if self.stop.is_reached() => Looked::Cut,
            Ok(filled) if filled < MOST_WHOLE => self.whole(filled, found),
            Ok(filled) if is_legacy => self.stream(file, filled, encoding, found),
            Ok(_) => Looked::TooLarge,
            Err(_) => Looked::Unreadable,
        }
    }

    /// Reads on until the buffer holds `room` bytes or the file ends.
    fn fill(&mut self, file: &OwnedFd, mut filled: usize, room: usize) -> Result<usize, Errno> {
        while filled < room {
            if filled == self.buffer.len() {
                self.buffer.resize((2 * filled).clamp(BLOCK, MOST_WHOLE), 0);
            }
            if filled > BLOCK && self.stop.is_reached() {
                break;
            }
            let end = room.min(self.buffer.len());
            match rustix::io::read(file, &mut self.buffer[filled..end]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(filled)
    }

    /// A file that is in the buffer.
    fn whole(&mut self, filled: usize, found: &mut Lines) -> Looked {
        let buffer = std::mem::take(&mut self.buffer);
        let bytes = &buffer[..filled];
        let looked = self.bytes(bytes.strip_prefix(UTF_8_MARK).unwrap_or(bytes), found);
        // A buffer that once held a large file is not kept for all the small ones.
        if buffer.len() <= 4 * BLOCK {
            self.buffer = buffer;
        }
        looked
    }

    fn bytes(&mut self, bytes: &[u8], found: &mut Lines) -> Looked {
        if self.needs_view(bytes) {
            return match View::new(bytes) {
                Ok(view) => self.text(view.text().as_bytes(), found),
                Err(view::Binary) => Looked::Binary,
            };
        }
        let looked = self.text(bytes, found);
        // ASCII is found in any encoding, and shown with what stands around it.
        let is_garbled = !found.kept.is_empty() && std::str::from_utf8(bytes).is_err();
        match is_garbled.then(|| View::new(bytes)) {
            Some(Ok(view)) => {
                found.begin();
                self.text(view.text().as_bytes(), found)
            }
            Some(Err(view::Binary)) | None => looked,
        }
    }

    fn text(&mut self, text: &[u8], found: &mut Lines) -> Looked {
        let searched = self.lines.search_slice(&*self.pattern.matcher, text, &mut *found);
        match searched {
            Ok(()) if found.is_cut => Looked::Cut,
            Ok(()) => Looked::Text,
            Err(_) => Looked::Unreadable,
        }
    }

    /// Whether lines or characters are not what the bytes seem to say.
    fn needs_view(&self, bytes: &[u8]) -> bool {
        let sample = &bytes[..bytes.len().min(SAMPLE)];
        let is_wide =
            memchr(0, sample).is_some() || matches!(sample, [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..]);
        let only_returns = || memchr(b'\n', bytes).is_none() && memchr(b'\r', bytes).is_some();
        is_wide || only_returns() || self.is_other(bytes)
    }

    /// Whether it is in an encoding in which the pattern may have other bytes. A character that is cut at the end is none.
    fn is_other(&self, bytes: &[u8]) -> bool {
        let is_broken = |err: std::str::Utf8Error| err.error_len().is_some();
        !self.pattern.is_plain
            && !bytes.is_ascii()
            && std::str::from_utf8(bytes).is_err_and(is_broken)
    }

    /// A file that does not fit: block by block, in memory for a block and the longest line.
    fn stream(
        &mut self,
        file: &OwnedFd,
        filled: usize,
        encoding: Option<&'static str>,
        found: &mut Lines,
    ) -> Looked {
        let start = self.buffer[..filled].to_vec();
        let start = match encoding {
            None => start.strip_prefix(UTF_8_MARK).unwrap_or(&start),
            Some(_) => &start,
        };
        let rest = Rest { start, file, stop: &self.stop };
        let searched = match encoding.and_then(|label| Encoding::new(label).ok()) {
            None => self.lines.search_reader(&*self.pattern.matcher, rest, &mut *found),
            Some(encoding) => {
                let mut wide = self.builder.clone().encoding(Some(encoding)).build();
                wide.search_reader(&*self.pattern.matcher, rest, &mut *found)
            }
        };
        match searched {
            Ok(()) if found.is_cut => Looked::Cut,
            Ok(()) => Looked::Text,
            Err(_) if self.stop.is_reached() => Looked::Cut,
            // A line that passes the limit.
            Err(err) if err.kind() == io::ErrorKind::Other => Looked::TooLarge,
            Err(_) => Looked::Unreadable,
        }
    }

    pub(super) fn lines(&self, wanted: Wanted) -> Lines {
        Lines::new(self.pattern.matcher.clone(), wanted, self.stop.clone())
    }
}

/// The name of the wide encoding that the first bytes of a file are in, if they are.
fn wide(sample: &[u8]) -> Result<Option<&'static str>, view::Binary> {
    let is_marked = matches!(sample, [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..]);
    if !is_marked && memchr(0, sample).is_none() {
        return Ok(None);
    }
    let whole_units = &sample[..sample.len() & !1];
    match View::new(whole_units)?.encoding() {
        view::Encoding::Utf16Le => Ok(Some("utf-16le")),
        view::Encoding::Utf16Be => Ok(Some("utf-16be")),
        view::Encoding::Utf8 | view::Encoding::Legacy(_) | view::Encoding::Unclear => Ok(None),
    }
}

/// What was read of a file, then the rest of it.
struct Rest<'a> {
    start: &'a [u8],
    file: &'a OwnedFd,
    stop: &'a Stop,
}

impl io::Read for Rest<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.stop.is_reached() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        if !self.start.is_empty() {
            let count = self.start.len().min(into.len());
            into[..count].copy_from_slice(&self.start[..count]);
            self.start = &self.start[count..];
            return Ok(count);
        }
        Ok(rustix::io::read(self.file, into)?)
    }
}
