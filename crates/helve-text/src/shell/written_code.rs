//! Detects code that a script writes into a file and then runs.

use std::collections::HashSet;

use super::names::{self, NameGroup};
use super::state::{ShellState, normalize};
use super::walk::Walker;
use super::{DoubtKind, FileTarget, ProgramRun, Script, Word, WordRole, path_args, programs};

/// Maximum number of texts in which paths are looked for.
const MAX_TEXTS: usize = 64;

/// Records a doubt for each file that the script runs, if the script also writes text to a file of the same name. It is
/// unknown which text of the script that is, so the paths in all of its texts are recorded.
pub(super) fn record(walker: &mut Walker<'_>) {
    let config: Vec<String> = repository_files(&walker.script).map(str::to_string).collect();
    for path in config {
        walker.add_doubt(DoubtKind::ExternalCode, &path);
    }
    let state = ShellState::new(walker.context);
    for (run, file) in executed_texts(&walker.script) {
        walker.add_doubt(DoubtKind::ExternalCode, &file);
        walker.script.runs[run].writes_are_known = false;
        for text in walker.texts.clone().iter().take(MAX_TEXTS) {
            path_args::record_paths_in_code(walker, text, &state, run);
        }
    }
}

/// Returns the files that the script writes text to and also runs, each with the index of the run.
fn executed_texts(script: &Script) -> Vec<(usize, String)> {
    let text_paths = script.written_paths().filter(|(path, run)| receives_text(script, path, *run));
    let mut written: HashSet<&str> = text_paths.map(|(path, _)| file_name(path)).collect();
    add_copies(script, &mut written);
    add_entry_dirs(script, &mut written);
    if written.is_empty() {
        return Vec::new();
    }
    let stems: HashSet<&str> = written.iter().map(|name| stem(name)).collect();
    let is_written = |word: &Word| match word.literal() {
        Some(text) => written.contains(file_name(text)) || stems.contains(file_name(text)),
        None => true,
    };
    let is_module = |word: &Word| match word.literal() {
        Some(text) => text.split('.').any(|name| stems.contains(name)),
        None => true,
    };
    let mut executed = Vec::new();
    for (at, run) in script.runs.iter().enumerate() {
        let files = executed_files(run).filter(|word| is_written(word));
        let modules = executed_modules(run).filter(|word| is_module(word));
        executed.extend(files.chain(modules).map(|word| (at, word.shown().to_string())));
    }
    executed
}

/// Returns written files that make a directory a repository, if the script also runs git, which would obey them.
fn repository_files(script: &Script) -> impl Iterator<Item = &str> {
    let obeys_config = |run: &ProgramRun| has_trait(run, |traits| traits.obeys_local_config);
    let config_is_obeyed = script.runs.iter().any(obeys_config);
    let written = script.written_paths().map(|(path, _)| path);
    written.filter(move |path| {
        config_is_obeyed && names::contains(NameGroup::RepositoryFile, file_name(path))
    })
}

fn has_trait(run: &ProgramRun, is_set: impl Fn(programs::ProgramTraits) -> bool) -> bool {
    run.words.first().is_some_and(|name| is_set(programs::traits(name.shown())))
}

/// Whether a file receives text from the script: through a redirect, or through a program that copies its input.
fn receives_text(script: &Script, path: &str, run: Option<usize>) -> bool {
    let is_text_written = run.is_none_or(|run| {
        script.runs.get(run).is_some_and(|run| has_trait(run, |traits| traits.copies_input))
    });
    is_text_written && !is_stream(path)
}

/// Whether a path may be a standard stream rather than a file, however it is spelled.
fn is_stream(path: &str) -> bool {
    let normalized = normalize("/", path);
    path.starts_with('/') && (normalized.starts_with("/dev/") || normalized.starts_with("/proc/"))
}

/// Adds the names to which the script copies written files, perhaps through another program.
fn add_copies<'s>(script: &'s Script, written: &mut HashSet<&'s str>) {
    const MAX_ROUNDS: usize = 8;
    for _ in 0..MAX_ROUNDS {
        let old_len = written.len();
        for transfer in &script.transfers {
            let may_contain_text = match &transfer.from {
                FileTarget::Path(path) => written.contains(file_name(path)) || is_stream(path),
                FileTarget::Glob(_) => !written.is_empty(),
                FileTarget::Unknown(_) => true,
            };
            if may_contain_text {
                written.insert(file_name(&transfer.to));
            }
        }
        // An unknown program may copy a written file to any of its other arguments.
        for run in script.runs.iter().filter(|run| !run.is_known) {
            let words = || run.words.iter().skip(1);
            // A dynamic word may be any file, and standard input may carry text of the script.
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
        if written.len() == old_len {
            return;
        }
    }
}

/// Adds directories into which an entry point like `__main__.py` is written.
fn add_entry_dirs<'s>(script: &'s Script, written: &mut HashSet<&'s str>) {
    let paths = script.written_paths().filter_map(|(path, _)| path.rsplit_once('/'));
    let entries = paths
        .filter(|(_, name)| names::contains(NameGroup::EntryPoint, name) && written.contains(name));
    let dirs: Vec<&str> = entries.flat_map(|(dir, _)| [file_name(dir), "."]).collect();
    written.extend(dirs);
}

/// Returns the files that a run may execute: the program if it is a path, scripts, and operands with an
/// extension of code like `.py`.
fn executed_files(run: &ProgramRun) -> impl Iterator<Item = &Word> {
    let is_code = |word: &Word| {
        let extension = word.literal().and_then(|it| Some(it.rsplit_once('.')?.1));
        extension.is_some_and(|it| names::contains(NameGroup::CodeExtension, it))
    };
    let may_execute = !run.is_known
        || run.roles.contains(&WordRole::Script)
        || has_trait(run, |traits| traits.runs_stdin_if_given);
    let program = run.words.first().map_or("", Word::shown);
    let only_reads = names::contains(NameGroup::ReadsCode, file_name(program));
    // The value of a flag may be a configuration file, which some programs run as code.
    let follows_flag =
        |at: usize| at.checked_sub(1).is_some_and(|at| run.words[at].prefix().starts_with('-'));
    let words = run.words.iter().zip(&run.roles).enumerate();
    words.filter_map(move |(at, (word, role))| match role {
        WordRole::Program => word.shown().contains(['/', '.']).then_some(word),
        WordRole::Script => Some(word),
        WordRole::Value | WordRole::Operand => {
            (may_execute && is_code(word) && (!only_reads || follows_flag(at))).then_some(word)
        }
        WordRole::Subcommand | WordRole::Flag => None,
    })
}

/// Returns the modules that an interpreter runs with `-m`.
fn executed_modules(run: &ProgramRun) -> impl Iterator<Item = &Word> {
    let pairs = run.words.windows(2).filter(|_| run.is_interpreter);
    pairs.filter(|pair| pair[0].literal() == Some("-m")).map(|pair| &pair[1])
}

fn file_name(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or(path)
}

/// Returns a file name without its extension.
fn stem(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(stem, _)| if stem.is_empty() { name } else { stem })
}
