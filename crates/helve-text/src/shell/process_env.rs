//! Recognizes flags with which `ps` shows the environment of other processes.

use super::args::Argument;
use super::commands::Invocation;
use super::state::ShellState;
use super::walk::Walker;
use super::{AccessKind, Word};

/// A file that holds the environment of a process. If `ps` shows environments, this counts as reading the file.
const ENVIRONMENT: &str = "/proc/1/environ";

/// Letters after which a value follows, in the same word or in the next one.
const TAKING_VALUE: &[char] = &['o', 'O', 'p', 'q', 't', 'U', 'k'];

/// Columns that contain environments.
const COLUMNS: &[&str] = &["environ", "env", "envp", "args_env"];

/// Records an operand of `ps`. In flags without a dash, `e` shows the environment.
pub(super) fn record_flags(
    walker: &mut Walker<'_>,
    call: &Invocation<'_>,
    argument: &Argument,
    state: &ShellState,
) {
    let previous = argument.word.checked_sub(1).map_or("", |at| call.words[at].shown());
    let takes_value = |word: &str| word.ends_with(TAKING_VALUE) && is_flags(word);
    let is_value = argument.word > 1 && takes_value(previous);
    let text = argument.value.shown();
    let flags = text.split(TAKING_VALUE).next().unwrap_or("");
    if !is_value && is_flags(flags) && flags.contains('e') {
        record_environment_read(walker, call, state);
    }
    if is_value || text.contains(TAKING_VALUE) {
        record_columns(walker, call, argument, state);
    }
}

/// Records the columns that `ps` prints.
pub(super) fn record_columns(
    walker: &mut Walker<'_>,
    call: &Invocation<'_>,
    argument: &Argument,
    state: &ShellState,
) {
    let text = argument.value.shown().to_ascii_lowercase();
    let mut columns = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    if columns.any(|it| COLUMNS.contains(&it)) {
        record_environment_read(walker, call, state);
    }
}

/// Whether a text may be a cluster of flags without a dash, like `aux`.
fn is_flags(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|c| c.is_ascii_alphabetic())
}

fn record_environment_read(walker: &mut Walker<'_>, call: &Invocation<'_>, state: &ShellState) {
    let file = Word::Literal(ENVIRONMENT.into());
    walker.record_access(&file, AccessKind::Read, state, Some(call.run));
}
