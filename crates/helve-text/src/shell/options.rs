//! What each word of a command is to its program, by the program's block in the table.

use super::table::{self, Block, Role, Takes};
use super::{Dynamic, Part, Risk, RiskKind, Unknown, Word};

/// A command, word by word.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) parts: Vec<Part>,
    pub(super) risks: Vec<Risk>,
    pub(super) uses: Vec<Use>,
    /// The flags that were seen, without their values.
    pub(super) flags: Vec<String>,
    pub(super) block: &'static Block,
    pub(super) operands: usize,
}

impl Reading {
    /// Whether flags are there that turn files which are otherwise read into files that are written.
    pub(super) fn writes(&self) -> bool {
        self.block.writing.iter().any(|flag| self.flags.contains(flag))
    }
}

/// A value or operand, and what it is for.
#[derive(Clone, Debug)]
pub(super) struct Use {
    pub(super) role: Role,
    pub(super) word: usize,
    /// The value itself, which may be only a part of the word.
    pub(super) value: Word,
    /// The flag it belongs to, if it does.
    pub(super) flag: Option<String>,
    /// One past the last word, for roles that take several.
    pub(super) end: usize,
}

/// Reads the words of a program that has a block of this name.
pub(super) fn interpret(words: &[Word], name: &str) -> Option<Reading> {
    let block = table::block(name)?;
    let mut options = Options {
        words,
        name: name.to_string(),
        never: block.never.iter().collect(),
        named_at: 0,
        at: 1,
        ended: false,
        operands: Vec::new(),
        reading: Reading {
            parts: vec![Part::Operand; words.len()],
            risks: Vec::new(),
            uses: Vec::new(),
            flags: Vec::new(),
            block,
            operands: 0,
        },
    };
    if let Some(part) = options.reading.parts.first_mut() {
        *part = Part::Program;
    }
    options.all();
    Some(options.reading)
}

struct Options<'w> {
    words: &'w [Word],
    /// The full name so far: `git stash list`.
    name: String,
    never: Vec<&'static String>,
    /// The word that gave the last part of the name.
    named_at: usize,
    at: usize,
    /// No more flags.
    ended: bool,
    operands: Vec<usize>,
    reading: Reading,
}

impl Options<'_> {
    fn all(&mut self) {
        self.dashless();
        if self.role(0) == Some(Role::Expression) && self.words.len() > 1 {
            self.operand(1);
        }
        while self.at < self.words.len() {
            let at = self.at;
            self.at += 1;
            match &self.words[at] {
                Word::Literal(text) => self.literal(at, text),
                // Where no file matches, the pattern itself is what the program gets.
                Word::Glob(pattern) if pattern.starts_with('-') => self.literal(at, pattern),
                Word::Glob(_) => self.operand(at),
                Word::Dynamic(dynamic) => self.dynamic(at, dynamic),
            }
        }
        self.assign();
        for (at, word) in self.words.iter().enumerate() {
            if self.never.iter().any(|never| word.shown().contains(never.as_str())) {
                self.risk(at, None, RiskKind::Unlisted);
            }
        }
        let block = self.reading.block;
        let tamed = block.tamed.iter().any(|flag| self.reading.flags.contains(flag));
        if let Some(kind) = block.itself.filter(|_| !tamed) {
            self.risk(self.named_at, None, kind);
        }
        self.reading.operands = self.operands.len();
    }

    fn risk(&mut self, word: usize, spelled: Option<&str>, kind: RiskKind) {
        let spelled = spelled.map_or_else(|| self.words[word].shown().to_string(), str::to_string);
        self.reading.risks.push(Risk { word, spelled, kind });
    }

    fn literal(&mut self, at: usize, text: &str) {
        let block = self.reading.block;
        if self.ended {
            self.operand(at);
        } else if text == "--" {
            self.reading.parts[at] = Part::Flag;
            self.ended = true;
            if let Some(Takes::Risk(kind)) = block.flags.get("--") {
                self.risk(self.blamed(at), None, *kind);
            }
            if block.traits.rest {
                self.rest();
            }
        } else if block.traits.any && text.starts_with('-') && text != "-" {
            self.reading.parts[at] = Part::Flag;
            self.reading.flags.push(text.to_string());
        } else if block.traits.plus && text.starts_with('+') {
            self.reading.parts[at] = Part::Flag;
        } else if block.traits.long && (text.starts_with('-') || block.flags.contains_key(text)) {
            self.long(at, text);
        } else if text.starts_with("--") {
            self.long(at, text);
        } else if text.starts_with('-') && text.len() > 1 {
            self.cluster(at, text);
        } else if block.flags.contains_key(text) {
            self.reading.parts[at] = Part::Flag;
        } else {
            self.operand(at);
        }
    }

    /// What may turn out to be a flag is as unlisted as any flag that is not in the table.
    fn dynamic(&mut self, at: usize, dynamic: &Dynamic) {
        let harmless = match dynamic.kind {
            Unknown::Number | Unknown::Pipe | Unknown::Found { .. } => true,
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
        match self.reading.block.flags.get(&flag) {
            Some(Takes::Value(role)) if !start.is_empty() => {
                self.reading.parts[at] = Part::Flag;
                self.flag(&flag);
                self.take(*role, at, value, &flag);
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

    /// `--flag`, `--flag=value`, and the one-dash flags of `find` and `go`.
    fn long(&mut self, at: usize, text: &str) {
        self.reading.parts[at] = Part::Flag;
        let block = self.reading.block;
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        let short = name.strip_prefix('-').filter(|it| block.traits.long && it.starts_with('-'));
        let name = match short {
            Some(short) if !block.flags.contains_key(name) => short,
            _ => name,
        };
        self.flag(name);
        match (block.flags.get(name), value) {
            (Some(Takes::Nothing), None) | (Some(Takes::Attached), _) => {}
            (Some(Takes::Value(role)), Some(value)) => {
                self.take(*role, at, Word::Literal(value.to_string()), name);
                self.module(*role, name, value);
            }
            (Some(Takes::Value(role)), None) => self.next_value(*role, name),
            (Some(Takes::Pair(role)), None) => {
                self.next_value(Role::Text, name);
                self.next_value(*role, name);
            }
            (Some(Takes::Exec), None) => self.exec(name),
            (Some(Takes::Risk(kind)), _) => self.risk(at, Some(name), *kind),
            (Some(Takes::Nothing | Takes::Pair(_) | Takes::Exec), Some(_)) | (None, _) => {
                self.risk(at, Some(name), RiskKind::Unlisted);
            }
        }
    }

    /// Takes the next word as the value of a flag.
    fn next_value(&mut self, role: Role, flag: &str) {
        let at = self.at;
        let Some(word) = self.words.get(at) else { return };
        self.at += 1;
        self.reading.parts[at] = Part::Value;
        // Should the table be wrong about the value, a flag must not hide behind it.
        let letter = |c: char| c == '-' || c.is_ascii_alphabetic();
        if word.start().strip_prefix('-').is_some_and(|rest| rest.starts_with(letter)) {
            self.risk(at, None, RiskKind::Unlisted);
        }
        if let Word::Dynamic(Dynamic { splits: true, kind: Unknown::Anything, .. }) = word {
            self.risk(at, None, RiskKind::Unlisted);
        }
        self.take(role, at, word.clone(), flag);
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
    fn cluster(&mut self, at: usize, text: &str) {
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
            self.flag(&flag);
            match block.flags.get(&flag) {
                Some(Takes::Nothing) => {}
                Some(Takes::Attached) => return,
                Some(Takes::Value(role)) if rest.is_empty() => {
                    return self.next_value(*role, &flag);
                }
                Some(Takes::Value(role)) => {
                    self.take(*role, at, Word::Literal(rest.to_string()), &flag);
                    return self.module(*role, &flag, rest);
                }
                Some(Takes::Risk(kind)) => return self.risk(at, Some(spelled), *kind),
                Some(Takes::Pair(_) | Takes::Exec) | None => {
                    return self.risk(at, Some(spelled), RiskKind::Unlisted);
                }
            }
        }
    }

    /// `tar tf archive`: the letters first, then their values in order.
    fn dashless(&mut self) {
        let Some(Word::Literal(text)) = self.words.get(1) else { return };
        if !self.reading.block.traits.dashless || text.starts_with('-') {
            return;
        }
        self.reading.parts[1] = Part::Flag;
        self.at = 2;
        for letter in text.chars() {
            let flag = format!("-{letter}");
            self.flag(&flag);
            match self.reading.block.flags.get(&flag) {
                Some(Takes::Nothing | Takes::Attached) => {}
                Some(Takes::Value(role)) => self.next_value(*role, &flag),
                Some(Takes::Risk(kind)) => self.risk(1, None, *kind),
                Some(Takes::Pair(_) | Takes::Exec) | None => {
                    self.risk(1, None, RiskKind::Unlisted);
                }
            }
        }
    }

    /// `-exec program … ;`
    fn exec(&mut self, flag: &str) {
        let start = self.at;
        let ends = |word: &Word| matches!(word.literal(), Some(";" | "+"));
        let end = self.words[start..].iter().position(ends).map_or(self.words.len(), |n| start + n);
        self.at = (end + 1).min(self.words.len());
        if let Some(value) = self.words.get(start).filter(|_| start < end) {
            let (value, flag) = (value.clone(), Some(flag.to_string()));
            self.reading.uses.push(Use { role: Role::Command, word: start, value, flag, end });
        }
    }

    /// What is left is for another program.
    fn rest(&mut self) {
        while self.at < self.words.len() {
            self.single(Role::Argument, self.at);
            self.at += 1;
        }
    }

    fn single(&mut self, role: Role, at: usize) {
        let value = self.words[at].clone();
        self.reading.uses.push(Use { role, word: at, value, flag: None, end: at + 1 });
    }

    fn enter(&mut self, block: &'static Block, name: String, at: usize) {
        self.never.extend(&block.never);
        self.reading.block = block;
        self.name = name;
        self.named_at = at;
        self.ended = false;
    }

    fn operand(&mut self, at: usize) {
        let block = self.reading.block;
        let literal = self.words[at].literal();
        if let (Some(text), true, false) = (literal, self.operands.is_empty(), self.ended) {
            let name = format!("{} {text}", self.name);
            if let Some(block) = table::block(&name) {
                self.reading.parts[at] = Part::Subcommand;
                return self.enter(block, name, at);
            }
        }
        if block.traits.subcommands {
            self.reading.parts[at] = Part::Subcommand;
            self.risk(at, None, RiskKind::Unlisted);
            return self.rest();
        }
        if block.traits.startup && self.words[at].start().starts_with('+') {
            self.risk(at, None, RiskKind::Runs);
        }
        self.operands.push(at);
        self.ended |= block.traits.stop;
        match self.role(self.operands.len() - 1) {
            // The rest belongs to the inner program.
            Some(role @ (Role::Command | Role::Shell | Role::Expression)) => {
                let end = self.words.len();
                let value = self.words[at].clone();
                self.reading.uses.push(Use { role, word: at, value, flag: None, end });
                self.operands.pop();
                self.at = end;
            }
            Some(_) | None => {}
        }
    }

    /// The role of the `n`th operand, should it not be the last.
    fn role(&self, n: usize) -> Option<Role> {
        let block = self.reading.block;
        let skipped = block.instead.iter().any(|flag| self.reading.flags.contains(flag));
        block.operands.get(n + usize::from(skipped)).copied().or(block.others)
    }

    /// Gives operands their roles, once it is known which is the last.
    fn assign(&mut self) {
        let operands = self.operands.clone();
        for (n, at) in operands.iter().enumerate() {
            let last = self.reading.block.last.filter(|_| n + 1 == operands.len());
            match last.or_else(|| self.role(n)) {
                Some(role) => {
                    if role == Role::Script {
                        self.reading.parts[*at] = Part::Script;
                    }
                    self.single(role, *at);
                }
                None => self.risk(self.blamed(*at), None, RiskKind::Unlisted),
            }
        }
    }

    /// The word to spell out for this one: it may be the subcommand that is the matter.
    fn blamed(&self, at: usize) -> usize {
        if self.reading.block.traits.whole { self.named_at } else { at }
    }
}
