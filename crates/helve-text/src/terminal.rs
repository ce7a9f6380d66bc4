//! What a program prints, as somebody would read it on a terminal: a filter over a stream of bytes.
//!
//! It is [`crate::visible::strip`] for output that arrives in pieces and rewrites its lines: how the stream was cut into
//! pieces changes nothing.

mod line;
mod plain;

use line::Line;

/// Turns raw output into plain text.
///
/// Escape sequences go; one that never ends loses its introducer only. Text after a carriage return replaces its line,
/// text after a backspace the character before it. Other controls go, tabs and newlines stay, and so do bytes that are
/// not UTF-8. At most one line of [`LONGEST_LINE`] and one sequence are held back.
#[derive(Debug, Default)]
pub struct Plain {
    state: State,
    /// The sequence so far, without what is lost of it in any case.
    held: Vec<u8>,
    /// How many more bytes the character that was begun may have.
    follows: u8,
    line: Line,
}

pub use line::LONGEST as LONGEST_LINE;

/// Parameters of a control sequence are a few numbers.
const LONGEST_CONTROL: usize = 128;
/// Titles, links and clipboard contents are long, but not longer than this.
const LONGEST_STRING: usize = 64 * 1024;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    /// After 0xc2, which begins the controls above ASCII as well as signs.
    Lead,
    /// After the escape.
    Escape,
    /// After the escape and intermediate bytes.
    Short,
    /// In the parameters of a control sequence.
    Parameters(Introducer),
    /// In its intermediate bytes.
    Intermediates(Introducer),
    /// In a string that a terminator ends.
    String(Introducer),
    /// In such a string, after 0xc2.
    StringLead,
    /// In such a string, after the escape that may begin its terminator.
    StringEscape(Introducer),
}

/// How a sequence began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Introducer {
    /// With the escape, or with a control written as UTF-8: it is lost even if nothing follows.
    Plain,
    /// With a single byte above ASCII. That may be a letter of an old encoding, so the sequence must be ASCII
    /// throughout, and else the byte is kept.
    Byte,
}

impl Plain {
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in the next piece and appends what is certain by now.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.state == State::Text && self.follows == 0 {
                let (text, after) = rest.split_at(plain::prefix(rest));
                self.line.text(text, out);
                rest = after;
            }
            if let Some((byte, after)) = rest.split_first() {
                self.byte(*byte, out);
                rest = after;
            }
        }
    }

    /// Appends what was held back: nothing follows.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.give_up(out);
        self.line.flush(out);
        *self = Self::new();
    }

    /// Appends the line that is held back although it may still be rewritten: what would replace it begins a new one.
    pub fn flush(&mut self, out: &mut Vec<u8>) {
        self.line.flush(out);
    }

    /// The line that is held back.
    pub fn pending(&self) -> &[u8] {
        self.line.held()
    }

    fn byte(&mut self, byte: u8, out: &mut Vec<u8>) {
        let continues = self.continues(byte);
        match self.state {
            State::Text => self.text(byte, continues, out),
            State::Lead => match byte {
                0x80..=0x9f => self.introduce(byte, Introducer::Plain),
                _ => {
                    self.state = State::Text;
                    self.line.text(&[0xc2], out);
                    self.text(byte, continues, out);
                }
            },
            State::Escape => match byte {
                b'[' => self.begin(State::Parameters(Introducer::Plain)),
                b']' | b'P' | b'X' | b'^' | b'_' => self.begin(State::String(Introducer::Plain)),
                0x20..=0x2f => self.hold(byte, State::Short),
                0x30..=0x7e => self.end(),
                _ => self.broken(byte, continues, out),
            },
            State::Short => match byte {
                0x20..=0x2f if self.held.len() < LONGEST_CONTROL => self.hold(byte, State::Short),
                0x30..=0x7e => self.end(),
                _ => self.broken(byte, continues, out),
            },
            State::Parameters(by) | State::Intermediates(by) => {
                self.control(by, byte, continues, out);
            }
            State::String(by) => self.string(by, byte, continues, out),
            State::StringLead => match byte {
                0x9c => self.end(),
                0x80..=0x9f => {
                    self.state = State::String(Introducer::Plain);
                    self.give_up(out);
                    self.introduce(byte, Introducer::Plain);
                }
                _ => {
                    self.hold(0xc2, State::String(Introducer::Plain));
                    self.string(Introducer::Plain, byte, continues, out);
                }
            },
            State::StringEscape(_) if byte == b'\\' => self.end(),
            State::StringEscape(_) => {
                self.give_up(out);
                self.state = State::Escape;
                self.byte(byte, out);
            }
        }
    }

    /// Whether the byte continues a character, and notes how many more may.
    fn continues(&mut self, byte: u8) -> bool {
        let continues = self.follows > 0 && (0x80..=0xbf).contains(&byte);
        self.follows = match byte {
            _ if continues => self.follows - 1,
            0xc2..=0xdf => 1,
            0xe0..=0xef => 2,
            0xf0..=0xf4 => 3,
            _ => 0,
        };
        continues
    }

    fn text(&mut self, byte: u8, continues: bool, out: &mut Vec<u8>) {
        match byte {
            0x1b => self.begin(State::Escape),
            b'\r' => self.line.return_carriage(),
            0x08 => self.line.step_back(),
            b'\n' | b'\t' | 0x20..=0x7e => self.line.text(&[byte], out),
            0..=0x1f | 0x7f => {}
            0xc2 => self.state = State::Lead,
            0x80..=0x9f if !continues => {
                self.introduce(byte, Introducer::Byte);
                if self.state == State::Text {
                    self.line.text(&[byte], out);
                } else {
                    self.held.push(byte);
                }
            }
            0x80..=0xff => self.line.text(&[byte], out),
        }
    }

    /// A control from 0x80 to 0x9f.
    fn introduce(&mut self, control: u8, by: Introducer) {
        self.begin(match control {
            0x9b => State::Parameters(by),
            0x90 | 0x98 | 0x9d..=0x9f => State::String(by),
            _ => State::Text,
        });
    }

    fn control(&mut self, by: Introducer, byte: u8, continues: bool, out: &mut Vec<u8>) {
        let fits = self.held.len() < LONGEST_CONTROL;
        match byte {
            0x30..=0x3f if fits && matches!(self.state, State::Parameters(_)) => {
                self.hold(byte, State::Parameters(by));
            }
            0x20..=0x2f if fits => self.hold(byte, State::Intermediates(by)),
            0x40..=0x7e => {
                let parameters = self.held.strip_prefix(&[0x9b]).unwrap_or(&self.held);
                // To the first column, and erasing the line: as good as a carriage return.
                if matches!((parameters, byte), (b"" | b"0" | b"1", b'G') | (b"2", b'K')) {
                    self.line.return_carriage();
                }
                self.end();
            }
            _ => self.broken(byte, continues, out),
        }
    }

    fn string(&mut self, by: Introducer, byte: u8, continues: bool, out: &mut Vec<u8>) {
        match byte {
            0x07 => self.end(),
            0x9c if !continues => self.end(),
            0x1b => self.state = State::StringEscape(by),
            0xc2 if by == Introducer::Plain => self.state = State::StringLead,
            0..=0x1f | 0x7f if byte != b'\t' => self.broken(byte, continues, out),
            0x80..=0xff if by == Introducer::Byte => self.broken(byte, continues, out),
            _ if self.held.len() >= LONGEST_STRING => self.broken(byte, continues, out),
            _ => self.hold(byte, self.state),
        }
    }

    fn begin(&mut self, state: State) {
        self.held.clear();
        self.state = state;
    }

    fn hold(&mut self, byte: u8, state: State) {
        self.held.push(byte);
        self.state = state;
    }

    fn end(&mut self) {
        self.begin(State::Text);
    }

    /// The sequence cannot end well: what was held of it is text, and so may be what comes now.
    fn broken(&mut self, byte: u8, continues: bool, out: &mut Vec<u8>) {
        self.give_up(out);
        self.text(byte, continues, out);
    }

    fn give_up(&mut self, out: &mut Vec<u8>) {
        self.line.text(&self.held, out);
        if matches!(self.state, State::Lead | State::StringLead) {
            self.line.text(&[0xc2], out);
        }
        self.end();
    }
}

#[cfg(test)]
mod tests;
