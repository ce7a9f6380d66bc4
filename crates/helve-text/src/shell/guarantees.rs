//! Decides what is certain at a point of a script: whether a `cd` succeeds, and whether any file has changed.

use super::state::PossibleDirs;
use super::walk::Walker;
use super::{Approval, ProgramRun, Word, builtins};

/// Whether a `cd` certainly succeeds.
///
/// Going up succeeds unless something was written before, which may have moved a parent directory or changed its
/// permissions. Entering a directory that is known to exist succeeds if every command before it only reads.
pub(super) fn cd_succeeds(
    walker: &Walker<'_>,
    words: &[Word],
    from: &PossibleDirs,
    to: &PossibleDirs,
) -> bool {
    let (Some([from]), Some([to])) = (from.as_deref(), to.as_deref()) else { return false };
    // Not every shell has `pushd` and `popd`, or the flags of `cd`.
    let is_plain_cd = words.len() == 2
        && words[0].literal() == Some("cd")
        && words[1].literal().is_some_and(goes_up_then_down);
    let goes_up = from.strip_prefix(to.trim_end_matches('/')).is_some_and(|it| it.starts_with('/'));
    let can_go_up = goes_up
        && runs_once_before_any_write(walker)
        && !walker.script.runs.iter().any(may_set_read_only);
    let is_enterable = walker.context.enterable.contains(to) && files_are_unchanged(walker);
    is_plain_cd && (can_go_up || is_enterable)
}

/// Whether a path has `..` only at its start, like `../../a`. In `a/..`, the directory `a` would have to exist.
fn goes_up_then_down(path: &str) -> bool {
    !path.split('/').skip_while(|name| matches!(*name, "" | "." | "..")).any(|name| name == "..")
}

/// Whether all files are as they were when the script started.
pub(super) fn files_are_unchanged(walker: &Walker<'_>) -> bool {
    runs_once_before_any_write(walker) && walker.script.runs.iter().all(only_reads)
}

/// Whether the current command runs exactly once, with no other command in parallel and nothing written before it.
fn runs_once_before_any_write(walker: &Walker<'_>) -> bool {
    let script = &walker.script;
    let has_written = script.accesses.iter().any(|access| access.kind.writes())
        || script.runs.iter().any(|run| !run.risks.is_empty());
    let runs_once = walker.parent.is_none() && walker.uncertain_depth == 0 && !walker.may_skip_rest;
    runs_once && !has_written && script.doubts.is_empty()
}

/// Whether a run may make a variable read-only, so that a later assignment fails and the rest of its line is skipped.
fn may_set_read_only(run: &ProgramRun) -> bool {
    run.approval == Approval::Required
        && run.words.first().and_then(Word::literal).is_none_or(builtins::is_unlisted_builtin)
}

fn only_reads(run: &ProgramRun) -> bool {
    run.approval == Approval::Exempt || run.only_reads
}
