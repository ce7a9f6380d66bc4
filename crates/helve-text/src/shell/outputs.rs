//! Files and folders that a program writes to because of a flag like `--output`, or reads as a whole, whether or not
//! `programs.txt` lists it.
//!
//! Only rules that deny changing such a file count, so a flag that means something else to a program does no harm: its
//! value would have to be the path of a denied file.

use super::commands::basename;
use super::names::{self, NameGroup};
use super::path_args::paths_in;
use super::programs;
use super::state::ShellState;
use super::walk::Walker;
use super::{AccessKind, TreeFilter, Word};

/// Records the values of flags that name an output, and the last operand of programs like `ffmpeg`.
pub(super) fn record(walker: &mut Walker<'_>, words: &[Word], run: usize, state: &ShellState) {
    let Some(program) = words.first().map(|word| basename(word.shown())) else { return };
    record_read_folders(walker, words, run, state);
    for (at, word) in words.iter().enumerate().skip(1) {
        let text = word.prefix();
        if !text.starts_with('-') {
            continue;
        }
        let next = words.get(at + 1).filter(|next| !next.prefix().starts_with('-'));
        if is_output_flag(program, text) {
            next.into_iter().for_each(|value| record_output(walker, value, run, state));
        } else if let Some(value) = attached_value(program, text) {
            record_output(walker, &Word::Literal(value.to_string()), run, state);
        }
    }
    if is_in_group(NameGroup::OutputLast, words)
        && let Some(last) = words.iter().skip(1).rfind(|word| !word.prefix().starts_with('-'))
    {
        record_output(walker, last, run, state);
    }
}

/// Records the folders that commands like `docker build` or `npm pack` may read with everything below them.
fn record_read_folders(walker: &mut Walker<'_>, words: &[Word], run: usize, state: &ShellState) {
    let reads_working_dir = is_in_group(NameGroup::ReadsWorkingDir, words);
    let reads_folders = is_in_group(NameGroup::ReadsFolders, words);
    let arguments = words.iter().skip(1).filter(|_| reads_folders).filter_map(Word::literal);
    let paths = arguments.flat_map(paths_in).chain(reads_working_dir.then_some("."));
    for path in paths {
        let access = (AccessKind::MaybeReadTree, &TreeFilter::default());
        walker.record_filtered_access(&Word::Literal(path.into()), access, state, Some(run));
    }
}

/// Whether a group contains a program, or one with its first arguments: `docker:build`.
fn is_in_group(group: NameGroup, words: &[Word]) -> bool {
    const MAX_WORDS: usize = 4;
    let base = words.first().map_or("", |word| basename(word.shown()));
    let mut command = programs::table_name(base).unwrap_or(base).to_string();
    let mut found = names::contains(group, &command);
    for word in words.iter().skip(1).take(MAX_WORDS - 1) {
        command = format!("{command}:{}", word.shown());
        found |= names::contains(group, &command);
    }
    found
}

/// Records a file or folder that is written to.
pub(super) fn record_output(walker: &mut Walker<'_>, value: &Word, run: usize, state: &ShellState) {
    walker.record_access(value, AccessKind::FlagOutput, state, Some(run));
    // The value may have a kind before the path, as in `html:out`.
    for path in value.literal().map(paths_in).unwrap_or_default() {
        let path = Word::Literal(path.to_string());
        walker.record_access(&path, AccessKind::FlagOutput, state, Some(run));
    }
}

/// Whether a flag names an output. A long flag may have one dash instead of two, and some programs accept the beginning
/// of its name.
fn is_output_flag(program: &str, flag: &str) -> bool {
    let with_two_dashes = flag.strip_prefix('-').filter(|it| it.len() > 1 && !it.starts_with('-'));
    names::contains(NameGroup::OutputFlag, flag)
        || with_two_dashes
            .is_some_and(|it| names::contains(NameGroup::OutputFlag, &format!("--{it}")))
        || names::contains(NameGroup::OutputFlagOf, &format!("{program}:{flag}"))
        || names::may_abbreviate_output(program, flag)
}

/// Returns the value in the same word as its flag: `out` in `--output=out` and `-oout`.
fn attached_value<'t>(program: &str, text: &'t str) -> Option<&'t str> {
    let is_output = |flag: &str| is_output_flag(program, flag);
    if let Some((flag, value)) = text.split_once('=')
        && is_output(flag)
    {
        return Some(value);
    }
    let (flag, value) = text.split_at_checked(2)?;
    (!text.starts_with("--") && !value.is_empty() && is_output(flag)).then_some(value)
}
