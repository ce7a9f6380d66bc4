//! Messages about files that are read: notes on a page of lines, and why nothing is shown.

use helve_core::media::{MediaError, MediaFormat, PagesEnd};
use helve_core::{ErrorKind, ToolError};

use super::count;
use crate::ops::read::ActualContent;
use crate::ops::read::lines::PageNote;

/// Returns a note on a page of lines, without a full stop.
pub(crate) fn page_note(note: &PageNote) -> String {
    match note {
        PageNote::Encoding(encoding) => format!("The encoding is {}", encoding.name()),
        PageNote::UnclearEncoding => "The encoding could not be determined; it is not UTF-8".into(),
        PageNote::InvalidCharacters(1) => {
            "1 character could not be decoded and is shown as \u{fffd}".into()
        }
        PageNote::InvalidCharacters(number) => {
            format!("{number} characters could not be decoded and are shown as \u{fffd}")
        }
        PageNote::NotANotebook(why) => format!("Not a valid notebook, shown as text: {why}"),
        PageNote::Notebook { cells, language } => {
            let cells = count(*cells as u64, "cell", "cells");
            let language = language.as_ref().map(|name| format!(", {name}")).unwrap_or_default();
            format!("Notebook, {cells}{language}; line numbers refer to this view, not to the file")
        }
        PageNote::PictureFailed { number, reason } => {
            format!("Picture {number} cannot be shown: {reason}")
        }
        PageNote::Document { pages } => format!("PDF, {}", count(*pages as u64, "page", "pages")),
        PageNote::DocumentCut { read, ended } => document_cut(*read, *ended),
        PageNote::DocumentAttached => "The document is attached".into(),
    }
}

fn document_cut(read: usize, ended: PagesEnd) -> String {
    match ended {
        PagesEnd::Complete => String::new(),
        PagesEnd::LimitReached if read == 1 => "Only the first page was read".into(),
        PagesEnd::LimitReached => format!("Only the first {read} pages were read"),
        PagesEnd::TimedOut => {
            format!("Only {} could be read in time", count(read as u64, "page", "pages"))
        }
        PagesEnd::TooComplex => format!(
            "Page {} and all later pages were not read: they are too large when decompressed",
            read + 1
        ),
    }
}

/// Returns the error for a file that is neither text nor a known picture or document.
pub(crate) fn binary(display_path: &str, kind: &str, size: u64) -> ToolError {
    let message = format!("{display_path} is not text but {kind} ({size} bytes).");
    ToolError::new(ErrorKind::Failed, message).hint("Use a tool that understands its format.")
}

/// Returns the error for a file whose name promises a format that its content does not have.
pub(crate) fn mislabelled(
    display_path: &str,
    format: MediaFormat,
    content: ActualContent,
) -> ToolError {
    let (finding, hint) = match content {
        ActualContent::Nothing => ("it is empty", "Fetch or create the file again."),
        ActualContent::LfsPointer => {
            ("it is a Git LFS pointer", "Fetch the file itself with `git lfs pull`.")
        }
        ActualContent::Text => (
            "its content is text",
            "To see the text, print it in a shell or copy it to another name.",
        ),
        ActualContent::Other => {
            ("its content is something else", "Run `file` on the path in a shell.")
        }
    };
    let message = format!("{display_path} is named like a {}, but {finding}.", format_name(format));
    ToolError::new(ErrorKind::Failed, message).hint(hint)
}

/// Returns the error for a picture or document that cannot be decoded or shown.
pub(crate) fn undecodable(
    display_path: &str,
    format: MediaFormat,
    reason: &MediaError,
) -> ToolError {
    let name = format_name(format);
    let (message, hint) = match reason {
        MediaError::WrongFormat => return mislabelled(display_path, format, ActualContent::Other),
        MediaError::Broken { why } => (
            format!(
                "{display_path} claims to be a {name} but cannot be decoded: {}.",
                why.trim_end_matches('.')
            ),
            "The file may be damaged or truncated. Fetch or create the file again, or continue without it.",
        ),
        MediaError::DecoderFailed { why } => (
            format!("{display_path} is a {name} that Helve failed to decode: {why}."),
            "Convert the file to another format, or continue without it.",
        ),
        MediaError::TooLarge { size, limit } => (
            format!("{display_path} is a {name} of {size} bytes; the limit is {limit}."),
            "Make the file smaller, or extract a part, with a program that understands its format.",
        ),
        MediaError::TooManyPixels { size, limit } => (
            format!(
                "{display_path} is a {name} of {} × {} pixels; the limit is {limit} pixels in total.",
                size.width, size.height
            ),
            "Make the picture smaller with a program that understands its format.",
        ),
        MediaError::NotSmallEnough { size } => (
            format!(
                "{display_path} is a {name} of {} × {} pixels, which cannot be scaled down enough to show.",
                size.width, size.height
            ),
            "Crop the part that matters.",
        ),
        MediaError::TooMuchMemory => (
            format!("{display_path} is a {name} that needs too much memory to decode."),
            "Make the picture smaller with a program that understands its format.",
        ),
        MediaError::Locked => (
            format!("{display_path} is protected with a password."),
            "Ask the user for a copy without a password.",
        ),
        MediaError::TimedOut(time) => (
            format!(
                "{display_path} could not be decoded within {}.",
                count(time.as_secs(), "second", "seconds")
            ),
            "Continue without the file, or extract a part of it.",
        ),
        MediaError::Unsupported => (
            format!("{display_path} is a {name}, which this build of Helve cannot show."),
            "Use a tool that understands its format.",
        ),
    };
    ToolError::new(ErrorKind::Failed, message).hint(hint)
}

pub(crate) fn format_name(format: MediaFormat) -> &'static str {
    match format {
        MediaFormat::Png => "PNG image",
        MediaFormat::Jpeg => "JPEG image",
        MediaFormat::Gif => "GIF image",
        MediaFormat::Webp => "WebP image",
        MediaFormat::Bmp => "BMP image",
        MediaFormat::Pdf => "PDF document",
    }
}
