//! Walks the shape of a script in the order it would run, and notes what it comes upon.

use std::collections::{BTreeSet, HashSet};

use super::access::Streams;
use super::args::ParsedArgs;
use super::ast::{Connector, Node, ParseError};
use super::expand;
use super::file_patterns::FindOutput;
use super::loops::{self, loosen};
use super::parser::{Parser, script};
use super::state::{PossibleFolders, ShellState};
use super::{
    Approval, Doubt, DoubtKind, DynamicKind, DynamicWord, FileAccess, Run, Script, ShellContext,
    ShellLanguage, Word, WordRole, arithmetic, builtins, cross_check, rough_scan, written_code,
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
    pub(super) context: &'a ShellContext,
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
    pub(super) language: ShellLanguage,
    /// The run that the text being read is for.
    pub(super) parent: Option<usize>,
    pub(super) seen_accesses: HashSet<FileAccess>,
    pub(super) streams: Streams,
    /// Whether the command being read has something on its standard input, and so has what its words run.
    pub(super) fed: bool,
    /// What the command just before prints, if that is names that `find` came upon.
    pub(super) found: Option<FindOutput>,
    /// Where `find` ran whose names are among the words being read: elsewhere they mean other files.
    pub(super) find_ran_in: PossibleFolders,
}

/// What a command reads as its standard input.
#[derive(Clone, Debug)]
pub(super) enum StdinSource {
    Nothing,
    Pipe(Option<FindOutput>),
    /// A here-document, where all of it is known.
    Text(Option<String>),
    File,
}

impl<'a> Walker<'a> {
    pub(super) fn new(context: &'a ShellContext) -> Self {
        Self {
            context,
            script: Script::default(),
            nodes: MOST_NODES,
            bodies: loops::MOST_BODIES,
            nested: 0,
            wrapped: 0,
            beside: 0,
            skips: false,
            loose: 0,
            language: context.language,
            parent: None,
            seen_accesses: HashSet::new(),
            streams: Streams::default(),
            fed: false,
            found: None,
            find_ran_in: None,
        }
    }

    pub(super) fn finish(mut self) -> Script {
        if let Some(opened) = self.streams.opened.take().filter(|_| self.streams.are_mixed) {
            self.doubt(DoubtKind::Indirect, &opened);
        }
        self.script.doubts.extend(written_code::doubts(&self.script));
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
    pub(super) fn check_hidden(&mut self, text: &str) {
        if let Some(c) = rough_scan::hidden(text) {
            self.doubt(DoubtKind::Hidden, &c.escape_unicode().to_string());
        }
    }

    /// Reads the script itself, and asks the second reader.
    pub(super) fn main_script(&mut self, text: &str) {
        let mut state = ShellState::new(self.context);
        let mut reader = Parser::new(text, self.language, self.nodes);
        match script(&mut reader) {
            Ok(node) => {
                if let Some(shown) = cross_check::objection(text, &reader) {
                    self.doubt(DoubtKind::Disagreement, &shown);
                }
                self.node(&node, &mut state, &StdinSource::Nothing);
            }
            Err(stop) => self.stopped(stop, text, &state),
        }
    }

    /// Reads a text that a command hands to a shell.
    pub(super) fn text(&mut self, text: &str, state: &mut ShellState, stdin: &StdinSource) {
        if self.nested >= NESTED {
            return self.doubt(DoubtKind::TooDeep, text);
        }
        self.nested += 1;
        self.check_hidden(text);
        let mut reader = Parser::new(text, self.language, self.nodes);
        match script(&mut reader) {
            Ok(node) => self.node(&node, state, stdin),
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
        let outer = self.parent.replace(run);
        note(self);
        self.parent = outer;
        self.wrapped -= 1;
    }

    /// What could not be read is still searched for what is forbidden.
    fn stopped(&mut self, stop: ParseError, text: &str, state: &ShellState) {
        let (kind, shown) = match stop {
            ParseError::Syntax(at) => {
                let rest = text.get(at..).unwrap_or("");
                (DoubtKind::Syntax, rest.chars().take(40).collect::<String>())
            }
            ParseError::TooDeep => (DoubtKind::TooDeep, String::new()),
            ParseError::TooMany => (DoubtKind::TooMany, String::new()),
        };
        self.doubt(kind, &shown);
        for words in rough_scan::commands(text) {
            if !self.has_room() {
                return;
            }
            let words = words.into_iter().map(Word::Literal).collect();
            self.launch(words, Vec::new(), &mut state.clone(), &StdinSource::Nothing);
        }
    }

    /// Whether one more run may be noted.
    pub(super) fn has_room(&mut self) -> bool {
        let room = self.script.runs.len() < MOST_RUNS && self.script.accesses.len() < MOST_RUNS * 4;
        if !room {
            self.doubt(DoubtKind::TooMany, "");
        }
        room
    }

    pub(super) fn node(&mut self, node: &Node, state: &mut ShellState, stdin: &StdinSource) {
        if self.nodes == 0 {
            return self.doubt(DoubtKind::TooMany, "");
        }
        self.nodes -= 1;
        state.entered = None;
        self.fed = !matches!(stdin, StdinSource::Nothing);
        match node {
            Node::Simple(simple) => self.simple(simple, state, stdin),
            Node::Pipeline(nodes) => self.pipeline(nodes, state, stdin),
            Node::Timed(inner) => {
                self.keyword("time");
                self.node(inner, state, stdin);
            }
            Node::Negated(inner) => {
                self.node(inner, state, stdin);
                state.entered = None;
            }
            Node::AndOr { first, rest } => {
                self.node(first, state, stdin);
                self.perhaps(rest, state, stdin);
            }
            Node::Sequence(nodes) => {
                for node in nodes {
                    self.node(node, state, stdin);
                }
            }
            Node::Background(inner) => {
                self.beside += 1;
                self.node(inner, &mut state.clone(), stdin);
                self.beside -= 1;
            }
            Node::Subshell(inner) => self.node(inner, &mut state.clone(), stdin),
            Node::Group(inner) => self.node(inner, state, stdin),
            Node::If(parts) => self.branches(parts, state, stdin),
            Node::While { condition, body } => {
                loosen(state, condition);
                loosen(state, body);
                self.beside += 1;
                // A `break` may end either before its end.
                self.branch(condition, state, stdin);
                self.branch(body, state, stdin);
                self.beside -= 1;
            }
            Node::For { name, over, body } => {
                self.for_loop(name, over.as_deref(), body, state, stdin);
            }
            Node::Select { name, over, body } => {
                self.select(name, over.as_deref().unwrap_or(&[]), body, state, stdin);
            }
            Node::ForArithmetic { head, body } => {
                loosen(state, body);
                self.calculate(&head.pieces, &head.shown, state);
                self.beside += 1;
                self.branch(body, state, stdin);
                self.beside -= 1;
            }
            Node::Case { subject, arms } => {
                self.visit(&subject.pieces, &subject.shown, state);
                for (patterns, body) in arms {
                    for pattern in patterns {
                        self.visit(&pattern.pieces, &pattern.shown, state);
                    }
                    self.branch(body, state, stdin);
                }
            }
            Node::Function { name, body } => {
                self.doubt(DoubtKind::Function, name);
                self.node(body, &mut state.clone(), &StdinSource::Nothing);
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
                let stdin = self.redirects(redirects, state, stdin);
                self.beside += 1;
                // Where a redirect fails nothing of it runs.
                self.branch(body, state, &stdin);
                self.beside -= 1;
            }
            Node::Coprocess(inner) => {
                self.doubt(DoubtKind::State, "coproc");
                self.node(inner, &mut state.clone(), &StdinSource::Nothing);
            }
        }
    }

    /// What follows the first part of `a && b || c`: as long as there is only `&&`, all parts before have succeeded;
    /// after that any of them may have run or not.
    fn perhaps(&mut self, rest: &[(Connector, Node)], state: &mut ShellState, stdin: &StdinSource) {
        let mut before = state.clone();
        let mut only_and = true;
        for (link, node) in rest {
            only_and &= *link == Connector::And;
            let mut branch = if only_and { before } else { state.clone() };
            if let Some(entered) = branch.entered.take().filter(|_| only_and) {
                branch.folders = entered.folders;
                branch.previous = entered.previous;
                branch.stack = entered.stack;
            }
            self.node(node, &mut branch, stdin);
            state.join(&branch);
            before = branch;
        }
    }

    fn pipeline(&mut self, nodes: &[Node], state: &mut ShellState, stdin: &StdinSource) {
        let mut stdin = stdin.clone();
        self.beside += 1;
        for (n, node) in nodes.iter().enumerate() {
            let mut inner = state.clone();
            self.found = None;
            self.node(node, &mut inner, &stdin);
            // Of several commands the others may print anything.
            let found = self.found.take().filter(|_| matches!(node, Node::Simple(_)));
            stdin = StdinSource::Pipe(found);
            // Some shells run the last part themselves, so what it sets may stay.
            if n + 1 == nodes.len() {
                state.join(&inner);
            }
        }
        self.beside -= 1;
    }

    fn branches(&mut self, parts: &[Node], state: &mut ShellState, stdin: &StdinSource) {
        if let Some((first, rest)) = parts.split_first() {
            self.node(first, state, stdin);
            for part in rest {
                self.branch(part, state, stdin);
            }
        }
    }

    /// Something that may run or not.
    pub(super) fn branch(&mut self, node: &Node, state: &mut ShellState, stdin: &StdinSource) {
        let mut inner = state.clone();
        self.node(node, &mut inner, stdin);
        state.join(&inner);
    }

    /// Records a keyword that a rule may name like a program.
    fn keyword(&mut self, word: &str) {
        if self.has_room() {
            self.script.runs.push(Run {
                words: vec![Word::Literal(word.to_string())],
                roles: vec![WordRole::Program],
                flag_clusters: Vec::new(),
                assignments: Vec::new(),
                harmless_assignments: Vec::new(),
                parent: self.parent,
                approval: Approval::Exempt,
                risks: Vec::new(),
                is_interpreter: false,
                is_known: true,
            });
        }
    }

    /// Records a run and returns its index.
    pub(super) fn run(
        &mut self,
        words: Vec<Word>,
        assignments: Vec<String>,
        parsed: Option<&ParsedArgs>,
    ) -> usize {
        let is_exempt = parsed.is_some_and(|it| it.spec.traits.exempt && it.risks.is_empty())
            && assignments.is_empty();
        let roles = parsed.map_or_else(|| roles_by_dash(&words), |it| it.roles.clone());
        self.script.runs.push(Run {
            words,
            roles,
            flag_clusters: parsed.map_or_else(Vec::new, |it| it.flag_clusters.clone()),
            assignments,
            harmless_assignments: Vec::new(),
            parent: self.parent,
            approval: if is_exempt { Approval::Exempt } else { Approval::Required },
            risks: parsed.map_or_else(Vec::new, |it| it.risks.clone()),
            is_interpreter: parsed.is_some_and(|it| it.spec.traits.runs_stdin),
            is_known: parsed.is_some_and(|it| !it.spec.traits.runs_operands),
        });
        self.script.runs.len() - 1
    }
}

/// The roles of the words of a program that is not in the table.
fn roles_by_dash(words: &[Word]) -> Vec<WordRole> {
    let role = |(n, word): (usize, &Word)| match n {
        0 => WordRole::Program,
        _ if word.prefix().starts_with('-') => WordRole::Flag,
        _ => WordRole::Operand,
    };
    words.iter().enumerate().map(role).collect()
}

/// Returns a word of which nothing is known.
pub(super) fn unknown(shown: &str) -> Word {
    Word::Dynamic(DynamicWord {
        shown: shown.to_string(),
        prefix: String::new(),
        kind: DynamicKind::Anything,
        may_split: true,
        may_end_at_prefix: true,
    })
}
