//! Searches one file: detects whether it is text and in which encoding, then finds matches.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use grep_regex::RegexMatcher;
use grep_searcher::{Encoding, Searcher, SearcherBuilder};
use helve_core::machine::{ContextLines, Multiline};
use helve_text::view::{self, View};
use memchr::memchr;
use rustix::io::Errno;

use super::line_sink::{CollectMode, LineSink};
use super::pattern::CompiledPattern;
use crate::walk::StopSignal;

/// Read size. A file that fits into one block is searched in memory.
const BLOCK_BYTES: usize = 256 * 1024;
/// How many bytes are used to detect binary files and encodings.
const SAMPLE_BYTES: usize = 8 * 1024;
/// Maximum size of a file that cannot be searched block by block.
const MAX_IN_MEMORY_BYTES: usize = 8 << 20;
/// Maximum length of a line in a file that is searched block by block.
const MAX_LINE_BYTES: usize = 8 << 20;
const UTF_8_BOM: &[u8] = b"\xEF\xBB\xBF";

/// The searcher of one thread, with buffers that are reused for each file.
pub(super) struct FileSearcher {
    pattern: CompiledPattern,
    searcher: Searcher,
    builder: SearcherBuilder,
    buffer: Vec<u8>,
    stop: StopSignal,
}

/// The result of searching a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FileOutcome {
    Text,
    Binary,
    TooLarge,
    /// The stop signal came before the end.
    Interrupted,
    Unreadable,
}

impl FileSearcher {
    pub(super) fn new(pattern: CompiledPattern, context: ContextLines, stop: StopSignal) -> Self {
        let mut builder = SearcherBuilder::new();
        builder
            .line_terminator(pattern.line_terminator)
            .line_number(true)
            .multi_line(pattern.multiline == Multiline::On)
            .before_context(context.before)
            .after_context(context.after)
            .heap_limit(Some(MAX_LINE_BYTES))
            .bom_sniffing(false);
        let searcher = builder.build();
        // Each thread has its own matcher, so that threads do not contend for its cache.
        let matcher = Arc::new(RegexMatcher::clone(&pattern.matcher));
        let pattern = CompiledPattern { matcher, ..pattern };
        Self { pattern, searcher, builder, buffer: Vec::new(), stop }
    }

    /// Searches an open file and adds its matches to `sink`.
    pub(super) fn search(&mut self, file: &OwnedFd, size: u64, sink: &mut LineSink) -> FileOutcome {
        let target_len = usize::try_from(size)
            .unwrap_or(BLOCK_BYTES)
            .saturating_add(1)
            .clamp(SAMPLE_BYTES, BLOCK_BYTES);
        let filled = match self.fill(file, 0, target_len) {
            Ok(filled) => filled,
            Err(_) => return FileOutcome::Unreadable,
        };
        let sample = &self.buffer[..filled.min(SAMPLE_BYTES)];
        let encoding = match detect_utf16(sample) {
            Ok(encoding) => encoding,
            Err(view::Binary) => return FileOutcome::Binary,
        };
        if filled < target_len {
            return self.search_buffer(filled, sink);
        }
        let is_legacy = encoding.is_none() && self.is_legacy_encoding(&self.buffer[..filled]);
        if self.pattern.multiline == Multiline::Off && !is_legacy {
            return self.stream(file, filled, encoding, sink);
        }
        match self.fill(file, filled, MAX_IN_MEMORY_BYTES) {
            _ if self.stop.should_stop() => FileOutcome::Interrupted,
            Ok(filled) if filled < MAX_IN_MEMORY_BYTES => self.search_buffer(filled, sink),
            Ok(filled) if is_legacy => self.stream(file, filled, encoding, sink),
            Ok(_) => FileOutcome::TooLarge,
            Err(_) => FileOutcome::Unreadable,
        }
    }

    /// Reads until the buffer holds `target_len` bytes or the file ends.
    fn fill(
        &mut self,
        file: &OwnedFd,
        mut filled: usize,
        target_len: usize,
    ) -> Result<usize, Errno> {
        while filled < target_len {
            if filled == self.buffer.len() {
                self.buffer.resize((2 * filled).clamp(BLOCK_BYTES, MAX_IN_MEMORY_BYTES), 0);
            }
            if filled > BLOCK_BYTES && self.stop.should_stop() {
                break;
            }
            let end = target_len.min(self.buffer.len());
            match rustix::io::read(file, &mut self.buffer[filled..end]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(filled)
    }

    /// Searches a file that is entirely in the buffer.
    fn search_buffer(&mut self, filled: usize, sink: &mut LineSink) -> FileOutcome {
        let buffer = std::mem::take(&mut self.buffer);
        let bytes = &buffer[..filled];
        let outcome = self.search_bytes(bytes.strip_prefix(UTF_8_BOM).unwrap_or(bytes), sink);
        // A buffer that grew for a large file is not kept for later, smaller files.
        if buffer.len() <= 4 * BLOCK_BYTES {
            self.buffer = buffer;
        }
        outcome
    }

    fn search_bytes(&mut self, bytes: &[u8], sink: &mut LineSink) -> FileOutcome {
        if self.needs_decoding(bytes) {
            return match View::new(bytes) {
                Ok(view) => self.search_text(view.text().as_bytes(), sink),
                Err(view::Binary) => FileOutcome::Binary,
            };
        }
        let outcome = self.search_text(bytes, sink);
        // An ASCII pattern matches in any encoding, but the matched lines are shown to a reader, so they are searched
        // again in the decoded text.
        let is_garbled = !sink.lines.is_empty() && std::str::from_utf8(bytes).is_err();
        match is_garbled.then(|| View::new(bytes)) {
            Some(Ok(view)) => {
                sink.reset();
                self.search_text(view.text().as_bytes(), sink)
            }
            Some(Err(view::Binary)) | None => outcome,
        }
    }

    fn search_text(&mut self, text: &[u8], sink: &mut LineSink) -> FileOutcome {
        let searched = self.searcher.search_slice(&*self.pattern.matcher, text, &mut *sink);
        match searched {
            Ok(()) if sink.is_interrupted => FileOutcome::Interrupted,
            Ok(()) => FileOutcome::Text,
            Err(_) => FileOutcome::Unreadable,
        }
    }

    /// Whether the bytes have to be decoded before they can be searched.
    fn needs_decoding(&self, bytes: &[u8]) -> bool {
        let sample = &bytes[..bytes.len().min(SAMPLE_BYTES)];
        let looks_like_utf16 =
            memchr(0, sample).is_some() || matches!(sample, [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..]);
        let has_only_carriage_returns =
            || memchr(b'\n', bytes).is_none() && memchr(b'\r', bytes).is_some();
        looks_like_utf16 || has_only_carriage_returns() || self.is_legacy_encoding(bytes)
    }

    /// Whether the file is in a legacy encoding in which the pattern may be encoded differently. A truncated character
    /// at the end is not taken as a sign of one.
    fn is_legacy_encoding(&self, bytes: &[u8]) -> bool {
        let is_broken = |err: std::str::Utf8Error| err.error_len().is_some();
        !self.pattern.is_literal_ascii
            && !bytes.is_ascii()
            && std::str::from_utf8(bytes).is_err_and(is_broken)
    }

    /// Searches a file that does not fit into one block, holding one block and the longest line in memory.
    fn stream(
        &mut self,
        file: &OwnedFd,
        filled: usize,
        encoding: Option<&'static str>,
        sink: &mut LineSink,
    ) -> FileOutcome {
        let start = self.buffer[..filled].to_vec();
        let start = match encoding {
            None => start.strip_prefix(UTF_8_BOM).unwrap_or(&start),
            Some(_) => &start,
        };
        let rest = ResumedReader { start, file, stop: &self.stop };
        let searched = match encoding.and_then(|label| Encoding::new(label).ok()) {
            None => self.searcher.search_reader(&*self.pattern.matcher, rest, &mut *sink),
            Some(encoding) => {
                let mut searcher = self.builder.clone().encoding(Some(encoding)).build();
                searcher.search_reader(&*self.pattern.matcher, rest, &mut *sink)
            }
        };
        match searched {
            Ok(()) if sink.is_interrupted => FileOutcome::Interrupted,
            Ok(()) => FileOutcome::Text,
            Err(_) if self.stop.should_stop() => FileOutcome::Interrupted,
            // A line longer than the limit.
            Err(err) if err.kind() == io::ErrorKind::Other => FileOutcome::TooLarge,
            Err(_) => FileOutcome::Unreadable,
        }
    }

    pub(super) fn sink(&self, mode: CollectMode) -> LineSink {
        LineSink::new(self.pattern.matcher.clone(), mode, self.stop.clone())
    }
}

/// Returns the label of the UTF-16 encoding that the first bytes of a file are in, if any.
fn detect_utf16(sample: &[u8]) -> Result<Option<&'static str>, view::Binary> {
    let has_bom = matches!(sample, [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..]);
    if !has_bom && memchr(0, sample).is_none() {
        return Ok(None);
    }
    let whole_units = &sample[..sample.len() & !1];
    match View::new(whole_units)?.encoding() {
        view::Encoding::Utf16Le => Ok(Some("utf-16le")),
        view::Encoding::Utf16Be => Ok(Some("utf-16be")),
        view::Encoding::Utf8 | view::Encoding::Legacy(_) | view::Encoding::Unclear => Ok(None),
    }
}

/// Reads the bytes that were already read from a file, then the rest of the file.
struct ResumedReader<'a> {
    start: &'a [u8],
    file: &'a OwnedFd,
    stop: &'a StopSignal,
}

impl io::Read for ResumedReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.stop.should_stop() {
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
