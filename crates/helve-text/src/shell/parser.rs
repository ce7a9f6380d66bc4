//! The input of the parser: characters, operators and here-documents.

use std::cell::OnceCell;
use std::rc::Rc;

use super::ShellLanguage;
use super::ast::{Node, ParseError, Piece};

/// Maximum nesting depth: more than people write, and small enough for any stack.
const MAX_DEPTH: usize = 40;

/// Parser for one text. Nested texts in backticks get a parser of their own.
pub(super) struct Parser<'a> {
    pub(super) text: &'a str,
    /// Offset of the next character in `text`.
    pub(super) at: usize,
    /// Offset of `text` in the whole script; `None` if its offsets do not correspond to the script.
    pub(super) base: Option<usize>,
    language: ShellLanguage,
    depth: usize,
    /// How many more nodes may be created.
    nodes_left: usize,
    /// Here-documents whose bodies have not been reached yet.
    pending: Vec<PendingHereDocument>,
    /// Offsets in the whole script of words that name programs.
    pub(super) program_offsets: Vec<usize>,
    /// Offsets in the whole script of the targets of redirects.
    pub(super) redirect_offsets: Vec<usize>,
    /// Ranges of the whole script that are not compared with the result of tree-sitter.
    pub(super) uncompared_ranges: Vec<(usize, usize)>,
}

/// A here-document whose body has not been reached yet.
struct PendingHereDocument {
    delimiter: String,
    /// Whether the delimiter is quoted. If so, the body is not expanded.
    quoted: bool,
    strip_tabs: bool,
    /// Filled when the body is parsed.
    body: Rc<OnceCell<Vec<Piece>>>,
    /// The nesting depth of the redirect.
    depth: usize,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str, language: ShellLanguage, nodes_left: usize) -> Self {
        Self {
            text,
            language,
            at: 0,
            base: Some(0),
            depth: 0,
            nodes_left,
            pending: Vec::new(),
            program_offsets: Vec::new(),
            redirect_offsets: Vec::new(),
            uncompared_ranges: Vec::new(),
        }
    }

    /// Parses a text that is part of the current one, like a command in backticks.
    pub(super) fn parse_inner_text<T>(
        &mut self,
        text: &str,
        base: Option<usize>,
        parse: impl FnOnce(&mut Parser<'_>) -> Result<T, ParseError>,
    ) -> Result<T, ParseError> {
        let mut inner = Parser::new(text, self.language, self.nodes_left);
        inner.base = base;
        inner.depth = self.depth;
        let result = inner.nested(parse)?;
        self.nodes_left = inner.nodes_left;
        self.program_offsets.append(&mut inner.program_offsets);
        self.redirect_offsets.append(&mut inner.redirect_offsets);
        self.uncompared_ranges.append(&mut inner.uncompared_ranges);
        Ok(result)
    }

    /// Parses something one nesting level deeper.
    pub(super) fn nested<T>(
        &mut self,
        parse: impl FnOnce(&mut Self) -> Result<T, ParseError>,
    ) -> Result<T, ParseError> {
        if self.depth >= MAX_DEPTH {
            return Err(ParseError::TooDeep);
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    /// Returns a syntax error if the script is for a plain `sh`. Called at extensions that `sh` does not have.
    pub(super) fn reject_in_posix(&self) -> Result<(), ParseError> {
        match self.language {
            ShellLanguage::Bash | ShellLanguage::Korn | ShellLanguage::Zsh => Ok(()),
            ShellLanguage::Posix => self.syntax_error(),
        }
    }

    pub(super) fn is_zsh(&self) -> bool {
        self.language == ShellLanguage::Zsh
    }

    /// Counts one more node.
    pub(super) fn count_node(&mut self) -> Result<(), ParseError> {
        self.nodes_left = self.nodes_left.checked_sub(1).ok_or(ParseError::TooMany)?;
        Ok(())
    }

    pub(super) fn syntax_error<T>(&self) -> Result<T, ParseError> {
        Err(ParseError::Syntax(self.base.unwrap_or(0) + self.at))
    }

    /// Records that the word at `at` names a program.
    pub(super) fn note_program(&mut self, at: usize) {
        self.program_offsets.extend(self.base.map(|base| base + at));
    }

    pub(super) fn note_redirect_target(&mut self, at: usize) {
        self.redirect_offsets.extend(self.base.map(|base| base + at));
    }

    /// Returns the `n`th character ahead. Line continuations are skipped.
    pub(super) fn peek(&self, n: usize) -> Option<char> {
        self.chars_ahead().nth(n)
    }

    pub(super) fn chars_ahead(&self) -> impl Iterator<Item = char> + use<'a> {
        let mut rest = self.rest();
        std::iter::from_fn(move || {
            rest = skip_continuations(rest);
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

    /// Consumes the next character without skipping line continuations, as inside single quotes.
    pub(super) fn next_raw(&mut self) -> Option<char> {
        let c = self.rest().chars().next()?;
        self.at += c.len_utf8();
        Some(c)
    }

    pub(super) fn skip_continuations(&mut self) {
        self.at = self.text.len() - skip_continuations(self.rest()).len();
    }

    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Consumes `operator` if it comes next. Returns whether it did.
    pub(super) fn eat(&mut self, operator: &str) -> bool {
        let is_next = self.starts_with(operator);
        if is_next {
            for _ in operator.chars() {
                self.next();
            }
        }
        is_next
    }

    pub(super) fn starts_with(&self, operator: &str) -> bool {
        self.chars_ahead().take(operator.len()).eq(operator.chars())
    }

    pub(super) fn expect(&mut self, operator: &str) -> Result<(), ParseError> {
        if self.eat(operator) { Ok(()) } else { self.syntax_error() }
    }

    /// Skips blanks and a comment. Other white space is part of a word.
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

    /// Consumes a newline and the bodies of the here-documents that the line announced.
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
        let pending =
            PendingHereDocument { delimiter, quoted, strip_tabs, body: Rc::clone(&body), depth };
        self.pending.push(pending);
        body
    }

    /// Returns a syntax error if the body of a here-document is pending. In that case, shells differ on what a newline
    /// inside quotes means.
    pub(super) fn check_no_pending_here_document(&self) -> Result<(), ParseError> {
        if self.pending.is_empty() { Ok(()) } else { self.syntax_error() }
    }

    /// Returns a syntax error if the body of a here-document from this nesting level is pending.
    pub(super) fn check_no_pending_here_document_at_depth(&self) -> Result<(), ParseError> {
        if self.pending.iter().all(|pending| pending.depth < self.depth) {
            Ok(())
        } else {
            self.syntax_error()
        }
    }

    fn here_document_body(&mut self, pending: &PendingHereDocument) -> Result<(), ParseError> {
        let start = self.at;
        let mut text = String::new();
        // Text of the lines that end with a line continuation.
        let mut continued = String::new();
        loop {
            let line_start = self.at;
            let Some(line) = self.rest().split('\n').next().filter(|_| !self.rest().is_empty())
            else {
                return self.syntax_error();
            };
            self.at = (self.at + line.len() + 1).min(self.text.len());
            let shown = if pending.strip_tabs { line.trim_start_matches('\t') } else { line };
            let ends = shown == pending.delimiter;
            continued.push_str(shown);
            if continued.len() > shown.len() && (ends || continued == pending.delimiter) {
                // Shells differ on whether a continued line can be the delimiter.
                return self.syntax_error();
            }
            if ends {
                let pieces = if pending.quoted {
                    vec![Piece::Text { text, quoted: true }]
                } else {
                    let base = self.base.map(|base| base + start);
                    let inside = &self.text[start..line_start];
                    self.parse_inner_text(inside, base, |it| it.here_document())?
                };
                // Each body is announced once and parsed once, so the cell is still empty.
                return pending.body.set(pieces).or_else(|_| self.syntax_error());
            }
            let backslashes = line.len() - line.trim_end_matches('\\').len();
            if pending.quoted || backslashes % 2 == 0 {
                continued.clear();
            } else {
                continued.pop();
            }
            text.push_str(shown);
            text.push('\n');
        }
    }
}

fn skip_continuations(mut rest: &str) -> &str {
    while let Some(after) = rest.strip_prefix("\\\n") {
        rest = after;
    }
    rest
}

/// Parses a whole script.
pub(super) fn parse_script(parser: &mut Parser<'_>) -> Result<Node, ParseError> {
    let list = parser.list()?;
    parser.check_no_pending_here_document()?;
    if parser.rest().is_empty() { Ok(list) } else { parser.syntax_error() }
}
