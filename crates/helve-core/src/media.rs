//! Pictures and documents: what bytes claim to be, and what they show once they are decoded and checked.

use std::time::Duration;

use bytes::Bytes;

use crate::BoxFuture;

/// Decodes what is not text. The work is bounded in size, memory and time; no bytes make it panic.
pub trait Media: Send + Sync {
    /// Looks at bytes that claim to be something.
    fn look(&self, bytes: Bytes, format: Format) -> BoxFuture<'_, Result<Seen, Unseen>>;
}

/// For a build that decodes nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoMedia;

impl Media for NoMedia {
    fn look(&self, _bytes: Bytes, _format: Format) -> BoxFuture<'_, Result<Seen, Unseen>> {
        Box::pin(async { Err(Unseen::Unsupported) })
    }
}

/// What can be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    Png,
    Jpeg,
    Gif,
    Webp,
    Bmp,
    Pdf,
}

impl Format {
    pub fn mime(self) -> &'static str {
        match self {
            Format::Png => "image/png",
            Format::Jpeg => "image/jpeg",
            Format::Gif => "image/gif",
            Format::Webp => "image/webp",
            Format::Bmp => "image/bmp",
            Format::Pdf => "application/pdf",
        }
    }

    /// What the first bytes of a file say.
    pub fn of_content(start: &[u8]) -> Option<Format> {
        match start {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(Format::Png),
            [0xff, 0xd8, 0xff, ..] => Some(Format::Jpeg),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Format::Gif),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Format::Webp),
            // Two letters are little to go by; four reserved bytes are zero in every bitmap.
            [b'B', b'M', _, _, _, _, 0, 0, 0, 0, ..] => Some(Format::Bmp),
            [b'%', b'P', b'D', b'F', b'-', ..] => Some(Format::Pdf),
            _ => None,
        }
    }

    /// What the name of a file says.
    pub fn of_name(name: &str) -> Option<Format> {
        let (_, extension) = name.rsplit_once('.')?;
        match extension.to_ascii_lowercase().as_str() {
            "png" => Some(Format::Png),
            "jpg" | "jpeg" => Some(Format::Jpeg),
            "gif" => Some(Format::Gif),
            "webp" => Some(Format::Webp),
            "bmp" => Some(Format::Bmp),
            "pdf" => Some(Format::Pdf),
            _ => None,
        }
    }
}

/// What was seen.
#[derive(Clone, Debug, PartialEq)]
pub enum Seen {
    Picture(Picture),
    Document(Document),
}

/// A picture that was decoded whole and fits a conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    pub mime: &'static str,
    pub bytes: Bytes,
    pub size: Size,
    /// Before it was made smaller.
    pub original: Size,
    pub frames: Frames,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub width: u32,
    pub height: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frames {
    One,
    /// It moves; the first is shown.
    FirstOfMany,
}

/// The text of a document, page by page.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// How many pages it has.
    pub count: usize,
    /// The first of them, or all.
    pub pages: Vec<Page>,
    pub ended: Ended,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Page {
    Text(String),
    /// A scan, or fonts that do not say which characters they draw.
    NoText,
    Unreadable,
}

/// Why no further page was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    AtTheEnd,
    /// Enough pages, or enough text.
    Enough,
    TimeIsUp,
    /// Its streams unfold to more than is safe, or its parts contain one another.
    Unsafe,
}

/// Why nothing is shown. A value: the dialect words it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unseen {
    #[error("it is not what it claims to be")]
    NotThat,
    #[error("it is damaged: {why}")]
    Broken { why: String },
    #[error("it has {size} bytes, and {most} are the most")]
    TooLarge { size: u64, most: u64 },
    #[error("it has {} × {} pixels, and {most} are the most", .size.width, .size.height)]
    TooManyPixels { size: Size, most: u64 },
    #[error("it cannot be made small enough")]
    NotSmallEnough { size: Size },
    #[error("it is locked with a password")]
    Locked,
    #[error("it took longer than {0:?}")]
    TimedOut(Duration),
    #[error("this build cannot show it")]
    Unsupported,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_and_name_say_what_a_file_claims_to_be() {
        let content = |bytes: &[u8], expected| assert_eq!(Format::of_content(bytes), expected);
        content(b"\x89PNG\r\n\x1a\n....", Some(Format::Png));
        content(b"\xff\xd8\xff\xe0", Some(Format::Jpeg));
        content(b"GIF89a", Some(Format::Gif));
        content(b"GIF8 is a format", None);
        content(b"RIFF\0\0\0\0WEBPVP8 ", Some(Format::Webp));
        content(b"RIFF\0\0\0\0WAVEfmt ", None);
        content(b"BMW and others", None);
        content(b"BM\x46\0\0\0\0\0\0\0\x36", Some(Format::Bmp));
        content(b"%PDF-1.7\n", Some(Format::Pdf));
        content(b"", None);
        let name = |name, expected| assert_eq!(Format::of_name(name), expected);
        name("a.PNG", Some(Format::Png));
        name("a.tar.jpeg", Some(Format::Jpeg));
        name("png", None);
        name("a.svg", None);
    }
}
