//! What is kept of a program's output in memory: its beginning, its end, and counts.

use std::collections::VecDeque;

use bytes::Bytes;

/// How far from its beginning the end is searched for the beginning of a line.
const NEAR: usize = 4096;

#[derive(Debug)]
pub(super) struct Kept {
    most_head: usize,
    most_tail: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    /// All bytes so far.
    pub(super) said: u64,
    line_ends: u64,
    ends_in_line: bool,
    pub(super) redacted: u64,
}

/// Everything, or its two ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ends {
    pub(super) head: Bytes,
    pub(super) left_out: u64,
    pub(super) tail: Bytes,
}

impl Kept {
    pub(super) fn new(head: usize, tail: usize) -> Self {
        Kept {
            most_head: head,
            most_tail: tail,
            head: Vec::new(),
            tail: VecDeque::new(),
            said: 0,
            line_ends: 0,
            ends_in_line: false,
            redacted: 0,
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        let Some(last) = bytes.last() else { return };
        self.ends_in_line = *last != b'\n';
        self.said += bytes.len() as u64;
        self.line_ends += memchr::memchr_iter(b'\n', bytes).count() as u64;
        let room = self.most_head - self.head.len();
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(first);
        let rest = &rest[rest.len().saturating_sub(self.most_tail)..];
        let surplus = (self.tail.len() + rest.len()).saturating_sub(self.most_tail);
        self.tail.drain(..surplus);
        self.tail.extend(rest);
    }

    pub(super) fn bytes(&self) -> usize {
        self.head.len() + self.tail.len()
    }

    pub(super) fn lines(&self) -> u64 {
        self.line_ends + u64::from(self.ends_in_line)
    }

    pub(super) fn ends(&self) -> Ends {
        let kept = self.head.len() + self.tail.len();
        let (one, other) = self.tail.as_slices();
        let mut tail = [one, other].concat();
        if kept as u64 == self.said {
            let head = [&*self.head, &*tail].concat().into();
            return Ends { head, left_out: 0, tail: Bytes::new() };
        }
        let head = whole_end(&self.head);
        let near = &tail[..tail.len().min(NEAR)];
        let skipped = memchr::memchr(b'\n', near).map_or_else(|| cut_begin(&tail), |at| at + 1);
        tail.drain(..skipped);
        let left_out = self.said - (head.len() + tail.len()) as u64;
        Ends { head: Bytes::copy_from_slice(head), left_out, tail: tail.into() }
    }

    /// The newest bytes, and where they begin.
    pub(super) fn newest(&self) -> (u64, Vec<u8>) {
        let tail_from = self.said - self.tail.len() as u64;
        let from = if tail_from <= self.head.len() as u64 { 0 } else { tail_from };
        (from, self.range(from, self.said).unwrap_or_default())
    }

    /// Some bytes of what was said, if they are in memory.
    pub(super) fn range(&self, from: u64, to: u64) -> Option<Vec<u8>> {
        let [head, tail] = self.pieces(from, to);
        (head.len() as u64 + tail.len() as u64 == to.saturating_sub(from))
            .then(|| [head, tail].concat())
    }

    /// What is in memory of some bytes: from the beginning and from the end.
    pub(super) fn pieces(&self, from: u64, to: u64) -> [Vec<u8>; 2] {
        let head_end = self.head.len() as u64;
        let tail_from = self.said - self.tail.len() as u64;
        let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        let head = index(from.min(head_end))..index(to.min(head_end));
        let head = self.head.get(head).unwrap_or_default().to_vec();
        let (begin, end) = (from.clamp(tail_from, self.said), to.clamp(tail_from, self.said));
        let tail = match begin < end {
            true => {
                self.tail.range(index(begin - tail_from)..index(end - tail_from)).copied().collect()
            }
            false => Vec::new(),
        };
        [head, tail]
    }
}

/// Without a character at its end that is not whole.
pub(super) fn whole_end(bytes: &[u8]) -> &[u8] {
    // A character has at most four bytes, the first of which says how many.
    for back in 1..=bytes.len().min(3) {
        let at = bytes.len() - back;
        let needs = match bytes[at] {
            0xC0..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF7 => 4,
            0x80..=0xBF => continue,
            _ => return bytes,
        };
        return if needs > back { &bytes[..at] } else { bytes };
    }
    bytes
}

/// How many bytes at the beginning belong to a character whose first byte was cut off.
pub(super) fn cut_begin(bytes: &[u8]) -> usize {
    bytes.iter().take(3).take_while(|byte| matches!(byte, 0x80..=0xBF)).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against all that was said.
        #[test]
        fn both_ends_and_what_lies_between_are_told_truly(
            pieces in proptest::collection::vec("[a-zä\\n]{0,12}", 0..12),
            (head, tail) in (0..20_usize, 0..20_usize),
            (from, to) in (0..100_usize, 0..100_usize),
        ) {
            let all = pieces.concat();
            let mut kept = Kept::new(head, tail);
            pieces.iter().for_each(|piece| kept.push(piece.as_bytes()));
            prop_assert_eq!(kept.said, all.len() as u64);
            prop_assert_eq!(kept.lines(), all.lines().count() as u64);
            let ends = kept.ends();
            prop_assert!(all.as_bytes().starts_with(&ends.head));
            prop_assert!(all.as_bytes().ends_with(&ends.tail));
            let told = (ends.head.len() + ends.tail.len()) as u64;
            prop_assert_eq!(told + ends.left_out, kept.said);
            prop_assert!(str::from_utf8(&ends.head).is_ok() && str::from_utf8(&ends.tail).is_ok());
            if all.len() <= head + tail {
                prop_assert_eq!(&*ends.head, all.as_bytes());
            }
            let (from, to) = (from.min(to), to.min(all.len()));
            if let Some(bytes) = kept.range(from as u64, to as u64) {
                prop_assert_eq!(&*bytes, all.as_bytes().get(from..to).unwrap_or_default());
            }
            let (begin, newest) = kept.newest();
            prop_assert_eq!(begin + newest.len() as u64, kept.said);
            prop_assert!(all.as_bytes().ends_with(&newest));
        }
    }

    #[test]
    fn a_character_is_whole_or_left_for_later() {
        for (bytes, whole) in [
            (&b"ab"[..], 2),
            (b"a\xc3", 1),
            ("aä".as_bytes(), 3),
            (b"a\xe2\x82", 1),
            ("a€".as_bytes(), 4),
            (b"a\xf0\x9f\x92", 1),
            // Not UTF-8: nothing is waited for.
            (b"a\x82\x82\x82", 4),
            (b"\xff", 1),
            (b"", 0),
        ] {
            assert_eq!(whole_end(bytes).len(), whole, "{bytes:?}");
        }
    }
}
