//! Records what a program does with each of its arguments, according to the argument's role.

use super::arg_role::ArgRole;
use super::args::Argument;
use super::commands::{Invocation, basename};
use super::grammar::is_name;
use super::names::{self, NameGroup};
use super::state::{ShellState, join_path, union_dirs};
use super::walk::{Walker, unknown};
use super::{
    AccessKind, DoubtKind, DynamicKind, LinkHandling, RiskKind, TreeFilter, TreeListing, Word,
    WordRole, arg_programs, awk, builtins, code_commands, file_patterns, jq, outputs, path_args,
    process_env, programs, safe_values, test_command, tracked_files, transfer, tree_filter,
};

/// Selects all files below a directory except symbolic links: a move or a clone does not follow them.
const ALL_EXCEPT_LINKS: TreeFilter = TreeFilter {
    names: Vec::new(),
    skips_hidden: false,
    skips_ignored: false,
    links: LinkHandling::Skipped,
    excluded_files: Vec::new(),
    excluded_dirs: Vec::new(),
    paths: Vec::new(),
    splits_names: false,
    listing: TreeListing::Directory,
};

/// A test that a harmless value passes.
type ValueTest = fn(&Word) -> bool;

/// For some roles: the test that a harmless value passes, and the kind of risk if a value fails the test. The first
/// failed test counts.
const CHECKS: &[(ArgRole, ValueTest, RiskKind)] = &[
    (ArgRole::Code, |_| false, RiskKind::Code),
    (ArgRole::Awk, |value| value.literal().is_some_and(awk::is_harmless), RiskKind::Code),
    (ArgRole::Jq, |value| value.literal().is_some_and(jq::is_harmless), RiskKind::Code),
    (ArgRole::Sql, |value| value.literal().is_some_and(safe_values::is_safe_query), RiskKind::Code),
    (ArgRole::Format, |value| value.prefix().starts_with('+'), RiskKind::Unlisted),
    (ArgRole::Url, safe_values::is_safe_url, RiskKind::Unlisted),
    (ArgRole::Data, safe_values::is_safe_data, RiskKind::Unlisted),
    (ArgRole::WriteOut, safe_values::is_literal_text, RiskKind::Unlisted),
    (ArgRole::Keystrokes, safe_values::is_printable, RiskKind::Unlisted),
    (ArgRole::Count, safe_values::is_count, RiskKind::Unlisted),
    (ArgRole::Encoded, safe_values::is_encoded_text, RiskKind::Unlisted),
    (ArgRole::Cookie, safe_values::is_cookie_text, RiskKind::Unlisted),
    (ArgRole::Field, safe_values::is_plain_field, RiskKind::Unlisted),
    (ArgRole::BareName, safe_values::is_bare_name, RiskKind::Runs),
    (ArgRole::Name, safe_values::is_name_without_slash, RiskKind::Runs),
    (ArgRole::SortKey, safe_values::is_safe_sort_key, RiskKind::Runs),
    (ArgRole::Remote, safe_values::is_safe_remote, RiskKind::Runs),
    (ArgRole::RemoteName, safe_values::is_remote_name, RiskKind::Runs),
    (ArgRole::Refspec, safe_values::is_nondestructive_refspec, RiskKind::Destroys),
    (ArgRole::Refspec, safe_values::is_branch_refspec, RiskKind::Runs),
    (ArgRole::MakeGoal, safe_values::is_make_goal, RiskKind::Runs),
];

/// Like [`CHECKS`], but if a value fails the test, a rule must spell out the flag instead of the value.
const FLAG_CHECKS: &[(ArgRole, ValueTest)] = &[
    (ArgRole::PluginOff, |value| value.prefix().starts_with("no:")),
    (ArgRole::GitSetting, |value| value.literal().is_some_and(safe_values::is_harmless_setting)),
    (ArgRole::LinkerFlags, |value| {
        value.literal().is_some_and(safe_values::are_harmless_linker_flags)
    }),
    (ArgRole::SshOption, |value| value.literal().is_some_and(safe_values::is_harmless_option)),
];

/// Records the effects of one argument.
pub(super) fn apply(
    walker: &mut Walker<'_>,
    call: &Invocation<'_>,
    argument: &Argument,
    state: &mut ShellState,
) {
    let value = &argument.value;
    let run = Some(call.run);
    if let Word::Glob(_) = value {
        walker.record_access(value, AccessKind::Expand, state, run);
    }
    let failed = CHECKS.iter().find(|(role, test, _)| *role == argument.role && !test(value));
    match failed {
        Some((_, _, RiskKind::Code)) => add_code_risk(walker, call, argument),
        Some((_, _, kind)) => add_argument_risk(walker, call, argument, *kind),
        None => {}
    }
    if FLAG_CHECKS.iter().any(|(role, test)| *role == argument.role && !test(value)) {
        add_flag_risk(walker, call, argument);
    }
    apply_role(walker, call, argument, state);
}

/// Records what the program does with an argument in this role.
fn apply_role(
    walker: &mut Walker<'_>,
    call: &Invocation<'_>,
    argument: &Argument,
    state: &mut ShellState,
) {
    let value = &argument.value;
    let run = Some(call.run);
    match argument.role {
        ArgRole::Stat => walker.record_access(value, AccessKind::Stat, state, run),
        ArgRole::Remote => record_remote(walker, call, value, state),
        ArgRole::List => record_list(walker, call, argument, state),
        ArgRole::Read => record_read(walker, call, argument, state),
        ArgRole::Revision => record_revision(walker, call, argument, state),
        ArgRole::Write => record_write(walker, call, argument, state),
        ArgRole::Consume => record_consumed_file(walker, call, value, state),
        ArgRole::Pattern => record_selected_files(walker, call, value, state),
        ArgRole::NameOnly => record_name(walker, call, argument, state),
        // A directory of this name may be a repository, whose hooks run.
        ArgRole::RemoteName => walker.record_access(value, AccessKind::NameOnly, state, run),
        ArgRole::Enter => {
            walker.record_access(value, AccessKind::Enter, state, run);
            add_dir(value, state);
        }
        ArgRole::Variable => {
            walker.remember_read_variable(call, argument);
            builtins::assign_unknown(walker, value, state);
        }
        ArgRole::Script => record_script(walker, (argument.word, value), state, call.run),
        ArgRole::Argument => record_passed(walker, call, argument, state),
        ArgRole::PsFlags => process_env::record_flags(walker, call, argument, state),
        ArgRole::PsColumns => process_env::record_columns(walker, call, argument, state),
        ArgRole::FilterRule => path_args::record_filter_rule(walker, value, state, call.run),
        ArgRole::Sed => arg_programs::record_sed_program(walker, call, argument, state),
        ArgRole::PrintfFormat => arg_programs::record_printf_format(walker, call, argument, state),
        ArgRole::Dd => record_dd_operand(walker, call, argument, state),
        ArgRole::GitSetting => walk_setting(walker, call, value, state),
        ArgRole::WriteOut => record_write_out(walker, call, value, state),
        ArgRole::GitSettingValue => record_setting(walker, call, argument, state),
        ArgRole::Test => {
            let words = &call.words[argument.word..];
            for word in words.iter().filter(|it| matches!(it, Word::Glob(_))) {
                walker.record_access(word, AccessKind::Expand, state, run);
            }
            test_command::record_test(walker, words, state, run);
        }
        // These have no effects beyond the risks of `CHECKS`, or the caller handles them as inner commands.
        ArgRole::Text
        | ArgRole::Mode
        | ArgRole::Module
        | ArgRole::Command
        | ArgRole::Shell
        | ArgRole::Split
        | ArgRole::Awk
        | ArgRole::Jq
        | ArgRole::Sql
        | ArgRole::Code
        | ArgRole::Format
        | ArgRole::Url
        | ArgRole::Data
        | ArgRole::Encoded
        | ArgRole::Cookie
        | ArgRole::Field
        | ArgRole::PluginOff
        | ArgRole::BareName
        | ArgRole::Name
        | ArgRole::SortKey
        | ArgRole::Refspec
        | ArgRole::SshOption
        | ArgRole::LinkerFlags
        | ArgRole::MakeGoal
        | ArgRole::Keystrokes
        | ArgRole::Count => {}
    }
}

/// Records a file that is read and then removed.
fn record_consumed_file(
    walker: &mut Walker<'_>,
    call: &Invocation<'_>,
    value: &Word,
    state: &ShellState,
) {
    let run = Some(call.run);
    walker.record_filtered_access(value, (AccessKind::ReadTree, &ALL_EXCEPT_LINKS), state, run);
    walker.record_access(value, AccessKind::WriteTree, state, run);
    if let Some(path) = path_args::path_of_file_uri(value) {
        for kind in [AccessKind::Read, AccessKind::Write] {
            walker.record_access(&path, kind, state, run);
        }
    }
}

/// Records the files that a name or glob selects.
fn record_selected_files(
    walker: &mut Walker<'_>,
    call: &Invocation<'_>,
    value: &Word,
    state: &ShellState,
) {
    for file in file_patterns::files_selected_by(value.shown()) {
        walker.record_access(&file, AccessKind::Read, state, Some(call.run));
    }
}

/// Marks the word that holds an argument as risky.
pub(super) fn add_argument_risk(
    walker: &mut Walker<'_>,
    call: &Invocation<'_>,
    argument: &Argument,
    kind: RiskKind,
) {
    walker.add_risk(call.run, argument.word, call.words[argument.word].shown(), kind);
}

/// Marks code in another language as risky. A rule must spell out the flag before it, if there is one.
fn add_code_risk(walker: &mut Walker<'_>, call: &Invocation<'_>, argument: &Argument) {
    let Some(flag) = &argument.flag else {
        return add_argument_risk(walker, call, argument, RiskKind::Code);
    };
    // The flag may be the last of a cluster.
    let previous = argument.word.checked_sub(1).map_or("", |at| call.words[at].shown());
    let is_cluster = previous.starts_with('-') && previous.ends_with(flag.trim_start_matches('-'));
    let spelled = if is_cluster { previous } else { flag };
    walker.add_risk(call.run, argument.word, spelled, RiskKind::Code);
}

/// Marks the flag that a value belongs to as risky. Both may be in the same word.
fn add_flag_risk(walker: &mut Walker<'_>, call: &Invocation<'_>, argument: &Argument) {
    let shown = call.words[argument.word].shown();
    let flag = if shown.starts_with('-') { argument.word } else { argument.word.saturating_sub(1) };
    let spelled = argument.flag.as_deref().unwrap_or(shown);
    walker.add_risk(call.run, flag, spelled, RiskKind::Runs);
}

/// Analyzes the value of a setting of git that is a command, or an alias for one: `core.pager=less`, `alias.x=!rm y`.
fn walk_setting(walker: &mut Walker<'_>, call: &Invocation<'_>, value: &Word, state: &ShellState) {
    let Some((key, value)) = value.literal().and_then(|it| it.split_once('=')) else { return };
    let key = key.to_ascii_lowercase();
    let (section, name) = (key.split('.').next(), key.rsplit('.').next().unwrap_or(""));
    let is_listed = |name: &str| names::contains(NameGroup::GitCommandSetting, name);
    let text = match value.strip_prefix('!') {
        Some(command) => command.to_string(),
        None if section == Some("alias") => format!("{} {value}", call.words[0].shown()),
        None if is_listed(name) || section == Some("pager") => value.to_string(),
        None => return,
    };
    if !safe_values::is_harmless_setting(&format!("{key}={value}")) {
        walker.walk_inner_text(call.run, &text, &mut state.clone(), call.stdin);
    }
}

/// Records that `git config KEY VALUE` changes a setting. Most settings may name a program that a later command starts.
fn record_setting(
    walker: &mut Walker<'_>,
    call: &Invocation<'_>,
    argument: &Argument,
    state: &ShellState,
) {
    let names_file = |it: &&Argument| matches!(it.flag.as_deref(), Some("-f" | "--file"));
    for file in call.args.arguments.iter().filter(names_file) {
        walker.record_access(&file.value, AccessKind::Write, state, Some(call.run));
    }
    let key = call.args.arguments.iter().find(|it| it.flag.is_none());
    let key = key.and_then(|it| it.value.literal());
    let is_harmless =
        argument.value.literal().zip(key).is_some_and(|(value, key)| {
            safe_values::is_harmless_setting(&format!("{key}={value}"))
        });
    let kind = if is_harmless { RiskKind::Writes } else { RiskKind::Runs };
    add_argument_risk(walker, call, argument, kind);
}

/// Records an operand of a program that lists directories, like `ls`.
fn record_list(
    walker: &mut Walker<'_>,
    call: &Invocation<'_>,
    argument: &Argument,
    state: &mut ShellState,
) {
    let no_list = call.args.has_any(&call.args.spec.no_list);
    let is_listed = !no_list && !call.args.skips_dirs_behind_links();
    // A number, a commit or a result of `find` may be the name of a symbolic link. Listing it would list the directory
    // behind the link, which is unknown.
    let may_be_link = |kind| match kind {
        DynamicKind::Number
        | DynamicKind::Commit
        | DynamicKind::FindResult { is_not_a_link: false } => true,
        DynamicKind::Anything
        | DynamicKind::Revision
        | DynamicKind::Pipe
        | DynamicKind::Listed(_)
        | DynamicKind::FindResult { is_not_a_link: true } => false,
    };
    let value = &argument.value;
    let is_link = matches!(value, Word::Dynamic(dynamic) if may_be_link(dynamic.kind));
    let shown = call.words[argument.word].shown();
    let value = if is_listed && is_link { &unknown(shown) } else { value };
    // The shell has already accessed the names that a glob expands to.
    if !(no_list && matches!(value, Word::Glob(_))) {
        walker.record_access(value, AccessKind::Stat, state, Some(call.run));
    }
}

/// Records an argument that is passed on to another program. It may be a path.
fn record_passed(
    walker: &mut Walker<'_>,
    call: &Invocation<'_>,
    argument: &Argument,
    state: &mut ShellState,
) {
    let value = &argument.value;
    if !outputs::is_on_other_machine(call.words, value) {
        path_args::record_paths(walker, value, state, call.run);
    }
    let is_destination = outputs::download_destination(call.words) == Some(argument.word);
    if call.args.reads_tree() && !is_destination {
        let filter = tree_filter::of(call.args);
        walker.record_filtered_access(
            value,
            (AccessKind::ReadTree, &filter),
            state,
            Some(call.run),
        );
    }
}

fn record_write(
    walker: &mut Walker<'_>,
    call: &Invocation<'_>,
    argument: &Argument,
    state: &mut ShellState,
) {
    let is_flag = argument.flag.is_some();
    if is_flag && code_commands::record_piped(walker, &argument.value, call.run, state) {
        return;
    }
    let is_dry_run = call.args.is_dry_run();
    let has_tree = argument.flag.is_none() || call.args.spec.traits.write_tree;
    let kind = match (is_dry_run, call.args.writes_tree() && has_tree) {
        (true, _) => AccessKind::Stat,
        (false, true) => AccessKind::WriteTree,
        (false, false) => AccessKind::Write,
    };
    walker.record_access(&argument.value, kind, state, Some(call.run));
    if argument.flag.is_some() && !is_dry_run {
        // If a flag names a folder, files in it are written.
        outputs::record_output(walker, &argument.value, call.run, state);
    }
    if kind == AccessKind::WriteTree && call.args.spec.traits.pathspecs {
        record_pattern(walker, call, &argument.value, kind, state);
    }
}

fn record_read(
    walker: &mut Walker<'_>,
    call: &Invocation<'_>,
    argument: &Argument,
    state: &mut ShellState,
) {
    let spec = call.args.spec;
    let kind = match argument.flag {
        Some(_) if spec.traits.read_tree => AccessKind::ReadTree,
        Some(_) => AccessKind::Read,
        None if call.args.has_any(&spec.only_lists) => AccessKind::Stat,
        None if call.args.reads_tree() => AccessKind::ReadTree,
        None => AccessKind::Read,
    };
    let filter = match kind {
        AccessKind::ReadTree => tree_filter::of(call.args),
        _ => TreeFilter::default(),
    };
    walker.record_filtered_access(&argument.value, (kind, &filter), state, Some(call.run));
    if argument.flag.is_some() && call.args.has_any(&spec.creates_with) {
        walker.record_access(&argument.value, AccessKind::Write, state, Some(call.run));
    }
    if kind == AccessKind::ReadTree && spec.traits.pathspecs {
        record_pattern(walker, call, &argument.value, kind, state);
    }
    if argument.flag.is_none() && call.args.has_any(&spec.in_place) {
        let has_tree = call.args.writes_tree() || call.args.reads_tree();
        let kind = if has_tree { AccessKind::WriteTree } else { AccessKind::Write };
        walker.record_access(&argument.value, kind, state, Some(call.run));
        for backup in transfer::backups(call.args, &argument.value) {
            walker.record_access(&backup, AccessKind::Write, state, Some(call.run));
        }
    }
}

fn record_revision(
    walker: &mut Walker<'_>,
    call: &Invocation<'_>,
    argument: &Argument,
    state: &mut ShellState,
) {
    let value = &match call.args.spec.traits.pathspecs {
        true => file_patterns::as_pathspec(&argument.value),
        false => argument.value.clone(),
    };
    let is_revision = tracked_files::is_revision_word(value);
    if call.args.spec.traits.read_tree && !is_revision {
        let access = (AccessKind::ReadTree, &tree_filter::of(call.args));
        walker.record_filtered_access(value, access, state, Some(call.run));
    }
    if call.args.has_any(&call.args.spec.read_tree) {
        let filter = tree_filter::of(call.args);
        let access = (AccessKind::ReadTree, &filter);
        return walker.record_filtered_access(value, access, state, Some(call.run));
    }
    // A pathspec that only excludes files does not make the command read more files.
    let is_exclusion = value.literal().is_some_and(file_patterns::is_exclusion);
    if call.args.spec.traits.pathspecs && !is_exclusion {
        record_pattern(walker, call, value, AccessKind::ReadTree, state);
    }
    // `HEAD:src` may be a folder.
    let reads_folders = call.args.spec.traits.read_tree;
    let kind = if reads_folders { AccessKind::ReadTree } else { AccessKind::Read };
    for file in value.literal().map_or_else(Vec::new, file_patterns::files_in_git_argument) {
        walker.record_access(&file, kind, state, Some(call.run));
    }
    if !matches!(value, Word::Dynamic(_)) || !is_revision {
        // A file that no longer exists may still be in the history.
        let is_path = call.args.spec.traits.pathspecs && tracked_files::is_path(call, argument);
        let kind = if is_path && !is_exclusion { AccessKind::Read } else { AccessKind::MaybeRead };
        walker.record_access(value, kind, state, Some(call.run));
    }
}

/// Records the name of a branch, tag or similar object.
fn record_name(
    walker: &mut Walker<'_>,
    call: &Invocation<'_>,
    argument: &Argument,
    state: &mut ShellState,
) {
    let is_pattern = |it: &str| it.contains(['*', '?', '[', '\\', ':', ' ']) || it.starts_with('^');
    if argument.value.literal().is_some_and(is_pattern) {
        // This cannot be the name of a commit, but it can be a pattern for files.
        let subcommand = call.args.roles.iter().rposition(|role| *role == WordRole::Subcommand);
        let risky_word = subcommand.unwrap_or(argument.word);
        walker.add_risk(call.run, risky_word, call.words[risky_word].shown(), RiskKind::Destroys);
    }
    walker.record_access(&argument.value, AccessKind::NameOnly, state, Some(call.run));
}

/// Adds the directory of an argument like `env -C` to the directories that later file names may be relative to.
fn add_dir(value: &Word, state: &mut ShellState) {
    state.dirs = match (value.literal(), &state.dirs) {
        (Some(path), Some(dirs)) => {
            let inner = dirs.iter().map(|dir| join_path(dir, path)).collect();
            union_dirs(&state.dirs, &Some(inner))
        }
        _ => None,
    };
}

/// Records the files that a format of curl names: `%output{file}`, or `%output{>>file}` to append.
fn record_write_out(
    walker: &mut Walker<'_>,
    call: &Invocation<'_>,
    value: &Word,
    state: &ShellState,
) {
    for text in value.shown().split("%output{").skip(1) {
        let file = match (text.split_once('}'), value) {
            (Some((file, _)), Word::Literal(_)) => {
                Word::Literal(file.strip_prefix(">>").unwrap_or(file).to_string())
            }
            _ => unknown(value.shown()),
        };
        walker.record_access(&file, AccessKind::Write, state, Some(call.run));
    }
}

fn record_dd_operand(
    walker: &mut Walker<'_>,
    call: &Invocation<'_>,
    argument: &Argument,
    state: &mut ShellState,
) {
    let (kind, path) = match argument.value.literal().and_then(|text| text.split_once('=')) {
        Some(("if", path)) => (AccessKind::Read, path),
        Some(("of", path)) => (AccessKind::Write, path),
        Some((name, _)) if is_name(name) => return,
        _ => return add_argument_risk(walker, call, argument, RiskKind::Unlisted),
    };
    walker.record_access(&Word::Literal(path.to_string()), kind, state, Some(call.run));
}

/// Records the files that a quoted pattern like `'src/**/*.js'` selects. The program expands it, not the shell.
pub(super) fn record_pattern(
    walker: &mut Walker<'_>,
    call: &Invocation<'_>,
    word: &Word,
    kind: AccessKind,
    state: &ShellState,
) {
    let has_pathspecs = call.args.spec.traits.pathspecs;
    let word = if has_pathspecs { &file_patterns::as_pathspec(word) } else { word };
    let Some(text) = word.literal() else { return };
    let in_any_case = has_pathspecs && call.args.has_any(&[file_patterns::ANY_CASE_FLAG]);
    let reach = match has_pathspecs {
        true if in_any_case && !text.starts_with(':') => {
            file_patterns::reach_of_pathspec(&format!(":(icase){text}"))
        }
        true => file_patterns::reach_of_pathspec(text),
        false => file_patterns::reach_of_pattern(text),
    };
    let Some(reach) = reach else { return };
    let mut filter = tree_filter::of(call.args);
    if has_pathspecs {
        filter.links = LinkHandling::Skipped;
    }
    if filter.names.is_empty() {
        filter.names = reach.names;
    }
    walker.record_filtered_access(&reach.base, (kind, &filter), state, Some(call.run));
    if has_pathspecs && text.starts_with(':') {
        // The path may start at the top of the repository.
        let top = join_path(&walker.context.cwd, reach.base.shown());
        let top = match reach.base {
            Word::Glob(_) => Word::Glob(top),
            Word::Literal(_) | Word::Dynamic(_) => Word::Literal(top),
        };
        walker.record_filtered_access(&top, (kind, &filter), state, Some(call.run));
    }
}

/// Records a git repository, given as the name of a remote, an address or a path. Cloning a local one reads its files.
fn record_remote(
    walker: &mut Walker<'_>,
    call: &Invocation<'_>,
    value: &Word,
    state: &mut ShellState,
) {
    walker.record_access(value, AccessKind::Stat, state, Some(call.run));
    if !call.args.spec.traits.clones {
        return;
    }
    let filter = TreeFilter { skips_ignored: true, ..ALL_EXCEPT_LINKS };
    let path = value.literal().map(|it| it.strip_prefix("file://").unwrap_or(it));
    if let Some(path) = path.filter(|it| !it.contains(':')) {
        let path = Word::Literal(path.to_string());
        for filter in [filter, tracked_files::filter(TreeListing::Tracked)] {
            walker.record_filtered_access(
                &path,
                (AccessKind::ReadTree, &filter),
                state,
                Some(call.run),
            );
        }
    }
}

/// Records that a program runs its standard input as code.
pub(super) fn record_code_from_input(walker: &mut Walker<'_>, run: usize) {
    let name = walker.script.runs[run].words.first().map_or("", Word::shown).to_string();
    walker.add_doubt(DoubtKind::ExternalCode, &name);
}

/// Records a file that is run as code. `at` is the index of its word.
pub(super) fn record_script(
    walker: &mut Walker<'_>,
    (at, value): (usize, &Word),
    state: &ShellState,
    run: usize,
) {
    if may_be_input_or_address(value) {
        record_code_from_input(walker, run);
    }
    walker.record_code_path(run, at, value, state);
    walker.record_access(value, AccessKind::Read, state, Some(run));
    mention_installed_program(walker, (at, value), run);
}

/// Lets rules about a program apply to an interpreter that runs its file: `node /usr/bin/npm publish`.
fn mention_installed_program(walker: &mut Walker<'_>, (at, value): (usize, &Word), run: usize) {
    let Some(run) = walker.script.runs.get_mut(run) else { return };
    let name = value.literal().filter(|path| path.contains('/')).map(basename);
    let Some(name) = name.filter(|name| programs::table_name(name) == Some(name)) else { return };
    let arguments = run.words.get(at + 1..).unwrap_or_default();
    let arguments = arguments.iter().map(|word| word.shown().to_string());
    run.unparsed_words.extend([name.to_string()].into_iter().chain(arguments));
}

/// Whether a word that names code may be standard input or an address rather than a file.
pub(super) fn may_be_input_or_address(word: &Word) -> bool {
    const STREAMS: &[&str] = &["/dev/", "/proc/", "http:", "https:", "data:", "blob:"];
    match word {
        Word::Literal(text) => {
            let text = text.to_ascii_lowercase();
            text == "-" || STREAMS.iter().any(|start| text.starts_with(start))
        }
        Word::Glob(_) | Word::Dynamic(_) => true,
    }
}
