//! The files that a program like `patch` changes, according to the diffs in the texts of the script.
//!
//! It is not certain which text the program gets, because the script may write a diff to a file first. So every diff that
//! the script has printed or written so far counts.

use super::commands::Invocation;
use super::outputs;
use super::state::ShellState;
use super::walk::{StdinSource, Walker};
use super::{AccessKind, Word, WordRole};

/// Maximum number of names that are considered.
const MAX_NAMES: usize = 500;
/// Flags whose value is the number of leading folders that are removed from each name.
const STRIP_FLAGS: [&str; 2] = ["-p", "--strip"];
/// What stands before the name of a file in a diff.
const HEADERS: [&str; 8] =
    ["+++ ", "--- ", "*** ", "Index: ", "rename from ", "rename to ", "copy from ", "copy to "];
/// What stands before the old and the new name of a file that a diff renames or copies.
const MOVED_NAMES: [&str; 4] = ["rename from ", "rename to ", "copy from ", "copy to "];
/// What stands before the name of a file whose content a diff uses for another file.
const OLD_NAMES: [&str; 2] = ["rename from ", "copy from "];

/// Records the files that the diffs in the texts of the script name.
pub(super) fn record(walker: &mut Walker<'_>, call: &Invocation<'_>, state: &ShellState) {
    if !call.args.spec.traits.applies_diffs || call.args.is_harmless() {
        return;
    }
    let strip = call
        .args
        .arguments
        .iter()
        .rfind(|it| it.flag.as_deref().is_some_and(|flag| STRIP_FLAGS.contains(&flag)))
        .and_then(|it| it.value.literal()?.parse().ok());
    // Names after `rename` and `copy` begin without the folder `a` or `b`, so one folder less is removed from them.
    let strip_of_moved = strip.map(|count: usize| count.saturating_sub(1));
    let paths_in = |names: &dyn Fn(&str) -> Vec<String>, strip| {
        let names = walker.texts.iter().flat_map(|text| names(text));
        names.flat_map(|name| stripped(&name, strip)).collect::<Vec<String>>()
    };
    let read = paths_in(&|text| names_after(&OLD_NAMES, text), strip_of_moved);
    let moved = paths_in(&|text| names_after(&MOVED_NAMES, text), strip_of_moved);
    let mut changed = paths_in(&names_in, strip);
    changed.extend(moved);
    if matches!(call.stdin, StdinSource::Pipe(_)) {
        changed.extend(walker.diffed_paths.iter().cloned());
    }
    for name in sorted(changed) {
        outputs::record_output(walker, &Word::Literal(name), call.run, state);
    }
    for name in sorted(read) {
        walker.record_access(&Word::Literal(name), AccessKind::Read, state, Some(call.run));
    }
}

/// Notes the paths among the operands of a program like `git diff`. A later program may get the diff through a pipe.
pub(super) fn note_printed_paths(walker: &mut Walker<'_>, call: &Invocation<'_>) {
    let spec = call.args.spec;
    if spec.traits.reads_tracked || call.args.has_any(&spec.reads_tracked_with) {
        let operands = call.args.roles.iter().zip(call.words);
        let operands = operands.filter(|(role, _)| **role == WordRole::Operand);
        walker.diffed_paths.extend(operands.filter_map(|(_, word)| word.literal()).map(Into::into));
    }
}

/// Returns each name once, and not too many of them.
fn sorted(mut names: Vec<String>) -> impl Iterator<Item = String> {
    names.sort_unstable();
    names.dedup();
    names.into_iter().take(MAX_NAMES)
}

/// Returns the names of files in the lines of a diff that begin with one of these texts.
fn names_after(headers: &[&str], text: &str) -> Vec<String> {
    // `printf` and `echo` turn `\n` into a line break.
    let lines = text.lines().flat_map(|line| line.split("\\n"));
    let names = lines.filter_map(|line| headers.iter().find_map(|it| line.strip_prefix(it)));
    names.map(|name| unquoted(name.trim())).filter(|name| !name.is_empty()).collect()
}

/// Returns the names of files in the headers of a diff.
fn names_in(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    // `printf` and `echo` turn `\n` into a line break.
    for line in text.lines().flat_map(|line| line.split("\\n")) {
        if let Some(rest) = line.strip_prefix("diff --git ") {
            // If both names are the same but for their first letter, they may contain blanks.
            let half = rest.get(rest.len() / 2 + 1..).unwrap_or("");
            names.extend(rest.split_whitespace().chain([half]).map(unquoted));
        } else if let Some(rest) = HEADERS.iter().find_map(|it| line.strip_prefix(it)) {
            // A date may follow the name.
            let until_tab = rest.split('\t').next().unwrap_or(rest).trim();
            let until_blank = rest.split_whitespace().next().unwrap_or("");
            names.extend([until_tab, until_blank].map(unquoted));
        }
    }
    names.retain(|name| !name.is_empty() && name != "/dev/null");
    names
}

/// Returns a name without its quotes. In quotes, `\141` stands for `a`.
fn unquoted(name: &str) -> String {
    let Some(inner) = name.strip_prefix('"') else { return name.to_string() };
    let inner = inner.strip_suffix('"').unwrap_or(inner);
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..3).and_then(|it| std::str::from_utf8(it).ok());
        match digits.and_then(|it| u8::from_str_radix(it, 8).ok()) {
            Some(byte) if *first == b'\\' => {
                bytes.push(byte);
                rest = &after[3..];
            }
            Some(_) | None => {
                if *first != b'\\' {
                    bytes.push(*first);
                }
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns a name without its first `strip` folders. Without a number, programs remove one folder, all or none.
fn stripped(name: &str, strip: Option<usize>) -> Vec<String> {
    let without = |count: usize| name.splitn(count.saturating_add(1), '/').nth(count);
    let last = name.rsplit('/').next();
    let candidates = match strip {
        Some(count) => vec![without(count)],
        None => vec![Some(name), without(1), last],
    };
    let paths = candidates.into_iter().flatten().map(|path| path.trim_start_matches('/'));
    paths.filter(|path| !path.is_empty()).map(str::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_diffs() {
        let check = |text: &str, expected: &[&str]| {
            let mut names = names_in(text);
            names.dedup();
            assert_eq!(names, expected, "{text:?}");
        };
        check("--- a/x\t2020-01-01\n+++ b/y z\n-a\n+b", &["a/x", "b/y z", "b/y"]);
        check("--- /dev/null\\n+++ b/x\\n", &["b/x"]);
        check("diff --git a/x b/x\nold mode 1", &["a/x", "b/x"]);
        check("diff --git a/x y b/x y", &["a/x", "y", "b/x", "y", "b/x y"]);
        check("rename to \"infr\\141/x\"", &["infra/x"]);
        check("Index: x\nx", &["x"]);
    }

    #[test]
    fn leading_folders_are_removed() {
        assert_eq!(stripped("a/b/c", Some(1)), ["b/c"]);
        assert_eq!(stripped("a/b/c", Some(0)), ["a/b/c"]);
        assert_eq!(stripped("a//b", Some(1)), ["b"]);
        assert_eq!(stripped("a/b/c", None), ["a/b/c", "b/c", "c"]);
        assert_eq!(stripped("a", Some(3)), Vec::<String>::new());
    }
}
