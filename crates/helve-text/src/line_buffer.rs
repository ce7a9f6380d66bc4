//! Assembles lines from chunks of bytes, each line within a limit.

/// Collects the bytes of one line at a time.
#[derive(Debug)]
pub struct LineBuffer {
    max_line: usize,
    line: Vec<u8>,
    /// The length so far of a line that exceeds the limit. The rest of the line is discarded.
    discarded_len: Option<usize>,
}

/// State of the current line after a chunk.
#[derive(Debug, PartialEq, Eq)]
pub enum LineStatus {
    /// The chunk is used up, and the line has not ended.
    Incomplete,
    /// A line without its newline.
    Complete(Vec<u8>),
    /// The line exceeds the limit. Reported once per line, as soon as the limit is exceeded. The rest is discarded.
    TooLong,
}

impl LineBuffer {
    pub fn new(max_line: usize) -> Self {
        Self { max_line, line: Vec::new(), discarded_len: None }
    }

    /// Consumes the chunk up to and including its first newline. Returns the number of consumed bytes, and the state of
    /// the line.
    pub fn push(&mut self, chunk: &[u8]) -> (usize, LineStatus) {
        let newline = chunk.iter().position(|byte| *byte == b'\n');
        let piece = &chunk[..newline.unwrap_or(chunk.len())];
        let consumed = piece.len() + usize::from(newline.is_some());
        if let Some(length) = self.discarded_len {
            self.discarded_len = newline.is_none().then_some(length + piece.len());
            return (consumed, LineStatus::Incomplete);
        }
        let length = self.line.len() + piece.len();
        if length > self.max_line {
            self.line = Vec::new();
            self.discarded_len = newline.is_none().then_some(length);
            return (consumed, LineStatus::TooLong);
        }
        self.line.extend_from_slice(piece);
        match newline {
            Some(_) => (consumed, LineStatus::Complete(std::mem::take(&mut self.line))),
            None => (consumed, LineStatus::Incomplete),
        }
    }

    /// Returns the last line if the input ended without a newline.
    pub fn finish(&mut self) -> Option<Vec<u8>> {
        Some(std::mem::take(&mut self.line)).filter(|line| !line.is_empty())
    }

    /// Returns the length so far of an overlong line that has not ended yet, or 0.
    pub fn discarded_len(&self) -> usize {
        self.discarded_len.unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the lines of a text that arrives in chunks. `None` stands for an overlong line.
    fn lines(text: &[u8], chunk: usize, max_line: usize) -> Vec<Option<Vec<u8>>> {
        let mut buffer = LineBuffer::new(max_line);
        let mut lines = Vec::new();
        for mut chunk in text.chunks(chunk) {
            while !chunk.is_empty() {
                let (consumed, status) = buffer.push(chunk);
                chunk = &chunk[consumed..];
                match status {
                    LineStatus::Incomplete => {}
                    LineStatus::Complete(line) => lines.push(Some(line)),
                    LineStatus::TooLong => lines.push(None),
                }
            }
        }
        lines.extend(buffer.finish().map(Some));
        lines
    }

    #[test]
    fn an_overlong_line_is_discarded_and_its_memory_freed() {
        let mut buffer = LineBuffer::new(3);
        assert_eq!(buffer.push(b"abc"), (3, LineStatus::Incomplete));
        assert_eq!(buffer.push(b"de"), (2, LineStatus::TooLong));
        assert_eq!((buffer.discarded_len(), buffer.line.capacity()), (5, 0));
        assert_eq!(buffer.push(b"fg\nh\n"), (3, LineStatus::Incomplete));
        assert_eq!(buffer.discarded_len(), 0);
        assert_eq!(buffer.push(b"h\n"), (2, LineStatus::Complete(b"h".to_vec())));
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_the_chunks(
            text in proptest::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..200),
            chunk in 1..20_usize,
            max_line in 1..20_usize,
        ) {
            let mut expected: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
            if expected.last().is_some_and(|last| last.is_empty()) {
                expected.pop();
            }
            let limited = |line: &&[u8]| (line.len() <= max_line).then(|| line.to_vec());
            let expected: Vec<_> = expected.iter().map(limited).collect();
            prop_assert_eq!(lines(&text, chunk, max_line), expected);
        }
    }
}
