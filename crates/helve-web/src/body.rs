//! Decompresses bodies, up to a limit.

use std::io::{self, Read};

use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use helve_core::web::WebError;
use ruzstd::decoding::StreamingDecoder;

/// The value of the `Accept-Encoding` header.
pub(crate) const ACCEPTED_ENCODINGS: &str = "gzip, deflate, br, zstd";
/// The largest window of zstd that the standard for HTTP permits, in bytes.
const MAX_ZSTD_WINDOW: u64 = 8 << 20;
/// Maximum number of encodings that are applied to one body.
const MAX_LAYERS: usize = 3;

/// Decompresses a body. `encodings` is the value of the `Content-Encoding` header.
pub(crate) fn decompress(
    encodings: &str,
    mut bytes: Vec<u8>,
    limit: usize,
) -> Result<Vec<u8>, WebError> {
    let names: Vec<String> =
        encodings.split(',').map(|name| name.trim().to_ascii_lowercase()).collect();
    if names.len() > MAX_LAYERS {
        return Err(WebError::UnknownCompression(encodings.chars().take(80).collect()));
    }
    for name in names.iter().rev() {
        let damaged = |err: io::Error| WebError::BadCompression(err.to_string());
        bytes = match name.as_str() {
            "" | "identity" => continue,
            // Some servers send an empty body with an encoding.
            _ if bytes.is_empty() => continue,
            "gzip" | "x-gzip" => read_limited(MultiGzDecoder::new(&*bytes), limit)?,
            // The standard says zlib, but some servers send the bare stream.
            "deflate" if bytes[0] & 0x0f == 8 => read_limited(ZlibDecoder::new(&*bytes), limit)?,
            "deflate" => read_limited(DeflateDecoder::new(&*bytes), limit)?,
            "br" => read_limited(brotli_decompressor::Decompressor::new(&*bytes, 4096), limit)?,
            "zstd" => {
                let decoder = StreamingDecoder::new_with_max_window_size(&*bytes, MAX_ZSTD_WINDOW)
                    .map_err(|err| damaged(io::Error::other(err.to_string())))?;
                read_limited(decoder, limit)?
            }
            other => {
                return Err(WebError::UnknownCompression(other.chars().take(80).collect()));
            }
        };
    }
    Ok(bytes)
}

fn read_limited(decoder: impl Read, limit: usize) -> Result<Vec<u8>, WebError> {
    let mut bytes = Vec::new();
    let read = decoder.take(limit as u64 + 1).read_to_end(&mut bytes);
    match read {
        Ok(_) if bytes.len() > limit => Err(WebError::TooLarge { limit }),
        Ok(_) => Ok(bytes),
        Err(err) => Err(WebError::BadCompression(err.to_string())),
    }
}
