//! Recursive-descent parser for lists, pipelines and compound commands.

use super::ast::{Connector, Node, ParseError, Piece, RawWord};
use super::parser::Parser;

/// Reserved words, which are not programs at the start of a command.
const RESERVED: &[&str] = &[
    "if", "then", "elif", "else", "fi", "while", "until", "for", "select", "do", "done", "case",
    "esac", "function", "time", "coproc", "{", "}", "!", "[[",
];
/// Reserved words that end a list of commands.
const CLOSING: &[&str] = &["then", "elif", "else", "fi", "do", "done", "esac", "}"];

impl Parser<'_> {
    /// Parses commands up to the end of the text or to a token that closes the list.
    pub(super) fn list(&mut self) -> Result<Node, ParseError> {
        let mut nodes = Vec::new();
        loop {
            self.skip_lines()?;
            if self.list_ends() {
                break;
            }
            let node = self.and_or()?;
            self.skip_blanks();
            if self.peek(0) == Some('&') && self.peek(1) != Some('&') {
                self.next();
                nodes.push(Node::Background(Box::new(node)));
                continue;
            }
            nodes.push(node);
            match (self.peek(0), self.peek(1)) {
                (Some(';'), Some(';' | '&')) => break,
                (Some(';'), _) => {
                    self.next();
                }
                (Some('\n'), _) => self.newline()?,
                _ => break,
            }
        }
        Ok(Node::Sequence(nodes))
    }

    fn nonempty_list(&mut self) -> Result<Box<Node>, ParseError> {
        match self.nested(Self::list)? {
            Node::Sequence(nodes) if nodes.is_empty() => self.syntax_error(),
            list => Ok(Box::new(list)),
        }
    }

    fn list_ends(&self) -> bool {
        match self.peek(0) {
            None | Some(')') => true,
            Some(';') => matches!(self.peek(1), Some(';' | '&')),
            Some(_) => self.next_reserved_word().is_some_and(|word| CLOSING.contains(&word)),
        }
    }

    /// Returns the reserved word that comes next.
    fn next_reserved_word(&self) -> Option<&'static str> {
        let ends = |length: usize| self.peek(length).is_none_or(ends_word);
        let next = |word: &&&str| self.starts_with(word) && ends(word.len());
        RESERVED.iter().find(next).copied()
    }

    fn expect_keyword(&mut self, word: &str) -> Result<(), ParseError> {
        self.skip_lines()?;
        if self.next_reserved_word() == Some(word) {
            self.expect(word)
        } else {
            self.syntax_error()
        }
    }

    fn and_or(&mut self) -> Result<Node, ParseError> {
        let first = self.pipeline()?;
        let mut rest = Vec::new();
        loop {
            self.skip_blanks();
            let link = if self.eat("&&") {
                Connector::And
            } else if self.eat("||") {
                Connector::Or
            } else {
                break;
            };
            self.skip_lines()?;
            rest.push((link, self.pipeline()?));
        }
        if rest.is_empty() {
            return Ok(first);
        }
        Ok(Node::AndOr { first: Box::new(first), rest })
    }

    fn pipeline(&mut self) -> Result<Node, ParseError> {
        let (mut is_timed, mut is_negated) = (false, false);
        loop {
            self.skip_blanks();
            match self.next_reserved_word() {
                Some("!") => {
                    self.expect("!")?;
                    is_negated = true;
                }
                Some("time") => {
                    self.skip_continuations();
                    self.note_program(self.at);
                    self.expect("time")?;
                    is_timed = true;
                    self.skip_blanks();
                    if self.starts_with("-p") && self.peek(2).is_none_or(ends_word) {
                        self.expect("-p")?;
                        self.skip_blanks();
                    }
                    if self.starts_with("--") && self.peek(2).is_none_or(ends_word) {
                        self.expect("--")?;
                    }
                }
                _ => break,
            }
        }
        let mut pipeline = self.piped_commands()?;
        if is_timed {
            let is_plain = matches!(&pipeline, Node::Simple(it) if it.assignments.is_empty());
            if is_negated || !is_plain {
                // In other shells, `time` is a program, and the following words are its arguments.
                self.reject_in_posix()?;
            }
            pipeline = Node::Timed(Box::new(pipeline));
        }
        Ok(if is_negated { Node::Negated(Box::new(pipeline)) } else { pipeline })
    }

    fn piped_commands(&mut self) -> Result<Node, ParseError> {
        let mut nodes = vec![self.command()?];
        loop {
            self.skip_blanks();
            let is_pipe = self.peek(0) == Some('|') && self.peek(1) != Some('|');
            if !is_pipe {
                break;
            }
            self.next();
            self.eat("&");
            self.skip_lines()?;
            nodes.push(self.command()?);
        }
        match (nodes.pop(), nodes.is_empty()) {
            (Some(only), true) => Ok(only),
            (Some(last), false) => {
                nodes.push(last);
                Ok(Node::Pipeline(nodes))
            }
            (None, _) => self.syntax_error(),
        }
    }

    fn command(&mut self) -> Result<Node, ParseError> {
        self.count_node()?;
        self.skip_blanks();
        let compound = match self.next_reserved_word() {
            Some("if") => self.if_command()?,
            Some(word @ ("while" | "until")) => {
                self.expect(word)?;
                let condition = self.nonempty_list()?;
                Node::While { condition, body: self.do_group()? }
            }
            Some(word @ ("for" | "select")) => self.for_command(word)?,
            Some("case") => self.case_command()?,
            Some("{") => {
                self.expect("{")?;
                let list = self.nonempty_list()?;
                self.expect_keyword("}")?;
                Node::Group(list)
            }
            Some("[[") => self.conditional()?,
            Some("function") => return self.function_keyword(),
            Some("coproc") => {
                self.expect("coproc")?;
                return Ok(Node::Coprocess(Box::new(self.nested(Self::command)?)));
            }
            Some(_) => return self.syntax_error(),
            None if self.peek(0) == Some('(') && self.peek(1) == Some('(') => {
                self.reject_in_posix()?;
                self.expect("((")?;
                Node::Arithmetic(self.arithmetic_word()?)
            }
            None if self.eat("(") => {
                let list = self.nonempty_list()?;
                self.check_no_pending_here_document_at_depth()?;
                self.expect(")")?;
                Node::Subshell(list)
            }
            None => return self.simple(),
        };
        self.with_redirects(compound)
    }

    fn with_redirects(&mut self, body: Node) -> Result<Node, ParseError> {
        let mut redirects = Vec::new();
        loop {
            self.skip_blanks();
            match self.redirect()? {
                Some(redirect) => redirects.push(redirect),
                None if redirects.is_empty() => return Ok(body),
                None => return Ok(Node::Redirected { body: Box::new(body), redirects }),
            }
        }
    }

    fn if_command(&mut self) -> Result<Node, ParseError> {
        self.expect("if")?;
        let mut parts = Vec::new();
        loop {
            parts.push(*self.nonempty_list()?);
            self.expect_keyword("then")?;
            parts.push(*self.nonempty_list()?);
            self.skip_lines()?;
            match self.next_reserved_word() {
                Some("elif") => self.expect("elif")?,
                Some("else") => {
                    self.expect("else")?;
                    parts.push(*self.nonempty_list()?);
                    break;
                }
                _ => break,
            }
        }
        self.expect_keyword("fi")?;
        Ok(Node::If(parts))
    }

    fn do_group(&mut self) -> Result<Box<Node>, ParseError> {
        self.expect_keyword("do")?;
        let body = self.nonempty_list()?;
        self.expect_keyword("done")?;
        Ok(body)
    }

    fn for_command(&mut self, word: &str) -> Result<Node, ParseError> {
        self.expect(word)?;
        self.skip_blanks();
        if word == "select" {
            self.reject_in_posix()?;
        }
        if self.eat("((") {
            let head = self.arithmetic_word()?;
            self.skip_blanks();
            self.eat(";");
            return Ok(Node::ForArithmetic { head, body: self.do_group()? });
        }
        let name = self.name()?;
        self.skip_lines()?;
        let mut words = None;
        if self.peek(0) == Some('i') {
            if self.word()?.unquoted_text() != Some("in") {
                return self.syntax_error();
            }
            words = Some(self.words()?);
        }
        self.skip_blanks();
        self.eat(";");
        let body = self.do_group()?;
        Ok(match word {
            "select" => Node::Select { name, words, body },
            _ => Node::For { name, words, body },
        })
    }

    /// Parses words up to the end of the line or a semicolon.
    fn words(&mut self) -> Result<Vec<RawWord>, ParseError> {
        let mut words = Vec::new();
        loop {
            self.skip_blanks();
            match self.peek(0) {
                None | Some(';' | '\n') => return Ok(words),
                Some(_) => words.push(self.word()?),
            }
        }
    }

    fn name(&mut self) -> Result<String, ParseError> {
        match self.word()?.unquoted_text() {
            Some(name) if is_name(name) => Ok(name.to_string()),
            _ => self.syntax_error(),
        }
    }

    fn case_command(&mut self) -> Result<Node, ParseError> {
        self.expect("case")?;
        self.skip_blanks();
        let subject = self.word()?;
        self.skip_lines()?;
        if self.word()?.unquoted_text() != Some("in") {
            return self.syntax_error();
        }
        let mut arms = Vec::new();
        loop {
            self.skip_lines()?;
            if self.next_reserved_word() == Some("esac") {
                break;
            }
            self.eat("(");
            let mut patterns = Vec::new();
            loop {
                self.skip_blanks();
                patterns.push(self.word()?);
                self.skip_blanks();
                if !self.eat("|") {
                    break;
                }
            }
            self.expect(")")?;
            let body = self.nested(Self::list)?;
            arms.push((patterns, body));
            if !(self.eat(";;&") || self.eat(";;") || self.eat(";&")) {
                break;
            }
        }
        self.expect_keyword("esac")?;
        Ok(Node::Case { subject, arms })
    }

    fn function_keyword(&mut self) -> Result<Node, ParseError> {
        self.reject_in_posix()?;
        self.expect("function")?;
        self.skip_blanks();
        let Some(name) = self.word()?.unquoted_text().map(str::to_string) else {
            return self.syntax_error();
        };
        self.skip_blanks();
        if self.eat("(") {
            self.skip_blanks();
            self.expect(")")?;
        }
        self.function(name)
    }

    pub(super) fn function(&mut self, name: String) -> Result<Node, ParseError> {
        self.skip_lines()?;
        let body = Box::new(self.nested(Self::command)?);
        Ok(Node::Function { name, body })
    }

    /// Parses `[[ … ]]`. Only the expansions of its words matter; its result is not used.
    fn conditional(&mut self) -> Result<Node, ParseError> {
        self.reject_in_posix()?;
        self.expect("[[")?;
        let mut words: Vec<RawWord> = Vec::new();
        loop {
            self.skip_lines()?;
            let is_pattern = words
                .last()
                .and_then(RawWord::unquoted_text)
                .is_some_and(|operator| matches!(operator, "=~" | "==" | "=" | "!="));
            let start = self.at;
            let operator = ["&&", "||", "(", ")", "<", ">"].into_iter().find(|operator| {
                !is_pattern && !self.is_process_substitution() && self.eat(operator)
            });
            // In zsh a parenthesis directly after a word belongs to the word.
            if operator == Some("(") && !self.text[..start].ends_with([' ', '\t', '\n', '(', '!']) {
                return self.syntax_error();
            }
            let word = match operator {
                Some(operator) => {
                    let text = operator.to_string();
                    let pieces = vec![Piece::Text { text, quoted: false }];
                    self.raw_word_since(start, pieces)
                }
                None if is_pattern => self.pattern_word()?,
                None => self.word()?,
            };
            if word.unquoted_text() == Some("]]") {
                return Ok(Node::Conditional(words));
            }
            words.push(word);
        }
    }
}

/// Whether a character ends an unquoted word.
pub(super) fn ends_word(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '|' | '&' | ';' | '(' | ')' | '<' | '>')
}

/// Whether a text is a valid name of a variable.
pub(super) fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
