//! Side effects of expanding words and of assignments.

use super::ast::{
    AssignValue, Assignment, Node, Operator, Piece, RawWord, Redirect, SimpleCommand,
};
use super::commands::CommandLine;
use super::find::KnownOutput;
use super::state::{ShellState, Value};
use super::walk::{StdinSource, Walker};
use super::{
    AccessKind, DoubtKind, DynamicKind, ShellLanguage, Word, arithmetic, command_output, expand,
    variable_files, variables,
};

impl Walker<'_> {
    /// Records the effects of arithmetic.
    pub(super) fn record_arithmetic(
        &mut self,
        pieces: &[Piece],
        shown: &str,
        state: &mut ShellState,
    ) {
        self.may_skip_rest |= arithmetic::may_fail(pieces);
        self.walk_pieces(pieces, shown, state);
        match arithmetic::assigned_names(pieces, state) {
            Some(names)
                if names
                    .iter()
                    .any(|name| variables::affects_programs(name, self.context, self.language)) =>
            {
                self.add_doubt(DoubtKind::Variable, shown);
            }
            Some(names) => names.iter().for_each(|name| state.maybe_set(name, &Value::Number)),
            None => self.add_doubt(DoubtKind::Arithmetic, shown),
        }
    }

    /// Adds a doubt if a shell may evaluate the value that it assigns to a variable: `COLUMNS='a[$(x)]'` in zsh.
    pub(super) fn record_evaluated_value(&mut self, name: &str, value: &Value) {
        if self.has_more_arithmetic() && variables::is_integer(name) && !value.is_number() {
            self.add_doubt(DoubtKind::Arithmetic, name);
        }
    }

    /// Records everything that happens while a word is expanded.
    pub(super) fn walk_pieces(&mut self, pieces: &[Piece], shown: &str, state: &mut ShellState) {
        self.mentioned_texts.add_pieces(pieces);
        for piece in pieces {
            match piece {
                Piece::Text { .. } => {}
                Piece::Command { body, .. } | Piece::Process { body } => {
                    self.script.needs_facts |= command_output::prints_repository_top(body);
                    let (outer_output, has_stdin) = (self.known_output.take(), self.has_stdin);
                    let stdin = if has_stdin { StdinSource::File } else { StdinSource::Nothing };
                    self.uncertain_depth += 1;
                    self.walk_node(body, &mut state.clone(), &stdin);
                    self.uncertain_depth -= 1;
                    // The output becomes words of the command. They may be paths that `find` printed.
                    let output = self.known_output.take();
                    if let Some(output) = &output {
                        self.find_results = output.search.clone();
                    }
                    self.record_printed_names(output.as_ref(), state);
                    self.substitution_output = output.filter(|_| is_single_pipeline(body));
                    (self.known_output, self.has_stdin) = (outer_output, has_stdin);
                }
                Piece::Arithmetic { inside, .. } => self.record_arithmetic(inside, shown, state),
                Piece::Parameter { parameter, .. } => {
                    self.may_skip_rest |= match parameter.operator {
                        Operator::None | Operator::Length | Operator::Edit => false,
                        Operator::Default
                        | Operator::Assign
                        | Operator::Slice
                        | Operator::Indirect => true,
                    };
                    if let Some(index) = &parameter.index {
                        self.walk_index(index, shown, state);
                    }
                    match parameter.operator {
                        Operator::Indirect => self.add_doubt(DoubtKind::Indirect, shown),
                        Operator::Slice => {
                            self.record_arithmetic(&parameter.operand, shown, state);
                            continue;
                        }
                        Operator::Assign => {
                            if variables::affects_programs(
                                &parameter.name,
                                self.context,
                                self.language,
                            ) {
                                self.add_doubt(DoubtKind::Variable, shown);
                            }
                            self.record_evaluated_value(&parameter.name, &Value::Unknown);
                            state.set(&parameter.name, Value::Unknown);
                            let texts = self.visible_texts(&parameter.operand, state);
                            self.visible_values.add(&parameter.name, texts);
                        }
                        Operator::None | Operator::Length | Operator::Default | Operator::Edit => {}
                    }
                    self.walk_pieces(&parameter.operand, shown, state);
                }
            }
        }
    }

    /// Records the effects of an array index, which is evaluated as arithmetic.
    fn walk_index(&mut self, index: &[Piece], shown: &str, state: &mut ShellState) {
        let is_whole_array =
            matches!(index, [Piece::Text { text, .. }] if text == "@" || text == "*");
        if !is_whole_array {
            self.record_arithmetic(index, shown, state);
        }
    }

    /// Records the effects of expanding a word, and returns the words that it becomes.
    pub(super) fn expand(&mut self, raw: &RawWord, state: &mut ShellState) -> Vec<Word> {
        self.substitution_output = None;
        self.walk_pieces(&raw.pieces, &raw.shown, state);
        if self.language == ShellLanguage::Posix && expand::has_braces(raw) {
            // Some shells with the name `sh` expand braces and others do not.
            self.add_doubt(DoubtKind::Disagreement, &raw.shown);
        }
        if expand::is_ambiguous(raw) {
            self.add_doubt(DoubtKind::Disagreement, &raw.shown);
        }
        if expand::may_expand_to_glob(raw, state) {
            self.add_doubt(DoubtKind::Indirect, &raw.shown);
        }
        for pattern in expand::globs_in_variables(raw, state) {
            if pattern.contains([' ', '\t', '\n']) {
                self.add_doubt(DoubtKind::Indirect, &raw.shown);
            }
            self.record_access(&Word::Glob(pattern), AccessKind::ExpandAgain, state, None);
        }
        let words = expand::words(raw, &raw.shown, state).unwrap_or_else(|| {
            self.add_doubt(DoubtKind::TooMany, &raw.shown);
            Vec::new()
        });
        let mut words = self.with_listing(words, &raw.pieces);
        if let [Word::Dynamic(dynamic)] = words.as_mut_slice() {
            dynamic.visible_texts = self.visible_texts(&raw.pieces, state);
        }
        self.mentioned_texts.add_words(&words);
        for word in &words {
            let is_expanded = match word {
                Word::Literal(_) => false,
                Word::Glob(_) => true,
                Word::Dynamic(_) => expand::has_unquoted_wildcards(raw),
            };
            if is_expanded {
                self.record_access(word, AccessKind::Expand, state, None);
            }
        }
        words
    }

    /// Records the files whose names a substituted command prints: `.env` in `cat "$(echo .env)"`.
    fn record_printed_names(&mut self, output: Option<&KnownOutput>, state: &ShellState) {
        let is_inside = |it: &&Word| {
            !it.prefix().starts_with(['/', '~', '-']) && !it.prefix().starts_with("..")
        };
        for word in output.into_iter().flat_map(|it| &it.mentioned).filter(is_inside) {
            self.record_access(word, AccessKind::PassedToUnknown, state, None);
        }
    }

    /// Marks the word that a substitution becomes, if its command prints names of files.
    fn with_listing(&self, mut words: Vec<Word>, pieces: &[Piece]) -> Vec<Word> {
        let listing = self.substitution_output.as_ref().and_then(|it| it.listing);
        if let (Some(listing), [Piece::Command { .. }], [Word::Dynamic(word)]) =
            (listing, pieces, words.as_mut_slice())
            && word.kind == DynamicKind::Anything
        {
            word.kind = DynamicKind::Listed(listing);
        }
        words
    }

    /// Records the effects of a simple command: its assignments, redirects and words.
    pub(super) fn walk_simple_command(
        &mut self,
        simple: &SimpleCommand,
        state: &mut ShellState,
        stdin: &StdinSource,
    ) {
        let outer_find_results = self.find_results.clone();
        for assignment in &simple.assignments {
            match &assignment.value {
                AssignValue::Text(raw) => self.walk_pieces(&raw.pieces, &raw.shown, state),
                AssignValue::Array(words) => {
                    for raw in words {
                        self.expand(raw, state);
                    }
                }
            }
            if let Some(index) = &assignment.index {
                self.walk_index(&index.pieces, &assignment.shown, state);
            }
        }
        let mut words = Vec::new();
        for raw in &simple.words {
            words.extend(self.expand(raw, state));
        }
        let outer_redirects = self.redirects.clone();
        let stdin = self.record_redirects(&simple.redirects, state, stdin);
        let mut after = state.clone();
        if words.is_empty() {
            // If all words expand to nothing, the assignments apply to the shell itself.
            for assignment in &simple.assignments {
                self.record_assignment(assignment, &mut after);
            }
        } else {
            let has_redirect = usize::from(!simple.redirects.is_empty());
            self.uncertain_depth += has_redirect;
            self.record_command_with_assignments(simple, words, &mut after, &stdin);
            self.uncertain_depth -= has_redirect;
        }
        self.redirects = outer_redirects;
        // An assignment or `read` may store the paths that `find` printed. After other commands, they are forgotten.
        let assigns = |word: &RawWord| {
            word.unquoted_text().is_some_and(|it| matches!(it, "mapfile" | "readarray" | "read"))
        };
        if simple.words.first().is_some_and(|word| !assigns(word)) {
            self.find_results = outer_find_results;
        }
        if simple.redirects.iter().all(Redirect::cannot_fail) {
            *state = after;
        } else {
            // `join` would clear `state_if_cd_succeeds`. It is restored, because it is only used after `&&`, which is
            // not reached if a redirect fails.
            let state_if_cd_succeeds = after.state_if_cd_succeeds.clone();
            state.join(&after);
            state.state_if_cd_succeeds = state_if_cd_succeeds;
        }
    }

    /// Records the command that the words form, with the assignments before it.
    fn record_command_with_assignments(
        &mut self,
        simple: &SimpleCommand,
        words: Vec<Word>,
        state: &mut ShellState,
        stdin: &StdinSource,
    ) {
        let name = words.first().and_then(Word::literal).unwrap_or("");
        let is_harmless = |it: &&Assignment| {
            variables::is_harmless_prefix_assignment(name, &it.name, it.value_after(state).text())
        };
        let shown = |all: Vec<&Assignment>| all.into_iter().map(|it| it.shown.clone()).collect();
        let (harmless, harmful): (Vec<&Assignment>, Vec<&Assignment>) =
            simple.assignments.iter().partition(is_harmless);
        if SPECIAL_BUILTINS.contains(&name) {
            // In some shells, assignments before these builtins remain in effect afterwards.
            for assignment in &simple.assignments {
                state.maybe_set(&assignment.name, &assignment.value_after(state));
            }
        }
        for assignment in &simple.assignments {
            self.record_evaluated_value(&assignment.name, &assignment.value_after(state));
            self.mention_passed_value(&assignment.value, state);
        }
        let run_index = self.script.runs.len();
        self.record_command(CommandLine { words, assignments: shown(harmful) }, state, stdin);
        if let Some(run) = self.script.runs.get_mut(run_index) {
            run.harmless_assignments = shown(harmless);
            if !simple.shown.is_empty() && !run.with_redirects.contains(&simple.shown) {
                run.with_redirects.insert(0, simple.shown.clone());
            }
            self.record_path_variables(simple, run_index, state);
        }
    }

    /// Records the files and folders that the variables of a program name.
    fn record_path_variables(&mut self, simple: &SimpleCommand, run: usize, state: &ShellState) {
        for assignment in &simple.assignments {
            let AssignValue::Text(raw) = &assignment.value else { continue };
            if let Some(value) = expand::assigned_value(raw, state).text() {
                variable_files::record(self, (&assignment.name, value), run, state);
            }
        }
    }

    /// Records that programs get the value of an assignment through their environment.
    fn mention_passed_value(&mut self, value: &AssignValue, state: &ShellState) {
        let AssignValue::Text(raw) = value else { return };
        match expand::assigned_value(raw, state).text() {
            Some(text) => self.mentioned_texts.add_passed(text),
            None => raw.pieces.iter().for_each(|piece| {
                if let Piece::Text { text, .. } = piece {
                    self.mentioned_texts.add_passed(text);
                }
            }),
        }
    }

    fn record_assignment(&mut self, assignment: &Assignment, state: &mut ShellState) {
        self.remember_visible_value(assignment, state);
        let (name, value) = (&assignment.name, assignment.value_after(state));
        // In ksh, an array of words like `typeset` is something else.
        let value = match value {
            Value::Words(_) if self.language == ShellLanguage::Korn => Value::Unknown,
            value => value,
        };
        self.record_evaluated_value(name, &value);
        let is_file_or_code = variables::may_be_file_or_code(name, value.text());
        if is_file_or_code || variables::affects_programs(name, self.context, self.language) {
            self.add_doubt(DoubtKind::Variable, &assignment.shown);
        }
        if self.context.exported.contains(name) {
            self.mention_passed_value(&assignment.value, state);
        }
        if self.may_skip_rest {
            state.maybe_set(name, &value);
        } else {
            state.set(name, value);
        }
    }
}

/// The special builtins of POSIX.
const SPECIAL_BUILTINS: &[&str] = &[
    ":", ".", "break", "continue", "eval", "exec", "exit", "export", "readonly", "return", "set",
    "shift", "times", "trap", "unset",
];

/// Whether a substitution consists of one command or pipeline, so that nothing else is printed.
fn is_single_pipeline(body: &Node) -> bool {
    let Node::Sequence(nodes) = body else { return false };
    match nodes.as_slice() {
        [Node::Simple(_)] => true,
        [Node::Pipeline(nodes)] => nodes.iter().all(|node| matches!(node, Node::Simple(_))),
        _ => false,
    }
}

/// Returns the value of an array if all its elements are known. Shells differ on elements with a sign like `[a]=b`.
fn array_value(words: &[RawWord], state: &ShellState) -> Value {
    const MAX_ELEMENTS: usize = 64;
    let mut elements = Vec::new();
    for raw in words {
        for word in expand::words(raw, &raw.shown, state).unwrap_or_default() {
            match word {
                Word::Literal(text) if !text.is_empty() && !text.contains(['=', '[']) => {
                    elements.push(text);
                }
                _ => return Value::Unknown,
            }
        }
    }
    match elements.len() {
        1..=MAX_ELEMENTS => Value::Words(elements),
        _ => Value::Unknown,
    }
}

impl Assignment {
    /// Returns the value of the variable after the assignment.
    fn value_after(&self, state: &ShellState) -> Value {
        match &self.value {
            AssignValue::Text(raw) if !self.append && self.index.is_none() => {
                expand::assigned_value(raw, state)
            }
            AssignValue::Text(raw) => {
                let values = [expand::assigned_value(raw, state), state.value(&self.name)];
                if values.iter().any(Value::may_be_glob) {
                    Value::UnknownGlob
                } else {
                    Value::Unknown
                }
            }
            AssignValue::Array(words) if !self.append && self.index.is_none() => {
                array_value(words, state)
            }
            AssignValue::Array(_) => Value::Unknown,
        }
    }
}
