//! Characters, operators and here-documents: what the grammar is read from.

use std::cell::OnceCell;
use std::rc::Rc;

use super::ShellLanguage;
use super::ast::{Node, ParseError, Piece};

/// Deeper than people write, shallow enough for any stack.
const MAX_DEPTH: usize = 40;

/// Reads one text. Nested texts (backticks) get a reader of their own.
pub(super) struct Parser<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    /// How far `text` lies inside the whole script, where its places are comparable at all.
    pub(super) base: Option<usize>,
    language: ShellLanguage,
    depth: usize,
    /// How many more nodes may be made.
    budget: usize,
    /// Here-documents announced on this line and on lines around it.
    pending: Vec<Pending>,
    /// Where the words that name programs start, in the whole script.
    pub(super) program_offsets: Vec<usize>,
    /// Where the words that redirects name start, likewise.
    pub(super) redirect_offsets: Vec<usize>,
    /// Stretches of the whole script whose inside is read as a text of its own.
    pub(super) opaque_ranges: Vec<(usize, usize)>,
}

struct Pending {
    delimiter: String,
    quoted: bool,
    strip_tabs: bool,
    body: Rc<OnceCell<Vec<Piece>>>,
    depth: usize,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str, language: ShellLanguage, budget: usize) -> Self {
        Self {
            text,
            language,
            at: 0,
            base: Some(0),
            depth: 0,
            budget,
            pending: Vec::new(),
            program_offsets: Vec::new(),
            redirect_offsets: Vec::new(),
            opaque_ranges: Vec::new(),
        }
    }

    /// Reads `text`, which stands somewhere inside this reader's text, and returns to it.
    pub(super) fn sub_parser<T>(
        &mut self,
        text: &str,
        base: Option<usize>,
        read: impl FnOnce(&mut Parser<'_>) -> Result<T, ParseError>,
    ) -> Result<T, ParseError> {
        let mut inner = Parser::new(text, self.language, self.budget);
        inner.base = base;
        inner.depth = self.depth;
        let result = inner.nested(read)?;
        self.budget = inner.budget;
        self.program_offsets.append(&mut inner.program_offsets);
        self.redirect_offsets.append(&mut inner.redirect_offsets);
        self.opaque_ranges.append(&mut inner.opaque_ranges);
        Ok(result)
    }

    pub(super) fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, ParseError>,
    ) -> Result<T, ParseError> {
        if self.depth >= MAX_DEPTH {
            return Err(ParseError::TooDeep);
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Stops at what only richer shells know.
    pub(super) fn reject_in_posix(&self) -> Result<(), ParseError> {
        match self.language {
            ShellLanguage::Bash | ShellLanguage::Korn | ShellLanguage::Zsh => Ok(()),
            ShellLanguage::Posix => self.syntax_error(),
        }
    }

    /// Counts one more node.
    pub(super) fn count_node(&mut self) -> Result<(), ParseError> {
        self.budget = self.budget.checked_sub(1).ok_or(ParseError::TooMany)?;
        Ok(())
    }

    pub(super) fn syntax_error<T>(&self) -> Result<T, ParseError> {
        Err(ParseError::Syntax(self.base.unwrap_or(0) + self.at))
    }

    /// Notes that the word at `at` names a program.
    pub(super) fn note_program(&mut self, at: usize) {
        self.program_offsets.extend(self.base.map(|base| base + at));
    }

    pub(super) fn note_redirect_target(&mut self, at: usize) {
        self.redirect_offsets.extend(self.base.map(|base| base + at));
    }

    /// The `n`th character from here. A backslash before a newline joins lines and is not there at all.
    pub(super) fn peek(&self, n: usize) -> Option<char> {
        self.chars_ahead().nth(n)
    }

    pub(super) fn chars_ahead(&self) -> impl Iterator<Item = char> + use<'a> {
        let mut rest = self.rest();
        std::iter::from_fn(move || {
            rest = joined(rest);
            let c = rest.chars().next()?;
            rest = &rest[c.len_utf8()..];
            Some(c)
        })
    }

    pub(super) fn next(&mut self) -> Option<char> {
        self.skip_continuations();
        let c = self.rest().chars().next()?;
        self.at += c.len_utf8();
        Some(c)
    }

    /// Takes a character as it stands, as inside single quotes.
    pub(super) fn next_raw(&mut self) -> Option<char> {
        let c = self.rest().chars().next()?;
        self.at += c.len_utf8();
        Some(c)
    }

    pub(super) fn skip_continuations(&mut self) {
        self.at = self.text.len() - joined(self.rest()).len();
    }

    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Takes `operator` if it is next.
    pub(super) fn eat(&mut self, operator: &str) -> bool {
        let next = self.starts_with(operator);
        if next {
            for _ in operator.chars() {
                self.next();
            }
        }
        next
    }

    pub(super) fn starts_with(&self, operator: &str) -> bool {
        self.chars_ahead().take(operator.len()).eq(operator.chars())
    }

    pub(super) fn expect(&mut self, operator: &str) -> Result<(), ParseError> {
        if self.eat(operator) { Ok(()) } else { self.syntax_error() }
    }

    /// Skips blanks and a comment. Other white space than the shell's is part of a word.
    pub(super) fn skip_blanks(&mut self) {
        while matches!(self.peek(0), Some(' ' | '\t')) {
            self.next();
        }
        if self.peek(0) == Some('#') {
            self.skip_continuations();
            self.at += self.rest().find('\n').unwrap_or(self.rest().len());
        }
    }

    /// Skips blanks, comments and newlines.
    pub(super) fn skip_lines(&mut self) -> Result<(), ParseError> {
        loop {
            self.skip_blanks();
            if self.peek(0) != Some('\n') {
                return Ok(());
            }
            self.newline()?;
        }
    }

    /// Takes a newline and the bodies of the here-documents that its line announced.
    pub(super) fn newline(&mut self) -> Result<(), ParseError> {
        self.expect("\n")?;
        for pending in std::mem::take(&mut self.pending) {
            if pending.depth != self.depth {
                return self.syntax_error();
            }
            self.here_document_body(&pending)?;
        }
        Ok(())
    }

    pub(super) fn announce_here_document(
        &mut self,
        delimiter: String,
        quoted: bool,
        strip_tabs: bool,
    ) -> Rc<OnceCell<Vec<Piece>>> {
        let body = Rc::new(OnceCell::new());
        let depth = self.depth;
        let pending = Pending { delimiter, quoted, strip_tabs, body: Rc::clone(&body), depth };
        self.pending.push(pending);
        body
    }

    /// A newline inside quotes, or the end of a substitution, while a body is still to come: shells differ.
    pub(super) fn no_pending_body(&self) -> Result<(), ParseError> {
        if self.pending.is_empty() { Ok(()) } else { self.syntax_error() }
    }

    /// The same for bodies that this level announced.
    pub(super) fn no_pending_body_here(&self) -> Result<(), ParseError> {
        if self.pending.iter().all(|pending| pending.depth < self.depth) {
            Ok(())
        } else {
            self.syntax_error()
        }
    }

    fn here_document_body(&mut self, pending: &Pending) -> Result<(), ParseError> {
        let start = self.at;
        let mut text = String::new();
        // The lines that the next one goes on with.
        let mut before = String::new();
        loop {
            let line_start = self.at;
            let Some(line) = self.rest().split('\n').next().filter(|_| !self.rest().is_empty())
            else {
                return self.syntax_error();
            };
            self.at = (self.at + line.len() + 1).min(self.text.len());
            let shown = if pending.strip_tabs { line.trim_start_matches('\t') } else { line };
            let ends = shown == pending.delimiter;
            before.push_str(shown);
            if before.len() > shown.len() && (ends || before == pending.delimiter) {
                // Joined, it may be the end or not: shells differ.
                return self.syntax_error();
            }
            if ends {
                let pieces = if pending.quoted {
                    vec![Piece::Text { text, quoted: true }]
                } else {
                    let base = self.base.map(|base| base + start);
                    let inside = &self.text[start..line_start];
                    self.sub_parser(inside, base, |it| it.here_document())?
                };
                // Each body is announced once and read once, so the cell is still empty.
                return pending.body.set(pieces).or_else(|_| self.syntax_error());
            }
            let slashes = line.len() - line.trim_end_matches('\\').len();
            if pending.quoted || slashes % 2 == 0 {
                before.clear();
            } else {
                before.pop();
            }
            text.push_str(shown);
            text.push('\n');
        }
    }
}

fn joined(mut rest: &str) -> &str {
    while let Some(after) = rest.strip_prefix("\\\n") {
        rest = after;
    }
    rest
}

/// Reads a whole script.
pub(super) fn parse_script(parser: &mut Parser<'_>) -> Result<Node, ParseError> {
    let list = parser.list()?;
    parser.no_pending_body()?;
    if parser.rest().is_empty() { Ok(list) } else { parser.syntax_error() }
}
