//! Reduces progress bars and other overwritten lines to the text that a terminal shows in the end.

use crate::visible::{EscapeSequence, escape_sequence, find_control};

/// Maximum number of characters of a line that can still be overwritten. Earlier characters are final.
const MAX_LINE: usize = 64 * 1024;
/// Maximum length of an incomplete escape sequence that is held back until more output arrives.
const MAX_INCOMPLETE: usize = 4 * 1024;

/// Returns what a terminal would show of `text`, without control sequences.
pub fn collapse_overwritten(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut state = LineCollapser::default();
    state.push(text, &mut shown);
    state.finish(&mut shown);
    shown
}

/// Does the same as [`collapse_overwritten`] for output that arrives in pieces. A line is final when its newline
/// arrives.
///
/// Supports carriage return, backspace, and the sequences that erase in a line or move along it. Every character counts
/// as one column. Other sequences and control characters are dropped.
#[derive(Debug, Default)]
pub struct LineCollapser {
    /// The current line.
    line: Vec<char>,
    /// The column that the next character is written to.
    column: usize,
    /// Whether a character of the line was overwritten or erased.
    is_overwritten: bool,
    /// An incomplete escape sequence at the end of the last piece.
    incomplete: String,
}

impl LineCollapser {
    /// Takes the next piece of output and appends all finished lines to `shown`.
    pub fn push(&mut self, piece: &str, shown: &mut String) {
        if self.incomplete.is_empty() {
            let incomplete = self.process(piece, shown);
            self.incomplete.push_str(incomplete);
        } else {
            let mut text = std::mem::take(&mut self.incomplete);
            text.push_str(piece);
            let incomplete = self.process(&text, shown);
            self.incomplete.push_str(incomplete);
        }
    }

    /// Appends the last line, which has no newline.
    pub fn finish(mut self, shown: &mut String) {
        let incomplete = std::mem::take(&mut self.incomplete);
        if let EscapeSequence::Incomplete(introducer_len) = escape_sequence(&incomplete) {
            for c in incomplete[introducer_len..].chars() {
                self.put(c, shown);
            }
        }
        self.finish_line(shown);
    }

    /// Processes `text`, and returns an incomplete sequence at its end.
    fn process<'a>(&mut self, text: &'a str, shown: &mut String) -> &'a str {
        let mut rest = text;
        loop {
            if self.line.is_empty() && self.column == 0 && !self.is_overwritten {
                rest = copy_plain_lines(rest, shown);
            }
            let Some(first) = rest.chars().next() else { return "" };
            rest = match escape_sequence(rest) {
                EscapeSequence::Incomplete(_) if rest.len() <= MAX_INCOMPLETE => return rest,
                EscapeSequence::Invalid(introducer_len)
                | EscapeSequence::Incomplete(introducer_len) => &rest[introducer_len..],
                EscapeSequence::Complete(length) => {
                    self.apply_sequence(&rest[..length]);
                    &rest[length..]
                }
                EscapeSequence::None => {
                    self.put(first, shown);
                    &rest[first.len_utf8()..]
                }
            };
        }
    }

    fn put(&mut self, c: char, shown: &mut String) {
        match c {
            '\n' => {
                self.finish_line(shown);
                shown.push('\n');
            }
            '\r' => self.column = 0,
            '\u{8}' => self.column = self.column.saturating_sub(1),
            c if c.is_control() && c != '\t' => {}
            c => self.print(c, shown),
        }
    }

    fn print(&mut self, c: char, shown: &mut String) {
        if self.column >= MAX_LINE {
            self.finish_line(shown);
        }
        if self.column < self.line.len() {
            self.line[self.column] = c;
            self.is_overwritten = true;
        } else {
            self.line.resize(self.column, ' ');
            self.line.push(c);
        }
        self.column += 1;
    }

    /// Applies a control sequence that moves along the line or erases in it.
    fn apply_sequence(&mut self, sequence: &str) {
        let Some(body) = sequence.strip_prefix("\u{1b}[").or(sequence.strip_prefix('\u{9b}'))
        else {
            return;
        };
        let Some(final_char) = body.chars().next_back() else { return };
        let number = body[..body.len() - final_char.len_utf8()].parse::<usize>().ok();
        let distance = number.unwrap_or(1).max(1);
        match final_char {
            'K' => self.erase(number.unwrap_or(0)),
            'C' => self.column = self.column.saturating_add(distance).min(MAX_LINE),
            'D' => self.column = self.column.saturating_sub(distance),
            'G' => self.column = (distance - 1).min(MAX_LINE),
            _ => {}
        }
    }

    /// Erases a part of the line: after the cursor (0), up to the cursor (1) or everything (2).
    fn erase(&mut self, mode: usize) {
        self.is_overwritten |= !self.line.is_empty();
        match mode {
            0 => self.line.truncate(self.column),
            1 => self.line.iter_mut().take(self.column + 1).for_each(|c| *c = ' '),
            2 => self.line.clear(),
            _ => {}
        }
    }

    fn finish_line(&mut self, shown: &mut String) {
        if self.is_overwritten {
            // Trailing spaces of an overwritten line only erased text, so they are removed.
            let end = self.line.iter().rposition(|c| *c != ' ').map_or(0, |last| last + 1);
            self.line.truncate(end);
        }
        shown.extend(self.line.drain(..));
        self.column = 0;
        self.is_overwritten = false;
    }
}

/// Copies the leading lines that have no control characters, as nearly all lines do. Returns the rest.
fn copy_plain_lines<'a>(text: &'a str, shown: &mut String) -> &'a str {
    let mut rest = text;
    loop {
        let plain_len = find_control(rest).unwrap_or(rest.len());
        if let Some(after) = rest[plain_len..].strip_prefix("\r\n") {
            shown.push_str(&rest[..plain_len]);
            shown.push('\n');
            rest = after;
            continue;
        }
        let complete_len = rest[..plain_len].rfind('\n').map_or(0, |newline| newline + 1);
        shown.push_str(&rest[..complete_len]);
        return &rest[complete_len..];
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::{LineCollapser, MAX_LINE, collapse_overwritten};
    use crate::visible::strip_invisible;

    #[track_caller]
    fn check(text: &str, expect: Expect) {
        expect.assert_eq(&format!("{:?}", collapse_overwritten(text)));
    }

    #[test]
    fn carriage_returns_overwrite_the_line() {
        check("a\rb\r\n", expect![[r#""b\n""#]]);
        check("abc\rx", expect![[r#""xbc""#]]);
        check("10%\r20%\r100%\r\ndone\n", expect![[r#""100%\ndone\n""#]]);
        check("one\r\ntwo\r\n", expect![[r#""one\ntwo\n""#]]);
        check("working\r       \rok\n", expect![[r#""ok\n""#]]);
        check("kept  \n", expect![[r#""kept  \n""#]]);
    }

    #[test]
    fn backspaces_overwrite_characters() {
        check("N\x08NA\x08AM\x08ME\x08E _\x08x\n", expect![[r#""NAME x\n""#]]);
        check("\x08\x08a|\x08/\x08-\x08done", expect![[r#""adone""#]]);
    }

    #[test]
    fn sequences_erase_and_move() {
        check("Building 10%\r\x1b[KBuilt\n", expect![[r#""Built\n""#]]);
        check("long line\x1b[2K\x1b[1Gshort\n", expect![[r#""short\n""#]]);
        check("abcdef\x1b[3DX\x1b[0K\n", expect![[r#""abcX\n""#]]);
        check("a\x1b[3Cb\x1b[99999999999999999999Cc\n", expect![[r#""a   b c\n""#]]);
        check("abc\x1b[1K!\n", expect![[r#""   !\n""#]]);
    }

    #[test]
    fn other_sequences_are_dropped() {
        check("\x1b[32mok\x1b[0m\x07 \x1b]0;title\x07here\0\n", expect![[r#""ok here\n""#]]);
        check("\x1b[1A\x1b[31", expect![[r#""31""#]]);
        check("a\x1b]unfinished\nb", expect![[r#""aunfinished\nb""#]]);
    }

    #[test]
    fn the_current_line_is_bounded() {
        let mut state = LineCollapser::default();
        let mut shown = String::new();
        for _ in 0..100 {
            state.push(&"x".repeat(10_000), &mut shown);
        }
        assert!(shown.len() >= 1_000_000 - MAX_LINE && state.line.len() <= MAX_LINE);
        state.push("\r\x1b[999999999C!", &mut shown);
        state.finish(&mut shown);
        assert!(shown.len() <= 1_000_000 + MAX_LINE + 1);
    }

    fn output() -> impl Strategy<Value = Vec<String>> {
        let controls = [
            "\x1b", "\x1b[", "\x1b[K", "\x1b[2K", "\x1b[2D", "\x1b]0;", "\x07", "\r", "\r\n",
            "\x08",
        ];
        let piece = prop_oneof![
            "[a-z0-9;é \n\t]{0,4}",
            prop::sample::select(controls.to_vec()).prop_map(str::to_owned)
        ];
        prop::collection::vec(piece, 0..20)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn the_result_does_not_depend_on_the_pieces(pieces in output()) {
            let mut shown = String::new();
            let mut state = LineCollapser::default();
            for c in pieces.concat().chars() {
                state.push(c.encode_utf8(&mut [0; 4]), &mut shown);
            }
            state.finish(&mut shown);
            prop_assert_eq!(&shown, &collapse_overwritten(&pieces.concat()));
            prop_assert_eq!(strip_invisible(&shown), shown.as_str());
            prop_assert_eq!(shown.matches('\n').count(), pieces.concat().matches('\n').count());
        }

        #[test]
        fn plain_text_is_unchanged(text in "[a-zé \n\t]{0,40}") {
            prop_assert_eq!(collapse_overwritten(&text), text.as_str());
            prop_assert_eq!(collapse_overwritten(&text.replace('\n', "\r\n")), text);
        }
    }
}
