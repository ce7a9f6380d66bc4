//! An index of the lines of a text.

use std::cell::{Cell, OnceCell};

use memchr::{memchr, memchr_iter};

use super::LineEnding;

/// The start of a line, in the text and in the bytes, and its ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LineStart {
    /// Offset of the line in the text.
    pub(super) text: usize,
    /// Offset of the line in the bytes of the file.
    pub(super) byte: usize,
    pub(super) ending: LineEnding,
}

/// The lines of a view. There is at least one.
#[derive(Debug, Clone)]
pub(super) enum LineIndex {
    /// Lines that all end with `\n`, in the file too. Their starts need not be stored.
    Plain(PlainLines),
    /// The lines of any other text.
    Listed(Vec<LineStart>),
}

/// Lines of a text whose bytes are the same as the text, apart from a byte-order mark.
///
/// Most edits look up only a few lines. Counting newlines is much faster than listing all line starts, so the list is
/// made only after many lookups.
#[derive(Debug, Clone)]
pub(super) struct PlainLines {
    pub(super) bom_len: usize,
    /// The number of newlines before each block, and before the end of the text.
    counts: OnceCell<Vec<usize>>,
    /// The start of each line.
    starts: OnceCell<Vec<usize>>,
    /// Number of lookups so far. Each searches about one block.
    lookups: Cell<usize>,
}

/// Size in bytes of the blocks whose newlines are counted.
const BLOCK: usize = 4096;

impl PlainLines {
    pub(super) fn new(bom_len: usize) -> PlainLines {
        let (counts, starts) = (OnceCell::new(), OnceCell::new());
        PlainLines { bom_len, counts, starts, lookups: Cell::new(0) }
    }

    pub(super) fn count(&self, text: &str) -> usize {
        match self.starts.get() {
            Some(starts) => starts.len(),
            None => self.counts(text).last().map_or(1, |newlines| newlines + 1),
        }
    }

    /// Returns the start of a line in the text, or `None` if there is no such line.
    pub(super) fn start(&self, text: &str, line: usize) -> Option<usize> {
        if let Some(starts) = self.listed(text) {
            return starts.get(line).copied();
        }
        // Line `n` starts after newline `n`, counted from 1.
        let Some(before) = line.checked_sub(1) else { return Some(0) };
        let counts = self.counts(text);
        let block = counts.partition_point(|newlines| *newlines <= before).checked_sub(1)?;
        let from = block * BLOCK;
        let newline =
            memchr_iter(b'\n', text.as_bytes().get(from..)?).nth(before - counts[block])?;
        Some(from + newline + 1)
    }

    /// Returns the line that contains an offset of the text.
    pub(super) fn line_at(&self, text: &str, offset: usize) -> usize {
        if let Some(starts) = self.listed(text) {
            return starts.partition_point(|start| *start <= offset).saturating_sub(1);
        }
        let offset = offset.min(text.len());
        let block = offset / BLOCK;
        let before = memchr_iter(b'\n', &text.as_bytes()[block * BLOCK..offset]).count();
        self.counts(text)[block] + before
    }

    fn counts(&self, text: &str) -> &[usize] {
        self.counts.get_or_init(|| {
            let mut sum = 0;
            let mut counts = Vec::with_capacity(text.len() / BLOCK + 2);
            counts.push(0);
            for block in text.as_bytes().chunks(BLOCK) {
                sum += memchr_iter(b'\n', block).count();
                counts.push(sum);
            }
            counts
        })
    }

    /// Returns the list of starts, once the searches have cost as much as making the list.
    fn listed(&self, text: &str) -> Option<&[usize]> {
        if self.starts.get().is_none() {
            let lookups = self.lookups.get() + 1;
            self.lookups.set(lookups);
            if lookups * BLOCK <= text.len() {
                return None;
            }
        }
        Some(self.starts.get_or_init(|| {
            let mut starts = Vec::with_capacity(self.count(text));
            starts.push(0);
            starts.extend(memchr_iter(b'\n', text.as_bytes()).map(|newline| newline + 1));
            starts
        }))
    }
}

/// Returns the end of the line that starts at `start`, without its newline.
pub(super) fn end_of_line(text: &str, start: usize) -> usize {
    memchr(b'\n', &text.as_bytes()[start..]).map_or(text.len(), |length| start + length)
}
