//! Keeps the beginning and the end of a program's output in memory, and counts its bytes and lines.

use std::collections::VecDeque;

use bytes::Bytes;

/// How many bytes of the tail are searched for the start of a line.
const LINE_SEARCH_BYTES: usize = 4096;

#[derive(Debug)]
pub(super) struct OutputBuffer {
    max_head: usize,
    max_tail: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    /// Total number of bytes so far.
    pub(super) total: u64,
    line_ends: u64,
    /// Whether the last line has no newline yet.
    has_partial_line: bool,
    pub(super) redacted: u64,
}

/// The whole output, or its two ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OutputEnds {
    pub(super) head: Bytes,
    pub(super) left_out: u64,
    pub(super) tail: Bytes,
}

impl OutputBuffer {
    pub(super) fn new(head: usize, tail: usize) -> Self {
        OutputBuffer {
            max_head: head,
            max_tail: tail,
            head: Vec::new(),
            tail: VecDeque::new(),
            total: 0,
            line_ends: 0,
            has_partial_line: false,
            redacted: 0,
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        let Some(last) = bytes.last() else { return };
        self.has_partial_line = *last != b'\n';
        self.total += bytes.len() as u64;
        self.line_ends += memchr::memchr_iter(b'\n', bytes).count() as u64;
        let free = self.max_head - self.head.len();
        let (first, rest) = bytes.split_at(free.min(bytes.len()));
        self.head.extend_from_slice(first);
        let rest = &rest[rest.len().saturating_sub(self.max_tail)..];
        let surplus = (self.tail.len() + rest.len()).saturating_sub(self.max_tail);
        self.tail.drain(..surplus);
        self.tail.extend(rest);
    }

    pub(super) fn bytes(&self) -> usize {
        self.head.len() + self.tail.len()
    }

    pub(super) fn lines(&self) -> u64 {
        self.line_ends + u64::from(self.has_partial_line)
    }

    pub(super) fn ends(&self) -> OutputEnds {
        let kept = self.head.len() + self.tail.len();
        let (one, other) = self.tail.as_slices();
        let mut tail = [one, other].concat();
        if kept as u64 == self.total {
            let head = [&*self.head, &*tail].concat().into();
            return OutputEnds { head, left_out: 0, tail: Bytes::new() };
        }
        let head = without_partial_end(&self.head);
        let searched = &tail[..tail.len().min(LINE_SEARCH_BYTES)];
        let skipped =
            memchr::memchr(b'\n', searched).map_or_else(|| partial_start_len(&tail), |at| at + 1);
        tail.drain(..skipped);
        let left_out = self.total - (head.len() + tail.len()) as u64;
        OutputEnds { head: Bytes::copy_from_slice(head), left_out, tail: tail.into() }
    }

    /// Returns the newest bytes and their offset.
    pub(super) fn newest(&self) -> (u64, Vec<u8>) {
        let tail_from = self.total - self.tail.len() as u64;
        let from = if tail_from <= self.head.len() as u64 { 0 } else { tail_from };
        (from, self.range(from, self.total).unwrap_or_default())
    }

    /// Returns a range of the output, if it is in memory.
    pub(super) fn range(&self, from: u64, to: u64) -> Option<Vec<u8>> {
        let [head, tail] = self.pieces(from, to);
        (head.len() as u64 + tail.len() as u64 == to.saturating_sub(from))
            .then(|| [head, tail].concat())
    }

    /// Returns the parts of a range that are in memory: one from the head and one from the tail.
    pub(super) fn pieces(&self, from: u64, to: u64) -> [Vec<u8>; 2] {
        let head_end = self.head.len() as u64;
        let tail_from = self.total - self.tail.len() as u64;
        let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        let head = index(from.min(head_end))..index(to.min(head_end));
        let head = self.head.get(head).unwrap_or_default().to_vec();
        let (begin, end) = (from.clamp(tail_from, self.total), to.clamp(tail_from, self.total));
        let tail = match begin < end {
            true => {
                self.tail.range(index(begin - tail_from)..index(end - tail_from)).copied().collect()
            }
            false => Vec::new(),
        };
        [head, tail]
    }
}

/// Returns the bytes without an incomplete UTF-8 character at the end.
pub(super) fn without_partial_end(bytes: &[u8]) -> &[u8] {
    // A character has at most four bytes, and the first byte determines how many.
    for back in 1..=bytes.len().min(3) {
        let at = bytes.len() - back;
        let length = match bytes[at] {
            0xC0..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF7 => 4,
            0x80..=0xBF => continue,
            _ => return bytes,
        };
        return if length > back { &bytes[..at] } else { bytes };
    }
    bytes
}

/// Returns how many bytes at the start belong to a character whose first byte is missing.
pub(super) fn partial_start_len(bytes: &[u8]) -> usize {
    bytes.iter().take(3).take_while(|byte| matches!(byte, 0x80..=0xBF)).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Compares with the whole output.
        #[test]
        fn ends_and_ranges_match_the_whole_output(
            pieces in proptest::collection::vec("[a-zä\\n]{0,12}", 0..12),
            (head, tail) in (0..20_usize, 0..20_usize),
            (from, to) in (0..100_usize, 0..100_usize),
        ) {
            let all = pieces.concat();
            let mut buffer = OutputBuffer::new(head, tail);
            pieces.iter().for_each(|piece| buffer.push(piece.as_bytes()));
            prop_assert_eq!(buffer.total, all.len() as u64);
            prop_assert_eq!(buffer.lines(), all.lines().count() as u64);
            let ends = buffer.ends();
            prop_assert!(all.as_bytes().starts_with(&ends.head));
            prop_assert!(all.as_bytes().ends_with(&ends.tail));
            let returned = (ends.head.len() + ends.tail.len()) as u64;
            prop_assert_eq!(returned + ends.left_out, buffer.total);
            prop_assert!(str::from_utf8(&ends.head).is_ok() && str::from_utf8(&ends.tail).is_ok());
            if all.len() <= head + tail {
                prop_assert_eq!(&*ends.head, all.as_bytes());
            }
            let (from, to) = (from.min(to), to.min(all.len()));
            if let Some(bytes) = buffer.range(from as u64, to as u64) {
                prop_assert_eq!(&*bytes, all.as_bytes().get(from..to).unwrap_or_default());
            }
            let (begin, newest) = buffer.newest();
            prop_assert_eq!(begin + newest.len() as u64, buffer.total);
            prop_assert!(all.as_bytes().ends_with(&newest));
        }
    }

    #[test]
    fn incomplete_characters_are_held_back() {
        for (bytes, complete) in [
            (&b"ab"[..], 2),
            (b"a\xc3", 1),
            ("aä".as_bytes(), 3),
            (b"a\xe2\x82", 1),
            ("a€".as_bytes(), 4),
            (b"a\xf0\x9f\x92", 1),
            // Not UTF-8: nothing is held back.
            (b"a\x82\x82\x82", 4),
            (b"\xff", 1),
            (b"", 0),
        ] {
            assert_eq!(without_partial_end(bytes).len(), complete, "{bytes:?}");
        }
    }
}
