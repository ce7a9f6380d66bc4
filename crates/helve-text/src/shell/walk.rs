//! Walks the shape of a script in the order it would run, and notes what it comes upon.

use std::collections::{BTreeSet, HashSet};

use super::expand;
use super::options::Reading;
use super::reader::{Reader, script};
use super::state::{State, Value, join_path};
use super::syntax::{
    Assign, AssignValue, Link, Node, Operator, Piece, Raw, Redirect, RedirectKind, Simple, Stop,
    Target as Into,
};
use super::{
    Access, Doubt, DoubtKind, Language, Run, Script, Surroundings, Target, Touch, Unknown, Word, arithmetic,
    builtins, visible, witness,
};

/// Scripts that start more programs than this are not read to the end.
const MOST_RUNS: usize = 1_000;
/// Nodes of all texts together: what `sh -c` gets counts too.
const MOST_NODES: usize = 20_000;
/// Texts inside texts: `sh -c "sh -c …"`.
const NESTED: usize = 6;
/// Programs inside programs: `env nice timeout …`.
const WRAPPED: usize = 16;
/// Loops over more words than this are read once, with the variable unknown.
const UNROLLED: usize = 8;

pub(super) struct Walker<'a> {
    pub(super) around: &'a Surroundings,
    pub(super) script: Script,
    nodes: usize,
    nested: usize,
    wrapped: usize,
    /// The language of the text being read.
    pub(super) language: Language,
    /// The run that the text being read is for.
    pub(super) within: Option<usize>,
    touched: HashSet<Touch>,
    /// What the command just before prints, if that is names that `find` came upon.
    pub(super) found: Option<Found>,
}

/// Names that `find` prints.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) regular: bool,
    /// Each is ended by a NUL, so none can be taken for two.
    pub(super) exact: bool,
}

/// What a command reads as its standard input.
#[derive(Clone, Debug)]
pub(super) enum Feed {
    Nothing,
    Pipe(Option<Found>),
    /// A here-document, where all of it is known.
    Text(Option<String>),
    File,
}

impl<'a> Walker<'a> {
    pub(super) fn new(around: &'a Surroundings) -> Self {
        Self {
            around,
            script: Script::default(),
            nodes: MOST_NODES,
            nested: 0,
            wrapped: 0,
            language: around.shell,
            within: None,
            touched: HashSet::new(),
            found: None,
        }
    }

    pub(super) fn finish(mut self) -> Script {
        let mut seen = BTreeSet::new();
        self.script.doubts.retain(|doubt| seen.insert((doubt.kind, doubt.shown.clone())));
        self.script
    }

    pub(super) fn doubt(&mut self, kind: DoubtKind, shown: &str) {
        if self.script.doubts.len() < MOST_RUNS {
            self.script.doubts.push(Doubt { kind, shown: shown.to_string() });
        }
    }

    /// Notes characters that a person cannot see, or that another shell may take for blanks.
    pub(super) fn hidden(&mut self, text: &str) {
        let hidden = |c: char| (c.is_control() && c != '\n' && c != '\t') || is_invisible(c);
        if let Some(c) = text.chars().find(|c| hidden(*c)) {
            self.doubt(DoubtKind::Hidden, &c.escape_unicode().to_string());
        }
    }

    /// Reads the script itself, and asks the second reader.
    pub(super) fn whole(&mut self, text: &str) {
        let mut state = State::new(self.around);
        let mut reader = Reader::new(text, self.language, self.nodes);
        match script(&mut reader) {
            Ok(node) => {
                if let Some(shown) = witness::objection(text, &reader) {
                    self.doubt(DoubtKind::Disagreement, &shown);
                }
                self.node(&node, &mut state, &Feed::Nothing);
            }
            Err(stop) => self.stopped(stop, text, &state),
        }
    }

    /// Reads a text that a command hands to a shell.
    pub(super) fn text(&mut self, text: &str, state: &mut State, feed: &Feed) {
        if self.nested >= NESTED {
            return self.doubt(DoubtKind::TooDeep, text);
        }
        self.nested += 1;
        self.hidden(text);
        let mut reader = Reader::new(text, self.language, self.nodes);
        match script(&mut reader) {
            Ok(node) => self.node(&node, state, feed),
            Err(stop) => self.stopped(stop, text, state),
        }
        self.nested -= 1;
    }

    /// Notes what `run` starts.
    pub(super) fn inside(&mut self, run: usize, note: impl FnOnce(&mut Self)) {
        if self.wrapped >= WRAPPED {
            return self.doubt(DoubtKind::TooDeep, "");
        }
        self.wrapped += 1;
        let outer = self.within.replace(run);
        note(self);
        self.within = outer;
        self.wrapped -= 1;
    }

    /// What could not be read is still searched for what is forbidden.
    fn stopped(&mut self, stop: Stop, text: &str, state: &State) {
        let (kind, shown) = match stop {
            Stop::Syntax(at) => {
                let rest = text.get(at..).unwrap_or("");
                (DoubtKind::Syntax, rest.chars().take(40).collect::<String>())
            }
            Stop::TooDeep => (DoubtKind::TooDeep, String::new()),
            Stop::TooMany => (DoubtKind::TooMany, String::new()),
        };
        self.doubt(kind, &shown);
        for words in visible::commands(text) {
            if !self.room() {
                return;
            }
            let words = words.into_iter().map(Word::Literal).collect();
            self.launch(words, Vec::new(), &mut state.clone(), &Feed::Nothing);
        }
    }

    /// Whether one more run may be noted.
    pub(super) fn room(&mut self) -> bool {
        let room = self.script.runs.len() < MOST_RUNS && self.script.touches.len() < MOST_RUNS * 4;
        if !room {
            self.doubt(DoubtKind::TooMany, "");
        }
        room
    }

    fn node(&mut self, node: &Node, state: &mut State, feed: &Feed) {
        if self.nodes == 0 {
            return self.doubt(DoubtKind::TooMany, "");
        }
        self.nodes -= 1;
        state.entered = None;
        match node {
            Node::Simple(simple) => self.simple(simple, state, feed),
            Node::Pipeline(nodes) => self.pipeline(nodes, state, feed),
            Node::Timed(inner) => {
                self.keyword("time");
                self.node(inner, state, feed);
            }
            Node::AndOr { first, rest } => {
                self.node(first, state, feed);
                let mut branch = state.clone();
                for (link, node) in rest {
                    match (link, branch.entered.take()) {
                        (Link::And, Some(folders)) => branch.folders = folders,
                        (Link::And, None) | (Link::Or, _) => {}
                    }
                    self.node(node, &mut branch, feed);
                }
                state.join(&branch);
            }
            Node::Sequence(nodes) => {
                for node in nodes {
                    self.node(node, state, feed);
                }
            }
            Node::Background(inner) | Node::Subshell(inner) => {
                self.node(inner, &mut state.clone(), feed);
            }
            Node::Group(inner) => self.node(inner, state, feed),
            Node::If(parts) => self.branches(parts, state, feed),
            Node::While { condition, body } => {
                loosen(state, condition);
                loosen(state, body);
                self.node(condition, state, feed);
                self.branch(body, state, feed);
            }
            Node::For { name, over, body } => {
                self.for_loop(name, over.as_deref(), body, state, feed);
            }
            Node::ForArithmetic { head, body } => {
                loosen(state, body);
                self.calculate(&head.pieces, &head.shown, state);
                self.branch(body, state, feed);
            }
            Node::Case { subject, arms } => {
                self.visit(&subject.pieces, &subject.shown, state);
                for (patterns, body) in arms {
                    for pattern in patterns {
                        self.visit(&pattern.pieces, &pattern.shown, state);
                    }
                    self.branch(body, state, feed);
                }
            }
            Node::Function { name, body } => {
                self.doubt(DoubtKind::Function, name);
                self.node(body, &mut state.clone(), &Feed::Nothing);
            }
            Node::Conditional(words) => {
                for word in words {
                    self.visit(&word.pieces, &word.shown, state);
                }
                let words: Vec<Word> = words
                    .iter()
                    .map(|word| expand::single(&word.pieces, &word.shown, state))
                    .collect();
                builtins::expression(self, &words, state, None);
            }
            Node::Arithmetic(raw) => {
                // Where a shell has no arithmetic commands, these are two subshells.
                if arithmetic::names_of(&raw.pieces).any(|it| !state.variables.contains_key(it)) {
                    self.doubt(DoubtKind::Arithmetic, &raw.shown);
                }
                self.calculate(&raw.pieces, &raw.shown, state);
            }
            Node::Redirected { body, redirects } => {
                let feed = self.redirects(redirects, state, feed);
                self.node(body, state, &feed);
            }
            Node::Coprocess(inner) => {
                self.doubt(DoubtKind::State, "coproc");
                self.node(inner, &mut state.clone(), &Feed::Nothing);
            }
        }
    }

    fn pipeline(&mut self, nodes: &[Node], state: &mut State, feed: &Feed) {
        let mut feed = feed.clone();
        for (n, node) in nodes.iter().enumerate() {
            let mut inner = state.clone();
            self.found = None;
            self.node(node, &mut inner, &feed);
            feed = Feed::Pipe(self.found.take());
            // Some shells run the last part themselves, so what it sets may stay.
            if n + 1 == nodes.len() {
                state.join(&inner);
            }
        }
    }

    fn branches(&mut self, parts: &[Node], state: &mut State, feed: &Feed) {
        if let Some((first, rest)) = parts.split_first() {
            self.node(first, state, feed);
            for part in rest {
                self.branch(part, state, feed);
            }
        }
    }

    /// Something that may run or not.
    fn branch(&mut self, node: &Node, state: &mut State, feed: &Feed) {
        let mut inner = state.clone();
        self.node(node, &mut inner, feed);
        state.join(&inner);
    }

    fn for_loop(
        &mut self,
        name: &str,
        over: Option<&[Raw]>,
        body: &Node,
        state: &mut State,
        feed: &Feed,
    ) {
        if builtins::steers(name, self.around) {
            self.doubt(DoubtKind::Variable, name);
        }
        let mut words = Vec::new();
        for raw in over.unwrap_or(&[]) {
            words.extend(self.expand(raw, state));
        }
        loosen(state, body);
        let values: Option<Vec<Value>> = words
            .iter()
            .map(|word| match word {
                Word::Literal(text) => Some(Value::Text(text.clone())),
                Word::Glob(pattern) => Some(Value::Glob(pattern.clone())),
                Word::Dynamic(dynamic) if dynamic.kind == Unknown::Number => Some(Value::Number),
                Word::Dynamic(_) => None,
            })
            .collect();
        let values = match values {
            Some(values) if values.iter().all(Value::is_number) => vec![Value::Number],
            Some(values) if over.is_some() && values.len() <= UNROLLED => values,
            Some(_) | None => vec![Value::Unknown],
        };
        for value in values {
            state.set(name, value);
            self.branch(body, state, feed);
        }
        state.set(name, Value::Unknown);
    }

    /// `$(( … ))`, `(( … ))` and their like.
    pub(super) fn calculate(&mut self, pieces: &[Piece], shown: &str, state: &mut State) {
        self.visit(pieces, shown, state);
        match arithmetic::names(pieces, state) {
            Some(names) if names.iter().any(|name| builtins::steers(name, self.around)) => {
                self.doubt(DoubtKind::Variable, shown);
            }
            Some(names) => names.iter().for_each(|name| state.set(name, Value::Number)),
            None => self.doubt(DoubtKind::Arithmetic, shown),
        }
    }

    /// Everything that happens while a word is expanded.
    pub(super) fn visit(&mut self, pieces: &[Piece], shown: &str, state: &mut State) {
        for piece in pieces {
            match piece {
                Piece::Text { .. } => {}
                Piece::Command { body, .. } | Piece::Process { body } => {
                    let found = self.found.take();
                    self.node(body, &mut state.clone(), &Feed::Nothing);
                    self.found = found;
                }
                Piece::Arithmetic { inside, .. } => self.calculate(inside, shown, state),
                Piece::Parameter { parameter, .. } => {
                    if let Some(index) = &parameter.index {
                        self.index(index, shown, state);
                    }
                    match parameter.operator {
                        Operator::Indirect => self.doubt(DoubtKind::Indirect, shown),
                        Operator::Slice => {
                            self.calculate(&parameter.operand, shown, state);
                            continue;
                        }
                        Operator::Assign => {
                            if builtins::steers(&parameter.name, self.around) {
                                self.doubt(DoubtKind::Variable, shown);
                            }
                            state.set(&parameter.name, Value::Unknown);
                        }
                        Operator::None | Operator::Length | Operator::Default | Operator::Edit => {}
                    }
                    self.visit(&parameter.operand, shown, state);
                }
            }
        }
    }

    fn index(&mut self, index: &[Piece], shown: &str, state: &mut State) {
        let all = matches!(index, [Piece::Text { text, .. }] if text == "@" || text == "*");
        if !all {
            self.calculate(index, shown, state);
        }
    }

    fn expand(&mut self, raw: &Raw, state: &mut State) -> Vec<Word> {
        self.visit(&raw.pieces, &raw.shown, state);
        expand::words(raw, &raw.shown, state).unwrap_or_else(|| {
            self.doubt(DoubtKind::TooMany, &raw.shown);
            Vec::new()
        })
    }

    fn simple(&mut self, simple: &Simple, state: &mut State, feed: &Feed) {
        for assignment in &simple.assignments {
            match &assignment.value {
                AssignValue::Text(raw) => self.visit(&raw.pieces, &raw.shown, state),
                AssignValue::Array(words) => {
                    for raw in words {
                        self.visit(&raw.pieces, &raw.shown, state);
                    }
                }
            }
            if let Some(index) = &assignment.index {
                self.index(&index.pieces, &assignment.shown, state);
            }
        }
        let mut words = Vec::new();
        for raw in &simple.words {
            words.extend(self.expand(raw, state));
        }
        let feed = self.redirects(&simple.redirects, state, feed);
        if words.is_empty() {
            for assignment in &simple.assignments {
                self.assign(assignment, state);
            }
            // Words that vanish leave their assignments to the shell.
            return;
        }
        let name = words.first().and_then(Word::literal).unwrap_or("");
        let assignments = simple
            .assignments
            .iter()
            .filter(|it| !builtins::is_harmless_before(name, &it.name))
            .map(|it| it.shown.clone())
            .collect();
        self.launch(words, assignments, state, &feed);
    }

    fn assign(&mut self, assignment: &Assign, state: &mut State) {
        if builtins::steers(&assignment.name, self.around) {
            self.doubt(DoubtKind::Variable, &assignment.shown);
        }
        let value = match &assignment.value {
            AssignValue::Text(raw) if !assignment.append && assignment.index.is_none() => {
                expand::value(raw, state)
            }
            AssignValue::Text(_) | AssignValue::Array(_) => Value::Unknown,
        };
        state.set(&assignment.name, value);
    }

    fn redirects(&mut self, redirects: &[Redirect], state: &mut State, feed: &Feed) -> Feed {
        let mut feed = feed.clone();
        for redirect in redirects {
            if let Some(name) = &redirect.variable {
                if builtins::steers(name, self.around) {
                    self.doubt(DoubtKind::Variable, name);
                }
                state.set(name, Value::Number);
            }
            match &redirect.target {
                Into::Body(body) => {
                    let pieces = body.get().map_or(&[][..], Vec::as_slice);
                    self.visit(pieces, "<<", state);
                    let word = expand::single(pieces, "<<", state);
                    feed = Feed::Text(word.literal().map(str::to_string));
                }
                Into::Word(raw) if redirect.kind == RedirectKind::Feed => {
                    self.visit(&raw.pieces, &raw.shown, state);
                    let word = expand::single(&raw.pieces, &raw.shown, state);
                    feed = Feed::Text(word.literal().map(str::to_string));
                }
                Into::Word(raw) => {
                    let words = self.expand(raw, state);
                    let word = match <[Word; 1]>::try_from(words) {
                        Ok([word @ (Word::Literal(_) | Word::Dynamic(_))]) => word,
                        // A pattern, several words or none: shells differ.
                        Ok([Word::Glob(_)]) | Err(_) => unknown(&raw.shown),
                    };
                    if self.redirect(redirect.kind, &word, state) {
                        feed = Feed::File;
                    }
                }
            }
        }
        feed
    }

    /// Notes what a redirect opens, and tells whether it may be standard input.
    fn redirect(&mut self, kind: RedirectKind, word: &Word, state: &State) -> bool {
        let text = word.literal().unwrap_or("");
        if text.starts_with("/dev/tcp/") || text.starts_with("/dev/udp/") {
            self.doubt(DoubtKind::Network, text);
        }
        let digits = !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
        let is_descriptor = digits || text == "-";
        let number = matches!(word, Word::Dynamic(it) if it.kind == Unknown::Number && it.start.is_empty());
        match kind {
            RedirectKind::DuplicateOut | RedirectKind::DuplicateIn if is_descriptor || number => {}
            RedirectKind::DuplicateIn => self.doubt(DoubtKind::Syntax, word.shown()),
            RedirectKind::Write | RedirectKind::DuplicateOut => {
                self.touch(word, Access::Write, state, None);
            }
            RedirectKind::Read => self.touch(word, Access::Read, state, None),
            RedirectKind::ReadWrite => {
                self.touch(word, Access::Read, state, None);
                self.touch(word, Access::Write, state, None);
            }
            RedirectKind::Feed => {}
        }
        matches!(kind, RedirectKind::Read | RedirectKind::ReadWrite | RedirectKind::DuplicateIn)
    }

    /// Notes a file, once for every folder the shell may be in.
    pub(super) fn touch(
        &mut self,
        word: &Word,
        access: Access,
        state: &State,
        run: Option<usize>,
    ) {
        let absolute = word.start().starts_with('/');
        let folders = match &state.folders {
            _ if absolute => vec![String::new()],
            Some(folders) => folders.clone(),
            None => Vec::new(),
        };
        let targets: Vec<Target> = match word {
            Word::Literal(text) if text.is_empty() || is_stream(text) => return,
            // To a program it means its own stream, to a redirect it is a file.
            Word::Literal(text) if text == "-" && run.is_some() => return,
            Word::Dynamic(dynamic) => match (dynamic.kind, access) {
                (Unknown::Pipe, _)
                | (Unknown::Number, Access::Read | Access::Look | Access::Fill)
                | (Unknown::Found { .. }, Access::Look | Access::Fill)
                | (Unknown::Found { regular: true }, Access::Read) => return,
                _ => vec![Target::Unknown(dynamic.shown.clone())],
            },
            word if folders.is_empty() => vec![Target::Unknown(word.shown().to_string())],
            Word::Literal(text) => {
                folders.iter().map(|folder| Target::Path(join_path(folder, text))).collect()
            }
            Word::Glob(pattern) => folders
                .iter()
                .map(|folder| Target::Glob(join_path(&expand::escape(folder), pattern)))
                .collect(),
        };
        for at in targets {
            let touch = Touch { at, access, run };
            if self.room() && self.touched.insert(touch.clone()) {
                self.script.touches.push(touch);
            }
        }
    }

    /// Notes a word of the shell that stands where a program could.
    fn keyword(&mut self, word: &str) {
        if self.room() {
            self.script.runs.push(Run {
                words: vec![Word::Literal(word.to_string())],
                parts: vec![super::Part::Program],
                assignments: Vec::new(),
                within: self.within,
                standing: super::Standing::Free,
                risks: Vec::new(),
                interprets: false,
                known: true,
            });
        }
    }

    /// Notes a run, and returns its place.
    pub(super) fn run(
        &mut self,
        words: Vec<Word>,
        assignments: Vec<String>,
        reading: Option<&Reading>,
    ) -> usize {
        let free = reading.is_some_and(|reading| reading.block.traits.free);
        let parts = reading.map_or_else(|| stranger_parts(&words), |it| it.parts.clone());
        self.script.runs.push(Run {
            words,
            parts,
            assignments,
            within: self.within,
            standing: if free { super::Standing::Free } else { super::Standing::Program },
            risks: reading.map_or_else(Vec::new, |reading| reading.risks.clone()),
            interprets: reading.is_some_and(|reading| reading.block.traits.input),
            known: reading.is_some(),
        });
        self.script.runs.len() - 1
    }
}

fn stranger_parts(words: &[Word]) -> Vec<super::Part> {
    let part = |(n, word): (usize, &Word)| match n {
        0 => super::Part::Program,
        _ if word.start().starts_with('-') => super::Part::Flag,
        _ => super::Part::Operand,
    };
    words.iter().enumerate().map(part).collect()
}

/// A word of which nothing is known.
pub(super) fn unknown(shown: &str) -> Word {
    Word::Dynamic(super::Dynamic {
        shown: shown.to_string(),
        start: String::new(),
        kind: Unknown::Anything,
        splits: true,
    })
}

/// Files that are only streams: nothing is kept in them and nothing secret comes out.
fn is_stream(path: &str) -> bool {
    let descriptor = path.strip_prefix("/dev/fd/");
    descriptor.is_some_and(|it| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit()))
        || matches!(
            path,
            "/dev/null"
                | "/dev/stdin"
                | "/dev/stdout"
                | "/dev/stderr"
                | "/dev/zero"
                | "/dev/random"
                | "/dev/urandom"
        )
}

/// Spaces that are not the shell's, and characters that show nothing or turn the line around.
fn is_invisible(c: char) -> bool {
    (c.is_whitespace() && !c.is_ascii())
        || matches!(
            u32::from(c),
            0xad | 0x34f
                | 0x61c
                | 0x115f..=0x1160
                | 0x17b4..=0x17b5
                | 0x180b..=0x180f
                | 0x200b..=0x200f
                | 0x202a..=0x202e
                | 0x2060..=0x206f
                | 0x3164
                | 0xfe00..=0xfe0e
                | 0xfeff
                | 0xffa0
                | 0xfff9..=0xfffb
                | 0xe_0000..=0xe_0fff
        )
}

/// Forgets what a loop's body may change, because it may have run before.
fn loosen(state: &mut State, body: &Node) {
    let mut changes = builtins::Changes::default();
    changes.of(body);
    for (name, numbers_only) in changes.names {
        let number = numbers_only && state.is_number(&name);
        state.set(&name, if number { Value::Number } else { Value::Unknown });
    }
    if changes.moves {
        state.folders = None;
        state.previous = None;
        state.stack.clear();
    }
}
