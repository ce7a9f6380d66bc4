//! Writes blocks and lines of Markdown or plain text, with prefixes for lists and quotations.

use std::borrow::Cow;

use helve_text::visible;

/// How the text is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Markup {
    Markdown,
    Plain,
}

/// Something that surrounds text in a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// The same text before and after: `**`.
    Emphasis(&'static str),
    Link(String),
}

/// What the lines of a block start with.
struct LinePrefix {
    /// For the first line, until it is written: `- `.
    first: Option<Cow<'static, str>>,
    /// For all other lines.
    rest: Cow<'static, str>,
}

/// Maximum number of nested prefixes. Deeper blocks are not indented further.
const MAX_PREFIXES: usize = 12;

/// Initial capacity for a single line. Most cells of tables are shorter.
const LINE_CAPACITY: usize = 64;

pub(super) struct Writer {
    pub(super) out: String,
    markup: Markup,
    /// Maximum length of the output. Further text is dropped.
    limit: usize,
    /// Written instead of a line break, if the output must be a single line.
    line_separator: Option<&'static str>,
    prefixes: Vec<LinePrefix>,
    /// How many prefixes were left out because there were too many.
    ignored_prefixes: usize,
    /// Line breaks to write before the next text: 1 for a new line, 2 for a new paragraph.
    breaks: usize,
    needs_space: bool,
    /// Whether the current line has only prefixes so far.
    is_line_start: bool,
    /// What the next line starts with, before all other marks: `## `.
    line_mark: Option<&'static str>,
    open_marks: Vec<Mark>,
    /// How many of `open_marks`, counted from the last, are not written yet.
    pending_marks: usize,
}

impl Writer {
    pub(super) fn new(markup: Markup, limit: usize) -> Self {
        Self {
            out: String::new(),
            markup,
            limit,
            line_separator: None,
            prefixes: Vec::new(),
            ignored_prefixes: 0,
            breaks: 0,
            needs_space: false,
            is_line_start: true,
            line_mark: None,
            open_marks: Vec::new(),
            pending_marks: 0,
        }
    }

    /// A writer for a single line: a heading or the content of a table cell.
    pub(super) fn for_one_line(markup: Markup, limit: usize) -> Self {
        let line_separator = match markup {
            Markup::Markdown => "<br>",
            Markup::Plain => " / ",
        };
        let out = String::with_capacity(LINE_CAPACITY);
        Self { out, line_separator: Some(line_separator), ..Self::new(markup, limit) }
    }

    pub(super) fn markup(&self) -> Markup {
        self.markup
    }

    pub(super) fn is_full(&self) -> bool {
        self.out.len() >= self.limit
    }

    pub(super) fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// Starts a new line (1) or paragraph (2) before the next text.
    pub(super) fn break_lines(&mut self, count: usize) {
        self.breaks = self.breaks.max(count);
        self.needs_space = false;
    }

    pub(super) fn push_prefix(&mut self, first: Cow<'static, str>, rest: Cow<'static, str>) {
        if self.prefixes.len() == MAX_PREFIXES || self.line_separator.is_some() {
            self.ignored_prefixes += 1;
            return;
        }
        self.prefixes.push(LinePrefix { first: Some(first), rest });
    }

    pub(super) fn pop_prefix(&mut self) {
        match self.ignored_prefixes {
            0 => {
                self.prefixes.pop();
            }
            _ => self.ignored_prefixes -= 1,
        }
    }

    pub(super) fn open(&mut self, mark: Mark) {
        if self.markup == Markup::Markdown {
            self.open_marks.push(mark);
            self.pending_marks += 1;
        }
    }

    /// Closes a mark that [`Writer::open`] opened. Without text in between, nothing is written.
    pub(super) fn close(&mut self, mark: &Mark) {
        let Some(at) = self.open_marks.iter().rposition(|it| it == mark) else { return };
        let from_end = self.open_marks.len() - at;
        self.open_marks.remove(at);
        match from_end <= self.pending_marks {
            true => self.pending_marks -= 1,
            false => self.write_end(mark),
        }
    }

    fn write_end(&mut self, mark: &Mark) {
        match mark {
            Mark::Emphasis(text) => self.out.push_str(text),
            Mark::Link(url) => {
                self.out.push_str("](");
                self.out.push_str(url);
                self.out.push(')');
            }
        }
    }

    /// Writes what is due before text: line breaks, prefixes, a space, marks.
    fn begin(&mut self) {
        if self.breaks > 0 || self.out.is_empty() {
            self.begin_line();
        } else if self.needs_space {
            self.out.push(' ');
        }
        self.needs_space = false;
        // The mark of a heading comes before that of a link: Markdown has links in headings, not headings in links.
        if let Some(mark) = self.line_mark.take() {
            self.out.push_str(mark);
        }
        let first = self.open_marks.len() - self.pending_marks;
        for mark in &self.open_marks[first..] {
            self.out.push_str(match mark {
                Mark::Emphasis(text) => text,
                Mark::Link(_) => "[",
            });
        }
        self.pending_marks = 0;
    }

    fn begin_line(&mut self) {
        let breaks = std::mem::take(&mut self.breaks);
        if let Some(line_separator) = self.line_separator {
            if !self.out.is_empty() {
                self.out.push_str(line_separator);
            }
            return;
        }
        if !self.out.is_empty() {
            self.interrupt_marks();
            for _ in 0..breaks.saturating_sub(1) {
                self.out.push('\n');
                // Blank lines keep `> `. The indentation of lists is trimmed.
                let start = self.out.len();
                for prefix in self.prefixes.iter().filter(|prefix| prefix.first.is_none()) {
                    self.out.push_str(&prefix.rest);
                }
                let kept = self.out[start..].trim_end().len();
                self.out.truncate(start + kept);
            }
            self.out.push('\n');
        }
        for prefix in &mut self.prefixes {
            match prefix.first.take() {
                Some(first) => self.out.push_str(&first),
                None => self.out.push_str(&prefix.rest),
            }
        }
        self.is_line_start = true;
    }

    /// Closes marks at the end of a line. Emphasis is opened again in the next line, links are not.
    fn interrupt_marks(&mut self) {
        if self.open_marks.is_empty() {
            return;
        }
        let written = self.open_marks.len() - self.pending_marks;
        let marks = std::mem::take(&mut self.open_marks);
        for mark in marks[..written].iter().rev() {
            self.write_end(mark);
        }
        let is_kept =
            |(at, mark): &(usize, &Mark)| *at >= written || matches!(mark, Mark::Emphasis(_));
        self.open_marks =
            marks.iter().enumerate().filter(is_kept).map(|(_, mark)| mark.clone()).collect();
        self.pending_marks = self.open_marks.len();
    }

    /// Writes text with its whitespace collapsed.
    pub(super) fn text(&mut self, text: &str) {
        let text = escape_hidden(text);
        if text.starts_with(|c: char| c.is_ascii_whitespace()) {
            self.needs_space = true;
        }
        for word in text.split_ascii_whitespace() {
            if self.is_full() {
                return;
            }
            self.begin();
            if self.is_line_start && self.markup == Markup::Markdown {
                self.write_first_word(word);
            } else {
                self.out.push_str(word);
            }
            self.is_line_start = false;
            self.needs_space = true;
        }
        if !text.is_empty() && !text.ends_with(|c: char| c.is_ascii_whitespace()) {
            self.needs_space = false;
        }
    }

    /// Writes the first word of a line, escaped if it would start a block.
    fn write_first_word(&mut self, word: &str) {
        let digits = word.bytes().take_while(u8::is_ascii_digit).count();
        let is_number = digits > 0 && matches!(&word[digits..], "." | ")");
        let starts_block = matches!(word, "-" | "+" | "*")
            || word.starts_with('>')
            || word.starts_with("```")
            || word.starts_with("~~~")
            || word.bytes().all(|byte| byte == b'#') && word.len() <= 6;
        if is_number {
            self.out.push_str(&word[..digits]);
            self.out.push('\\');
            self.out.push_str(&word[digits..]);
            return;
        }
        if starts_block {
            self.out.push('\\');
        }
        self.out.push_str(word);
    }

    /// Writes text as it is, within the line.
    pub(super) fn verbatim(&mut self, text: &str) {
        self.verbatim_parts(&[text]);
    }

    /// Writes several texts as they are, without space between them.
    pub(super) fn verbatim_parts(&mut self, parts: &[&str]) {
        if parts.iter().all(|part| part.is_empty()) || self.is_full() {
            return;
        }
        self.begin();
        parts.iter().for_each(|part| self.out.push_str(part));
        self.is_line_start = false;
    }

    /// Writes a line of its own that starts with a mark.
    pub(super) fn marked_line(&mut self, mark: &'static str, text: &str) {
        self.break_lines(2);
        if !text.is_empty() {
            self.line_mark = Some(mark);
            self.verbatim(text);
            self.line_mark = None;
        }
        self.break_lines(2);
    }

    /// Writes a block whose lines are kept as they are.
    pub(super) fn lines(&mut self, text: &str) {
        for line in text.split('\n') {
            if self.is_full() {
                return;
            }
            self.break_lines(1);
            self.begin();
            self.out.push_str(line);
            self.is_line_start = false;
        }
    }

    /// Returns the text, without whitespace at its end.
    pub(super) fn finish(mut self) -> String {
        let marks = std::mem::take(&mut self.open_marks);
        for mark in marks[..marks.len() - self.pending_marks].iter().rev() {
            self.write_end(mark);
        }
        self.out.truncate(self.out.trim_end().len());
        self.out
    }
}

/// Makes control and bidirectional characters visible. Characters that only affect layout, such as a soft hyphen, are
/// removed, and unusual spaces become ordinary ones.
pub(super) fn escape_hidden(text: &str) -> Cow<'_, str> {
    visible::escape_hidden(text)
}
