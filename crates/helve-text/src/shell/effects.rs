//! What happens while words are expanded and variables assigned.

use super::ast::{Assign, AssignValue, Operator, Piece, RawWord, Redirect, Simple};
use super::state::{ShellState, Value};
use super::walk::{StdinSource, Walker};
use super::{AccessKind, DoubtKind, ShellLanguage, Word, arithmetic, expand, variables};

impl Walker<'_> {
    /// `$(( … ))`, `(( … ))` and their like.
    pub(super) fn calculate(&mut self, pieces: &[Piece], shown: &str, state: &mut ShellState) {
        self.skips |= arithmetic::may_fail(pieces);
        self.visit(pieces, shown, state);
        match arithmetic::names(pieces, state) {
            Some(names)
                if names
                    .iter()
                    .any(|name| variables::steers(name, self.context, self.language)) =>
            {
                self.doubt(DoubtKind::Variable, shown);
            }
            Some(names) => names.iter().for_each(|name| state.perhaps(name, &Value::Number)),
            None => self.doubt(DoubtKind::Arithmetic, shown),
        }
    }

    /// Everything that happens while a word is expanded.
    pub(super) fn visit(&mut self, pieces: &[Piece], shown: &str, state: &mut ShellState) {
        for piece in pieces {
            match piece {
                Piece::Text { .. } => {}
                Piece::Command { body, .. } | Piece::Process { body } => {
                    let (found, fed) = (self.found.take(), self.fed);
                    let stdin = if fed { StdinSource::File } else { StdinSource::Nothing };
                    self.beside += 1;
                    self.node(body, &mut state.clone(), &stdin);
                    self.beside -= 1;
                    (self.found, self.fed) = (found, fed);
                }
                Piece::Arithmetic { inside, .. } => self.calculate(inside, shown, state),
                Piece::Parameter { parameter, .. } => {
                    self.skips |= match parameter.operator {
                        Operator::None | Operator::Length | Operator::Edit => false,
                        Operator::Default
                        | Operator::Assign
                        | Operator::Slice
                        | Operator::Indirect => true,
                    };
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
                            if variables::steers(&parameter.name, self.context, self.language) {
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

    fn index(&mut self, index: &[Piece], shown: &str, state: &mut ShellState) {
        let all = matches!(index, [Piece::Text { text, .. }] if text == "@" || text == "*");
        if !all {
            self.calculate(index, shown, state);
        }
    }

    pub(super) fn expand(&mut self, raw: &RawWord, state: &mut ShellState) -> Vec<Word> {
        self.visit(&raw.pieces, &raw.shown, state);
        if self.language == ShellLanguage::Posix && expand::has_braces(raw) {
            // Some shells that are called `sh` expand them, others do not.
            self.doubt(DoubtKind::Disagreement, &raw.shown);
        }
        if expand::is_ambiguous(raw) {
            self.doubt(DoubtKind::Disagreement, &raw.shown);
        }
        if expand::is_wild(raw, state) {
            self.doubt(DoubtKind::Indirect, &raw.shown);
        }
        for pattern in expand::twice_filled(raw, state) {
            if pattern.contains([' ', '\t', '\n']) {
                self.doubt(DoubtKind::Indirect, &raw.shown);
            }
            self.access(&Word::Glob(pattern), AccessKind::ExpandAgain, state, None);
        }
        let words = expand::words(raw, &raw.shown, state).unwrap_or_else(|| {
            self.doubt(DoubtKind::TooMany, &raw.shown);
            Vec::new()
        });
        for word in &words {
            let filled_in = match word {
                Word::Literal(_) => false,
                Word::Glob(_) => true,
                Word::Dynamic(_) => expand::has_wildcards(raw),
            };
            if filled_in {
                self.access(word, AccessKind::Expand, state, None);
            }
        }
        words
    }

    pub(super) fn simple(&mut self, simple: &Simple, state: &mut ShellState, stdin: &StdinSource) {
        for assignment in &simple.assignments {
            match &assignment.value {
                AssignValue::Text(raw) => self.visit(&raw.pieces, &raw.shown, state),
                AssignValue::Array(words) => {
                    for raw in words {
                        self.expand(raw, state);
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
        let stdin = self.redirects(&simple.redirects, state, stdin);
        let mut after = state.clone();
        if words.is_empty() {
            // Words that vanish leave their assignments to the shell.
            for assignment in &simple.assignments {
                self.assign(assignment, &mut after);
            }
        } else {
            let redirected = usize::from(!simple.redirects.is_empty());
            self.beside += redirected;
            self.start(simple, words, &mut after, &stdin);
            self.beside -= redirected;
        }
        if simple.redirects.iter().all(Redirect::is_sure) {
            *state = after;
        } else {
            let entered = after.entered.clone();
            state.join(&after);
            state.entered = entered;
        }
    }

    /// Starts what the words say, with the assignments that stand before them.
    fn start(
        &mut self,
        simple: &Simple,
        words: Vec<Word>,
        state: &mut ShellState,
        stdin: &StdinSource,
    ) {
        let name = words.first().and_then(Word::literal).unwrap_or("");
        let is_harmless =
            |it: &&Assign| variables::is_harmless_before(name, &it.name, it.known(state).text());
        let shown = |all: Vec<&Assign>| all.into_iter().map(|it| it.shown.clone()).collect();
        let (harmless, harmful): (Vec<&Assign>, Vec<&Assign>) =
            simple.assignments.iter().partition(is_harmless);
        let run = self.script.runs.len();
        self.launch(words, shown(harmful), state, stdin);
        if let Some(run) = self.script.runs.get_mut(run) {
            run.harmless_assignments = shown(harmless);
        }
    }

    fn assign(&mut self, assignment: &Assign, state: &mut ShellState) {
        let (name, value) = (&assignment.name, assignment.known(state));
        let is_more = variables::is_more_than_a_word(name, value.text());
        if is_more || variables::steers(name, self.context, self.language) {
            self.doubt(DoubtKind::Variable, &assignment.shown);
        }
        if self.skips {
            state.perhaps(name, &value);
        } else {
            state.set(name, value);
        }
    }
}

impl Assign {
    /// What the variable holds afterwards.
    fn known(&self, state: &ShellState) -> Value {
        match &self.value {
            AssignValue::Text(raw) if !self.append && self.index.is_none() => {
                expand::value(raw, state)
            }
            AssignValue::Text(raw) => {
                let parts = [expand::value(raw, state), state.value(&self.name)];
                if parts.iter().any(Value::is_wild) { Value::UnknownGlob } else { Value::Unknown }
            }
            AssignValue::Array(_) => Value::Unknown,
        }
    }
}
