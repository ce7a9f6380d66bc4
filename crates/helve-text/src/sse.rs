//! Parses server-sent events from chunks of bytes, within limits.

/// Maximum length of a line.
pub const MAX_LINE: usize = 4 * 1024 * 1024;
/// Maximum length of the data of an event.
pub const MAX_EVENT: usize = 16 * 1024 * 1024;
/// Maximum length of a response.
pub const MAX_RESPONSE: usize = 256 * 1024 * 1024;

const BOM: &[u8] = "\u{feff}".as_bytes();

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// The type of the event. Empty if the stream does not state it.
    pub name: String,
    pub data: String,
}

/// Why a response cannot be parsed any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SseError {
    /// A line has more than [`MAX_LINE`] bytes.
    LineTooLong,
    /// The data of an event has more than [`MAX_EVENT`] bytes.
    EventTooLong,
    /// The response has more than [`MAX_RESPONSE`] bytes.
    ResponseTooLong,
}

/// Collects events from chunks that may be cut anywhere.
#[derive(Debug, Default)]
pub struct SseParser {
    line: Vec<u8>,
    /// Whether the last line ended with a carriage return, so that a line feed right after it is skipped.
    ended_with_cr: bool,
    is_past_first_line: bool,
    name: String,
    /// The data lines of the current event, joined by line feeds. `None` before the first data line.
    data: Option<String>,
    /// Number of bytes received so far.
    received: usize,
}

impl SseParser {
    /// Parses a chunk and appends the events that it completes.
    pub fn push(&mut self, chunk: &[u8], events: &mut Vec<SseEvent>) -> Result<(), SseError> {
        self.received += chunk.len();
        if self.received > MAX_RESPONSE {
            return Err(SseError::ResponseTooLong);
        }
        let mut rest = chunk;
        if !rest.is_empty() && std::mem::take(&mut self.ended_with_cr) {
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(end) = memchr::memchr2(b'\n', b'\r', rest) {
            self.extend_line(&rest[..end])?;
            let is_cr = rest[end] == b'\r';
            rest = &rest[end + 1..];
            match (is_cr, rest.first()) {
                (true, Some(b'\n')) => rest = &rest[1..],
                (true, None) => self.ended_with_cr = true,
                (true, Some(_)) | (false, _) => {}
            }
            self.end_line(events)?;
        }
        self.extend_line(rest)
    }

    /// Returns the last event if the response ended without a blank line after it.
    pub fn finish(mut self) -> Option<SseEvent> {
        let mut events = Vec::new();
        self.end_line(&mut events).ok()?;
        self.dispatch(&mut events);
        events.pop()
    }

    fn extend_line(&mut self, piece: &[u8]) -> Result<(), SseError> {
        if self.line.len() + piece.len() > MAX_LINE {
            return Err(SseError::LineTooLong);
        }
        self.line.extend_from_slice(piece);
        Ok(())
    }

    fn end_line(&mut self, events: &mut Vec<SseEvent>) -> Result<(), SseError> {
        let line = std::mem::take(&mut self.line);
        let mut line = line.as_slice();
        if !std::mem::replace(&mut self.is_past_first_line, true) {
            line = line.strip_prefix(BOM).unwrap_or(line);
        }
        if line.is_empty() {
            self.dispatch(events);
            return Ok(());
        }
        let colon = memchr::memchr(b':', line);
        let (field, value) = match colon {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (line, &b""[..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => self.add_data(value)?,
            b"event" => self.name = String::from_utf8_lossy(value).into_owned(),
            // Comments have an empty field name.
            _ => {}
        }
        Ok(())
    }

    fn add_data(&mut self, value: &[u8]) -> Result<(), SseError> {
        let value = String::from_utf8_lossy(value);
        match &mut self.data {
            Some(data) if data.len() + value.len() + 1 > MAX_EVENT => {
                return Err(SseError::EventTooLong);
            }
            Some(data) => {
                data.push('\n');
                data.push_str(&value);
            }
            None => self.data = Some(value.into_owned()),
        }
        Ok(())
    }

    /// Completes the current event, if it has data.
    fn dispatch(&mut self, events: &mut Vec<SseEvent>) {
        let name = std::mem::take(&mut self.name);
        if let Some(data) = self.data.take() {
            events.push(SseEvent { name, data });
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(chunks: &[&[u8]]) -> Result<Vec<SseEvent>, SseError> {
        let (mut parser, mut events) = (SseParser::default(), Vec::new());
        for chunk in chunks {
            parser.push(chunk, &mut events)?;
        }
        events.extend(parser.finish());
        Ok(events)
    }

    #[track_caller]
    fn check(chunks: &[&[u8]], expected: &[(&str, &str)]) {
        let event = |(name, data): &(&str, &str)| SseEvent {
            name: name.to_string(),
            data: data.to_string(),
        };
        let expected: Vec<SseEvent> = expected.iter().map(event).collect();
        assert_eq!(parse(chunks), Ok(expected));
    }

    #[test]
    fn lines_may_end_with_lf_crlf_or_cr() {
        let expected = [("a", "1"), ("", "2\n3")];
        check(&[b"event: a\ndata: 1\n\ndata: 2\ndata: 3\n\n"], &expected);
        check(&[b"event: a\r\ndata: 1\r\n\r\ndata: 2\r\ndata: 3\r\n\r\n"], &expected);
        check(&[b"event: a\rdata: 1\r\rdata: 2\rdata: 3\r\r"], &expected);
        check(&[b"event: a\r", b"\ndata: 1\r", b"", b"\n\r", b"\ndata: 2\rdata: 3\r\r"], &expected);
        check(&[b"data: 1\r", b"", b"\ndata: 2\n\n"], &[("", "1\n2")]);
    }

    #[test]
    fn odd_lines_are_accepted() {
        check(&["\u{feff}data:x\n\n".as_bytes()], &[("", "x")]);
        check(&[&BOM[..1], &BOM[1..], b"data:  x\n\n"], &[("", " x")]);
        check(&[b": comment\nid: 3\nretry: 10\nwhat\nother: y\ndata: x\n\n"], &[("", "x")]);
        check(&[b"data\n\n"], &[("", "")]);
        check(&[b"event: a\n\ndata: x\n\n"], &[("", "x")]);
        check(&[b"data: last"], &[("", "last")]);
        check(&[b"data: last\n"], &[("", "last")]);
        check(&[b"event: only a name\n\n\n", b": comment"], &[]);
        check(&[b"data: \xff.\n\n"], &[("", "\u{fffd}.")]);
    }

    #[test]
    fn responses_over_a_limit_are_refused() {
        let long = vec![b'x'; MAX_LINE];
        assert_eq!(parse(&[b"data: ", &long]), Err(SseError::LineTooLong));
        let line = [b"data: ", &long[..MAX_LINE - 6], b"\n"].concat();
        assert_eq!(parse(&[&line, &line, &line, &line, &line]), Err(SseError::EventTooLong));
        let (mut parser, mut events) = (SseParser::default(), Vec::new());
        let chunk = b"\n".repeat(1 << 20);
        let failed = (0..300).find_map(|_| parser.push(&chunk, &mut events).err());
        assert_eq!(failed, Some(SseError::ResponseTooLong));
    }

    proptest! {
        #[test]
        fn events_do_not_depend_on_the_chunks(
            text in "(data: ?|event: |: |é|🦀|x|\r|\n|\r\n|:){0,40}",
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        ) {
            let bytes = text.as_bytes();
            let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            at.extend([0, bytes.len()]);
            at.sort_unstable();
            let chunks: Vec<&[u8]> = at.windows(2).map(|ends| &bytes[ends[0]..ends[1]]).collect();
            prop_assert_eq!(parse(&chunks), parse(&[bytes]));
        }
    }
}
