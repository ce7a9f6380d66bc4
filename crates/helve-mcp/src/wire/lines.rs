//! Lines from a byte stream, each within a limit.

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// The longest line that is kept.
pub(crate) const MOST_LINE: usize = 16 << 20;
/// The longest line whose rest is passed over; who sends more is not listened to any longer.
pub(crate) const MOST_PASSED: usize = 128 << 20;
/// As much as a pipe holds.
const CHUNK: usize = 64 << 10;

pub(crate) struct Lines<R> {
    source: BufReader<R>,
    line: Vec<u8>,
    /// How much of a line that was too long was passed over.
    passed: Option<usize>,
}

#[derive(Debug)]
pub(crate) enum Line {
    Whole(Vec<u8>),
    /// Reported once, as soon as it is known.
    TooLong,
    /// One that was too long goes on and on.
    Endless,
    End,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(crate) fn new(source: R) -> Self {
        Self { source: BufReader::with_capacity(CHUNK, source), line: Vec::new(), passed: None }
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
            let length = piece.len();
            let fits = self.line.len() + length <= MOST_LINE;
            if self.passed.is_none() && fits {
                self.line.extend_from_slice(piece);
            }
            self.source.consume(length + usize::from(newline.is_some()));
            match (self.passed, newline) {
                (None, Some(_)) if fits => return Ok(Line::Whole(std::mem::take(&mut self.line))),
                (None, None) if fits => {}
                (None, newline) => {
                    let before = std::mem::take(&mut self.line).len();
                    self.passed = newline.is_none().then_some(before + length);
                    return Ok(Line::TooLong);
                }
                (Some(_), Some(_)) => self.passed = None,
                (Some(passed), None) if passed > MOST_PASSED => return Ok(Line::Endless),
                (Some(passed), None) => self.passed = Some(passed + length),
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
                Line::TooLong | Line::Endless => panic!("too long"),
                Line::End => break,
            }
        }
        writing.await.unwrap().unwrap();
        found
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_passed_over_and_one_without_end_is_not() {
        let long = vec![b'x'; MOST_LINE + 1];
        let text = [&*long, b"\nshort\n"].concat();
        let mut lines = Lines::new(&*text);
        assert!(matches!(lines.next().await.unwrap(), Line::TooLong));
        assert!(matches!(lines.next().await.unwrap(), Line::Whole(line) if line == b"short"));
        let mut lines = Lines::new(tokio::io::repeat(b'x'));
        assert!(matches!(lines.next().await.unwrap(), Line::TooLong));
        assert!(matches!(lines.next().await.unwrap(), Line::Endless));
        assert_eq!(lines.line.capacity(), 0);
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
