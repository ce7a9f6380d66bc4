//! Messages about changes to files: results, and why a change was not made.

use helve_core::after::WrittenFile;
use helve_core::change::AppliedChanges;
use helve_core::commit::HardLinks;
use helve_core::{
    Diagnostic, DiagnosticReport, DiagnosticSeverity, ErrorKind, MissedCheck, ToolError,
    UncheckedReason,
};
use helve_text::diff::UnifiedDiff;
use helve_text::edit::{
    EditRefusal, FirstDifference, Mismatch, NearestMatch, TextFault, Tolerance,
};
use helve_text::path_text::PathOddity;
use helve_text::syntax::SyntaxErrorKind;
use helve_text::{lines, visible};

use super::{clip, missing_file};
use crate::ops::change::diff::difference;
use crate::ops::change::syntax::IntroducedError;
use crate::ops::change::{ChangeError, NewEntryKind};

/// Maximum number of lines in the diff of what a formatter changed.
const MAX_FORMATTED_LINES: usize = 20;

/// What a dialect calls the two texts of an edit.
pub(crate) struct EditTerms {
    pub(crate) old: &'static str,
    pub(crate) new: &'static str,
    /// The parameter that replaces every occurrence.
    pub(crate) all: Option<&'static str>,
}

/// Returns the error for a file that was not changed. `read_first` is the hint for a file that was not read.
pub(crate) fn change_error(error: ChangeError, read_first: &str) -> ToolError {
    match error {
        ChangeError::Context(error) => error,
        ChangeError::Folder { display_path } => {
            ToolError::new(ErrorKind::InvalidArgs, format!("{display_path} is a folder."))
                .hint("Name a file in the folder.")
        }
        ChangeError::Missing(missing) => missing_file(&missing),
        ChangeError::NotRead { display_path } => {
            let message = format!(
                "{display_path} exists but was not read in this conversation. Nothing was written."
            );
            ToolError::new(ErrorKind::Stale, message).hint(read_first)
        }
        ChangeError::ChangedSinceRead { display_path, diff } => {
            let message = format!("{display_path} changed since it was read.");
            changed_meanwhile(&message, diff.as_ref())
        }
        ChangeError::Syntax(errors) => {
            let message = format!(
                "This change would introduce syntax errors. Nothing was written.\n{}",
                error_lines(&errors).trim_end()
            );
            ToolError::new(ErrorKind::Failed, message)
                .hint("Fix these lines (numbers refer to the new file) and call again.")
        }
        ChangeError::OddPath { given, suggested, oddity } => odd_path(&given, &suggested, oddity),
        ChangeError::LookAlike { given, existing, new } => {
            let (given, existing) = (clip(&given), clip(&existing));
            let (message, kind) = match new {
                NewEntryKind::File => (
                    format!("{given} looks like the existing {existing} but has other characters."),
                    "file",
                ),
                NewEntryKind::Folder => (
                    format!(
                        "{given} would create a folder that looks like an existing one but has other characters."
                    ),
                    "folder",
                ),
            };
            ToolError::new(ErrorKind::InvalidArgs, format!("{message} Nothing was written."))
                .hint(format!("Use the path {existing}, or another name for a new {kind}."))
        }
        ChangeError::Faulty { display_path, fault } => {
            faulty("", &fault, &format!("The text for {display_path}"))
        }
    }
}

/// Returns the error for a file that somebody else changed after the change was computed; `diff` shows what they
/// changed.
pub(crate) fn changed_meanwhile(message: &str, diff: Option<&UnifiedDiff>) -> ToolError {
    let mut message = format!("{message} Nothing was written.");
    if let Some(diff) = diff {
        message.push_str(&format!(" Changes since then:\n{}", diff.text.trim_end()));
    }
    ToolError::new(ErrorKind::Stale, message).hint("Read the file again, then redo the change.")
}

/// Returns the error for the path of a new file that no person would type.
fn odd_path(given: &str, plain: &str, oddity: PathOddity) -> ToolError {
    let why = match oddity {
        PathOddity::WhiteSpace => "has white space around a name",
        PathOddity::Decoration => "has quotes or other marks around it",
        PathOddity::Link => "is a Markdown link",
        PathOddity::Label => "has a label before it",
        PathOddity::Address => "is an address",
        PathOddity::Backslashes => "has backslashes or control characters",
        PathOddity::Suffix => "has text after the name",
        PathOddity::Invisible => "has invisible characters",
        PathOddity::ToolCall => "has part of a tool call in it",
    };
    let message =
        format!("The path \"{}\" {why}. Nothing was written.", visible::escape_line(given));
    ToolError::new(ErrorKind::InvalidArgs, message)
        .hint(format!("Use the plain path: {}", visible::escape_line(plain)))
}

/// Returns the error for a text that should not be written as it was sent. `new` names the text.
fn faulty(which: &str, fault: &TextFault, new: &str) -> ToolError {
    let (text, hint) = match fault {
        TextFault::Placeholder { text } => (
            format!(
                "{new} omits code: the line \"{}\" would replace existing lines.",
                clip_line(text)
            ),
            "Write out every line, or quote less and leave the rest alone.",
        ),
        TextFault::ToolCall { text } => (
            format!("{new} contains part of a tool call: \"{}\".", clip_line(text)),
            "Send the text without the tags of the call.",
        ),
        TextFault::Listing { text } => (
            format!("{new} has line numbers in front of its lines: \"{}\".", clip_line(text)),
            "Send the lines without the numbers that read shows.",
        ),
        TextFault::Fence { text } => (
            format!("{new} is in a Markdown code fence: \"{}\".", clip_line(text)),
            "Send the text without the fence.",
        ),
        TextFault::EscapedNewline { text } => (
            format!(
                "{new} has the two characters \\n where a line break belongs: \"{}\".",
                clip_line(text)
            ),
            "Send real line breaks.",
        ),
        TextFault::Entities { text } => (
            format!(
                "{new} has HTML entities where the file has plain characters: \"{}\".",
                clip_line(text)
            ),
            "Send the characters themselves.",
        ),
        TextFault::EscapedBackquotes { text } => (
            format!(
                "{new} has backslashes before backquotes that the file has without: \"{}\".",
                clip_line(text)
            ),
            "Send the backquotes and ${ without backslashes.",
        ),
        TextFault::Nul { line } => {
            (format!("{new} has a NUL character in line {line}."), "Send the text without it.")
        }
    };
    nothing_written(ErrorKind::InvalidArgs, which, &text).hint(hint)
}

/// Returns the answer to a change: the tool's first sentence, notes on the written files, and the diffs.
pub(crate) fn change_summary(
    first: &str,
    applied: Option<&AppliedChanges>,
    diffs: &[UnifiedDiff],
) -> String {
    let mut text = format!("{first}\n");
    if applied.is_none() {
        text.push_str("This is a preview. Nothing was written.\n");
    }
    for written in applied.into_iter().flat_map(|applied| &applied.written) {
        text.push_str(&file_notes(written));
    }
    for diff in diffs.iter().filter(|diff| !diff.text.is_empty()) {
        let rest = if diff.cut { "(rest of the diff omitted)\n" } else { "" };
        text.push_str(&format!("\n{}{rest}", diff.text));
    }
    if let Some(applied) = applied {
        text.push_str(&report_text(&applied.report));
    }
    text
}

/// Returns the problems that language servers found after a change, and which servers have not checked it yet.
fn report_text(report: &DiagnosticReport) -> String {
    let DiagnosticReport { diagnostics, earlier, left_out, unchecked } = report;
    let mut text = String::new();
    for (origin, list) in [("This change", diagnostics), ("An earlier change", earlier)] {
        if list.is_empty() {
            continue;
        }
        let has_only_errors = list.iter().all(|it| it.severity == DiagnosticSeverity::Error);
        let what = if has_only_errors { "errors" } else { "problems" };
        text.push_str(&format!("\n{origin} introduced {what}:\n"));
        text.extend(list.iter().map(|it| format!("- {}\n", diagnostic_line(it))));
    }
    if *left_out > 0 {
        text.push_str(&format!("- and {left_out} more\n"));
    }
    for MissedCheck { program, reason } in unchecked {
        let why = match reason {
            UncheckedReason::Starting => "is still starting",
            UncheckedReason::Loading => "is still loading the project",
            UncheckedReason::NoAnswer => "did not answer in time",
        };
        text.push_str(&format!(
            "\nNot checked yet: {program} {why}. The errors that it finds are listed after a later change.\n"
        ));
    }
    text
}

/// Returns a problem in one line, with its position, code and source.
pub(crate) fn diagnostic_line(diagnostic: &Diagnostic) -> String {
    let Diagnostic { display_path, line, column, severity, message, code, source } = diagnostic;
    let severity = match severity {
        DiagnosticSeverity::Error => "",
        DiagnosticSeverity::Warning => "warning: ",
        DiagnosticSeverity::Information => "information: ",
        DiagnosticSeverity::Hint => "hint: ",
    };
    let origin = match (source, code) {
        (Some(source), Some(code)) => format!(" ({source} {code})"),
        (Some(only), None) | (None, Some(only)) => format!(" ({only})"),
        (None, None) => String::new(),
    };
    format!("{display_path}:{line}:{column}: {severity}{message}{origin}")
}

/// Returns the end of an answer that lists the syntax errors that a change introduced. Lines for which a language
/// server reported an error are left out: its message says more.
pub(crate) fn introduced_errors_text(
    errors: &[IntroducedError],
    applied: Option<&AppliedChanges>,
) -> String {
    let reported = applied.map(|applied| applied.report.diagnostics.as_slice()).unwrap_or_default();
    let is_reported = |error: &IntroducedError| {
        reported.iter().any(|it| {
            it.severity == DiagnosticSeverity::Error
                && it.display_path == error.display_path
                && it.line == error.error.line as u64
        })
    };
    let unreported: Vec<&IntroducedError> = errors.iter().filter(|it| !is_reported(it)).collect();
    if unreported.is_empty() {
        return String::new();
    }
    format!("\nThis change introduced syntax errors:\n{}", error_lines(unreported))
}

fn error_lines<'a>(errors: impl IntoIterator<Item = &'a IntroducedError>) -> String {
    let lines =
        errors.into_iter().map(|IntroducedError { display_path, error }| match &error.kind {
            SyntaxErrorKind::Missing(what) => {
                format!("- {display_path}:{}: missing {what}\n", error.line)
            }
            SyntaxErrorKind::Unexpected(what) => {
                format!("- {display_path}:{}: unexpected {}\n", error.line, clip_line(what))
            }
        });
    lines.collect()
}

fn file_notes(written: &WrittenFile) -> String {
    let display_path = &written.display_path;
    let mut text = String::new();
    if written.rebased {
        text.push_str(&format!(
            "Someone else changed other lines of {display_path} in the meantime; both changes were kept.\n"
        ));
    }
    match (written.hard_links, written.link_mode) {
        (..2, _) => {}
        (count, HardLinks::Replace) => text.push_str(&format!(
            "{display_path} had {count} hard links; the others keep the old content.\n"
        )),
        (count, HardLinks::InPlace) => text.push_str(&format!(
            "{display_path} has {count} hard links; all of them have the new content.\n"
        )),
    }
    if let (Some(before), Some(now)) = (&written.before_formatting, &written.bytes) {
        let diff = difference(display_path, Some(before), Some(now));
        let lines = diff.additions + diff.deletions;
        text.push_str(&if lines <= MAX_FORMATTED_LINES && !diff.cut {
            format!("A formatter then changed {display_path}:\n{}", diff.text)
        } else {
            format!("A formatter then changed {lines} lines of {display_path}: read it before the next edit.\n")
        });
    }
    text
}

/// Returns the number of changed lines, like `3 lines added, 1 removed`.
pub(crate) fn line_counts(diffs: &[UnifiedDiff]) -> String {
    let added: usize = diffs.iter().map(|diff| diff.additions).sum();
    let removed: usize = diffs.iter().map(|diff| diff.deletions).sum();
    let lines = if added == 1 { "line" } else { "lines" };
    format!("{added} {lines} added, {removed} removed")
}

/// Returns a sentence about what differed between the quoted text and the file, or `None` for an exact match.
pub(crate) fn tolerances_text(tolerances: impl Iterator<Item = Tolerance>) -> Option<String> {
    let differences: Vec<&str> = tolerances
        .map(|tolerance| match tolerance {
            Tolerance::TrailingBlanks => "trailing white space",
            Tolerance::Indentation => "indentation",
            Tolerance::InnerBlanks => "white space within lines",
            Tolerance::Typography => "typographic characters",
            Tolerance::BoundaryLines => "blank lines around the quoted text",
            Tolerance::Escapes => "escaped characters",
            Tolerance::LineNumbers => "line numbers",
        })
        .collect();
    if differences.is_empty() {
        return None;
    }
    Some(format!(
        "The quoted text differed from the file in {}; the replaced lines keep the file's form.",
        differences.join(", ")
    ))
}

/// Returns the error that says why an edit was not made, and what to do. `which` is a prefix that names the edit if
/// there are several.
pub(crate) fn refused(
    display_path: &str,
    which: &str,
    refusal: &EditRefusal,
    terms: &EditTerms,
) -> ToolError {
    let EditTerms { old, new, .. } = terms;
    let invalid = |text: String| nothing_written(ErrorKind::InvalidArgs, which, &text);
    let stale = |text: String| nothing_written(ErrorKind::Stale, which, &text);
    match refusal {
        EditRefusal::Binary => {
            ToolError::new(ErrorKind::Failed, format!("{display_path} is not text, so it cannot be edited."))
        }
        EditRefusal::Blank => {
            invalid(format!("{old} is blank.")).hint("Quote the lines to replace.")
        }
        EditRefusal::Same => invalid(format!("{old} and {new} are identical.")),
        EditRefusal::NotFound(None) => {
            stale(format!("{old} was not found in {display_path}, and nothing in the file is similar."))
                .hint("Read the file: it may be the wrong one, or it may have changed.")
        }
        EditRefusal::NotFound(Some(nearest)) => not_found(display_path, which, nearest, old),
        EditRefusal::Ambiguous { lines, count, .. } => ambiguous(display_path, which, (lines, *count), terms),
        EditRefusal::WhiteSpaceOnly { line, .. } => stale(format!(
            "{new} changes only white space, and {old} does not match line {line} of {display_path} exactly."
        ))
        .hint("Read the lines again and quote them exactly."),
        EditRefusal::UnconvertibleIndentation { line, text } => stale(format!(
            "no line near line {line} of {display_path} is indented like \"{}\" in {new}.",
            clip_line(text)
        ))
        .hint(format!("Quote {old} with the file's indentation, and use it in {new}.")),
        EditRefusal::UnclearIndentation { line } => stale(format!(
            "{old} is indented differently from line {line} of {display_path}, but {new} is indented like the file: it is unclear which indentation is meant."
        ))
        .hint("Read the lines again and quote them with their own indentation."),
        EditRefusal::Faulty(fault) => faulty(which, fault, new),
        EditRefusal::EmptyFile => stale(format!("{display_path} has no text, so nothing can be quoted from it."))
            .hint("Write the whole content of the file."),
        EditRefusal::AlreadyApplied { line } => stale(format!(
            "{display_path} already has {new} at line {line}: the change seems to have been made already."
        ))
        .hint("Read the file to see its present content before you change it again."),
        EditRefusal::CutWord { line, word } => stale(format!(
            "{old} begins or ends inside the word \"{}\" at line {line} of {display_path}, and {new} has the rest of that word too, so it would be there twice.",
            clip_line(word)
        ))
        .hint("Quote whole words, or whole lines."),
        EditRefusal::PartialIndentation { line } => stale(format!(
            "{old} starts after the indentation of line {line} of {display_path}, so the indentation of the following lines of {new} is unclear."
        ))
        .hint(format!("Quote whole lines with their indentation, and indent {new} like the file.")),
        EditRefusal::AmbiguousCharacter { line, character } => typography(display_path, which, (*line, *character), new),
        EditRefusal::Escapes { line } => stale(format!(
            "{old} is escaped once too often for line {line} of {display_path}, and it is unclear what {new} means."
        ))
        .hint("Send both strings without the extra backslashes."),
        EditRefusal::LineNumbers { line } => stale(format!(
            "{old} contains line numbers (see line {line}), but only some lines of {new} do."
        ))
        .hint("Remove the line numbers from both texts."),
        EditRefusal::CannotEncode { line, character, encoding } => {
            let (encoding, character) = (encoding.name(), character_name(*character));
            let place = format!("line {line} of {new}");
            cannot_encode(display_path, encoding, &format!("{character} ({place})"))
        }
        EditRefusal::NoEffect { line } => {
            stale(format!("{display_path} already has {new} at line {line}."))
        }
        EditRefusal::TooLarge => invalid(format!("the edit is too large to compare with {display_path}."))
            .hint("Split the edit into smaller edits."),
    }
}

fn nothing_written(kind: ErrorKind, which: &str, text: &str) -> ToolError {
    ToolError::new(kind, format!("{which}{text} Nothing was written."))
}

fn ambiguous(
    display_path: &str,
    which: &str,
    (lines, count): (&[usize], usize),
    terms: &EditTerms,
) -> ToolError {
    let text = format!(
        "{} occurs {count} times in {display_path}, at lines {}.",
        terms.old,
        line_numbers(lines, count)
    );
    nothing_written(ErrorKind::Stale, which, &text).hint(match terms.all {
        Some(all) => {
            format!("Quote more lines around the one you mean, or set {all} to replace every occurrence.")
        }
        None => "Quote more lines around the one you mean.".into(),
    })
}

fn typography(
    display_path: &str,
    which: &str,
    (line, character): (usize, char),
    new: &str,
) -> ToolError {
    let (text, hint) = match character {
        '\t' => (
            format!(
                "line {line} of {display_path} has tabs between columns where the edit has spaces."
            ),
            format!("Quote the lines exactly, with the tabs, and use tabs in {new}."),
        ),
        character => (
            format!(
                "line {line} of {display_path} has the typographic character {} where the edit has a plain one.",
                character_name(character)
            ),
            "Quote the line exactly, with that character.".into(),
        ),
    };
    nothing_written(ErrorKind::Stale, which, &text).hint(hint)
}

/// Returns the error for a character that the encoding of the file cannot represent.
pub(crate) fn cannot_encode(display_path: &str, encoding: &str, character: &str) -> ToolError {
    let text =
        format!("{display_path} is encoded in {encoding}, which cannot represent {character}.");
    nothing_written(ErrorKind::Failed, "", &text)
        .hint("Use another character, or convert the file first.")
}

fn not_found(display_path: &str, which: &str, nearest: &NearestMatch, old: &str) -> ToolError {
    let NearestMatch { first_line, last_line, excerpt, difference, mismatch } = nearest;
    let place = if first_line == last_line {
        format!("line {first_line}")
    } else {
        format!("lines {first_line}-{last_line}")
    };
    let mut text = format!(
        "{which}{old} was not found in {display_path}. Nothing was written. The closest match is {place}: {}",
        mismatch_text(*mismatch, old)
    );
    if let Some(difference) = difference {
        text.push_str(&format!("\n{}", first_difference(difference, old)));
    }
    for (at, line) in excerpt.iter().enumerate() {
        text.push_str(&format!("\n{:05}| {line}", first_line + at));
    }
    ToolError::new(ErrorKind::Stale, text)
        .hint("Quote these lines exactly, without the line numbers, and call again.")
}

fn first_difference(difference: &FirstDifference, old: &str) -> String {
    let FirstDifference { line, quoted_line, column, quoted, found } = difference;
    let describe =
        |character: &Option<char>| character.map_or("the end of the line".into(), character_name);
    format!(
        "First difference at line {line}, column {column} (line {quoted_line} of {old}): the file has {}, {old} has {}.",
        describe(found),
        describe(quoted)
    )
}

fn mismatch_text(mismatch: Mismatch, old: &str) -> String {
    let text = match mismatch {
        Mismatch::TrailingBlanks => "only trailing white space differs.",
        Mismatch::Indentation => {
            "the lines match, but their indentation differs by varying amounts."
        }
        Mismatch::TabsAgainstSpaces => "the lines match except for tabs and spaces.",
        Mismatch::Spacing => "only white space within lines differs.",
        Mismatch::BlankLines => "only blank lines differ.",
        Mismatch::LineEndings => "only line endings differ.",
        Mismatch::Typographic => "one side has typographic characters, the other plain ones.",
        Mismatch::Escapes => return format!("{old} is escaped once too often."),
        Mismatch::LineNumbers => return format!("{old} contains line numbers."),
        Mismatch::CaseOnly => "only letter case differs.",
        Mismatch::LookAlike => "a character looks the same but belongs to another script.",
        Mismatch::NormalForm => {
            "accented characters are composed on one side and decomposed on the other."
        }
        Mismatch::StaleValue => "a value has changed.",
        Mismatch::Changed => "some lines differ.",
        Mismatch::Reordered => "the lines are in a different order.",
        Mismatch::OmittedLines => {
            return format!("the file has lines in between that {old} omits.");
        }
        Mismatch::ExtraLines => "some quoted lines are not in the file.",
        Mismatch::Placeholder => {
            return format!("{old} has a placeholder for omitted lines; quote every line.");
        }
        Mismatch::Entities => {
            return format!(
                "{old} has HTML entities such as &lt; where the file has plain characters."
            );
        }
        Mismatch::Different => "some of its text is similar.",
    };
    text.into()
}

fn line_numbers(lines: &[usize], count: usize) -> String {
    let listed: Vec<String> = lines.iter().take(10).map(ToString::to_string).collect();
    let more = if count > listed.len() { " …" } else { "" };
    format!("{}{more}", listed.join(", "))
}

/// Returns a character with its code point, for a message.
fn character_name(character: char) -> String {
    let visible_form = visible::escape_line(character.encode_utf8(&mut [0; 4])).into_owned();
    match character {
        ' ' => "a space".into(),
        '\t' => "a tab".into(),
        _ => format!("\"{visible_form}\" (U+{:04X})", u32::from(character)),
    }
}

fn clip_line(text: &str) -> String {
    let (clipped, cut) = lines::clip(text.trim(), 60);
    let dots = if cut { "…" } else { "" };
    format!("{}{dots}", visible::escape_line(clipped))
}
