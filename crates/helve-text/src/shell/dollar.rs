//! Parses everything that a dollar sign or a backtick starts.

use super::ast::{Node, Operator, Parameter, ParseError, Piece};
use super::grammar::is_name;
use super::parser::{Parser, parse_script};
use super::word::{WordContext, push_char};

impl Parser<'_> {
    /// Parses an expansion that starts with `$`.
    pub(super) fn dollar(
        &mut self,
        pieces: &mut Vec<Piece>,
        quoted: bool,
    ) -> Result<(), ParseError> {
        self.count_node()?;
        self.expect("$")?;
        let piece = match self.peek(0) {
            Some('(') if self.peek(1) == Some('(') => {
                let start = self.at;
                self.expect("((")?;
                let inside = self.nested(Self::arithmetic)?;
                // In a here-document, tree-sitter parses arithmetic as commands. So an expression that cannot run
                // commands is excluded from the comparison with tree-sitter's tree.
                if !inside.iter().any(may_run_commands) {
                    self.uncompared_ranges
                        .extend(self.base.map(|base| (base + start, base + self.at)));
                }
                Piece::Arithmetic { inside, quoted }
            }
            Some('(') => {
                self.expect("(")?;
                Piece::Command { body: Box::new(self.list_in_parentheses()?), quoted }
            }
            Some('{') => {
                self.expect("{")?;
                let parameter = Box::new(self.nested(|it| it.parameter(quoted))?);
                Piece::Parameter { parameter, quoted }
            }
            Some('\'') if !quoted => {
                self.next();
                return self.ansi_string(pieces);
            }
            // Some shells parse this as a translated string, others as a dollar sign before a string.
            Some('"') if !quoted => return self.syntax_error(),
            // `$[…]` is arithmetic in bash. The other characters are expansion flags in zsh.
            Some('[' | '~' | '=' | '^') => return self.syntax_error(),
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                let name: String = self
                    .chars_ahead()
                    .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
                    .collect();
                self.expect(&name)?;
                self.parameter_without_braces(name, quoted)?
            }
            // In zsh, a name may follow `$#`, and `$+name` tells whether a variable is set.
            Some('#' | '+') if self.is_zsh() && self.peek(1).is_some_and(starts_name) => {
                return self.syntax_error();
            }
            Some(c) if c.is_ascii_digit() || "@*#?-$!".contains(c) => {
                self.next();
                self.parameter_without_braces(c.to_string(), quoted)?
            }
            _ => {
                push_char(pieces, '$', quoted);
                return Ok(());
            }
        };
        pieces.push(piece);
        Ok(())
    }

    /// Returns the expansion `$name`. In zsh, a subscript or a modifier may follow, as in `$x[2]` and `$x:h`.
    fn parameter_without_braces(
        &mut self,
        name: String,
        quoted: bool,
    ) -> Result<Piece, ParseError> {
        let mut parameter = unmodified_parameter(name);
        if self.is_zsh() && self.eat("[") {
            parameter.index = Some(self.nested(Self::plain_index)?);
            parameter.operator = Operator::Edit;
        }
        if self.is_zsh() && self.at_modifier()? {
            // The text of the modifier remains in the word, whose value is unknown anyway.
            parameter.operator = Operator::Edit;
        }
        Ok(Piece::Parameter { parameter: Box::new(parameter), quoted })
    }

    /// Parses the rest of a subscript without quotes, nested brackets and flags.
    fn plain_index(&mut self) -> Result<Vec<Piece>, ParseError> {
        let mut pieces = Vec::new();
        loop {
            match self.peek(0) {
                None | Some('"' | '\'' | '\\' | '`' | '[' | '(' | '\n') => {
                    return self.syntax_error();
                }
                Some(']') => {
                    self.next();
                    return Ok(pieces);
                }
                Some('$') => self.dollar(&mut pieces, true)?,
                Some(c) => {
                    self.next();
                    push_char(&mut pieces, c, false);
                }
            }
        }
    }

    /// Whether a modifier of zsh comes next. Returns a syntax error at `:F`, which evaluates the text after it.
    fn at_modifier(&self) -> Result<bool, ParseError> {
        let is_letter = |c: char| c.is_ascii_alphabetic() || c == '&';
        if self.peek(0) != Some(':') || !self.peek(1).is_some_and(is_letter) {
            return Ok(false);
        }
        let line: String = self.chars_ahead().take_while(|c| *c != '\n').collect();
        let evaluates =
            |part: &str| part.chars().take_while(|c| is_letter(*c)).any(|letter| letter == 'F');
        if line.split(':').skip(1).any(evaluates) { self.syntax_error() } else { Ok(true) }
    }

    /// Parses commands up to `)`, which is consumed.
    fn list_in_parentheses(&mut self) -> Result<Node, ParseError> {
        self.nested(|it| {
            let list = it.list()?;
            it.check_no_pending_here_document_at_depth()?;
            it.expect(")")?;
            Ok(list)
        })
    }

    /// Parses `<(…)` or `>(…)`.
    pub(super) fn process_substitution(&mut self) -> Result<Piece, ParseError> {
        self.reject_in_posix()?;
        self.count_node()?;
        self.next();
        self.expect("(")?;
        Ok(Piece::Process { body: Box::new(self.list_in_parentheses()?) })
    }

    /// Parses up to `))`. The two parentheses must be adjacent: otherwise some shells parse the text as commands.
    pub(super) fn arithmetic(&mut self) -> Result<Vec<Piece>, ParseError> {
        let mut pieces = Vec::new();
        let mut open_parens = 0_usize;
        loop {
            match self.peek(0) {
                None | Some('"' | '\'' | '\\' | '#') => return self.syntax_error(),
                Some('$') => self.dollar(&mut pieces, true)?,
                Some('`') => self.backtick(&mut pieces, true)?,
                Some(')') if open_parens == 0 => {
                    self.expect("))")?;
                    return Ok(pieces);
                }
                Some(c) => {
                    match c {
                        '(' => open_parens += 1,
                        ')' => open_parens -= 1,
                        '\n' => self.check_no_pending_here_document()?,
                        _ => {}
                    }
                    self.next();
                    push_char(&mut pieces, c, false);
                }
            }
        }
    }

    /// Parses a parameter expansion after `${`, including the `}`.
    fn parameter(&mut self, quoted: bool) -> Result<Parameter, ParseError> {
        let is_length = self.peek(0) == Some('#') && self.peek(1) != Some('}');
        let is_indirect = self.peek(0) == Some('!');
        if is_length || is_indirect {
            self.next();
        }
        let name = self.parameter_name()?;
        let mut index = None;
        if is_name(&name) && self.eat("[") {
            index = Some(self.index_word()?.pieces);
        }
        let mut operator = self.operator()?;
        if is_length && operator != Operator::None {
            return self.syntax_error();
        }
        if is_length {
            operator = Operator::Length;
        }
        if is_indirect {
            operator = Operator::Indirect;
        }
        let operand =
            if quoted { self.quoted_operand()? } else { self.pieces(WordContext::Operand)? };
        if operator == Operator::Slice && operand.is_empty() {
            return self.syntax_error();
        }
        self.expect("}")?;
        Ok(Parameter { name, index, operator, operand })
    }

    fn parameter_name(&mut self) -> Result<String, ParseError> {
        let name: String =
            self.chars_ahead().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
        let special_char = self.peek(0).filter(|c| "@*#?-$!".contains(*c));
        let is_number = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
        let name = match special_char {
            _ if is_name(&name) || is_number => name,
            Some(c) => c.to_string(),
            None => return self.syntax_error(),
        };
        self.expect(&name)?;
        Ok(name)
    }

    fn operator(&mut self) -> Result<Operator, ParseError> {
        let defaults = [":-", ":+", ":?", "-", "+", "?"];
        let edits = ["##", "#", "%%", "%", "//", "/#", "/%", "/", "^^", "^", ",,", ","];
        if self.peek(0) == Some('}') {
            return Ok(Operator::None);
        }
        if defaults.into_iter().any(|it| self.eat(it)) {
            return Ok(Operator::Default);
        }
        if self.eat(":=") || self.eat("=") {
            return Ok(Operator::Assign);
        }
        if edits.into_iter().any(|it| self.eat(it)) {
            return Ok(Operator::Edit);
        }
        if self.eat(":") {
            return Ok(Operator::Slice);
        }
        if self.eat("@") {
            return match (self.next(), self.peek(0)) {
                (Some('Q' | 'U' | 'u' | 'L' | 'E' | 'A' | 'a' | 'K' | 'k'), Some('}')) => {
                    Ok(Operator::Edit)
                }
                _ => Ok(Operator::Indirect),
            };
        }
        self.syntax_error()
    }

    /// Parses an operand inside double quotes, where shells differ on the meaning of a quote.
    fn quoted_operand(&mut self) -> Result<Vec<Piece>, ParseError> {
        let mut pieces = Vec::new();
        loop {
            match self.peek(0) {
                None | Some('\'' | '"') => return self.syntax_error(),
                Some('}') => return Ok(pieces),
                Some(c) => self.quoted_char(&mut pieces, c, "$`\"\\}")?,
            }
        }
    }

    /// Parses a command substitution in backticks.
    pub(super) fn backtick(
        &mut self,
        pieces: &mut Vec<Piece>,
        quoted: bool,
    ) -> Result<(), ParseError> {
        self.count_node()?;
        let start = self.at;
        self.expect("`")?;
        let mut text = String::new();
        loop {
            match self.next_raw() {
                None => return self.syntax_error(),
                Some('`') => break,
                Some('\\') => match self.next_raw() {
                    Some(c @ ('`' | '\\' | '$')) => text.push(c),
                    Some('"') if quoted => text.push('"'),
                    Some(c) => text.extend(['\\', c]),
                    None => return self.syntax_error(),
                },
                // During brace expansion, the shell would end the enclosing quotes here.
                Some('"') if quoted => return self.syntax_error(),
                Some(c) => text.push(c),
            }
        }
        if text.contains('\n') {
            self.check_no_pending_here_document()?;
        }
        let body = Box::new(self.parse_inner_text(&text, None, parse_script)?);
        self.uncompared_ranges.extend(self.base.map(|base| (base + start, base + self.at)));
        pieces.push(Piece::Command { body, quoted });
        Ok(())
    }

    /// Parses `$'…'`.
    fn ansi_string(&mut self, pieces: &mut Vec<Piece>) -> Result<(), ParseError> {
        self.reject_in_posix()?;
        let mut text = String::new();
        loop {
            let c = match self.next_raw() {
                None => return self.syntax_error(),
                Some('\'') => break,
                Some('\\') => self.ansi_escape()?,
                Some(c) => c,
            };
            if c == '\n' {
                self.check_no_pending_here_document()?;
            }
            text.push(c);
        }
        pieces.push(Piece::Text { text, quoted: true });
        Ok(())
    }

    /// Parses an escape of `$'…'`. Invalid characters and NUL, which ends the string, are refused.
    fn ansi_escape(&mut self) -> Result<char, ParseError> {
        let Some(c) = self.next_raw() else { return self.syntax_error() };
        let code = match c {
            'n' => 10,
            't' => 9,
            'r' => 13,
            'a' => 7,
            'b' => 8,
            'e' | 'E' => 27,
            'f' => 12,
            'v' => 11,
            '\\' | '\'' | '"' | '?' => u32::from(c),
            'x' => return self.ansi_code(16, 2, 0x7f),
            'u' => return self.ansi_code(16, 4, 0x10_ffff),
            'U' => return self.ansi_code(16, 8, 0x10_ffff),
            '0'..='7' => {
                self.at -= 1;
                return self.ansi_code(8, 3, 0x7f);
            }
            _ => return self.syntax_error(),
        };
        char::from_u32(code).map_or_else(|| self.syntax_error(), Ok)
    }

    /// Parses a character code of at most `max_digits` digits.
    fn ansi_code(
        &mut self,
        radix: u32,
        max_digits: usize,
        max_code: u32,
    ) -> Result<char, ParseError> {
        let digits: String =
            self.rest().chars().take(max_digits).take_while(|c| c.is_digit(radix)).collect();
        self.at += digits.len();
        match u32::from_str_radix(&digits, radix) {
            Ok(code) if code > 0 && code <= max_code => {
                char::from_u32(code).map_or_else(|| self.syntax_error(), Ok)
            }
            _ => self.syntax_error(),
        }
    }
}

/// Whether expanding a piece may run commands.
fn may_run_commands(piece: &Piece) -> bool {
    match piece {
        Piece::Text { .. } => false,
        Piece::Parameter { parameter, .. } => {
            **parameter != unmodified_parameter(parameter.name.clone())
        }
        Piece::Arithmetic { inside, .. } => inside.iter().any(may_run_commands),
        Piece::Command { .. } | Piece::Process { .. } => true,
    }
}

fn unmodified_parameter(name: String) -> Parameter {
    Parameter { name, index: None, operator: Operator::None, operand: Vec::new() }
}

fn starts_name(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}
