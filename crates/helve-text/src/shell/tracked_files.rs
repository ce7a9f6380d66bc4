//! Tracked files that git reads although the command does not name them: `git log -p` prints files that commits change.

use super::arg_role::ArgRole;
use super::args::{Argument, ParsedArgs};
use super::commands::Invocation;
use super::state::{ShellState, join_path};
use super::walk::Walker;
use super::{
    AccessKind, DynamicKind, FileAccess, FileTarget, LinkHandling, TreeFilter, TreeListing, Word,
    WordRole, file_patterns, safe_values,
};

/// Records the tracked files that a command reads or may read.
pub(super) fn record(walker: &mut Walker<'_>, call: &Invocation<'_>, state: &ShellState) {
    let args = call.args;
    let spec = args.spec;
    let skips_tracked = args.has_any(&spec.skips_tracked_with);
    let reads_tracked =
        spec.traits.reads_tracked && !skips_tracked || args.has_any(&spec.reads_tracked_with);
    if !reads_tracked {
        return;
    }
    if spec.traits.read_tree {
        record_tracked(walker, call, (AccessKind::ReadTree, TreeListing::Tracked), state);
    } else if !args.has_any(&spec.read_tree) {
        record_tracked(
            walker,
            call,
            (AccessKind::MaybeReadTree, TreeListing::TrackedAnywhere),
            state,
        );
    }
}

/// Records the tracked files below the operands. If no operand is a path, records all files that `listing` selects.
fn record_tracked(
    walker: &mut Walker<'_>,
    call: &Invocation<'_>,
    (kind, listing): (AccessKind, TreeListing),
    state: &ShellState,
) {
    let run = Some(call.run);
    let takes_paths = call.args.spec.traits.pathspecs;
    let is_operand =
        |it: &&Argument| it.flag.is_none() && matches!(it.role, ArgRole::Read | ArgRole::Revision);
    let operands: Vec<&Argument> = call.args.arguments.iter().filter(is_operand).collect();
    for operand in operands.iter().filter(|it| takes_paths && !is_revision_word(&it.value)) {
        walker.record_filtered_access(
            &operand.value,
            (kind, &filter(TreeListing::Tracked)),
            state,
            run,
        );
    }
    let (paths, others): (Vec<&Argument>, Vec<&Argument>) =
        operands.into_iter().partition(|it| is_path(call, it));
    let includes = |it: &Argument| !it.value.literal().is_some_and(file_patterns::is_exclusion);
    let names_blobs = !others.is_empty() && others.iter().all(|it| names_blob(&it.value));
    if takes_paths && paths.into_iter().any(includes) || names_blobs {
        return;
    }
    // Without `--`, a word is a path if a file has this name. Git refuses a word that is both a path and a revision.
    let may_be_paths = takes_paths && double_dash_at(call.words, call.args).is_none();
    let names = others.iter().filter(|_| may_be_paths).filter_map(|it| it.value.literal());
    let names: Vec<&str> = names.collect();
    for dir in walker.possible_dirs(state) {
        walker.push_access(FileAccess {
            unless_exists: names.iter().map(|name| join_path(&dir, name)).collect(),
            target: FileTarget::Path(dir),
            kind,
            run,
            filter: filter(listing),
        });
    }
}

/// Returns a filter for tracked files. Git does not follow links.
pub(super) fn filter(listing: TreeListing) -> TreeFilter {
    TreeFilter { links: LinkHandling::Skipped, listing, ..TreeFilter::default() }
}

/// Whether an operand is certainly a path: it follows `--`, or it is a pattern of paths, which no revision can be.
pub(super) fn is_path(call: &Invocation<'_>, operand: &Argument) -> bool {
    let is_pattern = |it: &str| it.starts_with(":(") || it.contains(['*', '?']);
    operand.flag.is_none()
        && (follows_separator(call.words, call.args, operand)
            || operand.value.literal().is_some_and(is_pattern))
}

/// Whether an operand follows the word `--`.
pub(super) fn follows_separator(words: &[Word], args: &ParsedArgs, operand: &Argument) -> bool {
    double_dash_at(words, args).is_some_and(|at| operand.word > at)
}

/// Returns the index of the word `--` that ends the flags.
fn double_dash_at(words: &[Word], args: &ParsedArgs) -> Option<usize> {
    let is_flag = |at: &usize| args.roles.get(*at) == Some(&WordRole::Flag);
    (0..words.len()).filter(is_flag).find(|at| words[*at].literal() == Some("--"))
}

/// Whether a word names one file in a revision or in the index: `HEAD:src/a.rs`, `:0:a.rs`.
fn names_blob(word: &Word) -> bool {
    let Some((revision, path)) = word.literal().and_then(|text| text.split_once(':')) else {
        return false;
    };
    let is_staged = revision.is_empty() && path.starts_with(|c: char| c.is_ascii_digit());
    // `HEAD^{/fix: typo}` is a commit.
    (is_staged || !revision.is_empty()) && !revision.contains('{') && !path.is_empty()
}

/// Whether a word is a git revision rather than a path.
pub(super) fn is_revision_word(word: &Word) -> bool {
    match word {
        Word::Literal(text) => safe_values::is_plain_revision(text),
        Word::Glob(_) => false,
        Word::Dynamic(dynamic) => {
            matches!(dynamic.kind, DynamicKind::Commit | DynamicKind::Revision)
        }
    }
}
