//! What certainly holds at some point of a script, because nothing before it can have changed that.

use super::state::PossibleFolders;
use super::walk::Walker;
use super::{AccessKind, Approval, Run, Word, builtins};

/// Programs that leave all folders as they are.
const LOOKING: &[&str] =
    &["ls", "cat", "head", "tail", "wc", "grep", "rg", "echo", "printf", "pwd", "date", "which"];

/// Whether the shell certainly goes from one folder to another.
///
/// Back up it does unless something was written before: a folder above may have been moved or closed. Into a folder that is
/// known to be there it does while nothing but looking was done.
pub(super) fn enters(
    walker: &Walker<'_>,
    words: &[Word],
    from: &PossibleFolders,
    to: &PossibleFolders,
) -> bool {
    let (Some([from]), Some([to])) = (from.as_deref(), to.as_deref()) else { return false };
    // Not every shell knows other commands, and flags.
    let plain = words.len() == 2
        && words[0].literal() == Some("cd")
        && words[1].literal().is_some_and(is_straight);
    let above = from.strip_prefix(to.trim_end_matches('/')).is_some_and(|it| it.starts_with('/'));
    let back = above && runs_alone(walker) && !walker.script.runs.iter().any(sets_up);
    plain && (back || walker.context.enterable.contains(to) && files_are_as_found(walker))
}

/// Whether it only goes up and then down. What stands before any other `..` has to be there.
fn is_straight(path: &str) -> bool {
    !path.split('/').skip_while(|name| matches!(*name, "" | "." | "..")).any(|name| name == "..")
}

/// Whether all files are as they were when the script began.
pub(super) fn files_are_as_found(walker: &Walker<'_>) -> bool {
    runs_alone(walker) && walker.script.runs.iter().all(only_looks)
}

/// Whether what is read now is run once, by itself, and nothing was written before.
fn runs_alone(walker: &Walker<'_>) -> bool {
    let script = &walker.script;
    let wrote = script.accesses.iter().any(|access| access.kind == AccessKind::Write)
        || script.runs.iter().any(|run| !run.risks.is_empty());
    let alone = walker.parent.is_none() && walker.beside == 0 && !walker.skips;
    alone && !wrote && script.doubts.is_empty()
}

/// What may make an assignment fail, and the rest of its line with it.
fn sets_up(run: &Run) -> bool {
    run.approval == Approval::Required
        && run.words.first().and_then(Word::literal).is_none_or(builtins::is_own)
}

fn only_looks(run: &Run) -> bool {
    let name = run.words.first().and_then(Word::literal);
    run.approval == Approval::Exempt
        || run.assignments.is_empty() && name.is_some_and(|name| LOOKING.contains(&name))
}
