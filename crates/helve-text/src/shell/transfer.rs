//! Programs that put one file in another's place: `cp`, `mv`, `ln` and their like.

use super::arg_role::ArgRole;
use super::args::{Argument, ParsedArgs};
use super::state::{ShellState, join_path};
use super::walk::{Walker, unknown};
use super::{AccessKind, FileTarget, Transfer, Word, fragments};

const PROGRAMS: &[&str] = &["cp", "mv", "ln", "install", "rsync", "scp", "git"];
/// Flags whose value is the folder that everything goes to.
const FOLDER_FLAGS: &[&str] =
    &["-t", "--target-directory", "-P", "--directory-prefix", "--output-dir"];

/// Notes where the operands of a command end up.
pub(super) fn note(
    walker: &mut Walker<'_>,
    base: &str,
    words: &[Word],
    parsed: &ParsedArgs,
    state: &ShellState,
) {
    if saves_by_name(base, parsed) {
        return downloads(walker, parsed, state);
    }
    let moves = base != "git" || words.iter().any(|word| word.literal() == Some("mv"));
    if !PROGRAMS.contains(&base) || !moves {
        return;
    }
    let is_path = |it: &&Argument| {
        matches!(it.role, ArgRole::Read | ArgRole::Stat | ArgRole::Write | ArgRole::Consume)
            && it.flag.is_none()
    };
    let mut uses: Vec<&Argument> = parsed.uses.iter().filter(is_path).collect();
    uses.dedup_by_key(|it| it.word);
    let mut operands: Vec<&Word> = uses.iter().map(|it| &it.value).collect();
    let is_folder =
        |it: &&Argument| it.flag.as_deref().is_some_and(|it| FOLDER_FLAGS.contains(&it));
    let here = Word::Literal(".".into());
    let to = match parsed.uses.iter().find(is_folder) {
        Some(folder) => &folder.value,
        None if base == "ln" && operands.len() == 1 => &here,
        None => match operands.pop() {
            Some(last) => last,
            None => return,
        },
    };
    let symbolic = match base {
        "ln" => parsed.has_any(&["-s", "--symbolic"]) && !parsed.has_any(&["-r", "--relative"]),
        _ => false,
    };
    let whole = parsed.has_any(&["-T", "--no-target-directory"]);
    for from in operands {
        add(
            walker,
            from,
            to,
            state,
            TransferMode { symbolic, merges: whole, slash: base == "rsync" },
        );
    }
}

/// Whether it saves what it fetches under the last name of its address.
fn saves_by_name(base: &str, parsed: &ParsedArgs) -> bool {
    match base {
        "wget" => !parsed.has_any(&["-O", "--output-document"]),
        "curl" => parsed.has_any(&["-O", "--remote-name", "--remote-name-all"]),
        _ => false,
    }
}

fn downloads(walker: &mut Walker<'_>, parsed: &ParsedArgs, state: &ShellState) {
    let is_folder =
        |it: &&Argument| it.flag.as_deref().is_some_and(|it| FOLDER_FLAGS.contains(&it));
    let folder = parsed.uses.iter().find(is_folder).map_or(".", |it| it.value.shown());
    let to = Word::Literal(format!("{folder}/"));
    for address in parsed.uses.iter().filter(|it| it.role == ArgRole::Url) {
        let way = TransferMode { symbolic: false, merges: false, slash: false };
        add(walker, &address.value, &to, state, way);
    }
}

#[derive(Clone, Copy)]
struct TransferMode {
    /// The text of the source is kept, and means something from where the link is.
    symbolic: bool,
    merges: bool,
    /// A slash at the end of the source means what is in it.
    slash: bool,
}

fn add(walker: &mut Walker<'_>, from: &Word, to: &Word, state: &ShellState, way: TransferMode) {
    let Some(folders) = &state.folders else { return };
    let Some(to) = to.literal() else {
        walker.script.needs_facts |= matches!(to, Word::Glob(_));
        // What is found under which name later cannot be told.
        return walker.access(&unknown(to.shown()), AccessKind::Write, state, None);
    };
    for folder in folders {
        let to = join_path(folder, to);
        let from = match from {
            Word::Literal(text) if way.symbolic => FileTarget::Path(text.clone()),
            Word::Literal(text) => FileTarget::Path(join_path(folder, text)),
            Word::Glob(pattern) => FileTarget::Glob(join_path(&fragments::escape(folder), pattern)),
            Word::Dynamic(dynamic) => FileTarget::Unknown(dynamic.shown.clone()),
        };
        let text = from_text(&from);
        let contents =
            matches!(text.rsplit('/').next(), Some("." | "..")) || way.slash && text.ends_with('/');
        let merges = way.merges || contents;
        let transfer = Transfer { from, to, symbolic: way.symbolic, merges };
        if walker.has_room() && !walker.script.transfers.contains(&transfer) {
            walker.script.transfers.push(transfer);
        }
    }
}

fn from_text(from: &FileTarget) -> &str {
    match from {
        FileTarget::Path(text) | FileTarget::Glob(text) | FileTarget::Unknown(text) => text,
    }
}

#[cfg(test)]
mod tests {
    use crate::shell::{ShellContext, analyze};

    #[test]
    fn where_files_land() {
        let check = |script: &str, expected: &[&str]| {
            let around = ShellContext { cwd: "/w".into(), ..ShellContext::default() };
            let shown: Vec<String> = analyze(script, &around)
                .transfers
                .iter()
                .map(|it| {
                    let way = if it.symbolic { "link" } else { "copy" };
                    let merges = if it.merges { " merged" } else { "" };
                    format!("{way} {} to {}{merges}", super::from_text(&it.from), it.to)
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
        check("ln -rs a l", &["copy /w/a to /w/l"]);
        check("rsync -a a/ b", &["copy /w/a/ to /w/b merged"]);
        check("wget http://h/x -P d", &["copy /w/http://h/x to /w/d/"]);
        check("wget http://h/x -O d", &[]);
        check("git mv a d; git log", &["copy /w/a to /w/d"]);
        check("cat a b", &[]);
    }
}
