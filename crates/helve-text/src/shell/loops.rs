//! Loops: read once for each value that is known, or once for all of them.

use super::ast::{Node, RawWord};
use super::mutations::Mutations;
use super::state::{ShellState, Value, join_path};
use super::walk::{StdinSource, Walker};
use super::{DoubtKind, DynamicKind, ShellContext, Word, certain, fragments, variables};

/// Loops over more words than this are read once, with the variable unknown.
const UNROLLED: usize = 8;
/// Bodies of loops that are read with a known variable, in all loops together: they multiply.
pub(super) const MOST_BODIES: usize = 128;

impl Walker<'_> {
    pub(super) fn for_loop(
        &mut self,
        name: &str,
        over: Option<&[RawWord]>,
        body: &Node,
        state: &mut ShellState,
        stdin: &StdinSource,
    ) {
        let words = self.loop_head(name, over.unwrap_or(&[]), state);
        let words = self.names_of(words, state);
        loosen(state, body);
        let values: Option<Vec<Value>> = words
            .iter()
            .map(|word| match word {
                Word::Literal(text) => Some(Value::Text(text.clone())),
                Word::Glob(pattern) => Some(Value::Glob(pattern.clone())),
                Word::Dynamic(dynamic) if dynamic.kind == DynamicKind::Number => {
                    Some(Value::Number)
                }
                Word::Dynamic(_) => None,
            })
            .collect();
        let most = UNROLLED.min(self.bodies);
        let values = match values {
            // Without words it is over what the shell was given, or over nothing.
            Some(values) if over.is_none() || values.is_empty() => vec![Value::Unknown],
            Some(values) if values.len() <= most => values,
            Some(values) if values.iter().all(Value::is_number) => vec![Value::Number],
            Some(_) | None => vec![Value::Unknown],
        };
        self.bodies = self.bodies.saturating_sub(values.len());
        self.loop_bodies(name, values, body, state, stdin);
    }

    pub(super) fn select(
        &mut self,
        name: &str,
        over: &[RawWord],
        body: &Node,
        state: &mut ShellState,
        stdin: &StdinSource,
    ) {
        self.loop_head(name, over, state);
        loosen(state, body);
        self.loop_bodies(name, vec![Value::Unknown], body, state, stdin);
    }

    /// Notes that a loop sets its variable, and returns what it is over.
    fn loop_head(&mut self, name: &str, over: &[RawWord], state: &mut ShellState) -> Vec<Word> {
        if variables::reaches(name, self.context, self.language) {
            self.doubt(DoubtKind::Variable, name);
        }
        over.iter().flat_map(|raw| self.expand(raw, state)).collect()
    }

    fn loop_bodies(
        &mut self,
        name: &str,
        values: Vec<Value>,
        body: &Node,
        state: &mut ShellState,
        stdin: &StdinSource,
    ) {
        self.beside += 1;
        for value in values {
            state.replace(name, value);
            self.branch(body, state, stdin);
        }
        self.beside -= 1;
        state.replace(name, Value::Unknown);
    }

    /// The names that patterns stand for, where all are known and few.
    fn names_of(&self, words: Vec<Word>, state: &ShellState) -> Vec<Word> {
        let Some([folder]) = state.folders.as_deref() else { return words };
        if !certain::files_are_as_found(self) {
            return words;
        }
        let known: Option<Vec<Vec<Word>>> = words
            .iter()
            .map(|word| match word {
                Word::Glob(pattern) => names(pattern, folder, self.context),
                Word::Literal(_) | Word::Dynamic(_) => Some(vec![word.clone()]),
            })
            .collect();
        let known = known.map(|known| known.concat());
        known.filter(|known| known.len() <= UNROLLED.min(self.bodies)).unwrap_or(words)
    }
}

/// What a shell fills in for a pattern.
fn names(pattern: &str, folder: &str, context: &ShellContext) -> Option<Vec<Word>> {
    // What these match depends on the language that is set; where they match nothing, they stand for themselves.
    if pattern.contains(['?', '[', '\\']) || pattern.contains("**") {
        return None;
    }
    // What stands behind a wildcard may not be there.
    if pattern.split('*').next_back().is_some_and(|rest| rest.contains('/')) {
        return None;
    }
    let paths = context.glob_matches.get(&join_path(&fragments::escape(folder), pattern))?;
    let start = if pattern.starts_with('/') { "" } else { folder.trim_end_matches('/') };
    let name = |path: &String| {
        let name = path.strip_prefix(start)?;
        let name = if start.is_empty() { name } else { name.strip_prefix('/')? };
        Some(Word::Literal(name.to_string()))
    };
    paths.iter().map(name).collect()
}

/// Forgets what a loop's body may change, because it may have run before.
pub(super) fn loosen(state: &mut ShellState, body: &Node) {
    let mut changes = Mutations::default();
    changes.of(body);
    if changes.anything {
        state.forget_variables();
    }
    for (name, numbers_only) in changes.names {
        let value = match state.variables.get(&name) {
            Some(value) if numbers_only && value.is_number() => value.clone().or(&Value::Number),
            _ if numbers_only && state.counts(&name) => Value::NumberOrInherited,
            Some(_) | None => Value::Unknown,
        };
        state.replace(&name, value);
    }
    if changes.moves {
        state.folders = None;
        state.previous = None;
        state.stack = None;
    }
}
