//! What is known about the paths that `find` prints or passes to a command.

use super::args::ParsedArgs;
use super::file_patterns;
use super::flags::exec_end;
use super::state::{PossibleDirs, ShellState};
use super::{DynamicKind, DynamicWord, Word};

/// Flags with which `find` prints something other than paths that end with NUL.
const PRINTING_FLAGS: &[&str] =
    &["-print", "-printf", "-ls", "-exec", "-execdir", "-ok", "-okdir", "-help", "--help"];

/// Words that make a `-type` test unreliable. `-o` and others may skip the test, `-L` and others follow symbolic
/// links. The empty text stands for a word that is only known at run time.
const WEAKENS_TYPE_TEST: &[&str] =
    &["-o", "-or", "!", "-not", ",", "(", "-L", "-follow", "-fprintf", "-files0-from", ""];

/// The output of a `find` command.
#[derive(Clone, Debug)]
pub(super) struct FindOutput {
    /// No path is a symbolic link.
    pub(super) excludes_links: bool,
    /// Each path ends with a NUL, so that a path with blanks is not split.
    pub(super) nul_separated: bool,
    /// Files that the tests of the command select by name.
    pub(super) selected_files: Vec<Word>,
    /// The working directory of the command.
    pub(super) dirs: PossibleDirs,
}

/// Describes the output of a `find` command.
pub(super) fn output(words: &[Word], args: &ParsedArgs, state: &ShellState) -> FindOutput {
    let print_at = words.iter().position(|word| word.literal() == Some("-print0"));
    FindOutput {
        excludes_links: excludes_links(words, print_at.unwrap_or(0)),
        nul_separated: args.has_any(&["-print0"]) && !args.has_any(PRINTING_FLAGS),
        selected_files: file_patterns::files_in_find(words),
        dirs: state.dirs.clone(),
    }
}

/// Whether a `-type` test before the word at index `before` certainly excludes symbolic links, which could lead
/// anywhere.
pub(super) fn excludes_links(words: &[Word], before: usize) -> bool {
    const COMMANDS: &[&str] = &["-exec", "-execdir", "-ok", "-okdir"];
    let texts: Vec<&str> = words.iter().map(|word| word.literal().unwrap_or("")).collect();
    let mut at = 1;
    let mut has_type_test = false;
    while at < texts.len() {
        if COMMANDS.contains(&texts[at]) {
            at = exec_end(words, at + 1, texts[at]) + 1;
            continue;
        }
        if WEAKENS_TYPE_TEST.contains(&texts[at]) {
            return false;
        }
        let is_test = texts[at] == "-type" && matches!(texts.get(at + 1), Some(&("f" | "d")));
        has_type_test |= is_test && at < before;
        at += 1;
    }
    has_type_test
}

/// Turns a word that contains `placeholder` into one that is only known at run time.
pub(super) fn substitute(word: &mut Word, placeholder: &str, kind: DynamicKind) {
    let Word::Literal(text) = word else { return };
    let parts = text.split_once(placeholder).filter(|_| !placeholder.is_empty());
    let Some((before, after)) = parts else { return };
    let is_whole = before.is_empty() && after.is_empty();
    let prefix = match kind {
        DynamicKind::FindResult { .. } if is_whole => "./".to_string(),
        _ => before.to_string(),
    };
    let kind = if is_whole { kind } else { DynamicKind::Anything };
    let shown = text.clone();
    *word = Word::Dynamic(DynamicWord {
        shown,
        prefix,
        kind,
        may_split: false,
        may_end_at_prefix: false,
    });
}

/// Forgets that a word is a path from `find`, because it is now used in another directory.
pub(super) fn forget_origin(word: &mut Word) {
    if let Word::Dynamic(dynamic) = word
        && let DynamicKind::FindResult { .. } = dynamic.kind
    {
        dynamic.kind = DynamicKind::Anything;
    }
}
