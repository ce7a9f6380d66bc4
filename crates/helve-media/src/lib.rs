//! Pictures and documents: decoded, checked, and made small enough for a conversation.

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

/// What one look may cost.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub file_bytes: u64,
    /// Of a picture, before a single one is decoded.
    pub pixels: u64,
    /// What a decoder may hold.
    pub memory: u64,
    /// The longest side of a picture that is given on.
    pub side: u32,
    /// The size of a picture that is given on, written in base64.
    pub base64_bytes: usize,
    /// Of a document.
    pub pages: usize,
    pub text_bytes: usize,
    pub time: Duration,
}

impl Default for Limits {
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

/// How many are looked at together: each may hold [`Limits::memory`].
const TOGETHER: usize = 2;
/// Parts of a document may contain parts, within the bound that `document` checks.
const STACK: usize = 16 << 20;

/// Decodes on threads of its own.
pub struct Decoder {
    limits: Limits,
    turns: Arc<Semaphore>,
}

impl Decoder {
    pub fn new(limits: Limits) -> Self {
        Self { limits, turns: Arc::new(Semaphore::new(TOGETHER)) }
    }
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl Media for Decoder {
    fn look(
        &self,
        bytes: Bytes,
        format: MediaFormat,
    ) -> BoxFuture<'_, Result<MediaContent, MediaError>> {
        Box::pin(async move {
            let limits = self.limits;
            let size = bytes.len() as u64;
            if size > limits.file_bytes {
                return Err(MediaError::TooLarge { size, most: limits.file_bytes });
            }
            let slow = MediaError::TimedOut(limits.time);
            let looking = async {
                let turn = self.turns.clone().acquire_owned().await;
                let (tell, told) = oneshot::channel();
                let work = move || {
                    // The turn lasts as long as the work, also when nobody waits for it any more.
                    let _turn = turn;
                    // Nobody listens once the time is up.
                    tell.send(guarded(&bytes, format, &limits)).unwrap_or(());
                };
                let thread = std::thread::Builder::new().name("helve-media".into());
                match thread.stack_size(STACK).spawn(work) {
                    Ok(_running) => told.await.unwrap_or(Err(broken("the decoder gave up"))),
                    Err(err) => Err(broken(err)),
                }
            };
            tokio::time::timeout(limits.time, looking).await.unwrap_or(Err(slow))
        })
    }
}

/// Decoders meet bytes that their authors did not think of.
fn guarded(
    bytes: &Bytes,
    format: MediaFormat,
    limits: &Limits,
) -> Result<MediaContent, MediaError> {
    let until = Instant::now() + limits.time * 3 / 4;
    catch_unwind(AssertUnwindSafe(|| look(bytes, format, limits, until)))
        .unwrap_or_else(|_panic| Err(broken("the decoder gave up")))
}

fn look(
    bytes: &Bytes,
    format: MediaFormat,
    limits: &Limits,
    until: Instant,
) -> Result<MediaContent, MediaError> {
    if !begins_like(bytes, format) {
        return Err(MediaError::NotThat);
    }
    match format {
        MediaFormat::Png
        | MediaFormat::Jpeg
        | MediaFormat::Gif
        | MediaFormat::Webp
        | MediaFormat::Bmp => {
            picture::look(bytes, format, limits, until).map(MediaContent::Picture)
        }
        MediaFormat::Pdf => document::look(bytes, limits, until).map(MediaContent::Document),
    }
}

/// Readers of PDF take some bytes before its first line, so there are such files.
fn begins_like(bytes: &Bytes, format: MediaFormat) -> bool {
    let start = &bytes[..bytes.len().min(1024)];
    MediaFormat::of_content(bytes) == Some(format)
        || format == MediaFormat::Pdf && start.windows(5).any(|five| five == b"%PDF-")
}

fn broken(why: impl ToString) -> MediaError {
    MediaError::Broken { why: why.to_string() }
}

#[cfg(not(feature = "images"))]
mod picture {
    pub(super) fn look(
        _bytes: &bytes::Bytes,
        _format: crate::Format,
        _limits: &crate::Limits,
        _until: std::time::Instant,
    ) -> Result<helve_core::media::Picture, crate::Unseen> {
        Err(crate::Unseen::Unsupported)
    }
}

#[cfg(not(feature = "pdf"))]
mod document {
    pub(super) fn look(
        _bytes: &bytes::Bytes,
        _limits: &crate::Limits,
        _until: std::time::Instant,
    ) -> Result<helve_core::media::Document, crate::Unseen> {
        Err(crate::Unseen::Unsupported)
    }
}
