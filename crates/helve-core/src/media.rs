//! Pictures and documents: what bytes claim to be, and what they show once they are decoded and checked.

use std::time::Duration;

use bytes::Bytes;

use crate::BoxFuture;

/// Decodes what is not text. The work is bounded in size, memory and time; no bytes make it panic.
pub trait Media: Send + Sync {
    /// Looks at bytes that claim to be something.
    fn look(
        &self,
        bytes: Bytes,
        format: MediaFormat,
    ) -> BoxFuture<'_, Result<MediaContent, MediaError>>;
}

/// For a build that decodes nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoMedia;

impl Media for NoMedia {
    fn look(
        &self,
        _bytes: Bytes,
        _format: MediaFormat,
    ) -> BoxFuture<'_, Result<MediaContent, MediaError>> {
        Box::pin(async { Err(MediaError::Unsupported) })
    }
}

/// What can be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MediaFormat {
    Png,
    Jpeg,
    Gif,
    Webp,
    Bmp,
    Pdf,
}

impl MediaFormat {
    pub fn mime(self) -> &'static str {
        match self {
            MediaFormat::Png => "image/png",
            MediaFormat::Jpeg => "image/jpeg",
            MediaFormat::Gif => "image/gif",
            MediaFormat::Webp => "image/webp",
            MediaFormat::Bmp => "image/bmp",
            MediaFormat::Pdf => "application/pdf",
        }
    }

    /// What the first bytes of a file say.
    pub fn of_content(start: &[u8]) -> Option<MediaFormat> {
        match start {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(MediaFormat::Png),
            [0xff, 0xd8, 0xff, ..] => Some(MediaFormat::Jpeg),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(MediaFormat::Gif),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => {
                Some(MediaFormat::Webp)
            }
            // Two letters are little to go by; four reserved bytes are zero in every bitmap.
            [b'B', b'M', _, _, _, _, 0, 0, 0, 0, ..] => Some(MediaFormat::Bmp),
            [b'%', b'P', b'D', b'F', b'-', ..] => Some(MediaFormat::Pdf),
            _ => None,
        }
    }

    /// What the name of a file says.
    pub fn of_name(name: &str) -> Option<MediaFormat> {
        let (_, extension) = name.rsplit_once('.')?;
        match extension.to_ascii_lowercase().as_str() {
            "png" => Some(MediaFormat::Png),
            "jpg" | "jpeg" => Some(MediaFormat::Jpeg),
            "gif" => Some(MediaFormat::Gif),
            "webp" => Some(MediaFormat::Webp),
            "bmp" => Some(MediaFormat::Bmp),
            "pdf" => Some(MediaFormat::Pdf),
            _ => None,
        }
    }
}

/// What was seen.
#[derive(Clone, Debug, PartialEq)]
pub enum MediaContent {
    Picture(Picture),
    Document(Document),
}

/// A picture that was decoded whole and fits a conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    pub mime: &'static str,
    pub bytes: Bytes,
    pub size: PixelSize,
    /// Before it was made smaller.
    pub original: PixelSize,
    pub frames: Frames,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PixelSize {
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
    pub pages: Vec<PageText>,
    pub ended: PagesEnd,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageText {
    Text(String),
    /// A scan, or fonts that do not say which characters they draw.
    NoText,
    Unreadable,
}

/// Why no further page was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PagesEnd {
    AtTheEnd,
    /// Enough pages, or enough text.
    Enough,
    TimeIsUp,
    /// Its streams unfold to more than is safe, or its parts contain one another.
    Unsafe,
}

/// Why nothing is shown. A value: the dialect words it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MediaError {
    #[error("it is not what it claims to be")]
    NotThat,
    #[error("it is damaged: {why}")]
    Broken { why: String },
    #[error("it has {size} bytes, and {most} are the most")]
    TooLarge { size: u64, most: u64 },
    #[error("it has {} × {} pixels, and {most} are the most", .size.width, .size.height)]
    TooManyPixels { size: PixelSize, most: u64 },
    #[error("it cannot be made small enough")]
    NotSmallEnough { size: PixelSize },
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
        let content = |bytes: &[u8], expected| assert_eq!(MediaFormat::of_content(bytes), expected);
        content(b"\x89PNG\r\n\x1a\n....", Some(MediaFormat::Png));
        content(b"\xff\xd8\xff\xe0", Some(MediaFormat::Jpeg));
        content(b"GIF89a", Some(MediaFormat::Gif));
        content(b"GIF8 is a format", None);
        content(b"RIFF\0\0\0\0WEBPVP8 ", Some(MediaFormat::Webp));
        content(b"RIFF\0\0\0\0WAVEfmt ", None);
        content(b"BMW and others", None);
        content(b"BM\x46\0\0\0\0\0\0\0\x36", Some(MediaFormat::Bmp));
        content(b"%PDF-1.7\n", Some(MediaFormat::Pdf));
        content(b"", None);
        let name = |name, expected| assert_eq!(MediaFormat::of_name(name), expected);
        name("a.PNG", Some(MediaFormat::Png));
        name("a.tar.jpeg", Some(MediaFormat::Jpeg));
        name("png", None);
        name("a.svg", None);
    }
}
