//! Records the effects of a command that depend on all its arguments together.

use super::arg_role::ArgRole;
use super::args::Argument;
use super::commands::Invocation;
use super::state::ShellState;
use super::walk::{Walker, unknown};
use super::{
    AccessKind, TreeFilter, Word, WordRole, arg_effects, code_commands, diffs, downloads,
    file_patterns, outputs, path_args, risky_words, tracked_files, tree_filter,
};

/// Records the effects of a known program.
pub(super) fn apply(walker: &mut Walker<'_>, call: &Invocation<'_>, state: &ShellState) {
    let args = call.args;
    // A word that may become several words can have this role too, but it does not certainly name the output.
    let has_output_name =
        args.arguments.iter().any(|it| it.role == ArgRole::Write && it.value.literal().is_some());
    if let Some(file) = args.spec.default_output.filter(|_| !has_output_name) {
        downloads::record_default_output(walker, call, file, state);
    }
    let takes_names =
        args.spec.traits.names_from_input || args.has_any(&args.spec.names_from_input_with);
    if takes_names && call.has_input() {
        let changes_files = args.spec.traits.changes_operands;
        let kind = if changes_files { AccessKind::MaybeWrite } else { AccessKind::Read };
        walker.record_find_results(kind, Some(call.run));
        path_args::record_paths_in_input(walker, call, state);
        walker.mentioned_texts.has_unknown_names = true;
        // `ls | cpio -o` reads files whose names are only known when it runs.
        if call.has_unknown_input() {
            walker.record_access(&unknown("…"), kind, state, Some(call.run));
        }
    }
    if args.spec.traits.lists_paths && args.has_any(&["-delete"]) {
        walker.record_deletion(call, state);
    }
    record_files_of_flags(walker, call, state);
    record_working_dir(walker, call, state);
    tracked_files::record(walker, call, state);
    record_changed_operands(walker, call, state);
    record_restored_files(walker, call, state);
    diffs::note_printed_paths(walker, call);
    diffs::record(walker, call, state);
    risky_words::record(walker, call, state);
    let is_code = |it: &Argument| {
        matches!(
            it.role,
            ArgRole::Script
                | ArgRole::Code
                | ArgRole::Module
                | ArgRole::Command
                | ArgRole::Shell
                | ArgRole::Split
        )
    };
    let traits = args.spec.traits;
    let has_code = args.arguments.iter().any(is_code)
        || traits.runs_stdin && args.arguments.iter().any(|it| it.role == ArgRole::Argument);
    let runs_input = traits.runs_stdin || traits.runs_stdin_if_given && call.has_input();
    // Some interpreters print their version and then run their input.
    let only_prints = args.is_harmless() && !call.has_input();
    if runs_input && !has_code && !only_prints {
        arg_effects::record_code_from_input(walker, call.run);
    }
    let is_input = |it: &Argument| {
        it.role == ArgRole::Script && arg_effects::may_be_input_or_address(&it.value)
    };
    if runs_input || args.arguments.iter().any(is_input) {
        path_args::record_paths_in_input(walker, call, state);
    }
    record_commands_in_code(walker, call, runs_input, state);
}

/// Records the files that a program changes because of its flags, and its operands if it may change them.
pub(super) fn record_changes(walker: &mut Walker<'_>, call: &Invocation<'_>, state: &ShellState) {
    record_files_of_flags(walker, call, state);
    record_changed_operands(walker, call, state);
}

/// Records the commands and files in code that a program gets as an argument or as its standard input.
fn record_commands_in_code(
    walker: &mut Walker<'_>,
    call: &Invocation<'_>,
    runs_input: bool,
    state: &ShellState,
) {
    let is_code = |it: &&Argument| matches!(it.role, ArgRole::Code | ArgRole::Sql | ArgRole::Jq);
    let arguments = call.args.arguments.iter().filter(is_code).map(|it| it.value.prefix());
    let input = if runs_input { call.known_input() } else { Vec::new() };
    for code in arguments.chain(input) {
        code_commands::record(walker, (call.args.spec, code), call.run, state);
    }
}

/// Records the files that a program writes because of flags that do not name them.
fn record_files_of_flags(walker: &mut Walker<'_>, call: &Invocation<'_>, state: &ShellState) {
    let operand = call.args.arguments.iter().rfind(|it| it.flag.is_none());
    for (flag, file) in &call.args.spec.writes_with {
        if !has_flag_with_value(call, flag) {
            continue;
        }
        let operand = operand.filter(|_| !file.starts_with("./"));
        let path = match operand.map(|it| &it.value) {
            None => Word::Literal(file.to_string()),
            Some(Word::Literal(folder)) => Word::Literal(format!("{folder}/{file}")),
            Some(word) => unknown(word.shown()),
        };
        walker.record_access(&path, AccessKind::Write, state, Some(call.run));
    }
}

/// Whether a command has a flag. The flag may be given with a value, as in `--location=project`; then the command must
/// have that value, or one that is not known.
fn has_flag_with_value(call: &Invocation<'_>, flag: &str) -> bool {
    let Some((flag, value)) = flag.split_once('=') else { return call.args.has_any(&[flag]) };
    let values = call.args.arguments.iter().filter(|it| it.flag.as_deref() == Some(flag));
    values.map(|it| it.value.literal()).any(|it| it.is_none_or(|it| it == value))
}

/// Records a recursive read of the working directory by a program that was given no file.
fn record_working_dir(walker: &mut Walker<'_>, call: &Invocation<'_>, state: &ShellState) {
    let args = call.args;
    let reads_input = args.spec.traits.prefers_stdin && call.has_input();
    let is_file = |it: &Argument| {
        let is_path = match it.role {
            ArgRole::Read | ArgRole::Stat => true,
            ArgRole::Revision => !tracked_files::is_revision_word(&it.value),
            _ => false,
        };
        it.flag.is_none() && is_path
    };
    let reads_by_default = args.spec.traits.reads_working_dir
        && args.reads_tree()
        && !reads_input
        && !args.has_any(&args.spec.only_lists)
        && !args.arguments.iter().any(is_file);
    if reads_by_default || args.has_any(&args.spec.reads_working_dir_with) {
        let access = (AccessKind::ReadTree, &tree_filter::of(args));
        walker.record_filtered_access(&Word::Literal(".".into()), access, state, Some(call.run));
    }
}

/// Records the operands of a program that may change them, like those of a formatter with `--write`.
fn record_changed_operands(walker: &mut Walker<'_>, call: &Invocation<'_>, state: &ShellState) {
    let args = call.args;
    let spec = args.spec;
    let is_changing = spec.traits.changes_operands || args.has_any(&spec.changes_operands);
    if !is_changing || args.is_dry_run() {
        return;
    }
    let operands =
        args.roles.iter().zip(call.words).filter(|(role, _)| **role == WordRole::Operand);
    let words: Vec<&Word> = operands.map(|(_, word)| word).collect();
    if words.is_empty() && spec.traits.changes_working_dir {
        let names = spec.changed_names.iter().map(|it| it.to_string()).collect();
        let filter = TreeFilter { names, ..tree_filter::of(args) };
        let access = (AccessKind::MaybeWriteTree, &filter);
        walker.record_filtered_access(&Word::Literal(".".into()), access, state, Some(call.run));
    }
    let first = args.roles.iter().position(|role| *role == WordRole::Operand);
    let is_only_branch = words.len() == 1
        && first.is_some_and(|at| may_be_branch(call, at) && is_branch_name(&call.words[at]));
    let access = (AccessKind::MaybeWriteTree, &tree_filter::of(args));
    for word in words {
        walker.record_filtered_access(word, access, state, Some(call.run));
        // A file that does not exist now may exist when the command runs. A word without these may be a branch of git.
        if word.prefix().contains(['/', '.']) && !is_only_branch {
            outputs::record_output(walker, word, call.run, state);
        }
        arg_effects::record_pattern(walker, call, word, AccessKind::MaybeWriteTree, state);
    }
}

/// Whether an operand of a command like `git checkout` may be a branch: the first one, unless it follows `--`.
fn may_be_branch(call: &Invocation<'_>, at: usize) -> bool {
    let args = call.args;
    let takes_branch = args.spec.traits.restores_files
        && !args.arguments.iter().any(|it| it.role == ArgRole::Stat);
    let separator = tracked_files::double_dash_at(call.words, args);
    let first = args.roles.iter().position(|role| *role == WordRole::Operand);
    takes_branch && first == Some(at) && separator.is_none_or(|separator| at < separator)
}

/// Whether a word with a slash looks like a branch (`fix/x`) rather than a path (`fix/x.rs`).
fn is_branch_name(word: &Word) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_/".contains(c);
    word.literal().is_some_and(|text| {
        text.contains('/') && text.chars().all(is_plain) && text.split('/').all(|it| !it.is_empty())
    })
}

/// Records the files that git takes from a commit or from the index. They need not exist now. The first operand may be a
/// branch, unless it follows `--`.
fn record_restored_files(walker: &mut Walker<'_>, call: &Invocation<'_>, state: &ShellState) {
    let args = call.args;
    if !args.spec.traits.restores_files || args.is_dry_run() {
        return;
    }
    let operands = args.roles.iter().zip(call.words).enumerate();
    let operands = operands.filter(|(_, (role, _))| **role == WordRole::Operand);
    for (at, (_, word)) in operands {
        if may_be_branch(call, at) {
            continue;
        }
        let word = file_patterns::as_pathspec(word);
        let reach = word.literal().and_then(file_patterns::reach_of_pathspec);
        let file = reach.map_or(word, |reach| reach.base);
        outputs::record_output(walker, &file, call.run, state);
    }
}
