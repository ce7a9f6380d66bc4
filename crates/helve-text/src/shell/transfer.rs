//! Programs that put one file in another's place: `cp`, `mv`, `ln` and their like.

use super::options::{Reading, Use};
use super::role::Role;
use super::state::{State, join_path};
use super::walk::{Walker, unknown};
use super::{Access, Target, Transfer, Word, bits};

const PROGRAMS: &[&str] = &["cp", "mv", "ln", "install", "rsync", "scp", "git"];
/// Flags whose value is the folder that everything goes to.
const FOLDER_FLAGS: &[&str] =
    &["-t", "--target-directory", "-P", "--directory-prefix", "--output-dir"];

/// Notes where the operands of a command end up.
pub(super) fn note(
    walker: &mut Walker<'_>,
    base: &str,
    words: &[Word],
    reading: &Reading,
    state: &State,
) {
    if saves_by_name(base, reading) {
        return downloads(walker, reading, state);
    }
    let moves = base != "git" || words.iter().any(|word| word.literal() == Some("mv"));
    if !PROGRAMS.contains(&base) || !moves {
        return;
    }
    let is_path = |it: &&Use| {
        matches!(it.role, Role::Read | Role::Look | Role::Write | Role::Take) && it.flag.is_none()
    };
    let mut uses: Vec<&Use> = reading.uses.iter().filter(is_path).collect();
    uses.dedup_by_key(|it| it.word);
    let mut operands: Vec<&Word> = uses.iter().map(|it| &it.value).collect();
    let is_folder = |it: &&Use| it.flag.as_deref().is_some_and(|it| FOLDER_FLAGS.contains(&it));
    let here = Word::Literal(".".into());
    let to = match reading.uses.iter().find(is_folder) {
        Some(folder) => &folder.value,
        None if base == "ln" && operands.len() == 1 => &here,
        None => match operands.pop() {
            Some(last) => last,
            None => return,
        },
    };
    let symbolic = match base {
        "ln" => reading.has_any(&["-s", "--symbolic"]) && !reading.has_any(&["-r", "--relative"]),
        _ => false,
    };
    let whole = reading.has_any(&["-T", "--no-target-directory"]);
    for from in operands {
        add(walker, from, to, state, Way { symbolic, merges: whole, slash: base == "rsync" });
    }
}

/// Whether it saves what it fetches under the last name of its address.
fn saves_by_name(base: &str, reading: &Reading) -> bool {
    match base {
        "wget" => !reading.has_any(&["-O", "--output-document"]),
        "curl" => reading.has_any(&["-O", "--remote-name", "--remote-name-all"]),
        _ => false,
    }
}

fn downloads(walker: &mut Walker<'_>, reading: &Reading, state: &State) {
    let is_folder = |it: &&Use| it.flag.as_deref().is_some_and(|it| FOLDER_FLAGS.contains(&it));
    let folder = reading.uses.iter().find(is_folder).map_or(".", |it| it.value.shown());
    let to = Word::Literal(format!("{folder}/"));
    for address in reading.uses.iter().filter(|it| it.role == Role::Url) {
        let way = Way { symbolic: false, merges: false, slash: false };
        add(walker, &address.value, &to, state, way);
    }
}

#[derive(Clone, Copy)]
struct Way {
    /// The text of the source is kept, and means something from where the link is.
    symbolic: bool,
    merges: bool,
    /// A slash at the end of the source means what is in it.
    slash: bool,
}

fn add(walker: &mut Walker<'_>, from: &Word, to: &Word, state: &State, way: Way) {
    let Some(folders) = &state.folders else { return };
    let Some(to) = to.literal() else {
        walker.script.unsure |= matches!(to, Word::Glob(_));
        // What is found under which name later cannot be told.
        return walker.touch(&unknown(to.shown()), Access::Write, state, None);
    };
    for folder in folders {
        let to = join_path(folder, to);
        let from = match from {
            Word::Literal(text) if way.symbolic => Target::Path(text.clone()),
            Word::Literal(text) => Target::Path(join_path(folder, text)),
            Word::Glob(pattern) => Target::Glob(join_path(&bits::escape(folder), pattern)),
            Word::Dynamic(dynamic) => Target::Unknown(dynamic.shown.clone()),
        };
        let text = from_text(&from);
        let contents =
            matches!(text.rsplit('/').next(), Some("." | "..")) || way.slash && text.ends_with('/');
        let merges = way.merges || contents;
        let transfer = Transfer { from, to, symbolic: way.symbolic, merges };
        if walker.room() && !walker.script.transfers.contains(&transfer) {
            walker.script.transfers.push(transfer);
        }
    }
}

fn from_text(from: &Target) -> &str {
    match from {
        Target::Path(text) | Target::Glob(text) | Target::Unknown(text) => text,
    }
}

#[cfg(test)]
mod tests {
    use crate::shell::{Surroundings, read};

    #[test]
    fn where_files_land() {
        let check = |script: &str, expected: &[&str]| {
            let around = Surroundings { folder: "/w".into(), ..Surroundings::default() };
            let shown: Vec<String> = read(script, &around)
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
