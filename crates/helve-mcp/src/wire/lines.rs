//! Lines from a byte stream, each within a limit.

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// The longest line that is kept.
pub(crate) const MOST_LINE: usize = 16 << 20;
/// As much as a pipe holds.
const CHUNK: usize = 64 << 10;

pub(crate) struct Lines<R> {
    source: BufReader<R>,
    line: Vec<u8>,
    /// Inside a line that was too long, whose rest is passed over.
    skipping: bool,
}

#[derive(Debug)]
pub(crate) enum Line {
    Whole(Vec<u8>),
    /// Reported once, as soon as it is known.
    TooLong,
    End,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(crate) fn new(source: R) -> Self {
        Self { source: BufReader::with_capacity(CHUNK, source), line: Vec::new(), skipping: false }
    }

    /// The next line. Dropping the future loses nothing: the next one goes on where it stopped.
    pub(crate) async fn next(&mut self) -> io::Result<Line> {
        loop {
            let chunk = self.source.fill_buf().await?;
            if chunk.is_empty() {
                // A last line need not end in a newline.
                let last = std::mem::take(&mut self.line);
                return Ok(if last.is_empty() { Line::End } else { Line::Whole(last) });
            }
            let newline = chunk.iter().position(|byte| *byte == b'\n');
            let piece = &chunk[..newline.unwrap_or(chunk.len())];
            let fits = self.line.len() + piece.len() <= MOST_LINE;
            if fits && !self.skipping {
                self.line.extend_from_slice(piece);
            }
            let taken = piece.len() + usize::from(newline.is_some());
            self.source.consume(taken);
            let was_skipping = self.skipping;
            self.skipping = newline.is_none() && (was_skipping || !fits);
            if !fits && !was_skipping {
                self.line = Vec::new();
                return Ok(Line::TooLong);
            }
            if newline.is_some() && !was_skipping {
                return Ok(Line::Whole(std::mem::take(&mut self.line)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokio::io::AsyncWriteExt;

    use super::*;

    async fn all(text: Vec<u8>, chunk: usize) -> Vec<Vec<u8>> {
        let (mut to, from) = tokio::io::duplex(chunk);
        let writing = tokio::spawn(async move { to.write_all(&text).await });
        let mut lines = Lines::new(from);
        let mut found = Vec::new();
        loop {
            // A reader that is dropped again and again must miss nothing.
            let next = tokio::select! {
                biased;
                next = lines.next() => next.unwrap(),
                () = tokio::task::yield_now() => continue,
            };
            match next {
                Line::Whole(line) => found.push(line),
                Line::TooLong => panic!("too long"),
                Line::End => break,
            }
        }
        writing.await.unwrap().unwrap();
        found
    }

    proptest! {
        #[test]
        fn every_line_comes_whole(
            text in proptest::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..200),
            chunk in 1..20_usize,
        ) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let found = runtime.block_on(all(text.clone(), chunk));
            let mut expected: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
            if expected.last().is_some_and(|last| last.is_empty()) {
                expected.pop();
            }
            prop_assert_eq!(found, expected);
        }
    }
}
