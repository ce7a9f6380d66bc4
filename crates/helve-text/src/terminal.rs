//! A filter that turns the output of a program into what a person would read on a terminal.
//!
//! The filter works like [`crate::visible::strip_invisible`], but for output that arrives in pieces and may rewrite
//! lines. The result does not depend on how the stream is split.

mod line;
mod scan;

use line::PendingLine;

/// Turns raw output into plain text.
///
/// Removes escape sequences. Of an unterminated sequence, only the first characters (`ESC [`) are removed. Text after a
/// carriage return replaces its line, and text after a backspace replaces the character before it. Other control
/// characters are removed. Tabs, newlines and invalid UTF-8 are kept. At most one line of [`MAX_LINE`] and one sequence
/// are held back.
#[derive(Debug, Default)]
pub struct TerminalFilter {
    state: State,
    /// The bytes of an incomplete sequence. They are printed if it turns out to be invalid. ESC is not among them,
    /// because it is never printed.
    held: Vec<u8>,
    /// Number of continuation bytes that the current character may still have.
    continuation_bytes: u8,
    line: PendingLine,
}

pub use line::MAX_LINE;

/// Maximum length of a control sequence. Longer sequences are invalid, because the parameters are only a few numbers.
const MAX_CONTROL: usize = 128;
/// Maximum length of a control string, such as a title, a link or clipboard contents.
const MAX_STRING: usize = 64 * 1024;

/// Where the next byte is in relation to escape sequences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Outside of escape sequences.
    #[default]
    Text,
    /// After 0xc2, which starts C1 control characters as well as printable ones.
    C1Lead,
    /// After ESC.
    Escape,
    /// After ESC and intermediate bytes.
    EscapeIntermediates,
    /// In the parameters of a control sequence.
    Parameters(Introducer),
    /// In the intermediate bytes of a control sequence.
    Intermediates(Introducer),
    /// In a control string, such as the title of the window.
    String(Introducer),
    /// In a control string, after 0xc2.
    StringC1Lead,
    /// In a control string, after an ESC that may start its terminator.
    StringEscape(Introducer),
}

/// How a sequence started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Introducer {
    /// It started with ESC, or with a C1 control character in UTF-8. The introducer is dropped even if nothing follows.
    Standard,
    /// It started with a single byte above ASCII, which may be a letter in a legacy encoding. The byte is kept unless
    /// the sequence is ASCII throughout.
    SingleByte,
}

impl TerminalFilter {
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next piece and appends all output that is final.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.state == State::Text && self.continuation_bytes == 0 {
                let (text, after) = rest.split_at(scan::plain_prefix(rest));
                self.line.print(text, out);
                rest = after;
            }
            if let Some((byte, after)) = rest.split_first() {
                self.handle_byte(*byte, out);
                rest = after;
            }
        }
    }

    /// Appends what was held back, at the end of the stream.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.abandon(out);
        self.line.flush(out);
        *self = Self::new();
    }

    /// Appends the pending line although it may still be rewritten. Text that would replace it starts a new line.
    pub fn flush(&mut self, out: &mut Vec<u8>) {
        self.line.flush(out);
    }

    /// Returns the pending line.
    pub fn pending(&self) -> &[u8] {
        self.line.held()
    }

    fn handle_byte(&mut self, byte: u8, out: &mut Vec<u8>) {
        let continues_char = self.track_continuation(byte);
        match self.state {
            State::Text => self.handle_text_byte(byte, continues_char, out),
            State::C1Lead => match byte {
                0x80..=0x9f => self.start_c1_sequence(byte, Introducer::Standard),
                _ => {
                    self.state = State::Text;
                    self.line.print(&[0xc2], out);
                    self.handle_text_byte(byte, continues_char, out);
                }
            },
            State::Escape => match byte {
                b'[' => self.begin(State::Parameters(Introducer::Standard)),
                b']' | b'P' | b'X' | b'^' | b'_' => self.begin(State::String(Introducer::Standard)),
                0x20..=0x2f => self.hold(byte, State::EscapeIntermediates),
                0x30..=0x7e => self.end_sequence(),
                _ => self.handle_invalid_byte(byte, continues_char, out),
            },
            State::EscapeIntermediates => match byte {
                0x20..=0x2f if self.held.len() < MAX_CONTROL => {
                    self.hold(byte, State::EscapeIntermediates)
                }
                0x30..=0x7e => self.end_sequence(),
                _ => self.handle_invalid_byte(byte, continues_char, out),
            },
            State::Parameters(introducer) | State::Intermediates(introducer) => {
                self.handle_control_byte(introducer, byte, continues_char, out);
            }
            State::String(introducer) => {
                self.handle_string_byte(introducer, byte, continues_char, out)
            }
            State::StringC1Lead => match byte {
                0x9c => self.end_sequence(),
                0x80..=0x9f => {
                    self.state = State::String(Introducer::Standard);
                    self.abandon(out);
                    self.start_c1_sequence(byte, Introducer::Standard);
                }
                _ => {
                    self.hold(0xc2, State::String(Introducer::Standard));
                    self.handle_string_byte(Introducer::Standard, byte, continues_char, out);
                }
            },
            State::StringEscape(_) if byte == b'\\' => self.end_sequence(),
            State::StringEscape(_) => {
                self.abandon(out);
                self.state = State::Escape;
                self.handle_byte(byte, out);
            }
        }
    }

    /// Returns whether the byte continues a character. Updates the number of expected continuation bytes.
    fn track_continuation(&mut self, byte: u8) -> bool {
        let continues_char = self.continuation_bytes > 0 && (0x80..=0xbf).contains(&byte);
        self.continuation_bytes = match byte {
            _ if continues_char => self.continuation_bytes - 1,
            0xc2..=0xdf => 1,
            0xe0..=0xef => 2,
            0xf0..=0xf4 => 3,
            _ => 0,
        };
        continues_char
    }

    fn handle_text_byte(&mut self, byte: u8, continues_char: bool, out: &mut Vec<u8>) {
        match byte {
            0x1b => self.begin(State::Escape),
            b'\r' => self.line.return_carriage(),
            0x08 => self.line.step_back(),
            b'\n' | b'\t' | 0x20..=0x7e => self.line.print(&[byte], out),
            0..=0x1f | 0x7f => {}
            0xc2 => self.state = State::C1Lead,
            0x80..=0x9f if !continues_char => {
                self.start_c1_sequence(byte, Introducer::SingleByte);
                if self.state == State::Text {
                    self.line.print(&[byte], out);
                } else {
                    self.held.push(byte);
                }
            }
            0x80..=0xff => self.line.print(&[byte], out),
        }
    }

    /// Handles a C1 control character (0x80 to 0x9f). Some of them start a sequence.
    fn start_c1_sequence(&mut self, control: u8, introducer: Introducer) {
        self.begin(match control {
            0x9b => State::Parameters(introducer),
            0x90 | 0x98 | 0x9d..=0x9f => State::String(introducer),
            _ => State::Text,
        });
    }

    fn handle_control_byte(
        &mut self,
        introducer: Introducer,
        byte: u8,
        continues_char: bool,
        out: &mut Vec<u8>,
    ) {
        let fits = self.held.len() < MAX_CONTROL;
        match byte {
            0x30..=0x3f if fits && matches!(self.state, State::Parameters(_)) => {
                self.hold(byte, State::Parameters(introducer));
            }
            0x20..=0x2f if fits => self.hold(byte, State::Intermediates(introducer)),
            0x40..=0x7e => {
                let parameters = self.held.strip_prefix(&[0x9b]).unwrap_or(&self.held);
                // Moving to the first column or erasing the line works like a carriage return.
                if matches!((parameters, byte), (b"" | b"0" | b"1", b'G') | (b"2", b'K')) {
                    self.line.return_carriage();
                }
                self.end_sequence();
            }
            _ => self.handle_invalid_byte(byte, continues_char, out),
        }
    }

    fn handle_string_byte(
        &mut self,
        introducer: Introducer,
        byte: u8,
        continues_char: bool,
        out: &mut Vec<u8>,
    ) {
        match byte {
            0x07 => self.end_sequence(),
            0x9c if !continues_char => self.end_sequence(),
            0x1b => self.state = State::StringEscape(introducer),
            0xc2 if introducer == Introducer::Standard => self.state = State::StringC1Lead,
            0..=0x1f | 0x7f if byte != b'\t' => self.handle_invalid_byte(byte, continues_char, out),
            0x80..=0xff if introducer == Introducer::SingleByte => {
                self.handle_invalid_byte(byte, continues_char, out)
            }
            _ if self.held.len() >= MAX_STRING => {
                self.handle_invalid_byte(byte, continues_char, out)
            }
            _ => self.hold(byte, self.state),
        }
    }

    /// Enters a state and discards the held bytes.
    fn begin(&mut self, state: State) {
        self.held.clear();
        self.state = state;
    }

    fn hold(&mut self, byte: u8, state: State) {
        self.held.push(byte);
        self.state = state;
    }

    fn end_sequence(&mut self) {
        self.begin(State::Text);
    }

    /// Abandons an invalid sequence: the held bytes are text, and the current byte may be too.
    fn handle_invalid_byte(&mut self, byte: u8, continues_char: bool, out: &mut Vec<u8>) {
        self.abandon(out);
        self.handle_text_byte(byte, continues_char, out);
    }

    /// Ends an incomplete sequence and prints the bytes that were held back.
    fn abandon(&mut self, out: &mut Vec<u8>) {
        self.line.print(&self.held, out);
        if matches!(self.state, State::C1Lead | State::StringC1Lead) {
            self.line.print(&[0xc2], out);
        }
        self.end_sequence();
    }
}

#[cfg(test)]
mod tests;
