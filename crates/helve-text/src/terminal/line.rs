//! The line that is being printed. It is held back until it ends, because it may be rewritten.

/// Maximum length of a line that is held back. A longer line is written at once, and text that would rewrite it starts
/// a new line.
pub const MAX_LINE: usize = 64 * 1024;

/// The current line and the position of the cursor in it.
#[derive(Debug, Default)]
pub(super) struct PendingLine {
    /// The text of the line that is not written yet.
    held: Vec<u8>,
    /// Whether the start of the line has already been written.
    is_partly_written: bool,
    cursor: Cursor,
}

/// The position at which the next text is written. If the line ends first, the position has no effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Cursor {
    #[default]
    End,
    Start,
    /// The next text is written this many characters before the end.
    Back(u32),
}

impl PendingLine {
    pub(super) fn return_carriage(&mut self) {
        self.cursor = Cursor::Start;
    }

    pub(super) fn step_back(&mut self) {
        self.cursor = match self.cursor {
            Cursor::End => Cursor::Back(1),
            Cursor::Back(steps) => Cursor::Back(steps.saturating_add(1)),
            Cursor::Start => Cursor::Start,
        };
    }

    /// Prints text without control characters other than tabs and newlines.
    pub(super) fn print(&mut self, text: &[u8], out: &mut Vec<u8>) {
        let Some(newline) = memchr::memchr(b'\n', text) else { return self.write(text, out) };
        self.write(&text[..newline], out);
        self.end_line(out);
        let rest = &text[newline + 1..];
        let complete_len = memchr::memrchr(b'\n', rest).map_or(0, |newline| newline + 1);
        out.extend_from_slice(&rest[..complete_len]);
        self.write(&rest[complete_len..], out);
    }

    /// Returns the pending text.
    pub(super) fn held(&self) -> &[u8] {
        &self.held
    }

    /// Writes the line although it may still be rewritten.
    pub(super) fn flush(&mut self, out: &mut Vec<u8>) {
        if !self.held.is_empty() {
            out.append(&mut self.held);
            self.is_partly_written = true;
        }
    }

    fn end_line(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.held);
        out.push(b'\n');
        self.held.clear();
        self.is_partly_written = false;
        self.cursor = Cursor::End;
    }

    fn write(&mut self, text: &[u8], out: &mut Vec<u8>) {
        if text.is_empty() {
            return;
        }
        match std::mem::take(&mut self.cursor) {
            Cursor::End => {}
            Cursor::Start => {
                self.held.clear();
                if std::mem::take(&mut self.is_partly_written) {
                    out.push(b'\n');
                }
            }
            Cursor::Back(steps) => self.remove_chars(steps),
        }
        if !self.is_partly_written && self.held.len() + text.len() <= MAX_LINE {
            return self.held.extend_from_slice(text);
        }
        self.flush(out);
        self.is_partly_written = true;
        out.extend_from_slice(text);
    }

    /// Removes characters at the end of the line.
    fn remove_chars(&mut self, count: u32) {
        for _ in 0..count {
            let continues = |byte: &&u8| (0x80..=0xbf).contains(*byte);
            let tail = self.held.iter().rev().take(3).take_while(continues).count();
            let character = match self.held.iter().rev().nth(tail) {
                Some(0xc0..=0xff) => tail + 1,
                Some(_) | None => 1,
            };
            match self.held.len().checked_sub(character) {
                Some(length) => self.held.truncate(length),
                None => return,
            }
        }
    }
}
