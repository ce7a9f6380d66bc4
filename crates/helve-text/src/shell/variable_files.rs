//! Files and folders that programs read or write because variables name them: `COVERAGE_FILE=x pytest`.

use super::names;
use super::state::{ShellState, normalize};
use super::walk::Walker;
use super::{AccessKind, Word, outputs};

/// Records the file or folder that the value of a variable names, which a program gets through its environment.
pub(super) fn record(
    walker: &mut Walker<'_>,
    (name, value): (&str, &str),
    run: usize,
    state: &ShellState,
) {
    let name = name.to_ascii_uppercase();
    let path = Word::Literal(value.to_string());
    if names::is_path_variable(&name) || names::is_output_variable(&name) && looks_like_path(value)
    {
        walker.record_access(&path, AccessKind::PassedToUnknown, state, Some(run));
        return outputs::record_output(walker, &path, run, state);
    }
    // Variables that may load code are asked about in any case, and many of them are lists of folders.
    let is_cwd = normalize(&walker.context.cwd, value) == walker.context.cwd;
    if looks_like_path(value) && !is_cwd && !names::is_code_variable(&name) {
        walker.record_access(&path, AccessKind::NamedInVariable, state, Some(run));
    }
}

/// Whether a value is the path of one file, and not an address, a list or a pattern.
fn looks_like_path(value: &str) -> bool {
    let is_path_char = |c: char| c.is_alphanumeric() || "/._-+@~%".contains(c);
    let begins_or_contains = value.contains('/') || value.starts_with(['.', '~']);
    begins_or_contains && !value.contains("//") && value.chars().all(is_path_char)
}
