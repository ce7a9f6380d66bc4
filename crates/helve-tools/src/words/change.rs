//! Words for changes to files: results, and why a change was not made.

use helve_core::after::WrittenFile;
use helve_core::change::AppliedChanges;
use helve_core::commit::HardLinks;
use helve_core::{Diagnostic, ErrorKind, ToolError};
use helve_text::diff::Unified;
use helve_text::edit::{Difference, Nearest, Refusal, Tolerance, Verdict};
use helve_text::syntax::FaultKind;
use helve_text::{lines, visible};

use super::missing_file;
use crate::ops::change::ChangeError;
use crate::ops::change::syntax::IntroducedError;

/// What a dialect calls the two texts of an edit.
pub(crate) struct EditTerms {
    pub(crate) old: &'static str,
    pub(crate) new: &'static str,
    /// The parameter that replaces every occurrence.
    pub(crate) all: Option<&'static str>,
}

/// A change was refused before anything was computed. `read_first` is the hint for a file that was not read.
pub(crate) fn change_error(error: ChangeError, read_first: &str) -> ToolError {
    match error {
        ChangeError::Context(error) => error,
        ChangeError::Folder { shown } => {
            ToolError::new(ErrorKind::InvalidArgs, format!("{shown} is a folder."))
                .hint("Name a file in it.")
        }
        ChangeError::Missing(missing) => missing_file(&missing),
        ChangeError::NotShown { shown } => {
            let message = format!(
                "{shown} exists and was not read in this conversation. Nothing was written."
            );
            ToolError::new(ErrorKind::Stale, message).hint(read_first)
        }
        ChangeError::ChangedSinceRead { shown, diff } => {
            let mut message = format!("{shown} changed since it was read. Nothing was written.");
            if let Some(diff) = diff {
                message.push_str(&format!(" This changed:\n{}", diff.text.trim_end()));
            }
            ToolError::new(ErrorKind::Stale, message)
                .hint("Read it again, then make the change with that in mind.")
        }
        ChangeError::Syntax(errors) => {
            let message = format!(
                "This change would bring in faults of syntax. Nothing was written.\n{}",
                each_error(&errors).trim_end()
            );
            ToolError::new(ErrorKind::Failed, message).hint(
                "Mend these lines (numbered as they would be) in the new text, and call again.",
            )
        }
    }
}

/// The answer to a change: the tool's first sentence, what became of the files, and the diffs.
pub(crate) fn made(first: &str, made: &AppliedChanges, diffs: &[Unified]) -> String {
    let mut text = format!("{first}\n");
    for written in &made.written {
        text.push_str(&remarks(written));
    }
    for diff in diffs.iter().filter(|diff| !diff.text.is_empty()) {
        let rest = if diff.cut { "(the rest of the difference is left out)\n" } else { "" };
        text.push_str(&format!("\n{}{rest}", diff.text));
    }
    if !made.diagnostics.is_empty() {
        text.push_str("\nThis is wrong with it now:\n");
        for Diagnostic { shown, line, message } in &made.diagnostics {
            text.push_str(&format!("- {shown}:{line}: {message}\n"));
        }
    }
    text
}

/// Syntax errors that a change introduced, as the end of an answer.
pub(crate) fn introduced(errors: &[IntroducedError]) -> String {
    if errors.is_empty() {
        return String::new();
    }
    format!("\nThis change brought in faults of syntax:\n{}", each_error(errors))
}

fn each_error(errors: &[IntroducedError]) -> String {
    let each = errors.iter().map(|IntroducedError { shown, fault }| match &fault.kind {
        FaultKind::Missing(what) => format!("- {shown}:{}: {what} is missing\n", fault.line),
        FaultKind::Unexpected(what) => {
            format!("- {shown}:{}: unexpected {}\n", fault.line, short(what))
        }
    });
    each.collect()
}

fn remarks(written: &WrittenFile) -> String {
    let shown = &written.shown;
    let mut text = String::new();
    if written.moved_on {
        text.push_str(&format!(
            "Somebody else changed other lines of {shown} meanwhile; both changes are in it.\n"
        ));
    }
    match (written.names, written.links) {
        (..2, _) => {}
        (names, HardLinks::Part) => {
            text.push_str(&format!("{shown} had {names} names; the others keep the old content.\n"))
        }
        (names, HardLinks::InPlace) => text
            .push_str(&format!("{shown} has {names} names; all of them show the new content.\n")),
    }
    if written.formatted {
        text.push_str(&format!(
            "{shown} was formatted afterwards: read it before the next edit.\n"
        ));
    }
    text
}

/// `3 lines added, 1 removed`
pub(crate) fn counts(diffs: &[Unified]) -> String {
    let added: usize = diffs.iter().map(|diff| diff.additions).sum();
    let removed: usize = diffs.iter().map(|diff| diff.deletions).sum();
    let lines = if added == 1 { "line" } else { "lines" };
    format!("{added} {lines} added, {removed} removed")
}

/// How a quotation was matched, where it was not exact.
pub(crate) fn leniently(tolerances: impl Iterator<Item = Tolerance>) -> Option<String> {
    let each: Vec<&str> = tolerances
        .map(|tolerance| match tolerance {
            Tolerance::TrailingBlanks => "blanks at line ends",
            Tolerance::Indentation => "indentation",
            Tolerance::InnerBlanks => "white space within lines",
            Tolerance::Typography => "typographic characters",
            Tolerance::BoundaryLines => "blank lines around the quotation",
            Tolerance::Escapes => "escaped characters",
            Tolerance::LineNumbers => "line numbers",
        })
        .collect();
    if each.is_empty() {
        return None;
    }
    Some(format!(
        "The quotation differed from the file in {}; the file's own form was kept.",
        each.join(", ")
    ))
}

/// Why an edit was not made, and what to do. `which` is a prefix that names the edit if there are several.
pub(crate) fn refused(shown: &str, which: &str, refusal: &Refusal, terms: &EditTerms) -> ToolError {
    let EditTerms { old, new, .. } = terms;
    let invalid = |text: String| unwritten(ErrorKind::InvalidArgs, which, &text);
    let stale = |text: String| unwritten(ErrorKind::Stale, which, &text);
    match refusal {
        Refusal::Binary => {
            ToolError::new(ErrorKind::Failed, format!("{shown} is not text, so it cannot be edited."))
        }
        Refusal::Blank => {
            invalid(format!("{old} is blank.")).hint("Quote the lines that are to be replaced.")
        }
        Refusal::Same => invalid(format!("{old} and {new} are the same.")),
        Refusal::NotFound(None) => {
            stale(format!("{old} is not in {shown}, and nothing in it is similar."))
                .hint("Read the file; it may be another one, or have changed.")
        }
        Refusal::NotFound(Some(nearest)) => not_found(shown, which, nearest, old),
        Refusal::Ambiguous { lines, count, .. } => ambiguous(shown, which, (lines, *count), terms),
        Refusal::WhiteSpaceOnly { line, .. } => stale(format!(
            "{new} differs only in white space, and {old} is not exactly what line {line} of {shown} has."
        ))
        .hint("Read the lines again and quote them exactly."),
        Refusal::Indentation { line, text } => stale(format!(
            "the indentation of \"{}\" in {new} has no counterpart near line {line} of {shown}.",
            short(text)
        ))
        .hint(format!("Quote {old} with the file's own indentation, and write {new} in it.")),
        Refusal::IndentationUnclear { line } => stale(format!(
            "{old} is indented otherwise than line {line} of {shown}, and {new} like the file: it is not clear which is meant."
        ))
        .hint("Read the lines again and quote them with their own indentation."),
        Refusal::LeftOut { text } => invalid(format!(
            "{new} leaves code out: the line \"{}\" would be written as it stands.",
            short(text)
        ))
        .hint("Write out all lines that are to be there, or quote less and leave the rest alone."),
        Refusal::Margin { line } => stale(format!(
            "{old} begins after the indentation of line {line} of {shown}, and {new} leaves open how far in the lines after it are to be."
        ))
        .hint(format!("Quote whole lines, with their indentation, and indent {new} like the file.")),
        Refusal::Typography { line, character } => typography(shown, which, (*line, *character), new),
        Refusal::Escapes { line } => stale(format!(
            "{old} is escaped once too often for line {line} of {shown}, and it is not clear what {new} means."
        ))
        .hint("Send both strings without the extra backslashes."),
        Refusal::LineNumbers { line } => stale(format!(
            "{old} carries the line numbers of the listing (line {line}), {new} only in part."
        ))
        .hint("Leave the numbers out of both."),
        Refusal::CannotEncode { line, character, encoding } => {
            let (encoding, character) = (encoding.name(), named(*character));
            let place = format!("line {line} of {new}");
            cannot_encode(shown, encoding, &format!("{character} ({place})"))
        }
        Refusal::NoEffect { line } => {
            stale(format!("line {line} of {shown} already reads as {new} says."))
        }
        Refusal::TooLarge => invalid(format!("the edit is too large to be compared with {shown}."))
            .hint("Split it into smaller edits."),
    }
}

fn unwritten(kind: ErrorKind, which: &str, text: &str) -> ToolError {
    ToolError::new(kind, format!("{which}{text} Nothing was written."))
}

fn ambiguous(
    shown: &str,
    which: &str,
    (lines, count): (&[usize], usize),
    terms: &EditTerms,
) -> ToolError {
    let text =
        format!("{} is in {shown} {count} times, at lines {}.", terms.old, numbers(lines, count));
    unwritten(ErrorKind::Stale, which, &text).hint(match terms.all {
        Some(all) => {
            format!("Quote more lines around the one you mean, or set {all} to change all of them.")
        }
        None => "Quote more lines around the one you mean.".into(),
    })
}

fn typography(shown: &str, which: &str, (line, character): (usize, char), new: &str) -> ToolError {
    let (text, hint) = match character {
        '\t' => (
            format!(
                "line {line} of {shown} has tabs between its columns where the edit has blanks."
            ),
            format!("Quote the lines exactly as they are, with the tabs, and use tabs in {new}."),
        ),
        character => (
            format!(
                "line {line} of {shown} has the typographic character {} where the edit has a plain one.",
                named(character)
            ),
            "Quote the line exactly as it is, with that character.".into(),
        ),
    };
    unwritten(ErrorKind::Stale, which, &text).hint(hint)
}

/// The encoding of a file cannot represent a character.
pub(crate) fn cannot_encode(shown: &str, encoding: &str, character: &str) -> ToolError {
    let text = format!("{shown} is in {encoding}, which has no form for {character}.");
    unwritten(ErrorKind::Failed, "", &text)
        .hint("Use another character, or convert the file first.")
}

fn not_found(shown: &str, which: &str, nearest: &Nearest, old: &str) -> ToolError {
    let Nearest { first_line, last_line, excerpt, difference, verdict } = nearest;
    let place = if first_line == last_line {
        format!("line {first_line}")
    } else {
        format!("lines {first_line}-{last_line}")
    };
    let mut text = format!(
        "{which}{old} is not in {shown}. Nothing was written. The nearest place is {place}: {}",
        verdict_text(*verdict, old)
    );
    if let Some(difference) = difference {
        text.push_str(&format!("\n{}", first_difference(difference, old)));
    }
    for (at, line) in excerpt.iter().enumerate() {
        text.push_str(&format!("\n{:05}| {line}", first_line + at));
    }
    ToolError::new(ErrorKind::Stale, text)
        .hint("Quote these lines as they stand, without their numbers, and call again.")
}

fn first_difference(difference: &Difference, old: &str) -> String {
    let Difference { line, quoted_line, column, quoted, found } = difference;
    let told = |character: &Option<char>| character.map_or("the end of the line".into(), named);
    format!(
        "They part at line {line}, column {column} (line {quoted_line} of {old}): the file has {}, {old} has {}.",
        told(found),
        told(quoted)
    )
}

fn verdict_text(verdict: Verdict, old: &str) -> String {
    let text = match verdict {
        Verdict::TrailingBlanks => "only blanks at line ends differ.",
        Verdict::Indentation => {
            "the lines are the same, but not all moved by the same indentation."
        }
        Verdict::TabsAgainstSpaces => "the lines are the same, but for tabs against spaces.",
        Verdict::Spacing => "only white space within lines differs.",
        Verdict::BlankLines => "only blank lines differ.",
        Verdict::LineEndings => "only line endings differ.",
        Verdict::Typographic => "typographic characters stand against plain ones.",
        Verdict::Escapes => return format!("{old} is escaped once too often."),
        Verdict::LineNumbers => return format!("{old} carries the line numbers of the listing."),
        Verdict::CaseOnly => "only the letter case differs.",
        Verdict::LookAlike => "a letter of another script looks the same.",
        Verdict::NormalForm => {
            "accented letters are composed on one side and decomposed on the other."
        }
        Verdict::StaleValue => "a value is another one now.",
        Verdict::Changed => "some lines read differently.",
        Verdict::Reordered => "the lines are there in another order.",
        Verdict::NotSeen => return format!("the file has lines in between that {old} leaves out."),
        Verdict::NotThere => "some quoted lines are not in the file.",
        Verdict::Elided => {
            return format!(
                "{old} leaves lines out with a mark in their place; every line must be quoted."
            );
        }
        Verdict::Different => "it is similar, no more.",
    };
    text.into()
}

fn numbers(lines: &[usize], count: usize) -> String {
    let shown: Vec<String> = lines.iter().take(10).map(ToString::to_string).collect();
    let more = if count > shown.len() { " …" } else { "" };
    format!("{}{more}", shown.join(", "))
}

/// A character by its look and its number.
fn named(character: char) -> String {
    let look = visible::escape_line(character.encode_utf8(&mut [0; 4])).into_owned();
    match character {
        ' ' => "a space".into(),
        '\t' => "a tab".into(),
        _ => format!("\"{look}\" (U+{:04X})", u32::from(character)),
    }
}

fn short(text: &str) -> String {
    let (clipped, cut) = lines::clip(text.trim(), 60);
    let dots = if cut { "…" } else { "" };
    format!("{}{dots}", visible::escape_line(clipped))
}
