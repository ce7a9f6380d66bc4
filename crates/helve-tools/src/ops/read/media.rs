//! Turns decoded pictures and documents into results.

use bytes::Bytes;
use helve_core::media::{Document, MediaError, MediaFormat, PageText, PagesEnd, Picture};
use helve_text::view::View;

use super::lines::{Attachment, LinePage, PageNote};
use super::{ActualContent, LineWindow, ReadError, ReadLimits};

/// The largest document that is attached besides its text.
const MAX_ATTACHED_BYTES: usize = 8 << 20;
/// Number of bytes at the start of a file that are checked for being text.
const SAMPLE_BYTES: usize = 4096;

/// Returns a window of lines of a document's text, all pages together. The first window also has the document as an
/// attachment.
pub(crate) fn document_window(
    bytes: &Bytes,
    document: &Document,
    window: LineWindow,
    limits: ReadLimits,
) -> LinePage {
    let mut text = String::new();
    for (number, page) in (1..).zip(&document.pages) {
        text.push_str(&format!("-- page {number} of {} --\n", document.count));
        text.push_str(match page {
            PageText::Text(text) => text,
            PageText::NoText => "(no text: a scan or drawing)",
            PageText::Unreadable => "(the text of this page cannot be read)",
        });
        text.push('\n');
    }
    let mut excerpt = LinePage::of_text(&text, window, limits);
    excerpt.notes.push(PageNote::Document { pages: document.count });
    match document.ended {
        PagesEnd::Complete => {}
        ended @ (PagesEnd::LimitReached | PagesEnd::TimedOut | PagesEnd::TooComplex) => {
            excerpt.notes.push(PageNote::DocumentCut { read: document.pages.len(), ended });
        }
    }
    let is_safe = document.ended != PagesEnd::TooComplex;
    if window.first == 1 && bytes.len() <= MAX_ATTACHED_BYTES && is_safe {
        excerpt.notes.push(PageNote::DocumentAttached);
        let mime = MediaFormat::Pdf.mime().into();
        excerpt.attachments.push(Attachment { mime, data: bytes.clone() });
    }
    excerpt
}

pub(super) fn attachment(picture: Picture) -> Attachment {
    Attachment { mime: picture.mime.into(), data: picture.bytes }
}

/// Returns the error for a file that is mislabelled, or that cannot be decoded.
pub(super) fn error(
    display_path: &str,
    format: MediaFormat,
    bytes: &Bytes,
    reason: MediaError,
) -> ReadError {
    let display_path = display_path.into();
    if reason != MediaError::WrongFormat {
        return ReadError::Undecodable { display_path, format, reason };
    }
    let start = &bytes[..bytes.len().min(SAMPLE_BYTES)];
    let content = if bytes.is_empty() {
        ActualContent::Nothing
    } else if bytes.starts_with(b"version https://git-lfs") {
        ActualContent::LfsPointer
    } else if View::new(start).is_ok_and(|view| !view.is_damaged()) {
        ActualContent::Text
    } else {
        ActualContent::Other
    };
    ReadError::Mislabelled { display_path, format, content }
}
