//! Code that a script writes into a file and runs: as good as code on the command line.

use std::collections::HashSet;

use super::names::{self, NameGroup};
use super::state::enter_path;
use super::{Doubt, DoubtKind, FileTarget, Run, Script, Word, WordRole, path_args, programs};

/// A doubt for each file that is run under a name which the script gives to text of its own.
pub(super) fn doubts(script: &Script) -> Vec<Doubt> {
    let doubt = |shown: &str| Doubt { kind: DoubtKind::Input, shown: shown.into() };
    let mut doubts: Vec<Doubt> = repository(script).map(doubt).collect();
    let by_text = script.written_paths().filter(|(path, run)| is_text(script, path, *run));
    let mut written: HashSet<&str> = by_text.map(|(path, _)| file_name(path)).collect();
    carried(script, &mut written);
    let paths = script.written_paths().filter_map(|(path, _)| path.rsplit_once('/'));
    let entered = paths.filter(|(_, it)| names::is(NameGroup::Entry, it) && written.contains(it));
    let entered: Vec<&str> = entered.flat_map(|(folder, _)| [file_name(folder), "."]).collect();
    written.extend(entered);
    if written.is_empty() {
        return doubts;
    }
    let stems: HashSet<&str> = written.iter().map(|name| stem(name)).collect();
    let is_written = |word: &Word| match word.literal() {
        Some(text) => written.contains(file_name(text)) || stems.contains(file_name(text)),
        // It may be any of them.
        None => true,
    };
    let is_module = |word: &Word| match word.literal() {
        Some(text) => text.split('.').any(|name| stems.contains(name)),
        None => true,
    };
    let files = script.runs.iter().flat_map(files).filter(|word| is_written(word));
    let modules = script.runs.iter().flat_map(modules).filter(|word| is_module(word));
    doubts.extend(files.chain(modules).map(|word| doubt(word.shown())));
    doubts
}

/// Files that make a repository of a folder: git, which is run as well, would do what they say.
fn repository(script: &Script) -> impl Iterator<Item = &str> {
    let obeys = |run: &Run| {
        run.words.first().is_some_and(|it| programs::traits(it.shown()).obeys_local_config)
    };
    let is_obeyed = script.runs.iter().any(obeys);
    let made = script.written_paths().map(|(path, _)| path);
    made.filter(move |path| is_obeyed && names::is(NameGroup::Repository, file_name(path)))
}

/// Whether a file takes what the script itself says: by a redirect, or through a program that passes it on.
fn is_text(script: &Script, path: &str, run: Option<usize>) -> bool {
    let by_text = run.is_none_or(|run| {
        let program = script.runs.get(run).and_then(|run| run.words.first());
        program.is_some_and(|it| programs::traits(it.shown()).copies_input)
    });
    by_text && !is_stream(path)
}

/// Whether what comes in, or goes out, may be meant and no file, however the path is written.
fn is_stream(path: &str) -> bool {
    let plain = enter_path("/", path);
    path.starts_with('/') && (plain.starts_with("/dev/") || plain.starts_with("/proc/"))
}

/// Adds the names under which such files are put elsewhere.
fn carried<'s>(script: &'s Script, written: &mut HashSet<&'s str>) {
    const ROUNDS: usize = 8;
    for _ in 0..ROUNDS {
        let before = written.len();
        for transfer in &script.transfers {
            let from_text = match &transfer.from {
                FileTarget::Path(path) => written.contains(file_name(path)) || is_stream(path),
                FileTarget::Glob(_) => !written.is_empty(),
                FileTarget::Unknown(_) => true,
            };
            if from_text {
                written.insert(file_name(&transfer.to));
            }
        }
        // What a program makes of such a file that nobody knows, under whatever name, is as good as the file.
        for run in script.runs.iter().filter(|run| !run.is_known) {
            let words = || run.words.iter().skip(1);
            // One that is not known may be any of them, and what comes in may be text of the script's.
            let is_written = |word: &Word| match word.literal() {
                Some(text) => path_args::paths_in(text).into_iter().any(|path| {
                    written.contains(file_name(path)) || path == "-" || is_stream(path)
                }),
                None => !written.is_empty(),
            };
            if words().any(is_written) {
                let paths = words().filter_map(Word::literal).flat_map(path_args::paths_in);
                written.extend(paths.map(file_name));
            }
        }
        if written.len() == before {
            return;
        }
    }
}

/// The files that a run executes: itself, if it is a file, and scripts; and what it may take for one.
fn files(run: &Run) -> impl Iterator<Item = &Word> {
    let runs = |word: &Word| {
        let ending = word.literal().and_then(|it| Some(it.rsplit_once('.')?.1));
        ending.is_some_and(|ending| names::is(NameGroup::Code, ending))
    };
    let may_run = !run.is_known
        || run.roles.contains(&WordRole::Script)
        || run.words.first().is_some_and(|it| programs::traits(it.shown()).runs_fed_stdin);
    let reads =
        run.words.first().is_some_and(|it| names::is(NameGroup::ReadsCode, file_name(it.shown())));
    // After a flag it may be settings, and those are code to some.
    let after_flag =
        |at: usize| at.checked_sub(1).is_some_and(|at| run.words[at].prefix().starts_with('-'));
    let words = run.words.iter().zip(&run.roles).enumerate();
    words.filter_map(move |(at, (word, part))| match part {
        WordRole::Program => word.shown().contains(['/', '.']).then_some(word),
        WordRole::Script => Some(word),
        WordRole::Value | WordRole::Operand => {
            (may_run && runs(word) && (!reads || after_flag(at))).then_some(word)
        }
        WordRole::Subcommand | WordRole::Flag => None,
    })
}

/// The modules that an interpreter is told to run.
fn modules(run: &Run) -> impl Iterator<Item = &Word> {
    let pairs = run.words.windows(2).filter(|_| run.is_interpreter);
    pairs.filter(|pair| pair[0].literal() == Some("-m")).map(|pair| &pair[1])
}

/// What a file or folder is called, however its path ends.
fn file_name(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or(path)
}

/// The name without its ending.
fn stem(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(stem, _)| if stem.is_empty() { name } else { stem })
}
