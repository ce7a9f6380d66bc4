//! Analyzes loops: once for each known value of the loop variable, or once with an unknown value.

use super::ast::{Node, RawWord};
use super::grammar::is_name;
use super::mutations::Mutations;
use super::state::{ShellState, Value, join_path};
use super::walk::{StdinSource, Walker};
use super::{DoubtKind, DynamicKind, ShellContext, Word, fragments, guarantees, variables};

/// A loop over at most this many words is analyzed once per word. Other loops are analyzed once, with an unknown
/// variable.
const MAX_UNROLLED: usize = 8;
/// Maximum number of times that all loop bodies of a script together are analyzed with a known variable. Nested loops
/// multiply this number.
pub(super) const MAX_BODIES: usize = 128;

impl Walker<'_> {
    pub(super) fn walk_while(
        &mut self,
        condition: &Node,
        body: &Node,
        state: &mut ShellState,
        stdin: &StdinSource,
    ) {
        forget_mutations(state, condition);
        forget_mutations(state, body);
        self.record_uncertain(|walker| {
            // A `break` may end the condition or the body early.
            walker.walk_branch(condition, state, stdin);
            let mut inner = state.clone();
            if let (Some(name), StdinSource::Pipe(Some(output))) = (read_variable(condition), stdin)
            {
                // The body runs only if `read` has set the variable.
                match output.listing {
                    Some(listing) => inner.replace(name, Value::Listed(listing)),
                    None if output.prints_commits => inner.replace(name, Value::CommitOrEmpty),
                    None => {}
                }
            }
            walker.walk_branch(body, &mut inner, stdin);
            state.join(&inner);
        });
    }

    pub(super) fn walk_for(
        &mut self,
        name: &str,
        raw_words: Option<&[RawWord]>,
        body: &Node,
        state: &mut ShellState,
        stdin: &StdinSource,
    ) {
        let outer_find_results = self.find_results.clone();
        let words = self.walk_loop_head(name, raw_words, state);
        let words = self.expand_globs(words, state);
        forget_mutations(state, body);
        let values: Option<Vec<Value>> = words
            .iter()
            .map(|word| match word {
                Word::Literal(text) => Some(Value::Text(text.clone())),
                Word::Glob(pattern) => Some(Value::Glob(pattern.clone())),
                Word::Dynamic(dynamic) => match dynamic.kind {
                    DynamicKind::Number => Some(Value::Number),
                    DynamicKind::Listed(listing) => Some(Value::Listed(listing)),
                    _ => None,
                },
            })
            .collect();
        let max = MAX_UNROLLED.min(self.bodies_left);
        let values = match values {
            // Without words, the loop iterates over the positional parameters.
            Some(values) if raw_words.is_none() || values.is_empty() => vec![Value::Unknown],
            Some(values) if values.len() <= max => values,
            Some(values) if values.iter().all(Value::is_number) => vec![Value::Number],
            Some(_) | None => vec![Value::Unknown],
        };
        self.bodies_left = self.bodies_left.saturating_sub(values.len());
        self.walk_loop_bodies(name, values, body, state, stdin);
        self.find_results = outer_find_results;
    }

    pub(super) fn walk_select(
        &mut self,
        name: &str,
        raw_words: Option<&[RawWord]>,
        body: &Node,
        state: &mut ShellState,
        stdin: &StdinSource,
    ) {
        self.walk_loop_head(name, raw_words, state);
        forget_mutations(state, body);
        self.walk_loop_bodies(name, vec![Value::Unknown], body, state, stdin);
    }

    /// Records that a loop sets its variable, and returns the words that it iterates over.
    fn walk_loop_head(
        &mut self,
        name: &str,
        raw_words: Option<&[RawWord]>,
        state: &mut ShellState,
    ) -> Vec<Word> {
        if variables::reaches_programs(name, self.context, self.language) {
            self.add_doubt(DoubtKind::Variable, name);
        }
        self.record_evaluated_value(name, &Value::Unknown);
        let raws = raw_words.unwrap_or(&[]);
        let words: Vec<Word> = raws.iter().flat_map(|raw| self.expand(raw, state)).collect();
        self.remember_loop_variable(name, raw_words.is_some().then_some(words.as_slice()));
        words
    }

    fn walk_loop_bodies(
        &mut self,
        name: &str,
        values: Vec<Value>,
        body: &Node,
        state: &mut ShellState,
        stdin: &StdinSource,
    ) {
        self.record_uncertain(|walker| {
            for value in values {
                state.replace(name, value);
                walker.walk_branch(body, state, stdin);
            }
        });
        state.replace(name, Value::Unknown);
    }

    /// Replaces globs with the names they match, if all of these are known and few.
    fn expand_globs(&self, words: Vec<Word>, state: &ShellState) -> Vec<Word> {
        let Some([dir]) = state.dirs.as_deref() else { return words };
        if !guarantees::files_are_unchanged(self) {
            return words;
        }
        let expanded: Option<Vec<Vec<Word>>> = words
            .iter()
            .map(|word| match word {
                Word::Glob(pattern) => glob_words(pattern, dir, self.context),
                Word::Literal(_) | Word::Dynamic(_) => Some(vec![word.clone()]),
            })
            .collect();
        let expanded = expanded.map(|expanded| expanded.concat());
        let max = MAX_UNROLLED.min(self.bodies_left);
        expanded.filter(|expanded| expanded.len() <= max).unwrap_or(words)
    }
}

/// Returns the variable that a condition like `IFS= read -r name` sets to a line of its input.
fn read_variable(condition: &Node) -> Option<&str> {
    let condition = match condition {
        Node::Sequence(nodes) => match nodes.as_slice() {
            [node] => node,
            _ => return None,
        },
        node => node,
    };
    let Node::Simple(simple) = condition else { return None };
    let words: Option<Vec<&str>> = simple.words.iter().map(RawWord::unquoted_text).collect();
    let only_sets_ifs = simple.assignments.iter().all(|it| it.name == "IFS");
    match words?.as_slice() {
        ["read", name] | ["read", "-r", name]
            if only_sets_ifs && simple.redirects.is_empty() && is_name(name) =>
        {
            Some(name)
        }
        _ => None,
    }
}

/// Returns the words that a shell replaces a glob with.
fn glob_words(pattern: &str, dir: &str, context: &ShellContext) -> Option<Vec<Word>> {
    // What these wildcards match depends on the locale and on options of the shell.
    if pattern.contains(['?', '[', '\\']) || pattern.contains("**") {
        return None;
    }
    // In `*/name`, a matching directory may lack the file `name`.
    if pattern.split('*').next_back().is_some_and(|rest| rest.contains('/')) {
        return None;
    }
    let paths = context.glob_matches.get(&join_path(&fragments::escape(dir), pattern))?;
    let start = if pattern.starts_with('/') { "" } else { dir.trim_end_matches('/') };
    let name = |path: &String| {
        let name = path.strip_prefix(start)?;
        let name = if start.is_empty() { name } else { name.strip_prefix('/')? };
        Some(Word::Literal(name.to_string()))
    };
    paths.iter().map(name).collect()
}

/// Forgets everything that the body of a loop may change, because the body may have run before.
pub(super) fn forget_mutations(state: &mut ShellState, body: &Node) {
    let mut mutations = Mutations::default();
    mutations.visit(body);
    if mutations.any_variable {
        state.forget_variables();
    }
    for (name, only_numbers) in mutations.variables {
        let value = match state.variables.get(&name) {
            Some(value) if only_numbers && value.is_number() => value.clone().merge(&Value::Number),
            _ if only_numbers && state.is_number_or_inherited(&name) => Value::NumberOrInherited,
            Some(_) | None => Value::Unknown,
        };
        state.replace(&name, value);
    }
    if mutations.changes_dir {
        state.dirs = None;
        state.previous = None;
        state.stack = None;
    }
}
