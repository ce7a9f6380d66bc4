//! Walks the shape of a script in the order it would run, and notes what it comes upon.

use std::collections::{BTreeSet, HashSet};

use super::expand;
use super::loops::{self, loosen};
use super::options::Reading;
use super::picks::Found;
use super::reader::{Reader, script};
use super::state::{Folders, State};
use super::syntax::{Link, Node, Stop};
use super::touch::Streams;
use super::{
    Doubt, DoubtKind, Language, Run, Script, Surroundings, Touch, Unknown, Word, arithmetic,
    builtins, homemade, visible, witness,
};

/// Scripts that start more programs than this are not read to the end.
const MOST_RUNS: usize = 1_000;
/// Nodes of all texts together: what `sh -c` gets counts too.
const MOST_NODES: usize = 20_000;
/// Texts inside texts: `sh -c "sh -c …"`.
const NESTED: usize = 6;
/// Programs inside programs: `env nice timeout …`.
const WRAPPED: usize = 16;

pub(super) struct Walker<'a> {
    pub(super) around: &'a Surroundings,
    pub(super) script: Script,
    nodes: usize,
    /// How many bodies of loops may still be read with a known variable.
    pub(super) bodies: usize,
    nested: usize,
    wrapped: usize,
    /// How many parts of the script around this run beside others, or again, or not at all where a redirect fails.
    pub(super) beside: usize,
    /// Something was expanded that may fail, and then the shell leaves out the rest of the line.
    pub(super) skips: bool,
    /// How many wrappers around this are only guessed at.
    pub(super) loose: usize,
    /// The language of the text being read.
    pub(super) language: Language,
    /// The run that the text being read is for.
    pub(super) within: Option<usize>,
    pub(super) touched: HashSet<Touch>,
    pub(super) streams: Streams,
    /// Whether the command being read has something on its standard input, and so has what its words run.
    pub(super) fed: bool,
    /// What the command just before prints, if that is names that `find` came upon.
    pub(super) found: Option<Found>,
    /// Where `find` ran whose names are among the words being read: elsewhere they mean other files.
    pub(super) found_in: Folders,
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
            bodies: loops::MOST_BODIES,
            nested: 0,
            wrapped: 0,
            beside: 0,
            skips: false,
            loose: 0,
            language: around.shell,
            within: None,
            touched: HashSet::new(),
            streams: Streams::default(),
            fed: false,
            found: None,
            found_in: None,
        }
    }

    pub(super) fn finish(mut self) -> Script {
        if let Some(opened) = self.streams.opened.take().filter(|_| self.streams.are_mixed) {
            self.doubt(DoubtKind::Indirect, &opened);
        }
        self.script.doubts.extend(homemade::doubts(&self.script));
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
        if let Some(c) = visible::hidden(text) {
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

    pub(super) fn node(&mut self, node: &Node, state: &mut State, feed: &Feed) {
        if self.nodes == 0 {
            return self.doubt(DoubtKind::TooMany, "");
        }
        self.nodes -= 1;
        state.entered = None;
        self.fed = !matches!(feed, Feed::Nothing);
        match node {
            Node::Simple(simple) => self.simple(simple, state, feed),
            Node::Pipeline(nodes) => self.pipeline(nodes, state, feed),
            Node::Timed(inner) => {
                self.keyword("time");
                self.node(inner, state, feed);
            }
            Node::Negated(inner) => {
                self.node(inner, state, feed);
                state.entered = None;
            }
            Node::AndOr { first, rest } => {
                self.node(first, state, feed);
                self.perhaps(rest, state, feed);
            }
            Node::Sequence(nodes) => {
                for node in nodes {
                    self.node(node, state, feed);
                }
            }
            Node::Background(inner) => {
                self.beside += 1;
                self.node(inner, &mut state.clone(), feed);
                self.beside -= 1;
            }
            Node::Subshell(inner) => self.node(inner, &mut state.clone(), feed),
            Node::Group(inner) => self.node(inner, state, feed),
            Node::If(parts) => self.branches(parts, state, feed),
            Node::While { condition, body } => {
                loosen(state, condition);
                loosen(state, body);
                self.beside += 1;
                // A `break` may end either before its end.
                self.branch(condition, state, feed);
                self.branch(body, state, feed);
                self.beside -= 1;
            }
            Node::For { name, over, body } => {
                self.for_loop(name, over.as_deref(), body, state, feed);
            }
            Node::Select { name, over, body } => {
                self.select(name, over.as_deref().unwrap_or(&[]), body, state, feed);
            }
            Node::ForArithmetic { head, body } => {
                loosen(state, body);
                self.calculate(&head.pieces, &head.shown, state);
                self.beside += 1;
                self.branch(body, state, feed);
                self.beside -= 1;
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
                self.beside += 1;
                // Where a redirect fails nothing of it runs.
                self.branch(body, state, &feed);
                self.beside -= 1;
            }
            Node::Coprocess(inner) => {
                self.doubt(DoubtKind::State, "coproc");
                self.node(inner, &mut state.clone(), &Feed::Nothing);
            }
        }
    }

    /// What follows the first part of `a && b || c`: as long as there is only `&&`, all parts before have succeeded;
    /// after that any of them may have run or not.
    fn perhaps(&mut self, rest: &[(Link, Node)], state: &mut State, feed: &Feed) {
        let mut before = state.clone();
        let mut only_and = true;
        for (link, node) in rest {
            only_and &= *link == Link::And;
            let mut branch = if only_and { before } else { state.clone() };
            if let Some(entered) = branch.entered.take().filter(|_| only_and) {
                branch.folders = entered.folders;
                branch.previous = entered.previous;
                branch.stack = entered.stack;
            }
            self.node(node, &mut branch, feed);
            state.join(&branch);
            before = branch;
        }
    }

    fn pipeline(&mut self, nodes: &[Node], state: &mut State, feed: &Feed) {
        let mut feed = feed.clone();
        self.beside += 1;
        for (n, node) in nodes.iter().enumerate() {
            let mut inner = state.clone();
            self.found = None;
            self.node(node, &mut inner, &feed);
            // Of several commands the others may print anything.
            let found = self.found.take().filter(|_| matches!(node, Node::Simple(_)));
            feed = Feed::Pipe(found);
            // Some shells run the last part themselves, so what it sets may stay.
            if n + 1 == nodes.len() {
                state.join(&inner);
            }
        }
        self.beside -= 1;
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
    pub(super) fn branch(&mut self, node: &Node, state: &mut State, feed: &Feed) {
        let mut inner = state.clone();
        self.node(node, &mut inner, feed);
        state.join(&inner);
    }

    /// Notes a word of the shell that stands where a program could.
    fn keyword(&mut self, word: &str) {
        if self.room() {
            self.script.runs.push(Run {
                words: vec![Word::Literal(word.to_string())],
                parts: vec![super::Part::Program],
                clusters: Vec::new(),
                assignments: Vec::new(),
                harmless: Vec::new(),
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
        // What it can do besides needs a rule.
        let free = reading.is_some_and(|it| it.block.traits.free && it.risks.is_empty())
            && assignments.is_empty();
        let parts = reading.map_or_else(|| stranger_parts(&words), |it| it.parts.clone());
        self.script.runs.push(Run {
            words,
            parts,
            clusters: reading.map_or_else(Vec::new, |reading| reading.clusters.clone()),
            assignments,
            harmless: Vec::new(),
            within: self.within,
            standing: if free { super::Standing::Free } else { super::Standing::Program },
            risks: reading.map_or_else(Vec::new, |reading| reading.risks.clone()),
            interprets: reading.is_some_and(|reading| reading.block.traits.input),
            known: reading.is_some_and(|reading| !reading.block.traits.runner),
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
        open: true,
    })
}
