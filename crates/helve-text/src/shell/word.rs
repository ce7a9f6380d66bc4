//! Parser for words: quotes and escapes.

use super::ast::{ParseError, Piece, RawWord};
use super::grammar::ends_word;
use super::parser::Parser;

/// Where a word occurs, which decides where it ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum WordContext {
    /// A word of a command.
    Word,
    /// The right side of `=~` or `==` in `[[ … ]]`, where parentheses and bars are ordinary.
    Pattern,
    /// Inside `${…}`, after the operator.
    Operand,
    /// Inside `[…]`, after a name.
    Index,
}

impl Parser<'_> {
    pub(super) fn word(&mut self) -> Result<RawWord, ParseError> {
        self.raw_word(WordContext::Word)
    }

    pub(super) fn pattern_word(&mut self) -> Result<RawWord, ParseError> {
        self.raw_word(WordContext::Pattern)
    }

    /// Parses up to `]`, which is consumed.
    pub(super) fn index_word(&mut self) -> Result<RawWord, ParseError> {
        let raw = self.raw_word(WordContext::Index)?;
        self.expect("]")?;
        Ok(raw)
    }

    /// Parses up to `))`, which is consumed.
    pub(super) fn arithmetic_word(&mut self) -> Result<RawWord, ParseError> {
        let start = self.at;
        let pieces = self.arithmetic()?;
        Ok(self.raw_word_since(start, pieces))
    }

    /// Parses a word. The context decides where it ends.
    fn raw_word(&mut self, context: WordContext) -> Result<RawWord, ParseError> {
        self.skip_continuations();
        let start = self.at;
        let pieces = self.pieces(context)?;
        if self.at == start {
            return self.syntax_error();
        }
        Ok(self.raw_word_since(start, pieces))
    }

    /// Returns a word with these pieces, whose source is the text since `start`.
    pub(super) fn raw_word_since(&self, start: usize, pieces: Vec<Piece>) -> RawWord {
        RawWord { pieces, shown: self.text[start..self.at].to_string() }
    }

    /// Parses unquoted text up to the end of its context.
    pub(super) fn pieces(&mut self, context: WordContext) -> Result<Vec<Piece>, ParseError> {
        let mut pieces = Vec::new();
        let mut open_parens = 0_usize;
        while let Some(c) = self.peek(0) {
            match (context, c) {
                (WordContext::Word | WordContext::Operand, '<' | '>')
                    if self.is_process_substitution() =>
                {
                    pieces.push(self.process_substitution()?);
                    continue;
                }
                (WordContext::Word, c) if ends_word(c) => break,
                (WordContext::Pattern, ' ' | '\t' | '\n') if open_parens == 0 => break,
                (WordContext::Pattern, '(') => open_parens += 1,
                (WordContext::Pattern, ')') if open_parens == 0 => break,
                (WordContext::Pattern, ')') => open_parens -= 1,
                (WordContext::Pattern, ';' | '&' | '<' | '>') => return self.syntax_error(),
                (WordContext::Operand, '}') => break,
                (WordContext::Index, ']') => break,
                (WordContext::Index, ' ' | '\t' | '\n') => return self.syntax_error(),
                _ => {}
            }
            match c {
                '\\' => {
                    self.next();
                    let Some(escaped) = self.next_raw() else { return self.syntax_error() };
                    push_char(&mut pieces, escaped, true);
                }
                '\'' => {
                    self.next();
                    self.single_quoted(&mut pieces)?;
                }
                '"' => {
                    self.next();
                    self.double_quoted(&mut pieces)?;
                }
                '$' => self.dollar(&mut pieces, false)?,
                '`' => self.backtick(&mut pieces, false)?,
                c => {
                    self.next();
                    push_char(&mut pieces, c, false);
                }
            }
        }
        Ok(pieces)
    }

    fn single_quoted(&mut self, pieces: &mut Vec<Piece>) -> Result<(), ParseError> {
        let Some(length) = self.rest().find('\'') else { return self.syntax_error() };
        let text = &self.rest()[..length];
        if text.contains('\n') {
            self.check_no_pending_here_document()?;
        }
        pieces.push(Piece::Text { text: text.to_string(), quoted: true });
        self.at += length + 1;
        Ok(())
    }

    pub(super) fn double_quoted(&mut self, pieces: &mut Vec<Piece>) -> Result<(), ParseError> {
        pieces.push(Piece::Text { text: String::new(), quoted: true });
        loop {
            match self.peek(0) {
                None => return self.syntax_error(),
                Some('"') => {
                    self.next();
                    return Ok(());
                }
                Some(c) => self.quoted_char(pieces, c, "$`\"\\")?,
            }
        }
    }

    /// Parses the body of a here-document with expansions.
    pub(super) fn here_document(&mut self) -> Result<Vec<Piece>, ParseError> {
        let mut pieces = Vec::new();
        while let Some(c) = self.peek(0) {
            self.quoted_char(&mut pieces, c, "$`\\")?;
        }
        Ok(pieces)
    }

    /// Parses one character inside double quotes or a here-document. A backslash only escapes the characters in
    /// `escapable`.
    pub(super) fn quoted_char(
        &mut self,
        pieces: &mut Vec<Piece>,
        c: char,
        escapable: &str,
    ) -> Result<(), ParseError> {
        match c {
            '$' => return self.dollar(pieces, true),
            '`' => return self.backtick(pieces, true),
            '\n' => self.check_no_pending_here_document()?,
            _ => {}
        }
        self.next();
        let escaped = match self.peek_raw() {
            Some(next) if c == '\\' && escapable.contains(next) => self.next_raw(),
            _ => None,
        };
        push_char(pieces, escaped.unwrap_or(c), true);
        Ok(())
    }

    fn peek_raw(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Parses the delimiter of a here-document. Also returns whether any part of it is quoted.
    pub(super) fn delimiter(&mut self) -> Result<(String, bool), ParseError> {
        let word = self.word()?;
        let mut text = String::new();
        let mut any_quoted = false;
        for piece in &word.pieces {
            match piece {
                Piece::Text { text: more, quoted } => {
                    text.push_str(more);
                    any_quoted |= *quoted;
                }
                _ => return self.syntax_error(),
            }
        }
        if text.is_empty() || text.contains('\n') || word.shown.contains('$') {
            return self.syntax_error();
        }
        Ok((text, any_quoted))
    }
}

/// Appends a character, to the last piece if that is text with the same quoting.
pub(super) fn push_char(pieces: &mut Vec<Piece>, c: char, quoted: bool) {
    match pieces.last_mut() {
        Some(Piece::Text { text, quoted: last_quoted }) if *last_quoted == quoted => text.push(c),
        _ => pieces.push(Piece::Text { text: c.to_string(), quoted }),
    }
}
