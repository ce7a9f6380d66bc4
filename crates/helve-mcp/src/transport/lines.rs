//! Reads lines from a byte stream, each within a limit.

use std::io;

use helve_text::line_buffer::{LineBuffer, LineStatus};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// Maximum length of a message in bytes. A longer line is skipped.
pub(crate) const MAX_MESSAGE_BYTES: usize = 16 << 20;
/// Maximum number of skipped bytes. After that the connection is closed.
pub(crate) const MAX_DISCARDED: usize = 128 << 20;
/// Size of a pipe's buffer.
const CHUNK: usize = 64 << 10;

pub(crate) struct LineReader<R> {
    source: BufReader<R>,
    buffer: LineBuffer,
}

#[derive(Debug)]
pub(crate) enum LineRead {
    Line(Vec<u8>),
    /// The line exceeds [`MAX_MESSAGE_BYTES`]. Reported once, as soon as it is known; the rest is skipped.
    TooLong,
    /// The rest of an overlong line exceeds [`MAX_DISCARDED`].
    Endless,
    End,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(crate) fn new(source: R) -> Self {
        Self {
            source: BufReader::with_capacity(CHUNK, source),
            buffer: LineBuffer::new(MAX_MESSAGE_BYTES),
        }
    }

    /// Reads the next line. Cancel safe.
    pub(crate) async fn next(&mut self) -> io::Result<LineRead> {
        loop {
            let chunk = self.source.fill_buf().await?;
            if chunk.is_empty() {
                return Ok(self.buffer.finish().map_or(LineRead::End, LineRead::Line));
            }
            let (consumed, status) = self.buffer.push(chunk);
            self.source.consume(consumed);
            match status {
                LineStatus::Complete(line) => return Ok(LineRead::Line(line)),
                LineStatus::TooLong => return Ok(LineRead::TooLong),
                LineStatus::Incomplete if self.buffer.discarded_len() > MAX_DISCARDED => {
                    return Ok(LineRead::Endless);
                }
                LineStatus::Incomplete => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokio::io::AsyncWriteExt;

    use super::*;

    async fn read_all(text: Vec<u8>, chunk: usize) -> Vec<Vec<u8>> {
        let (mut to, from) = tokio::io::duplex(chunk);
        let writing = tokio::spawn(async move { to.write_all(&text).await });
        let mut lines = LineReader::new(from);
        let mut found = Vec::new();
        loop {
            // Dropping the future again and again must not lose anything.
            let next = tokio::select! {
                biased;
                next = lines.next() => next.unwrap(),
                () = tokio::task::yield_now() => continue,
            };
            match next {
                LineRead::Line(line) => found.push(line),
                LineRead::TooLong | LineRead::Endless => panic!("too long"),
                LineRead::End => break,
            }
        }
        writing.await.unwrap().unwrap();
        found
    }

    #[tokio::test]
    async fn an_overlong_line_is_skipped_and_an_endless_one_is_reported() {
        let long = vec![b'x'; MAX_MESSAGE_BYTES + 1];
        let text = [&*long, b"\nshort\n"].concat();
        let mut lines = LineReader::new(&*text);
        assert!(matches!(lines.next().await.unwrap(), LineRead::TooLong));
        assert!(matches!(lines.next().await.unwrap(), LineRead::Line(line) if line == b"short"));
        let mut lines = LineReader::new(tokio::io::repeat(b'x'));
        assert!(matches!(lines.next().await.unwrap(), LineRead::TooLong));
        assert!(matches!(lines.next().await.unwrap(), LineRead::Endless));
    }

    proptest! {
        #[test]
        fn every_line_is_read_completely(
            text in proptest::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..200),
            chunk in 1..20_usize,
        ) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let found = runtime.block_on(read_all(text.clone(), chunk));
            let mut expected: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
            if expected.last().is_some_and(|last| last.is_empty()) {
                expected.pop();
            }
            prop_assert_eq!(found, expected);
        }
    }
}
