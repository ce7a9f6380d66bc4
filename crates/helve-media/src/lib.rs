//! Decodes and checks images and documents, and makes images small enough for a conversation.

#[cfg(feature = "pdf")]
mod document;
#[cfg(feature = "images")]
mod picture;
#[cfg(test)]
#[cfg(all(feature = "images", feature = "pdf"))]
mod tests;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use helve_core::BoxFuture;
use helve_core::media::{Media, MediaContent, MediaError, MediaFormat};
use tokio::sync::{Semaphore, oneshot};

/// Limits for decoding one file.
#[derive(Clone, Copy, Debug)]
pub struct MediaLimits {
    /// Maximum size of the file.
    pub file_bytes: u64,
    /// Maximum number of pixels of an image, checked before decoding.
    pub pixels: u64,
    /// Maximum memory of a decoder in bytes.
    pub memory: u64,
    /// Maximum length of the longer side of a returned image.
    pub side: u32,
    /// Maximum size of a returned image in base64.
    pub base64_bytes: usize,
    /// Maximum number of pages of a document whose text is extracted. Later pages are left out.
    pub pages: usize,
    /// Maximum size of the extracted text of a document in bytes. The rest is left out.
    pub text_bytes: usize,
    /// Maximum time for one file, including the time it waits for a free decoder.
    pub time: Duration,
}

impl Default for MediaLimits {
    fn default() -> Self {
        Self {
            file_bytes: 64 << 20,
            pixels: 64_000_000,
            memory: 320 << 20,
            side: 2000,
            base64_bytes: 5 << 20,
            pages: 500,
            text_bytes: 4 << 20,
            time: Duration::from_secs(20),
        }
    }
}

/// How many files are decoded at once. Each may use [`MediaLimits::memory`].
const MAX_PARALLEL: usize = 2;
/// Stack size of a decoder thread. It is large because the objects of a PDF nest; `document` limits how deep.
const STACK_SIZE: usize = 16 << 20;

/// Decodes images and documents on its own threads.
pub struct Decoder {
    limits: MediaLimits,
    permits: Arc<Semaphore>,
}

impl Decoder {
    pub fn new(limits: MediaLimits) -> Self {
        Self { limits, permits: Arc::new(Semaphore::new(MAX_PARALLEL)) }
    }
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new(MediaLimits::default())
    }
}

impl Media for Decoder {
    fn decode(
        &self,
        bytes: Bytes,
        format: MediaFormat,
    ) -> BoxFuture<'_, Result<MediaContent, MediaError>> {
        Box::pin(async move {
            let limits = self.limits;
            let size = bytes.len() as u64;
            if size > limits.file_bytes {
                return Err(MediaError::TooLarge { size, limit: limits.file_bytes });
            }
            let timed_out = MediaError::TimedOut(limits.time);
            let decoding = async {
                let permit = self.permits.clone().acquire_owned().await;
                let (sender, receiver) = oneshot::channel();
                let work = move || {
                    // Held until the work ends, even if nobody waits for the result any more.
                    let _permit = permit;
                    // The receiver is gone after a timeout.
                    sender.send(decode_catching_panics(&bytes, format, &limits)).unwrap_or(());
                };
                let thread = std::thread::Builder::new().name("helve-media".into());
                match thread.stack_size(STACK_SIZE).spawn(work) {
                    Ok(_thread) => receiver.await.unwrap_or(Err(decoder_failed("it ended early"))),
                    Err(err) => Err(decoder_failed(err)),
                }
            };
            tokio::time::timeout(limits.time, decoding).await.unwrap_or(Err(timed_out))
        })
    }
}

/// Decodes a file. Returns an error if the decoder panics on unexpected bytes.
fn decode_catching_panics(
    bytes: &Bytes,
    format: MediaFormat,
    limits: &MediaLimits,
) -> Result<MediaContent, MediaError> {
    // Earlier than the caller's timeout, so that partial results arrive in time.
    let deadline = Instant::now() + limits.time * 3 / 4;
    catch_unwind(AssertUnwindSafe(|| decode(bytes, format, limits, deadline)))
        .unwrap_or_else(|_panic| Err(decoder_failed("it panicked")))
}

fn decode(
    bytes: &Bytes,
    format: MediaFormat,
    limits: &MediaLimits,
    deadline: Instant,
) -> Result<MediaContent, MediaError> {
    if !matches_format(bytes, format) {
        return Err(MediaError::WrongFormat);
    }
    match format {
        MediaFormat::Png
        | MediaFormat::Jpeg
        | MediaFormat::Gif
        | MediaFormat::Webp
        | MediaFormat::Bmp => {
            picture::decode(bytes, format, limits, deadline).map(MediaContent::Picture)
        }
        MediaFormat::Pdf => document::decode(bytes, limits, deadline).map(MediaContent::Document),
    }
}

/// Whether the content matches the format. Like PDF readers, this accepts some bytes before the header of a PDF.
fn matches_format(bytes: &Bytes, format: MediaFormat) -> bool {
    let start = &bytes[..bytes.len().min(1024)];
    MediaFormat::of_content(bytes) == Some(format)
        || format == MediaFormat::Pdf && start.windows(5).any(|five| five == b"%PDF-")
}

fn broken(why: impl ToString) -> MediaError {
    MediaError::Broken { why: why.to_string() }
}

fn decoder_failed(why: impl ToString) -> MediaError {
    MediaError::DecoderFailed { why: why.to_string() }
}

#[cfg(not(feature = "images"))]
mod picture {
    pub(super) fn decode(
        _bytes: &bytes::Bytes,
        _format: crate::MediaFormat,
        _limits: &crate::MediaLimits,
        _deadline: std::time::Instant,
    ) -> Result<helve_core::media::Picture, crate::MediaError> {
        Err(crate::MediaError::Unsupported)
    }
}

#[cfg(not(feature = "pdf"))]
mod document {
    pub(super) fn decode(
        _bytes: &bytes::Bytes,
        _limits: &crate::MediaLimits,
        _deadline: std::time::Instant,
    ) -> Result<helve_core::media::Document, crate::MediaError> {
        Err(crate::MediaError::Unsupported)
    }
}
