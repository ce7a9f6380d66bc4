//! Programs that copy, move or link files: `cp`, `mv`, `ln` and similar ones.

use super::arg_role::ArgRole;
use super::args::{Argument, ParsedArgs};
use super::commands::Invocation;
use super::names::{self, NameGroup};
use super::remote_names::RemotePath;
use super::state::{ShellState, join_path};
use super::walk::{Walker, unknown};
use super::{AccessKind, DynamicKind, FileTarget, Transfer, Word, downloads, fragments, outputs};

/// Flags whose value is the destination directory.
const DIR_FLAGS: &[&str] = &["-t", "--target-directory"];

/// Flags with which links are copied as links. Recursive copies do that too.
const LINK_FLAGS: &[&str] = &["-P", "-d", "-l", "--no-dereference", "--links"];

/// Records the transfers of a command.
pub(super) fn record(
    walker: &mut Walker<'_>,
    base: &str,
    call: &Invocation<'_>,
    state: &ShellState,
) {
    let args = call.args;
    if args.is_dry_run() {
        return;
    }
    if names_file_after_url(base, args) {
        return downloads::record_downloads(walker, base, call, state);
    }
    let is_transfer = base != "git" || call.words.iter().any(|word| word.literal() == Some("mv"));
    if !names::contains(NameGroup::Transfers, base) || !is_transfer {
        return;
    }
    let is_path = |it: &&Argument| {
        let role = it.role;
        matches!(role, ArgRole::Read | ArgRole::Stat | ArgRole::Write | ArgRole::Consume)
            && it.flag.is_none()
    };
    let mut paths: Vec<&Argument> = args.arguments.iter().filter(is_path).collect();
    paths.dedup_by_key(|it| it.word);
    let mut operands: Vec<&Word> = paths.iter().map(|it| &it.value).collect();
    let current_dir = Word::Literal(".".into());
    let copies_from_hosts = args.spec.traits.copies_from_hosts;
    let to = match destination_flag(args) {
        Some(dir) => &dir.value,
        None if base == "ln" && operands.len() == 1 => &current_dir,
        None if copies_from_hosts && is_single_remote(&operands) => &current_dir,
        None => match operands.pop() {
            Some(last_operand) => last_operand,
            None => return,
        },
    };
    let is_recursive =
        args.reads_tree() || args.arguments.iter().any(|it| it.role == ArgRole::Consume);
    let mode = TransferMode {
        symbolic: base == "ln" && args.has_any(&["-s", "--symbolic"])
            || base == "cp" && args.has_any(&["-s", "--symbolic-link"]),
        adjusts_target: base == "ln" && args.has_any(&["-r", "--relative"]),
        copies_entries: args.has_any(&["-T", "--no-target-directory"]),
        slash_copies_entries: base == "rsync",
        is_recursive,
        is_found: false,
        keeps_links: is_recursive || args.has_any(LINK_FLAGS),
    };
    let is_hard_link = base == "ln" && !args.has_any(&["-s", "--symbolic"])
        || base == "cp" && args.has_any(&["-l", "--link"]);
    let keeps_paths = keeps_paths(base, args);
    for from in operands {
        let remote = RemotePath::of(from).filter(|_| copies_from_hosts);
        if let Some(remote) = remote {
            let name = if keeps_paths { remote.path() } else { remote.name() };
            let recursive = mode.is_recursive;
            record_remote_copy(walker, (name, to), recursive, call, state);
            continue;
        }
        if keeps_paths {
            record_copy_with_path(walker, (from, to), mode, call, state);
            continue;
        }
        add_transfer(walker, from, to, state, mode);
        for found in found_names(walker, from, state) {
            add_transfer(walker, &found, to, state, TransferMode { is_found: true, ..mode });
        }
        if is_hard_link {
            // A later write to the new name also changes the original file.
            let kind = if mode.is_recursive { AccessKind::WriteTree } else { AccessKind::Write };
            walker.record_access(from, kind, state, Some(call.run));
        }
    }
}

/// Whether the only operand is a file of another machine, which goes into the working directory: `sftp host:x`.
fn is_single_remote(operands: &[&Word]) -> bool {
    matches!(operands, [operand] if RemotePath::of(operand).is_some())
}

/// Whether a file goes into the destination under its whole path: `cp --parents a/b d` writes `d/a/b`.
fn keeps_paths(base: &str, args: &ParsedArgs) -> bool {
    match base {
        "cp" => args.has_any(&["--parents"]),
        "rsync" => args.has_any(&["-R", "--relative"]),
        _ => false,
    }
}

/// Records a copy from another machine. If its name is unknown, everything in the destination may be overwritten.
fn record_remote_copy(
    walker: &mut Walker<'_>,
    (name, to): (Option<&str>, &Word),
    is_recursive: bool,
    call: &Invocation<'_>,
    state: &ShellState,
) {
    // Uploads and copies between other machines write nothing here.
    if RemotePath::of(to).is_some() {
        return;
    }
    let run = Some(call.run);
    let (Some(name), Some(folder)) = (name, to.literal()) else {
        walker.record_access(to, AccessKind::WriteTree, state, run);
        return outputs::record_output(walker, to, call.run, state);
    };
    let inside = Word::Literal(path_inside(folder, name));
    // The name counts only if the destination is a folder.
    let from = Word::Literal(format!("host:/{name}"));
    add_transfer(walker, &from, to, state, TransferMode::default());
    if name.contains('/') {
        walker.record_access(&inside, AccessKind::Write, state, run);
    }
    if is_recursive {
        walker.record_access(&inside, AccessKind::WriteTree, state, run);
        outputs::record_output(walker, &inside, call.run, state);
    }
}

/// Records a copy to `to/from`.
fn record_copy_with_path(
    walker: &mut Walker<'_>,
    (from, to): (&Word, &Word),
    mode: TransferMode,
    call: &Invocation<'_>,
    state: &ShellState,
) {
    let Some(folder) = to.literal() else {
        return add_transfer(walker, from, to, state, mode);
    };
    let inside = match from {
        Word::Literal(path) => Word::Literal(path_inside(folder, path)),
        Word::Glob(pattern) => Word::Glob(path_inside(&fragments::escape(folder), pattern)),
        Word::Dynamic(dynamic) => unknown(&dynamic.shown),
    };
    let kind = if mode.is_recursive { AccessKind::WriteTree } else { AccessKind::Write };
    walker.record_access(&inside, kind, state, Some(call.run));
    if mode.is_recursive {
        outputs::record_output(walker, &inside, call.run, state);
    }
    add_transfer(walker, from, &inside, state, TransferMode { copies_entries: true, ..mode });
}

/// Returns the path of a file in a folder. In the source of a copy, only what follows `/./` counts.
fn path_inside(folder: &str, path: &str) -> String {
    let path = path.rsplit_once("/./").map_or(path, |(_, path)| path);
    format!("{}/{}", folder.trim_end_matches('/'), path.trim_start_matches('/'))
}

/// Returns globs for the files that a word from `find` may stand for. Files deeper than the globs reach are not among
/// them.
fn found_names(walker: &Walker<'_>, word: &Word, state: &ShellState) -> Vec<Word> {
    const MAX_DEPTH: usize = 4;
    let Word::Dynamic(dynamic) = word else { return Vec::new() };
    let search = match dynamic.kind {
        DynamicKind::FindResult { .. } => Some(&walker.find_results),
        DynamicKind::Listed(listing) => walker.listings.get(listing),
        DynamicKind::Anything => Some(&walker.find_results),
        DynamicKind::Number | DynamicKind::Commit | DynamicKind::Revision | DynamicKind::Pipe => {
            None
        }
    };
    let Some(search) = search.filter(|it| it.result_dirs == state.dirs) else { return Vec::new() };
    let folders = search.roots.iter().filter_map(Word::literal).map(|root| {
        let root = root.trim_end_matches('/');
        if root.is_empty() { "/".to_string() } else { format!("{}/", fragments::escape(root)) }
    });
    let levels = folders.flat_map(|folder| {
        (0..MAX_DEPTH).map(move |depth| format!("{folder}{}", "*/".repeat(depth)))
    });
    let names = match search.filter.names.as_slice() {
        [] => vec!["*".to_string(), ".*".to_string()],
        names => names.to_vec(),
    };
    let globs = levels.flat_map(|folder| {
        names.iter().map(|name| Word::Glob(format!("{folder}{name}"))).collect::<Vec<_>>()
    });
    globs.collect()
}

/// Whether the program names a downloaded file after the last segment of its URL.
fn names_file_after_url(base: &str, args: &ParsedArgs) -> bool {
    match base {
        "wget" => !args.has_any(&["-O", "--output-document"]),
        "curl" => args.has_any(&["-O", "--remote-name", "--remote-name-all"]),
        _ => false,
    }
}

fn destination_flag(args: &ParsedArgs) -> Option<&Argument> {
    args.arguments.iter().find(|it| it.flag.as_deref().is_some_and(|it| DIR_FLAGS.contains(&it)))
}

/// How a program copies, moves or links files.
#[derive(Clone, Copy, Default)]
struct TransferMode {
    /// Creates a symbolic link whose target is the source as written.
    symbolic: bool,
    /// The source is relative to the working directory, even if it becomes the target of a link.
    adjusts_target: bool,
    /// The entries of a source directory go into the destination, rather than the directory itself.
    copies_entries: bool,
    /// The same, but only for a source that ends with a slash.
    slash_copies_entries: bool,
    /// Directories are copied or moved with everything below them.
    is_recursive: bool,
    /// See [`Transfer::is_found`].
    is_found: bool,
    /// See [`Transfer::keeps_links`].
    keeps_links: bool,
}

fn add_transfer(
    walker: &mut Walker<'_>,
    from: &Word,
    to: &Word,
    state: &ShellState,
    mode: TransferMode,
) {
    let Some(dirs) = &state.dirs else { return };
    let Some(to) = to.literal() else {
        walker.script.needs_facts |= matches!(to, Word::Glob(_));
        // The destination is unknown, so a later command may use the copy under any name.
        return walker.record_access(&unknown(to.shown()), AccessKind::Write, state, None);
    };
    for dir in dirs {
        let to = join_path(dir, to);
        let from = match from {
            Word::Literal(text) if mode.symbolic && !mode.adjusts_target => {
                FileTarget::Path(text.clone())
            }
            Word::Literal(text) => FileTarget::Path(join_path(dir, text)),
            Word::Glob(pattern) => FileTarget::Glob(join_path(&fragments::escape(dir), pattern)),
            Word::Dynamic(dynamic) => FileTarget::Unknown(dynamic.shown.clone()),
        };
        let text = target_text(&from);
        // `cp -r a/. b` copies the entries of `a`.
        let source_copies_entries = matches!(text.rsplit('/').next(), Some("." | ".."))
            || mode.slash_copies_entries && text.ends_with('/');
        let copies_entries = mode.copies_entries || source_copies_entries;
        let TransferMode { symbolic, is_recursive, is_found, keeps_links, .. } = mode;
        let transfer =
            Transfer { from, to, symbolic, copies_entries, is_recursive, is_found, keeps_links };
        if walker.check_limits() && !walker.script.transfers.contains(&transfer) {
            walker.script.transfers.push(transfer);
        }
    }
}

fn target_text(target: &FileTarget) -> &str {
    match target {
        FileTarget::Path(text) | FileTarget::Glob(text) | FileTarget::Unknown(text) => text,
    }
}

/// Returns the backups that an in-place edit of a file makes: `d/a.bak` for `sed -i.bak … d/a`. In a suffix with `*`,
/// each `*` stands for the file's name: `d/old_a` for `sed -i'old_*' … d/a`.
pub(super) fn backups(args: &ParsedArgs, file: &Word) -> Vec<Word> {
    let is_suffix = |it: &&Argument| {
        it.role == ArgRole::Text
            && it.flag.as_deref().is_some_and(|flag| args.spec.in_place.contains(&flag))
    };
    let suffixes = args.arguments.iter().filter(is_suffix).map(|it| it.value.shown());
    let backup = |suffix: &str| match file {
        Word::Literal(path) => Some(Word::Literal(backup_path(path, suffix))),
        Word::Glob(pattern) => Some(Word::Glob(backup_path(pattern, suffix))),
        Word::Dynamic(_) => None,
    };
    suffixes.filter_map(backup).collect()
}

fn backup_path(path: &str, suffix: &str) -> String {
    if !suffix.contains('*') {
        return format!("{path}{suffix}");
    }
    let (folder, name) = path.split_at(path.rfind('/').map_or(0, |slash| slash + 1));
    let backup = suffix.replace('*', name);
    if backup.contains('/') { backup } else { format!("{folder}{backup}") }
}

#[cfg(test)]
mod tests {
    use crate::shell::{ShellContext, analyze};

    #[test]
    fn transfers_are_recorded() {
        let check = |script: &str, expected: &[&str]| {
            let context = ShellContext { cwd: "/w".into(), ..ShellContext::default() };
            let shown: Vec<String> = analyze(script, &context)
                .transfers
                .iter()
                .map(|it| {
                    let verb = if it.symbolic { "link" } else { "copy" };
                    let merged = if it.copies_entries { " merged" } else { "" };
                    format!("{verb} {} to {}{merged}", super::target_text(&it.from), it.to)
                })
                .collect();
            assert_eq!(shown, expected, "{script}");
        };
        check("cp a b", &["copy /w/a to /w/b"]);
        check("cp -t d a b", &["copy /w/a to /w/d", "copy /w/b to /w/d"]);
        check("cp -r a/. b", &["copy /w/a/. to /w/b merged"]);
        check("cp -rT a b", &["copy /w/a to /w/b merged"]);
        check("mv *.c d", &["copy /w/*.c to /w/d"]);
        check("ln -s ../a d/l", &["link ../a to /w/d/l"]);
        check("ln -s ../a", &["link ../a to /w/."]);
        check("ln -rs a l", &["link /w/a to /w/l"]);
        check("cp -s /a l", &["link /a to /w/l"]);
        check("rsync -a a/ b", &["copy /w/a/ to /w/b merged"]);
        check("wget http://h/x -P d", &[]);
        check("wget http://h/x -O d", &[]);
        check("git mv a d; git log", &["copy /w/a to /w/d"]);
        check("cat a b", &[]);
    }
}
