//! Files and folders that a program writes to because of a flag like `--output`, because it creates a project in them or
//! works in them, or that it reads as a whole, whether or not `programs.txt` lists it.
//!
//! Only rules that deny changing such a file count, so a flag that means something else to a program does no harm: its
//! value would have to be the path of a denied file.

use super::arg_role::ArgRole;
use super::args::{Argument, ParsedArgs};
use super::code_commands;
use super::commands::basename;
use super::names::{self, NameGroup};
use super::path_args::paths_in;
use super::programs;
use super::remote_names::RemotePath;
use super::state::ShellState;
use super::walk::Walker;
use super::{AccessKind, TreeFilter, Word, WordRole, downloads};

/// Records the values of flags that name an output, and the last operand of programs like `ffmpeg`.
pub(super) fn record(
    walker: &mut Walker<'_>,
    words: &[Word],
    args: Option<&ParsedArgs>,
    (run, state): (usize, &ShellState),
) {
    let writes_working_dir = is_in_group(NameGroup::WritesWorkingDir, words)
        && !args.is_some_and(ParsedArgs::is_dry_run);
    let Some(program) = words.first().map(|word| basename(word.shown())) else { return };
    record_read_folders(walker, words, run, state);
    let keeps_working_dir = keeps_working_dir(words);
    for (at, word) in words.iter().enumerate().skip(1) {
        let text = word.prefix();
        let moves = keeps_working_dir && is_work_dir_flag(program, text);
        if !text.starts_with('-') || moves {
            continue;
        }
        let next = words.get(at + 1).filter(|next| !next.prefix().starts_with('-'));
        if is_output_flag(program, text) {
            next.into_iter().for_each(|value| record_output(walker, value, run, state));
        } else if let Some(value) = attached_value(program, text).filter(|it| !it.is_empty()) {
            record_output(walker, &Word::Literal(value.to_string()), run, state);
        } else if attached_value(program, text).is_some() {
            next.into_iter().for_each(|value| record_output(walker, value, run, state));
        }
    }
    record_fixed_files(walker, words, args, (run, state));
    record_new_folders(walker, words, args, (run, state));
    if writes_working_dir {
        record_working_folders(walker, words, run, state);
    }
    if is_in_group(NameGroup::OutputLast, words) {
        record_last_operand(walker, words, run, state);
    }
}

/// Records that a program writes to its last operand. If that is a folder, files of other machines go into it under their
/// own names.
fn record_last_operand(walker: &mut Walker<'_>, words: &[Word], run: usize, state: &ShellState) {
    let mut operands: Vec<&Word> =
        words.iter().skip(1).filter(|word| !word.prefix().starts_with('-')).collect();
    let Some(to) = operands.pop() else { return };
    let may_upload = is_in_group(NameGroup::MayCopyToHosts, words);
    if is_on_other_machine(words, to) || may_upload && RemotePath::of(to).is_some() {
        walker.record_access(to, AccessKind::FlagOutput, state, Some(run));
    } else {
        record_output(walker, to, run, state);
    }
    let remotes: Vec<RemotePath<'_>> =
        operands.into_iter().filter_map(RemotePath::of_container).collect();
    // Uploads write nothing here.
    let Some(folder) = to.literal().filter(|_| RemotePath::of(to).is_none()) else {
        if let Some(name) = to.literal().and_then(downloads::checkout_name) {
            record_output(walker, &Word::Literal(name), run, state);
        }
        return;
    };
    let copies_content = is_in_group(NameGroup::CopiesContent, words)
        || words.iter().any(|word| word.literal() == Some("--recursive"));
    for remote in remotes {
        if let Some(name) = remote.name() {
            let inside = format!("{}/{name}", folder.trim_end_matches('/'));
            record_output(walker, &Word::Literal(inside), run, state);
        }
        if copies_content || remote.name().is_none() {
            walker.record_access(to, AccessKind::WriteTree, state, Some(run));
        }
    }
}

/// Whether an argument is a file of another machine or a container, for commands that copy files between machines.
pub(super) fn is_on_other_machine(words: &[Word], argument: &Word) -> bool {
    RemotePath::of_container(argument).is_some() && is_in_group(NameGroup::CopiesToHosts, words)
}

/// Returns the index of the last operand if files of other machines are copied to it: `.` in `docker cp web:/x .`. Only
/// their names are written there, and nothing in it is read.
pub(super) fn download_destination(words: &[Word]) -> Option<usize> {
    let copies = [NameGroup::CopiesToHosts, NameGroup::MayCopyToHosts];
    let is_operand = |word: &Word| !word.prefix().starts_with('-');
    let last = words.iter().rposition(is_operand)?;
    let is_remote = |word: &Word| is_operand(word) && RemotePath::of_container(word).is_some();
    let is_download = last > 0
        && words[last].literal().is_some()
        && !is_remote(&words[last])
        && words[1..last].iter().any(is_remote)
        && copies.into_iter().any(|group| is_in_group(group, words));
    is_download.then_some(last)
}

/// Records the folders that commands like `cargo new` or `npm create` may create something in.
fn record_new_folders(
    walker: &mut Walker<'_>,
    words: &[Word],
    args: Option<&ParsedArgs>,
    (run, state): (usize, &ShellState),
) {
    let Some(count) = command_length(NameGroup::OutputOperands, words) else { return };
    let is_flag = |word: &&Word| word.prefix().starts_with('-');
    // For a listed program, it is known which words are values of flags. They are names of branches and the like.
    let is_value = |at: usize| args.is_some_and(|it| it.roles.get(at) == Some(&WordRole::Value));
    // If the table says which operand is written, one with the role `text` is not, like the branch in `git worktree add`.
    let operand_role = |role: ArgRole, at: Option<usize>| {
        let is_it = |it: &Argument| {
            it.flag.is_none() && it.role == role && at.is_none_or(|at| it.word == at)
        };
        args.is_some_and(|args| args.arguments.iter().any(is_it))
    };
    let is_text =
        |at: usize| operand_role(ArgRole::Write, None) && operand_role(ArgRole::Text, Some(at));
    let operands = words.iter().enumerate().filter(|(_, word)| !is_flag(word)).skip(count);
    for (_, word) in operands.filter(|(at, _)| !is_value(*at) && !is_text(*at)) {
        record_output(walker, word, run, state);
    }
    let values = words.iter().filter(is_flag).filter_map(|word| word.literal()?.split_once('='));
    for (_, value) in values {
        record_output(walker, &Word::Literal(value.to_string()), run, state);
    }
}

/// Records the operands of a command with a flag like `--fix`, which makes it change the files that it is given. A word
/// after another flag may be the value of that flag.
fn record_fixed_files(
    walker: &mut Walker<'_>,
    words: &[Word],
    args: Option<&ParsedArgs>,
    (run, state): (usize, &ShellState),
) {
    let is_fix = |word: &Word| names::contains(NameGroup::InPlaceFlag, word.shown());
    if !words.iter().skip(1).any(is_fix) || args.is_some_and(ParsedArgs::is_dry_run) {
        return;
    }
    let is_flag = |word: &Word| word.prefix().starts_with('-');
    for pair in words.windows(2) {
        let may_be_value = is_flag(&pair[0]) && !is_fix(&pair[0]) && pair[0].shown() != "--";
        if !is_flag(&pair[1]) && !may_be_value {
            record_output(walker, &pair[1], run, state);
        }
    }
}

/// Records the folders in which a command like `npm install` works: the working directory, and those that flags name.
fn record_working_folders(walker: &mut Walker<'_>, words: &[Word], run: usize, state: &ShellState) {
    record_output(walker, &Word::Literal(".".into()), run, state);
    let program = words.first().map_or("", |word| basename(word.shown()));
    let is_listed = |group: NameGroup, flag: &str| {
        names::contains(group, flag) || names::contains(group, &format!("{program}:{flag}"))
    };
    for (at, word) in words.iter().enumerate().skip(1) {
        let text = word.prefix();
        let (flag, attached) = match (text.split_once('='), text.split_at_checked(2)) {
            _ if !text.starts_with('-') => continue,
            (Some((flag, value)), _) => (flag, Some(value)),
            (None, Some((flag, value))) if flag != "--" && is_listed(NameGroup::BaseFlag, flag) => {
                (flag, Some(value).filter(|it| !it.is_empty()))
            }
            (None, _) => (text, None),
        };
        let value = match attached {
            Some(value) => Some(Word::Literal(value.to_string())),
            None => words.get(at + 1).cloned(),
        };
        let Some(value) = value else { continue };
        if is_listed(NameGroup::BaseFlag, flag) {
            record_output(walker, &value, run, state);
        } else if is_listed(NameGroup::BaseFileFlag, flag) {
            let folder = value.prefix().rsplit_once('/').map_or(".", |(folder, _)| folder);
            record_output(walker, &Word::Literal(folder.to_string()), run, state);
        }
    }
}

/// Records the folders that commands like `docker build` or `npm pack` may read with everything below them.
fn record_read_folders(walker: &mut Walker<'_>, words: &[Word], run: usize, state: &ShellState) {
    let reads_working_dir = is_in_group(NameGroup::ReadsWorkingDir, words);
    let reads_folders = is_in_group(NameGroup::ReadsFolders, words);
    let destination = download_destination(words);
    let arguments = words.iter().enumerate().skip(1).filter(|_| reads_folders);
    let arguments = arguments.filter(|(at, _)| Some(*at) != destination).map(|(_, word)| word);
    let arguments =
        arguments.filter(|it| !is_on_other_machine(words, it)).filter_map(Word::literal);
    let paths = arguments.flat_map(paths_in).chain(reads_working_dir.then_some("."));
    for path in paths {
        let access = (AccessKind::MaybeReadTree, &TreeFilter::default());
        walker.record_filtered_access(&Word::Literal(path.into()), access, state, Some(run));
    }
}

/// Whether a group contains a program, or one with its first arguments: `docker:build`.
fn is_in_group(group: NameGroup, words: &[Word]) -> bool {
    command_length(group, words).is_some()
}

/// Returns how many words, without flags, the longest command has that is in a group: 2 for `docker:build`. Flags before
/// and between the words do not matter, and a flag may be the last word: `cargo:clippy:--fix`.
fn command_length(group: NameGroup, words: &[Word]) -> Option<usize> {
    const MAX_WORDS: usize = 4;
    const MAX_FLAGS: usize = 32;
    let (program, rest) = words.split_first()?;
    let base = basename(program.shown());
    let base = programs::table_name(base).unwrap_or(base);
    if !names::mentions_program(group, base) {
        return None;
    }
    let is_flag = |word: &&str| word.starts_with('-');
    let rest: Vec<&str> = rest.iter().map(Word::shown).collect();
    let flags = rest.iter().filter(|it| is_flag(it)).map(|it| it.split('=').next().unwrap_or(it));
    let flags: Vec<&str> = flags.take(MAX_FLAGS).collect();
    let operands: Vec<&str> = rest.iter().copied().filter(|it| !is_flag(it)).collect();
    // The word after a flag may be its value.
    let follows_flag = |at: usize| at > 0 && is_flag(&rest[at - 1]) && !rest[at - 1].contains('=');
    let values_left_out = (0..rest.len()).filter(|at| !is_flag(&rest[*at]) && !follows_flag(*at));
    let values_left_out = values_left_out.map(|at| rest[at]).collect();
    let mut longest = None;
    for words in [rest.clone(), operands, values_left_out] {
        let mut command = base.to_string();
        for count in 1..=MAX_WORDS.min(words.len() + 1) {
            let has_flag =
                || flags.iter().any(|flag| names::contains(group, &format!("{command}:{flag}")));
            if names::contains(group, &command) || count > 1 && has_flag() {
                let operands = words.iter().take(count - 1).filter(|it| !is_flag(it)).count();
                longest = longest.max(Some(operands + 1));
            }
            if let Some(word) = words.get(count - 1) {
                command = format!("{command}:{word}");
            }
        }
    }
    longest
}

/// Records a file or folder that is written to. A value that begins with `|` is a command instead.
pub(super) fn record_output(walker: &mut Walker<'_>, value: &Word, run: usize, state: &ShellState) {
    if code_commands::record_piped(walker, value, run, state) {
        return;
    }
    walker.record_access(value, AccessKind::FlagOutput, state, Some(run));
    // The value may have a kind before the path, as in `html:out`.
    for path in value.literal().map(paths_in).unwrap_or_default() {
        let path = Word::Literal(path.to_string());
        walker.record_access(&path, AccessKind::FlagOutput, state, Some(run));
    }
}

/// Whether a command changes nothing in the folder in which it works, such as `npm test`.
fn keeps_working_dir(words: &[Word]) -> bool {
    let changes = [NameGroup::WritesWorkingDir, NameGroup::ChangesWorkingDir];
    let keeps = is_in_group(NameGroup::KeepsWorkingDir, words);
    keeps && !changes.into_iter().any(|group| is_in_group(group, words))
}

/// Whether a flag, perhaps with a value in the same word, names the folder in which a program works.
fn is_work_dir_flag(program: &str, text: &str) -> bool {
    let flag = text.split_once('=').map_or(text, |(flag, _)| flag);
    names::contains(NameGroup::WorkDirFlag, &format!("{program}:{flag}"))
}

/// Whether a flag names an output. A long flag may have one dash instead of two, and some programs accept the beginning
/// of its name.
fn is_output_flag(program: &str, flag: &str) -> bool {
    let with_two_dashes = flag.strip_prefix('-').filter(|it| it.len() > 1 && !it.starts_with('-'));
    names::contains(NameGroup::OutputFlag, flag)
        || names::contains(NameGroup::WorkDirFlag, &format!("{program}:{flag}"))
        || with_two_dashes
            .is_some_and(|it| names::contains(NameGroup::OutputFlag, &format!("--{it}")))
        || names::contains(NameGroup::OutputFlagOf, &format!("{program}:{flag}"))
        || names::may_abbreviate_output(program, flag)
}

/// Returns the value in the same word as its flag: `out` in `--output=out`, `-oout` and `-xoout`. If it is empty, it is
/// the next word.
fn attached_value<'t>(program: &str, text: &'t str) -> Option<&'t str> {
    let is_output = |flag: &str| is_output_flag(program, flag);
    if let Some((flag, value)) = text.split_once('=')
        && is_output(flag)
    {
        return Some(value);
    }
    let letters = text.char_indices().skip(1).take_while(|(_, c)| c.is_ascii_alphabetic());
    let is_cluster = !text.starts_with("--");
    letters
        .filter(|_| is_cluster)
        .find(|(_, letter)| is_output(&format!("-{letter}")))
        .map(|(at, _)| &text[at + 1..])
}
