//! A page of lines with notes and attachments.

use bytes::Bytes;
use helve_core::media::{MediaError, PagesEnd};
use helve_text::lines;
use helve_text::view::Encoding;

use super::{LineWindow, ReadLimits};

/// Some lines of a file, or of text extracted from a file.
pub(crate) struct LinePage {
    /// The number of the first line, counted from 1.
    pub(crate) first: u64,
    pub(crate) lines: Vec<PageLine>,
    /// Whether more lines follow.
    pub(crate) has_more: bool,
    pub(crate) total: LineTotal,
    pub(crate) notes: Vec<PageNote>,
    pub(crate) attachments: Vec<Attachment>,
}

/// The number of lines in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineTotal {
    Exactly(u64),
    /// The file is too large to count its lines.
    MoreThan(u64),
}

impl LineTotal {
    /// Returns the number of lines that were counted.
    pub(crate) fn seen(self) -> u64 {
        match self {
            LineTotal::Exactly(lines) | LineTotal::MoreThan(lines) => lines,
        }
    }
}

pub(crate) struct PageLine {
    pub(crate) text: String,
    pub(crate) is_cut: bool,
}

/// Something to know about the lines of a page.
pub(crate) enum PageNote {
    /// The encoding is not UTF-8.
    Encoding(Encoding),
    UnclearEncoding,
    /// Number of characters that are invalid in the encoding and were replaced.
    InvalidCharacters(usize),
    /// The file is named like a notebook but is not one. The text says why.
    NotANotebook(String),
    /// The lines are a rendering of a notebook.
    Notebook {
        cells: usize,
        language: Option<String>,
    },
    /// A picture of a notebook, counted from 1, could not be decoded.
    PictureFailed {
        number: usize,
        reason: MediaError,
    },
    /// The lines are the text of a document.
    Document {
        pages: usize,
    },
    /// Only the first `read` pages of a document were read.
    DocumentCut {
        read: usize,
        ended: PagesEnd,
    },
    /// The document itself is among the attachments.
    DocumentAttached,
}

/// A picture or document that comes with the lines.
pub(crate) struct Attachment {
    pub(crate) mime: String,
    pub(crate) data: Bytes,
}

impl PageLine {
    pub(super) fn new(text: &str, is_cut: bool, limits: ReadLimits) -> PageLine {
        let (text, clipped) = lines::clip(text, limits.line_chars);
        PageLine { text: text.into(), is_cut: is_cut || clipped }
    }
}

impl LinePage {
    /// Returns a window of a text that was rendered from a file.
    pub(crate) fn of_text(text: &str, window: LineWindow, limits: ReadLimits) -> LinePage {
        let LineWindow { first, count } = window;
        let (mut total, mut bytes, mut lines) = (0, 0, Vec::new());
        let mut is_full = false;
        for line in text.lines() {
            total += 1;
            if total < first || is_full {
                continue;
            }
            let line = PageLine::new(line, false, limits);
            bytes += line.text.len();
            is_full = lines.len() as u64 == count || !lines.is_empty() && bytes > limits.bytes;
            if !is_full {
                lines.push(line);
            }
        }
        let (notes, attachments) = (Vec::new(), Vec::new());
        let total = LineTotal::Exactly(total);
        LinePage { first, lines, has_more: is_full, total, notes, attachments }
    }

    /// Returns the number of the first line after the page.
    pub(crate) fn next(&self) -> u64 {
        self.first + self.lines.len() as u64
    }
}
