//! Some lines of something, numbered, with where they end and what else is to say.

use helve_core::{ErrorKind, ToolError, ToolOutput};
use helve_text::cut::Keep;
use helve_text::lines;

use super::{BYTES, LINE_CHARS, PREVIEW, count};

/// Lines that are to be shown.
pub(super) struct Page {
    /// The number of the first line, counted from 1.
    pub(super) first: u64,
    pub(super) lines: Vec<Line>,
    /// Whether lines follow.
    pub(super) more: bool,
    /// How many lines there are, or were seen where more follow.
    pub(super) seen: u64,
    /// Said after the lines, each in its own brackets.
    pub(super) notes: Vec<String>,
}

pub(super) struct Line {
    pub(super) text: String,
    pub(super) is_cut: bool,
}

impl Line {
    pub(super) fn new(text: &str, is_cut: bool) -> Line {
        let (text, clipped) = lines::clip(text, LINE_CHARS);
        Line { text: text.into(), is_cut: is_cut || clipped }
    }
}

impl Page {
    /// The lines of a text that was made from a file, within the limits of files.
    pub(super) fn of(text: &str, first: u64, most: u64) -> Page {
        let (mut seen, mut bytes, mut lines) = (0, 0, Vec::new());
        let mut full = false;
        for line in text.lines() {
            seen += 1;
            if seen < first || full {
                continue;
            }
            let line = Line::new(line, false);
            bytes += line.text.len();
            full = lines.len() as u64 == most || !lines.is_empty() && bytes > BYTES;
            if !full {
                lines.push(line);
            }
        }
        Page { first, lines, more: full, seen, notes: Vec::new() }
    }

    /// The number of the first line that is not shown.
    pub(super) fn next(&self) -> u64 {
        self.first + self.lines.len() as u64
    }

    pub(super) fn say(&self, shown: &str) -> Result<ToolOutput, ToolError> {
        if self.lines.is_empty() && self.first > 1 {
            let lines = count(self.seen, "line", "lines");
            let message = format!("{shown} has {lines}; there is no line {}.", self.first);
            let hint = format!("Call again with an offset of at most {}.", self.seen.max(1));
            return Err(ToolError::new(ErrorKind::InvalidArgs, message).hint(hint));
        }
        let mut text = String::from("<file>\n");
        for (number, line) in (self.first..).zip(&self.lines) {
            let cut = if line.is_cut { " … (line cut at 2000 characters)" } else { "" };
            text.push_str(&format!("{number:05}| {}{cut}\n", line.text));
        }
        text.push_str(&format!("\n({})\n", self.ending()));
        for note in self.cut_lines().iter().chain(&self.notes) {
            text.push_str(&format!("({note})\n"));
        }
        text.push_str("</file>");
        let preview: Vec<&str> = self.lines.iter().take(PREVIEW).map(|line| &*line.text).collect();
        Ok(ToolOutput::text(shown, text)
            .keep(Keep::All)
            .with("preview", preview.join("\n"))
            .with("truncated", self.more))
    }

    /// Where the lines end, and how to go on.
    fn ending(&self) -> String {
        if !self.more {
            return format!("End of file, {}", count(self.seen, "line", "lines"));
        }
        let (first, next) = (self.first, self.next());
        format!("Lines {first}-{} are shown and more follow. Use offset={next} to go on.", next - 1)
    }

    /// How to see the rest of lines that are too long.
    fn cut_lines(&self) -> Option<String> {
        let mut cut = (self.first..).zip(&self.lines).filter(|(_, line)| line.is_cut);
        let (first, _) = cut.next()?;
        let others = match cut.count() {
            0 => String::new(),
            others => format!(", like {}", count(others as u64, "other", "others")),
        };
        Some(format!(
            "Line {first} is cut{others}. To see more of it, grep for a part of it, or print it in pieces in a shell: sed -n {first}p FILE | cut -c 2001-4000"
        ))
    }
}
