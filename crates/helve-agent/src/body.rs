//! The body of a response, piece by piece. Decodes a body that a proxy compressed although we did not ask for it.

use std::io::{self, Write};

use flate2::write::{GzDecoder, ZlibDecoder};
use reqwest::Response;
use reqwest::header::CONTENT_ENCODING;

/// How many compressed bytes are decoded at a time. Each becomes at most about a thousand bytes, so memory is bounded.
const SLICE: usize = 16 << 10;

/// A response whose body is being read.
pub(crate) struct ResponseBody {
    response: Response,
    decoder: BodyDecoder,
    /// Compressed bytes that are not decoded yet.
    waiting: Vec<u8>,
}

enum BodyDecoder {
    None,
    Gzip(GzDecoder<Vec<u8>>),
    Deflate(ZlibDecoder<Vec<u8>>),
}

/// Why a body cannot be read.
pub(crate) enum BodyError {
    Transport(reqwest::Error),
    /// The compressed bytes are damaged.
    Damaged(io::Error),
}

impl ResponseBody {
    /// Fails with the name of the encoding if it is not supported.
    pub(crate) fn new(response: Response) -> Result<Self, String> {
        let encoding = response.headers().get(CONTENT_ENCODING);
        let encoding = encoding.and_then(|value| value.to_str().ok()).unwrap_or_default();
        let decoder = match encoding.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => BodyDecoder::None,
            "gzip" | "x-gzip" => BodyDecoder::Gzip(GzDecoder::new(Vec::new())),
            "deflate" => BodyDecoder::Deflate(ZlibDecoder::new(Vec::new())),
            other => return Err(other.into()),
        };
        Ok(Self { response, decoder, waiting: Vec::new() })
    }

    /// Returns the next piece, which may be empty; `None` at the end.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Vec<u8>>, BodyError> {
        if self.waiting.is_empty() {
            let chunk = self.response.chunk().await.map_err(BodyError::Transport)?;
            let Some(chunk) = chunk else { return Ok(None) };
            match self.decoder {
                BodyDecoder::None => return Ok(Some(chunk.into())),
                BodyDecoder::Gzip(_) | BodyDecoder::Deflate(_) => self.waiting = chunk.into(),
            }
        }
        let rest = self.waiting.split_off(self.waiting.len().min(SLICE));
        let slice = std::mem::replace(&mut self.waiting, rest);
        self.decoder.decode(&slice).map(Some).map_err(BodyError::Damaged)
    }
}

impl BodyDecoder {
    fn decode(&mut self, slice: &[u8]) -> io::Result<Vec<u8>> {
        match self {
            BodyDecoder::None => Ok(slice.to_vec()),
            BodyDecoder::Gzip(decoder) => {
                decoder.write_all(slice)?;
                decoder.flush()?;
                Ok(std::mem::take(decoder.get_mut()))
            }
            BodyDecoder::Deflate(decoder) => {
                decoder.write_all(slice)?;
                decoder.flush()?;
                Ok(std::mem::take(decoder.get_mut()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    #[test]
    fn compressed_pieces_are_decoded_as_they_arrive() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(b"data: one\n\n").unwrap();
        encoder.flush().unwrap();
        let first = encoder.get_ref().len();
        encoder.write_all(b"data: two\n\n").unwrap();
        let bytes = encoder.finish().unwrap();
        let mut decoder = BodyDecoder::Gzip(GzDecoder::new(Vec::new()));
        assert_eq!(decoder.decode(&bytes[..first]).unwrap(), b"data: one\n\n");
        let rest: Vec<u8> =
            bytes[first..].iter().flat_map(|byte| decoder.decode(&[*byte]).unwrap()).collect();
        assert_eq!(rest, b"data: two\n\n");
        let mut decoder = BodyDecoder::Gzip(GzDecoder::new(Vec::new()));
        assert!(decoder.decode(b"not compressed at all").is_err());
    }
}
