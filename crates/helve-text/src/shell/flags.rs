//! Flags and their values, by what the table says they take.

use super::options::{Options, Use};
use super::role::Role;
use super::table::{self, Takes};
use super::{Dynamic, Part, RiskKind, Unknown, Word};

impl Options<'_> {
    /// What may turn out to be a flag is as unlisted as any flag that is not in the table.
    pub(super) fn dynamic(&mut self, at: usize, dynamic: &Dynamic) {
        let harmless = match dynamic.kind {
            Unknown::Number | Unknown::Commit | Unknown::Pipe | Unknown::Found { .. } => true,
            Unknown::Revision => self.role(0) == Some(Role::Revision),
            Unknown::Anything => false,
        };
        if self.reading.block.traits.any || harmless && !dynamic.start.starts_with('-') {
            return self.operand(at);
        }
        if self.ended {
            return self.operand(at);
        }
        if dynamic.splits {
            self.risk(at, None, RiskKind::Unlisted);
            return self.operand(at);
        }
        let start = dynamic.start.as_str();
        if !(start.is_empty() || start.starts_with('-')) {
            return self.operand(at);
        }
        let value = Word::Dynamic(Dynamic { start: String::new(), ..dynamic.clone() });
        let flag = match start.split_once('=') {
            Some((flag, _)) if flag.starts_with("--") => flag.to_string(),
            _ => start.chars().take(2).collect(),
        };
        match self.reading.block.flag(&flag) {
            Some(Takes::Value(role)) if !start.is_empty() => {
                self.reading.parts[at] = Part::Flag;
                self.flag(&flag);
                if start == flag && dynamic.open {
                    // Then the value is the next word, and every other means something else.
                    self.risk(at, None, RiskKind::Unlisted);
                }
                self.take(role, at, value, &flag);
            }
            Some(Takes::Attached) => {
                self.reading.parts[at] = Part::Flag;
                self.flag(&flag);
            }
            _ => {
                self.risk(at, None, RiskKind::Unlisted);
                self.operand(at);
            }
        }
    }

    fn flag(&mut self, flag: &str) {
        self.reading.flags.push(flag.to_string());
    }

    fn take(&mut self, role: Role, word: usize, value: Word, flag: &str) {
        let flag = Some(flag.to_string());
        self.reading.uses.push(Use { role, word, value, flag, end: word + 1 });
    }

    /// A value in the word of its flag. If names are filled in there, it is one of those that fit.
    fn attached(&self, role: Role, at: usize, value: &str) -> Word {
        let filled_in = matches!(self.words[at], Word::Glob(_)) && value.contains(['*', '?', '[']);
        if filled_in && role != Role::Text {
            Word::Glob(value.to_string())
        } else {
            Word::Literal(value.to_string())
        }
    }

    /// `--flag`, `--flag=value`, and the one-dash flags of `find` and `go`.
    pub(super) fn long(&mut self, at: usize, text: &str) {
        self.reading.parts[at] = Part::Flag;
        let block = self.reading.block;
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        let short = name.strip_prefix('-').filter(|it| block.traits.long && it.starts_with('-'));
        let name = match short {
            Some(short) if block.flag(name).is_none() => short,
            _ => name,
        };
        self.flag(name);
        match (block.flag(name), value) {
            (Some(Takes::Nothing | Takes::Attached | Takes::Bare(_)), None) => {}
            (Some(Takes::Attached), Some(value)) => {
                self.take(Role::Text, at, Word::Literal(value.to_string()), name);
            }
            (Some(Takes::Value(role)), Some(value)) => {
                self.take(role, at, self.attached(role, at, value), name);
                self.module(role, name, value);
            }
            (Some(Takes::Value(role)), None) => self.next_value(role, name),
            (Some(Takes::Pair(role)), None) => {
                self.next_value(Role::Text, name);
                self.next_value(role, name);
            }
            (Some(Takes::Exec), None) => self.exec(name),
            (Some(Takes::Risk(kind)), _)
            | (Some(Takes::RiskyValue(kind) | Takes::Bare(kind)), Some(_)) => {
                self.risk(at, Some(name), kind);
            }
            (Some(Takes::RiskyValue(kind)), None) => {
                self.risk(at, Some(name), kind);
                self.next_value(Role::Text, name);
            }
            // Whole words after one dash are mostly Go's, to whom every switch has a value.
            (Some(Takes::Nothing), Some("true" | "false")) if block.traits.long => {}
            (None, None) if block.traits.long && self.is_counted(name) => {}
            (Some(Takes::Nothing | Takes::Pair(_) | Takes::Exec), Some(_)) | (None, _) => {
                self.risk(at, Some(name), RiskKind::Unlisted);
            }
        }
    }

    /// Whether it is a flag with its number in the same word.
    fn is_counted(&self, name: &str) -> bool {
        let flag = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let takes = self.reading.block.flag(flag);
        flag.len() < name.len() && matches!(takes, Some(Takes::Value(Role::Text)))
    }

    /// Takes the next word as the value of a flag.
    fn next_value(&mut self, role: Role, flag: &str) {
        let at = self.at;
        let Some(word) = self.words.get(at) else { return };
        self.at += 1;
        self.reading.parts[at] = Part::Value;
        // Should the table be wrong about the value, a flag must not hide behind it.
        let letter = |c: char| c == '-' || c.is_ascii_alphabetic();
        let mode = role == Role::Mode && word.literal().is_some_and(is_mode);
        if !mode && word.start().strip_prefix('-').is_some_and(|rest| rest.starts_with(letter)) {
            self.risk(at, None, RiskKind::Unlisted);
        }
        if let Word::Dynamic(Dynamic {
            splits: true,
            kind: Unknown::Anything | Unknown::Number | Unknown::Commit,
            ..
        }) = word
        {
            // Where it is nothing, the next word is the value, and those after it are something else.
            self.risk(at, None, RiskKind::Unlisted);
        }
        self.take(role, at, word.clone(), flag);
        self.spill(at);
        if let Word::Literal(value) = word {
            self.module(role, flag, value);
        }
    }

    /// `-m pytest` makes `python` another program; any other module gets what follows for itself.
    fn module(&mut self, role: Role, flag: &str, value: &str) {
        if role != Role::Module {
            return;
        }
        let name = format!("{} {flag} {value}", self.name);
        match table::block(&name) {
            Some(block) => self.enter(block, name, self.at - 1),
            None => self.rest(),
        }
    }

    /// `-abc`, `-ovalue`, `-5`
    pub(super) fn cluster(&mut self, at: usize, text: &str) {
        self.reading.parts[at] = Part::Flag;
        let block = self.reading.block;
        let letters = &text[1..];
        if block.traits.number && letters.bytes().all(|byte| byte.is_ascii_digit()) {
            return;
        }
        for (place, letter) in letters.char_indices() {
            let flag = format!("-{letter}");
            let rest = &letters[place + letter.len_utf8()..];
            let spelled = if place == 0 { flag.as_str() } else { text };
            if rest.is_empty() && place > 0 {
                self.reading.clusters.push(at);
            }
            self.flag(&flag);
            match block.flag(&flag) {
                Some(Takes::Nothing) => {}
                Some(Takes::Attached | Takes::Bare(_)) if rest.is_empty() => return,
                Some(Takes::Attached) => {
                    return self.take(Role::Text, at, Word::Literal(rest.to_string()), &flag);
                }
                Some(Takes::Value(role)) if rest.is_empty() => {
                    return self.next_value(role, &flag);
                }
                Some(Takes::Value(role)) => {
                    self.take(role, at, self.attached(role, at, rest), &flag);
                    return self.module(role, &flag, rest);
                }
                Some(Takes::Risk(kind) | Takes::Bare(kind)) => {
                    return self.risk(at, Some(spelled), kind);
                }
                Some(Takes::RiskyValue(kind)) => {
                    self.risk(at, Some(spelled), kind);
                    if rest.is_empty() {
                        self.next_value(Role::Text, &flag);
                    }
                    return;
                }
                Some(Takes::Pair(_) | Takes::Exec) | None => {
                    return self.risk(at, Some(spelled), RiskKind::Unlisted);
                }
            }
        }
    }

    /// `tar tf archive`: the letters first, then their values in order.
    pub(super) fn dashless(&mut self) {
        if !self.reading.block.traits.dashless {
            return;
        }
        let text = match self.words.get(1) {
            Some(Word::Literal(text)) if !text.starts_with('-') => text,
            Some(Word::Literal(_)) | None => return,
            Some(Word::Glob(_) | Word::Dynamic(_)) => {
                return self.risk(1, None, RiskKind::Unlisted);
            }
        };
        self.reading.parts[1] = Part::Flag;
        self.at = 2;
        for letter in text.chars() {
            let flag = format!("-{letter}");
            self.flag(&flag);
            match self.reading.block.flag(&flag) {
                Some(Takes::Nothing | Takes::Attached) => {}
                Some(Takes::Value(role)) => self.next_value(role, &flag),
                Some(Takes::Risk(kind) | Takes::Bare(kind)) => self.risk(1, None, kind),
                Some(Takes::RiskyValue(kind)) => {
                    self.risk(1, None, kind);
                    self.next_value(Role::Text, &flag);
                }
                Some(Takes::Pair(_) | Takes::Exec) | None => {
                    self.risk(1, None, RiskKind::Unlisted);
                }
            }
        }
    }

    /// `-exec program … ;`
    fn exec(&mut self, flag: &str) {
        let start = self.at;
        let end = exec_end(self.words, start, flag);
        self.at = (end + 1).min(self.words.len());
        if let Some(value) = self.words.get(start).filter(|_| start < end) {
            let (value, flag) = (value.clone(), Some(flag.to_string()));
            self.reading.uses.push(Use { role: Role::Command, word: start, value, flag, end });
        }
        for at in start..end {
            // What may turn out to end the command makes flags of the words after it.
            let ends = match &self.words[at] {
                Word::Literal(_) => false,
                Word::Glob(_) => self.words[at].start().is_empty(),
                Word::Dynamic(it) => it.kind == Unknown::Anything && it.start.is_empty(),
            };
            let flags = |word: &Word| match word.literal() {
                Some(text) => text.starts_with('-'),
                None => word.start().is_empty() || word.start().starts_with('-'),
            };
            if ends && self.words[at + 1..end].iter().any(flags) {
                self.risk(at, None, RiskKind::Unlisted);
            }
        }
    }
}

/// `-u+x,g=w`: no flag of `find` has a sign in it.
fn is_mode(text: &str) -> bool {
    let signed = text.contains(['+', '=']);
    signed && text.chars().all(|c| "-ugoa+=rwxXst,".contains(c))
}

/// Where the command of `-exec` ends: at a semicolon, or at a plus right after the braces.
pub(super) fn exec_end(words: &[Word], start: usize, flag: &str) -> usize {
    let plus = matches!(flag, "-exec" | "-execdir");
    let ends = |at: &usize| match words[*at].literal() {
        Some(";") => true,
        Some("+") => plus && *at > start && words[*at - 1].literal() == Some("{}"),
        Some(_) | None => false,
    };
    (start..words.len()).find(ends).unwrap_or(words.len())
}
