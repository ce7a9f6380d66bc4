//! Recognizes commands that only read. Such a command needs no rule if the files that it reads need none.

use super::args::{Argument, ParsedArgs};
use super::commands::Invocation;
use super::names::{self, NameGroup};
use super::walk::{StdinSource, Walker};
use super::{Approval, Word};
use crate::secrets::is_secret_variable;

/// Records whether a command of a known program only reads. All its other effects must be recorded before.
pub(super) fn record(walker: &mut Walker<'_>, call: &Invocation<'_>) {
    let shows_secret = call.words.iter().any(|word| shows_secret(word, call.args));
    let writes = |it: &super::FileAccess| it.run == Some(call.run) && it.kind.writes();
    let has_written = walker.script.accesses.iter().any(writes);
    let Some(run) = walker.script.runs.get_mut(call.run) else { return };
    if shows_secret {
        run.approval = Approval::Required;
    }
    // A program that is given as a path may be any program.
    let is_named = run.words.first().and_then(Word::literal).is_some_and(|it| !it.contains('/'));
    run.only_reads = is_named
        && is_listed(call)
        && run.risks.is_empty()
        && run.assignments.is_empty()
        && !has_written
        && !shows_secret;
}

/// Whether a command is a known program with `--version` or `--help` and nothing else.
pub(super) fn prints_version(words: &[Word], stdin: &StdinSource) -> bool {
    let texts: Vec<Option<&str>> = words.iter().map(Word::literal).collect();
    match texts.as_slice() {
        [Some(program), Some("--version" | "--help")] => {
            // Some interpreters print their version and then run their input.
            matches!(stdin, StdinSource::Nothing)
                && names::contains(NameGroup::PrintsVersion, program)
        }
        _ => false,
    }
}

/// Whether `programs.txt` says that a program with these arguments only reads.
fn is_listed(call: &Invocation<'_>) -> bool {
    let args = call.args;
    let spec = args.spec;
    let is_operand = |it: &Argument| it.flag.is_none();
    let has_no_operands = args.operand_count == 0 && !args.arguments.iter().any(is_operand);
    let mut operands = args.arguments.iter().filter(|it| is_operand(it));
    let has_one_known_operand =
        args.operand_count == 1 && operands.all(|it| it.value.literal().is_some());
    // Some interpreters print their version and then run their operands or their input.
    let is_listed = spec.traits.only_reads
        || spec.traits.only_reads_alone && has_no_operands
        || spec.traits.only_reads_with_one && has_one_known_operand
        || args.has_any(&spec.only_reads_with)
            && !(spec.traits.runs_stdin && (!has_no_operands || call.has_input()));
    is_listed && !args.has_any(&spec.changes_with)
}

/// Whether a word contains a variable with a secret, or stands for the whole environment.
fn shows_secret(word: &Word, args: &ParsedArgs) -> bool {
    let text = word.shown();
    let names = text.split('$').skip(1).map(|rest| {
        let rest = rest.trim_start_matches(['{', '!', '#']);
        rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or("")
    });
    let is_dynamic = matches!(word, Word::Dynamic(_));
    is_dynamic && names.into_iter().any(is_secret_variable)
        || args.spec.secret_words.iter().any(|name| mentions(text, name))
}

/// Whether code contains this name, not counting fields of objects.
fn mentions(text: &str, name: &str) -> bool {
    let is_name_char = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + name.len()..].chars().next();
        !before.is_some_and(|c| is_name_char(c) || c == '.') && !after.is_some_and(is_name_char)
    })
}
