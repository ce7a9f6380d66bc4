//! Extracts the text of PDF documents page by page. The decompressed size of a page is checked first.

mod bounds;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use bytes::Bytes;
use helve_core::media::{Document, MediaError, PageText, PagesEnd};
use pdf_extract::{
    Error, MediaBox, ObjectId, OutputDev, OutputError, PlainTextOutput, Transform, output_doc_page,
};

use crate::{MediaLimits, broken};

/// Maximum number of pages counted.
const MAX_PAGES: usize = 100_000;
/// Number of characters between two checks of the time limit.
const TIME_CHECK_INTERVAL: usize = 256;

pub(super) fn decode(
    bytes: &Bytes,
    limits: &MediaLimits,
    deadline: Instant,
) -> Result<Document, MediaError> {
    bounds::check_file(bytes, deadline).map_err(broken)?;
    let mut document = load(bytes)?;
    let ids: Vec<ObjectId> = document.page_iter().take(MAX_PAGES).collect();
    if ids.is_empty() {
        return Err(broken("it has no pages"));
    }
    bounds::remove_images(&mut document);
    let (mut pages, mut text_bytes_left) = (Vec::new(), limits.text_bytes);
    let mut ended = PagesEnd::Complete;
    for (number, id) in (1..).zip(&ids) {
        ended = match () {
            () if Instant::now() > deadline => PagesEnd::TimedOut,
            () if text_bytes_left == 0 || pages.len() == limits.pages => PagesEnd::LimitReached,
            () => PagesEnd::Complete,
        };
        if ended != PagesEnd::Complete {
            break;
        }
        if !bounds::page_is_safe(&document, *id) {
            ended = PagesEnd::TooComplex;
            break;
        }
        let (page, remaining) = page(&document, number, text_bytes_left, deadline);
        text_bytes_left = remaining;
        pages.push(page);
    }
    Ok(Document { count: ids.len(), pages, ended })
}

fn load(bytes: &Bytes) -> Result<pdf_extract::Document, MediaError> {
    let failed = |error: Error| match error {
        Error::InvalidPassword | Error::Decryption(_) => MediaError::Locked,
        other => broken(other),
    };
    let mut document = pdf_extract::Document::load_mem(bytes).map_err(failed)?;
    if document.is_encrypted() {
        // Many documents are encrypted with an empty password, only to restrict printing and the like.
        document.decrypt("").map_err(failed)?;
    }
    Ok(document)
}

/// Returns the text of one page, and how many of the `max_bytes` bytes of text are left. If the library panics, as it
/// does on unknown fonts, only this page is unreadable.
fn page(
    document: &pdf_extract::Document,
    number: u32,
    max_bytes: usize,
    deadline: Instant,
) -> (PageText, usize) {
    let remaining = Cell::new(max_bytes);
    let mut text = String::new();
    let reading = AssertUnwindSafe(|| {
        let plain = PlainTextOutput::new(&mut text);
        let mut output = BoundedOutput { plain, bytes_left: &remaining, deadline, count: 0 };
        // If a limit stops the page, the text before that point is kept.
        output_doc_page(document, &mut output, number).is_ok()
    });
    let is_complete = catch_unwind(reading).unwrap_or(false);
    let text: String =
        text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
    let page = match (text.trim().is_empty(), is_complete) {
        (false, _) => PageText::Text(text.trim().into()),
        (true, true) => PageText::NoText,
        (true, false) => PageText::Unreadable,
    };
    (page, remaining.get())
}

/// Collects text until a limit on size or time is reached.
struct BoundedOutput<'a> {
    plain: PlainTextOutput<&'a mut String>,
    bytes_left: &'a Cell<usize>,
    deadline: Instant,
    count: usize,
}

impl OutputDev for BoundedOutput<'_> {
    fn begin_page(
        &mut self,
        number: u32,
        media: &MediaBox,
        art: Option<(f64, f64, f64, f64)>,
    ) -> Result<(), OutputError> {
        self.plain.begin_page(number, media, art)
    }

    fn end_page(&mut self) -> Result<(), OutputError> {
        self.plain.end_page()
    }

    fn output_character(
        &mut self,
        transform: &Transform,
        width: f64,
        spacing: f64,
        font_size: f64,
        character: &str,
    ) -> Result<(), OutputError> {
        self.count += 1;
        let is_late =
            self.count.is_multiple_of(TIME_CHECK_INTERVAL) && Instant::now() > self.deadline;
        self.bytes_left.set(self.bytes_left.get().saturating_sub(character.len()));
        if is_late || self.bytes_left.get() == 0 {
            return Err(OutputError::FormatError(std::fmt::Error));
        }
        self.plain.output_character(transform, width, spacing, font_size, character)
    }

    fn begin_word(&mut self) -> Result<(), OutputError> {
        self.plain.begin_word()
    }

    fn end_word(&mut self) -> Result<(), OutputError> {
        self.plain.end_word()
    }

    fn end_line(&mut self) -> Result<(), OutputError> {
        self.plain.end_line()
    }
}
