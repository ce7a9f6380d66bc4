//! Images and documents: detecting their format and decoding them.

use std::time::Duration;

use bytes::Bytes;

use crate::BoxFuture;

/// Decodes images and documents. Bounded in size, memory and time; never panics.
pub trait Media: Send + Sync {
    /// Decodes a file of this format.
    fn decode(
        &self,
        bytes: Bytes,
        format: MediaFormat,
    ) -> BoxFuture<'_, Result<MediaContent, MediaError>>;
}

/// Decodes nothing. For builds without decoders.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoMedia;

impl Media for NoMedia {
    fn decode(
        &self,
        _bytes: Bytes,
        _format: MediaFormat,
    ) -> BoxFuture<'_, Result<MediaContent, MediaError>> {
        Box::pin(async { Err(MediaError::Unsupported) })
    }
}

/// The formats that can be decoded.
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

    /// Detects the format from the first bytes of a file.
    pub fn of_content(start: &[u8]) -> Option<MediaFormat> {
        match start {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(MediaFormat::Png),
            [0xff, 0xd8, 0xff, ..] => Some(MediaFormat::Jpeg),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(MediaFormat::Gif),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => {
                Some(MediaFormat::Webp)
            }
            // Two letters are a weak signature, so the four reserved bytes are checked too.
            [b'B', b'M', _, _, _, _, 0, 0, 0, 0, ..] => Some(MediaFormat::Bmp),
            [b'%', b'P', b'D', b'F', b'-', ..] => Some(MediaFormat::Pdf),
            _ => None,
        }
    }

    /// Guesses the format from a file name.
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

/// A decoded image or document.
#[derive(Clone, Debug, PartialEq)]
pub enum MediaContent {
    Picture(Picture),
    Document(Document),
}

/// An image that was decoded completely and fits the limits of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    pub mime: &'static str,
    pub bytes: Bytes,
    pub size: PixelSize,
    /// The size before scaling.
    pub original: PixelSize,
    pub frames: Frames,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PixelSize {
    pub width: u32,
    pub height: u32,
}

/// Whether an image is an animation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frames {
    One,
    /// An animation, of which the first frame is shown.
    FirstOfMany,
}

/// The text of a document, page by page.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// The number of pages of the whole document.
    pub count: usize,
    /// The text of the pages that were read, starting with the first.
    pub pages: Vec<PageText>,
    pub ended: PagesEnd,
}

/// What could be read from a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageText {
    Text(String),
    /// The page has no text: it is a scan, or its fonts have no character map.
    NoText,
    Unreadable,
}

/// Why no further page was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PagesEnd {
    Complete,
    /// The limit on pages or text was reached.
    LimitReached,
    TimedOut,
    /// The document would need too much memory: a stream decompresses to too much, or objects contain one another.
    TooComplex,
}

/// Why an image or document could not be decoded. The dialect has the messages for models.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MediaError {
    #[error("the content does not match the format")]
    WrongFormat,
    #[error("the file is damaged: {why}")]
    Broken { why: String },
    /// The decoder could not be started, or panicked. The file may be intact.
    #[error("the decoder failed: {why}")]
    DecoderFailed { why: String },
    #[error("the file has {size} bytes; the limit is {limit}")]
    TooLarge { size: u64, limit: u64 },
    #[error("the image has {} × {} pixels; the limit is {limit}", .size.width, .size.height)]
    TooManyPixels { size: PixelSize, limit: u64 },
    #[error("the image cannot be scaled down enough")]
    NotSmallEnough { size: PixelSize },
    #[error("decoding the image needs too much memory")]
    TooMuchMemory,
    #[error("the document is protected by a password")]
    Locked,
    #[error("decoding took longer than {0:?}")]
    TimedOut(Duration),
    #[error("this build cannot decode the format")]
    Unsupported,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_detected_by_content_and_by_name() {
        let check_content =
            |bytes: &[u8], expected| assert_eq!(MediaFormat::of_content(bytes), expected);
        check_content(b"\x89PNG\r\n\x1a\n....", Some(MediaFormat::Png));
        check_content(b"\xff\xd8\xff\xe0", Some(MediaFormat::Jpeg));
        check_content(b"GIF89a", Some(MediaFormat::Gif));
        check_content(b"GIF8 is a format", None);
        check_content(b"RIFF\0\0\0\0WEBPVP8 ", Some(MediaFormat::Webp));
        check_content(b"RIFF\0\0\0\0WAVEfmt ", None);
        check_content(b"BMW and others", None);
        check_content(b"BM\x46\0\0\0\0\0\0\0\x36", Some(MediaFormat::Bmp));
        check_content(b"%PDF-1.7\n", Some(MediaFormat::Pdf));
        check_content(b"", None);
        let check_name = |name, expected| assert_eq!(MediaFormat::of_name(name), expected);
        check_name("a.PNG", Some(MediaFormat::Png));
        check_name("a.tar.jpeg", Some(MediaFormat::Jpeg));
        check_name("png", None);
        check_name("a.svg", None);
    }
}
