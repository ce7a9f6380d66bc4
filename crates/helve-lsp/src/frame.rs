//! The framing of the language server protocol: each message is a `Content-Length` header, a blank line, and JSON.

use bytes::{Bytes, BytesMut};
use serde_json::Value;
use tokio_util::codec::Decoder;

/// Maximum size of a header, including anything that a server prints before it by mistake.
const MAX_HEADER: usize = 16 << 10;
/// Maximum size of a message.
const MAX_BODY: usize = 64 << 20;

/// Encodes a message, with its header.
pub(crate) fn encode(message: &Value) -> Bytes {
    let body = message.to_string();
    format!("Content-Length: {}\r\n\r\n{body}", body.len()).into()
}

/// Splits the output of a server into messages. Lines that are not a known header are skipped, because some servers
/// also print other text, such as logs, to their standard output.
#[derive(Debug, Default)]
pub(crate) struct FrameDecoder {
    /// Size of the body that follows; set once its header is complete.
    body_length: Option<usize>,
    /// Number of bytes consumed since the last message, to limit the size of a header.
    header_bytes: usize,
    /// The `Content-Length` of the header that is being read, if that line was already seen.
    content_length: Option<usize>,
}

/// Why no more messages can be read from a server.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("its output has no message header")]
    NoHeader,
    #[error("it sent a message of {0} bytes; the limit is {MAX_BODY}")]
    TooLong(usize),
    #[error("its output cannot be read: {0}")]
    Io(#[from] std::io::Error),
}

impl Decoder for FrameDecoder {
    type Item = Bytes;
    type Error = FrameError;

    fn decode(&mut self, buffer: &mut BytesMut) -> Result<Option<Bytes>, FrameError> {
        while self.body_length.is_none() {
            let Some(end) = buffer.iter().position(|byte| *byte == b'\n') else {
                let is_too_long = self.header_bytes + buffer.len() > MAX_HEADER;
                return if is_too_long { Err(FrameError::NoHeader) } else { Ok(None) };
            };
            self.header_bytes += end + 1;
            if self.header_bytes > MAX_HEADER {
                return Err(FrameError::NoHeader);
            }
            let line = buffer.split_to(end + 1);
            let line = line.trim_ascii();
            match (line.is_empty(), self.content_length.take()) {
                (true, Some(length)) => {
                    self.body_length = Some(length);
                    self.header_bytes = 0;
                }
                // A blank line that a server printed by mistake.
                (true, None) => {}
                (false, earlier) => self.content_length = content_length(line).or(earlier),
            }
        }
        let length = self.body_length.unwrap_or_default();
        if length > MAX_BODY {
            return Err(FrameError::TooLong(length));
        }
        if buffer.len() < length {
            buffer.reserve((length - buffer.len()).min(1 << 20));
            return Ok(None);
        }
        self.body_length = None;
        let body = buffer.split_to(length).freeze();
        Ok(Some(body))
    }
}

fn content_length(line: &[u8]) -> Option<usize> {
    let line = std::str::from_utf8(line).ok()?;
    let (name, value) = line.split_once(':')?;
    if !name.trim().eq_ignore_ascii_case("content-length") {
        return None;
    }
    value.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Decodes output that arrives in pieces of `size` bytes.
    fn decode(output: &[u8], size: usize) -> Result<Vec<String>, String> {
        let (mut decoder, mut buffer) = (FrameDecoder::default(), BytesMut::new());
        let mut messages = Vec::new();
        for piece in output.chunks(size.max(1)) {
            buffer.extend_from_slice(piece);
            while let Some(body) = decoder.decode(&mut buffer).map_err(|it| it.to_string())? {
                messages.push(String::from_utf8_lossy(&body).into_owned());
            }
        }
        Ok(messages)
    }

    #[track_caller]
    fn check(output: &str, expected: Result<&[&str], &str>) {
        for size in [1, 2, 7, output.len()] {
            let decoded = decode(output.as_bytes(), size);
            let expected = expected.map(|list| list.iter().map(|it| (*it).to_owned()).collect());
            assert_eq!(decoded, expected.map_err(str::to_owned), "in pieces of {size}");
        }
    }

    #[test]
    fn messages_are_split() {
        check("", Ok(&[]));
        check("Content-Length: 2\r\n\r\n{}", Ok(&["{}"]));
        check("content-length:2\n\n{}Content-Length: 3\r\n\r\n[1]", Ok(&["{}", "[1]"]));
        check("Content-Type: x\r\nContent-Length: 2\r\n\r\n{}", Ok(&["{}"]));
        check("Content-Length: 0\r\n\r\nContent-Length: 1\r\n\r\n1", Ok(&["", "1"]));
        check("starting up\n\nContent-Length: 2\r\n\r\n{}", Ok(&["{}"]));
        check("Content-Length: 5\r\n\r\n{}", Ok(&[]));
        check("Content-Length: é\r\n\r\n{}", Ok(&[]));
        check(
            "Content-Length: 99999999999\r\n\r\n",
            Err("it sent a message of 99999999999 bytes; the limit is 67108864"),
        );
        check(&"x".repeat(20_000), Err("its output has no message header"));
        check(&"x\n".repeat(20_000), Err("its output has no message header"));
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(texts in prop::collection::vec("\\PC{0,20}", 0..4), size in 1usize..30) {
            let messages: Vec<Value> = texts.into_iter().map(Value::from).collect();
            let output: Vec<u8> = messages.iter().flat_map(|it| encode(it).to_vec()).collect();
            let expected: Vec<String> = messages.iter().map(Value::to_string).collect();
            prop_assert_eq!(decode(&output, size), Ok(expected));
        }

        #[test]
        fn arbitrary_output_does_no_harm(output in prop::collection::vec(any::<u8>(), 0..200), size in 1usize..30) {
            decode(&output, size).ok();
        }
    }
}
