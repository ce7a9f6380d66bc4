//! Pictures and documents: what is said of them, and what is attached.

use std::time::Duration;

use bytes::Bytes;
use helve_core::media::{
    Document, Ended, Format, Frames, Page as DocumentPage, Picture, Seen, Unseen,
};
use helve_core::{Content, ErrorKind, ToolError, ToolOutput};
use helve_text::view::View;

use super::count;
use super::lines::Page;

/// The largest document that is attached besides its text.
const ATTACHED: usize = 8 << 20;

/// Which lines of the text of a document are wanted.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    pub(super) first: u64,
    pub(super) most: u64,
}

pub(super) fn say(
    shown: &str,
    format: Format,
    bytes: &Bytes,
    seen: Result<Seen, Unseen>,
    wanted: Wanted,
) -> Result<ToolOutput, ToolError> {
    match seen {
        Ok(Seen::Picture(picture)) => Ok(self::picture(shown, format, &picture)),
        Ok(Seen::Document(document)) => self::document(shown, bytes, &document, wanted),
        Err(unseen) => Err(self::unseen(shown, format, bytes, &unseen)),
    }
}

fn picture(shown: &str, format: Format, picture: &Picture) -> ToolOutput {
    let (size, original) = (picture.size, picture.original);
    let mut text =
        format!("{shown}: {}, {} × {} pixels.", name(format), original.width, original.height);
    if size != original {
        text.push_str(&format!(" Shown at {} × {}.", size.width, size.height));
    }
    match picture.frames {
        Frames::One => {}
        Frames::FirstOfMany => text.push_str(" It moves; the first frame is shown."),
    }
    let mut output = ToolOutput::text(shown, text.clone())
        .with("preview", text)
        .with("truncated", false)
        .with("mime", picture.mime);
    output.content.push(attached(picture));
    output
}

pub(super) fn attached(picture: &Picture) -> Content {
    Content::Media { mime: picture.mime.into(), data: picture.bytes.clone() }
}

fn document(
    shown: &str,
    bytes: &Bytes,
    document: &Document,
    wanted: Wanted,
) -> Result<ToolOutput, ToolError> {
    let mut text = String::new();
    for (number, page) in (1..).zip(&document.pages) {
        text.push_str(&format!("-- page {number} of {} --\n", document.count));
        text.push_str(match page {
            DocumentPage::Text(text) => text,
            DocumentPage::NoText => "(no text: a picture, or drawn)",
            DocumentPage::Unreadable => "(the text of this page cannot be read)",
        });
        text.push('\n');
    }
    let mut page = Page::of(&text, wanted.first, wanted.most);
    page.notes.push(format!("PDF, {}", count(document.count as u64, "page", "pages")));
    let read = document.pages.len();
    match document.ended {
        Ended::AtTheEnd => {}
        Ended::Enough if read == 1 => page.notes.push("Only the first page was read".into()),
        Ended::Enough => page.notes.push(format!("Only the first {read} pages were read")),
        Ended::TimeIsUp => {
            let pages = count(read as u64, "page", "pages");
            page.notes.push(format!("Only {pages} could be read in time"));
        }
        Ended::Unsafe => page.notes.push(format!(
            "Page {} and what follows was not read: it unfolds to more than is safe",
            read + 1
        )),
    }
    // Once is enough; whoever goes on has it already.
    let attach = wanted.first == 1 && bytes.len() <= ATTACHED && document.ended != Ended::Unsafe;
    if attach {
        page.notes.push("The document itself is attached".into());
    }
    let mut output = page.say(shown)?;
    if attach {
        let mime = Format::Pdf.mime().into();
        output.content.push(Content::Media { mime, data: bytes.clone() });
    }
    Ok(output)
}

fn unseen(shown: &str, format: Format, bytes: &Bytes, unseen: &Unseen) -> ToolError {
    let name = name(format);
    let (message, hint) = match unseen {
        Unseen::NotThat => return not_that(shown, format, bytes),
        Unseen::Broken { why } => (
            format!(
                "{shown} claims to be a {name} but cannot be decoded: {}.",
                why.trim_end_matches('.')
            ),
            "It may be damaged or cut short. Fetch or make it again, or go on without it.".into(),
        ),
        Unseen::TooLarge { size, most } => (
            format!("{shown} is a {name} of {size} bytes; {most} are the most that is shown."),
            "Make it smaller, or take a part of it out, with a program that knows its format."
                .into(),
        ),
        Unseen::TooManyPixels { size, most } => (
            format!(
                "{shown} is a {name} of {} × {} pixels; {most} in all are the most that is decoded.",
                size.width, size.height
            ),
            "Make it smaller with a program that knows its format.".into(),
        ),
        Unseen::NotSmallEnough { size } => (
            format!(
                "{shown} is a {name} of {} × {} pixels that cannot be made small enough to show.",
                size.width, size.height
            ),
            "Cut out the part that matters.".into(),
        ),
        Unseen::Locked => (
            format!("{shown} is locked with a password."),
            "Ask the user for a copy without a password.".into(),
        ),
        Unseen::TimedOut(time) => (
            format!("{shown} could not be decoded within {}.", seconds(*time)),
            "Go on without it, or take a part of it out.".into(),
        ),
        Unseen::Unsupported => (
            format!("{shown} is a {name}, which this build of Helve cannot show."),
            "Use a tool that knows its format.".to_string(),
        ),
    };
    ToolError::new(ErrorKind::Failed, message).hint(hint)
}

/// Named like a picture or document, and something else.
fn not_that(shown: &str, format: Format, bytes: &Bytes) -> ToolError {
    let name = name(format);
    let start = &bytes[..bytes.len().min(4096)];
    let (is, hint) = if bytes.is_empty() {
        ("it is empty", "Fetch or make it again.")
    } else if bytes.starts_with(b"version https://git-lfs") {
        ("it is a Git LFS pointer", "Fetch the file itself with `git lfs pull`.")
    } else if View::new(start).is_ok_and(|view| !view.is_damaged()) {
        (
            "its content is text",
            "If the text is wanted, print it in a shell or copy it to another name.",
        )
    } else {
        ("its content is something else", "Find out what it is with `file` in a shell.")
    };
    let message = format!("{shown} is named like a {name}, but {is}.");
    ToolError::new(ErrorKind::Failed, message).hint(hint)
}

fn seconds(time: Duration) -> String {
    count(time.as_secs(), "second", "seconds")
}

fn name(format: Format) -> &'static str {
    match format {
        Format::Png => "PNG image",
        Format::Jpeg => "JPEG image",
        Format::Gif => "GIF image",
        Format::Webp => "WebP image",
        Format::Bmp => "BMP image",
        Format::Pdf => "PDF document",
    }
}
