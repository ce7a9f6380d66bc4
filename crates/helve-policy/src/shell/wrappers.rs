//! Finds the words of the wrappers before a command, so that a rule like `uv run pytest *` can cover `pytest -q`.

use helve_text::shell::{ProgramRun, Word};

/// Maximum number of wrappers around a command that are considered.
const MAX_WRAPPERS: usize = 4;

/// Returns the words before a command, once from the start of each wrapper around it: `env CI=1` and `time env CI=1` for
/// the last command of `time env CI=1 npm test`. Stops at a wrapper that does not start exactly the words that follow
/// it, such as `xargs`, which adds some.
pub(super) fn words_before(runs: &[ProgramRun], index: usize) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    let mut before: Vec<String> = Vec::new();
    let mut inner = &runs[index];
    while let Some(outer) = inner.parent.and_then(|at| runs.get(at))
        && all.len() < MAX_WRAPPERS
    {
        let is_keyword = outer.skips_path && outer.words.len() == 1;
        let words = match outer.words.strip_suffix(inner.words.as_slice()) {
            Some(words) if !words.is_empty() => words,
            _ if is_keyword => &outer.words,
            _ => break,
        };
        let literal: Option<Vec<&str>> = words.iter().map(Word::literal).collect();
        let Some(literal) = literal else { break };
        before.splice(..0, literal.into_iter().map(str::to_string));
        all.push(before.clone());
        inner = outer;
    }
    all
}
