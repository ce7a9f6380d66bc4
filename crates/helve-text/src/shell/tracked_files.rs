//! Tracked files that git reads although the command does not name them: `git log -p` prints files that commits change.

use super::arg_role::ArgRole;
use super::args::{Argument, ParsedArgs};
use super::commands::Invocation;
use super::state::{ShellState, join_path, normalize};
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
    if spec.traits.read_tree && spec.traits.reads_tracked {
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
    for operand in operands.iter().filter(|it| takes_paths && may_be_path(call, it, kind)) {
        record_path(walker, &operand.value, (kind, run), state);
    }
    let (paths, others): (Vec<&Argument>, Vec<&Argument>) =
        operands.into_iter().partition(|it| is_path(call, it));
    let includes = |it: &Argument| {
        !file_patterns::as_pathspec(&it.value).literal().is_some_and(file_patterns::is_exclusion)
    };
    let blobs: Vec<&str> = others.iter().filter_map(|it| path_of_blob(&it.value)).collect();
    let names_blobs = !others.is_empty() && blobs.len() == others.len();
    let compares_trees = call.args.spec.traits.compares_trees;
    let ignores_paths = call.args.has_any(&call.args.spec.whole_commits_with)
        || call.args.has_any(&[file_patterns::ANY_CASE_FLAG]);
    let has_paths = takes_paths && !ignores_paths && paths.into_iter().any(includes);
    if has_paths || names_blobs && !compares_trees {
        return;
    }
    // Without `--`, a word is a path if a file has this name. Git refuses a word that is both a path and a revision.
    let may_be_paths =
        takes_paths && !ignores_paths && double_dash_at(call.words, call.args).is_none();
    let names = others.iter().filter(|_| may_be_paths).filter_map(|it| it.value.literal());
    let names: Vec<&str> = names.collect();
    let blobs = if names_blobs { blobs } else { Vec::new() };
    for dir in walker.possible_dirs(state) {
        let unless_exists = names.iter().map(|name| join_path(&dir, name)).collect();
        // The path in a revision starts at the top of the repository, or with `./` in the working directory.
        let unless_file = blobs.iter().map(|path| match path.starts_with("./") {
            true => join_path(&dir, path),
            false => join_path(&walker.context.cwd, path),
        });
        let unless_file = unless_file.collect();
        let access = FileAccess::new(FileTarget::Path(dir), kind, run, filter(listing));
        walker.push_access(FileAccess { unless_exists, unless_file, ..access });
    }
}

/// Records the tracked files below a path. Git removes `..` without looking at links, and the folder before it need not
/// exist.
fn record_path(
    walker: &mut Walker<'_>,
    path: &Word,
    (kind, run): (AccessKind, Option<usize>),
    state: &ShellState,
) {
    let access = (kind, &filter(TreeListing::Tracked));
    match path.literal().filter(|it| it.split('/').any(|name| name == "..")) {
        Some(text) => {
            for dir in walker.possible_dirs(state) {
                let path = Word::Literal(normalize(&dir, text));
                walker.record_filtered_access(&path, access, state, run);
            }
        }
        None => walker.record_filtered_access(path, access, state, run),
    }
}

/// Whether an operand may be a path. A word like `a@b` is mostly a revision, but a folder may have this name too.
fn may_be_path(call: &Invocation<'_>, operand: &Argument, kind: AccessKind) -> bool {
    let has_folder = |it: &str| it.contains('/') && !it.contains("..");
    let may_be_folder =
        kind == AccessKind::MaybeReadTree && operand.value.literal().is_some_and(has_folder);
    may_be_folder || is_path(call, operand) || !is_revision_word(&operand.value)
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
            || file_patterns::as_pathspec(&operand.value).literal().is_some_and(is_pattern))
}

/// Whether an operand follows the word `--`.
pub(super) fn follows_separator(words: &[Word], args: &ParsedArgs, operand: &Argument) -> bool {
    double_dash_at(words, args).is_some_and(|at| operand.word > at)
}

/// Returns the index of the word `--` that ends the flags.
pub(super) fn double_dash_at(words: &[Word], args: &ParsedArgs) -> Option<usize> {
    let is_flag = |at: &usize| args.roles.get(*at) == Some(&WordRole::Flag);
    (0..words.len()).filter(is_flag).find(|at| words[*at].literal() == Some("--"))
}

/// Returns the path of a file or folder in a revision or in the index: `HEAD:src/a.rs`, `:0:a.rs`.
fn path_of_blob(word: &Word) -> Option<&str> {
    let (revision, path) = word.literal()?.split_once(':')?;
    if revision.is_empty() {
        // In the index: `:0:a.rs`.
        let path = path.starts_with(|c: char| c.is_ascii_digit()).then_some(path)?;
        return Some(path.split_once(':').map_or(path, |(_, path)| path));
    }
    // `HEAD^{/fix: typo}` is a commit.
    (!revision.contains('{') && !path.is_empty()).then_some(path)
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
