//! Parser for simple commands: assignments, words and redirects.

use super::ast::{
    AssignValue, Assignment, Node, ParseError, RawWord, Redirect, RedirectKind, RedirectTarget,
    SimpleCommand,
};
use super::grammar::{ends_word, is_name};
use super::parser::Parser;

impl Parser<'_> {
    pub(super) fn simple(&mut self) -> Result<Node, ParseError> {
        let mut simple = SimpleCommand::default();
        let start = self.at;
        loop {
            self.skip_blanks();
            if let Some(redirect) = self.redirect()? {
                simple.redirects.push(redirect);
                continue;
            }
            match self.peek(0) {
                None | Some('\n' | ';' | '&' | '|' | ')') => break,
                Some('(') => {
                    let name = match (simple.words.as_slice(), simple.assignments.is_empty()) {
                        ([name], true) if simple.redirects.is_empty() => name.unquoted_text(),
                        _ => None,
                    };
                    let Some(name) = name.map(str::to_string) else { return self.syntax_error() };
                    self.next();
                    self.skip_blanks();
                    self.expect(")")?;
                    return self.function(name);
                }
                Some(_) => {}
            }
            if simple.words.is_empty() {
                if let Some(assignment) = self.assignment()? {
                    simple.assignments.push(assignment);
                    continue;
                }
                self.skip_continuations();
                self.note_program(self.at);
            }
            self.count_node()?;
            simple.words.push(self.word()?);
        }
        let has_no_command = simple.words.is_empty() && simple.assignments.is_empty();
        if has_no_command && simple.redirects.is_empty() {
            return self.syntax_error();
        }
        if !simple.redirects.is_empty() {
            simple.shown = self.text[start..self.at].trim().to_string();
        }
        Ok(Node::Simple(simple))
    }

    /// Parses an assignment, if the next word is one.
    fn assignment(&mut self) -> Result<Option<Assignment>, ParseError> {
        self.skip_continuations();
        let start = self.at;
        let name: String =
            self.chars_ahead().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
        if !is_name(&name) {
            return Ok(None);
        }
        self.expect(&name)?;
        let mut index = None;
        if self.peek(0) == Some('[') {
            self.next();
            match self.index_word() {
                Ok(word) => index = Some(word),
                Err(ParseError::Syntax(_)) => {
                    self.at = start;
                    return Ok(None);
                }
                Err(error) => return Err(error),
            }
        }
        let append = self.peek(0) == Some('+') && self.peek(1) == Some('=');
        if !(self.eat("+=") || self.eat("=")) {
            self.at = start;
            return Ok(None);
        }
        if append || index.is_some() || self.peek(0) == Some('(') {
            // A plain `sh` parses this as the name of a program.
            self.reject_in_posix()?;
        }
        let value = if self.eat("(") { self.array()? } else { AssignValue::Text(self.value()?) };
        let shown = self.text[start..self.at].to_string();
        Ok(Some(Assignment { name, index, append, value, shown }))
    }

    fn array(&mut self) -> Result<AssignValue, ParseError> {
        let mut words = Vec::new();
        loop {
            self.skip_lines()?;
            match self.peek(0) {
                Some(')') => break,
                // `[index]=value` evaluates the index.
                None | Some('[') => return self.syntax_error(),
                Some(_) => words.push(self.word()?),
            }
        }
        self.next();
        Ok(AssignValue::Array(words))
    }

    /// Parses the value after `=`, which may be empty.
    fn value(&mut self) -> Result<RawWord, ParseError> {
        match self.peek(0) {
            None => Ok(RawWord::default()),
            Some(c) if ends_word(c) && !self.is_process_substitution() => Ok(RawWord::default()),
            Some(_) => self.word(),
        }
    }

    pub(super) fn redirect(&mut self) -> Result<Option<Redirect>, ParseError> {
        let start = self.at;
        let variable = self.descriptor();
        let has_descriptor = self.at != start;
        let Some(operator) = self
            .redirect_operator()
            .filter(|operator| !has_descriptor || !operator.starts_with('&'))
        else {
            self.at = start;
            return Ok(None);
        };
        if variable.is_some() || operator.starts_with('&') {
            // A plain `sh` parses this as a word, or as the end of a command.
            self.reject_in_posix()?;
        }
        for _ in operator.chars() {
            self.next();
        }
        let shown_operator = self.text[start..self.at].to_string();
        self.skip_blanks();
        self.skip_continuations();
        let target_at = self.at;
        let (kind, target) = match operator {
            "<<" | "<<-" => {
                let (delimiter, quoted) = self.delimiter()?;
                let body = self.announce_here_document(delimiter, quoted, operator == "<<-");
                (RedirectKind::HereText, RedirectTarget::Body(body))
            }
            "<<<" => (RedirectKind::HereText, RedirectTarget::Word(self.word()?)),
            "<" => (RedirectKind::Read, RedirectTarget::Word(self.word()?)),
            "<>" => (RedirectKind::ReadWrite, RedirectTarget::Word(self.word()?)),
            "<&" => (RedirectKind::DuplicateIn, RedirectTarget::Word(self.descriptor_word()?)),
            ">&" => (RedirectKind::DuplicateOut, RedirectTarget::Word(self.descriptor_word()?)),
            _ => (RedirectKind::Write, RedirectTarget::Word(self.word()?)),
        };
        if kind != RedirectKind::HereText {
            self.note_redirect_target(target_at);
        }
        Ok(Some(Redirect { kind, target, variable, has_descriptor, operator: shown_operator }))
    }

    /// Parses the target of `<&` or `>&`. A longer word that starts with a dash is refused, because some shells treat
    /// the dash as a separate word.
    fn descriptor_word(&mut self) -> Result<RawWord, ParseError> {
        let word = self.word()?;
        let is_whole = !word.shown.starts_with('-') || word.shown == "-";
        if is_whole { Ok(word) } else { self.syntax_error() }
    }

    /// Consumes the descriptor before a redirect, if there is one. Returns the name if it is a name in braces.
    fn descriptor(&mut self) -> Option<String> {
        while self.peek(0).is_some_and(|c| c.is_ascii_digit()) {
            self.next();
        }
        if self.peek(0) != Some('{') {
            return None;
        }
        let name: String = self.chars_ahead().skip(1).take_while(|c| *c != '}').take(256).collect();
        if !is_name(&name) {
            return None;
        }
        let braced = format!("{{{name}}}");
        self.eat(&braced).then_some(name)
    }

    fn redirect_operator(&self) -> Option<&'static str> {
        let operators = ["&>>", "&>", "<<<", "<<-", "<<", "<>", "<&", "<", ">>", ">|", ">&", ">"];
        operators
            .into_iter()
            .find(|it| self.starts_with(it))
            .filter(|_| !self.is_process_substitution())
    }

    /// Whether `<(` or `>(` comes next, which is part of a word.
    pub(super) fn is_process_substitution(&self) -> bool {
        matches!(self.peek(0), Some('<' | '>')) && self.peek(1) == Some('(')
    }
}
