//! PDF documents: their text, page by page. What a page unfolds to is bounded before it is unfolded.

mod bounds;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use bytes::Bytes;
use helve_core::media::{Document, MediaError, PageText, PagesEnd};
use pdf_extract::{
    Error, MediaBox, ObjectId, OutputDev, OutputError, PlainTextOutput, Transform, output_doc_page,
};

use crate::{Limits, broken};

/// How many pages are counted.
const MOST_PAGES: usize = 100_000;
/// How many characters are put down between two looks at the clock.
const BETWEEN: usize = 256;

pub(super) fn look(bytes: &Bytes, limits: &Limits, until: Instant) -> Result<Document, MediaError> {
    bounds::of_file(bytes, until).map_err(broken)?;
    let mut document = load(bytes)?;
    let ids: Vec<ObjectId> = document.page_iter().take(MOST_PAGES).collect();
    if ids.is_empty() {
        return Err(broken("it has no pages"));
    }
    bounds::forget_pictures(&mut document);
    let (mut pages, mut room) = (Vec::new(), limits.text_bytes);
    let mut ended = PagesEnd::AtTheEnd;
    for (number, id) in (1..).zip(&ids) {
        ended = match () {
            () if Instant::now() > until => PagesEnd::TimeIsUp,
            () if room == 0 || pages.len() == limits.pages => PagesEnd::Enough,
            () => PagesEnd::AtTheEnd,
        };
        if ended != PagesEnd::AtTheEnd {
            break;
        }
        if !bounds::page_is_safe(&document, *id) {
            ended = PagesEnd::Unsafe;
            break;
        }
        let (page, left) = page(&document, number, room, until);
        room = left;
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
        // Many are locked with nothing, only to forbid printing.
        document.decrypt("").map_err(failed)?;
    }
    Ok(document)
}

/// The library gives up on fonts it does not know by panicking; that costs one page, not the document.
/// Also tells how much room is left.
fn page(
    document: &pdf_extract::Document,
    number: u32,
    room: usize,
    until: Instant,
) -> (PageText, usize) {
    let left = Cell::new(room);
    let mut text = String::new();
    let reading = AssertUnwindSafe(|| {
        let plain = PlainTextOutput::new(&mut text);
        let mut output = Bounded { plain, room: &left, until, count: 0 };
        // A page that ends early, for want of room or time, is shown as far as it came.
        output_doc_page(document, &mut output, number).is_ok()
    });
    let whole = catch_unwind(reading).unwrap_or(false);
    let text: String =
        text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
    let page = match (text.trim().is_empty(), whole) {
        (false, _) => PageText::Text(text.trim().into()),
        (true, true) => PageText::NoText,
        (true, false) => PageText::Unreadable,
    };
    (page, left.get())
}

/// Puts text down until there is no more room or time.
struct Bounded<'a> {
    plain: PlainTextOutput<&'a mut String>,
    room: &'a Cell<usize>,
    until: Instant,
    count: usize,
}

impl OutputDev for Bounded<'_> {
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
        place: &Transform,
        width: f64,
        spacing: f64,
        font_size: f64,
        character: &str,
    ) -> Result<(), OutputError> {
        self.count += 1;
        let late = self.count.is_multiple_of(BETWEEN) && Instant::now() > self.until;
        self.room.set(self.room.get().saturating_sub(character.len()));
        if late || self.room.get() == 0 {
            return Err(OutputError::FormatError(std::fmt::Error));
        }
        self.plain.output_character(place, width, spacing, font_size, character)
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
