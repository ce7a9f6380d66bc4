//! Words for changes to files: previews, results, and why an edit was not made.

use helve_core::after::Written;
use helve_core::change::Made;
use helve_core::commit::HardLinks;
use helve_core::{Diagnostic, ErrorKind, ToolError};
use helve_text::diff::{self, Bounds, Labels, Unified};
use helve_text::edit::{Difference, Nearest, Refusal, Tolerance, Verdict};
use helve_text::lines;
use helve_text::syntax::{self, FaultKind};
use helve_text::view::View;
use helve_text::visible;

/// The difference between two states of a file, to be shown before and after.
pub(in crate::opencode) fn difference(
    shown: &str,
    old: Option<&[u8]>,
    new: Option<&[u8]>,
) -> Unified {
    let labels =
        Labels { old: old.map_or("/dev/null", |_| shown), new: new.map_or("/dev/null", |_| shown) };
    let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
    diff::unified(old, new, labels, Bounds::USUAL).unwrap_or_else(|_binary| Unified {
        text: format!("{shown}: {} bytes become {} bytes, not text\n", old.len(), new.len()),
        additions: 0,
        deletions: 0,
        cut: false,
    })
}

/// What was done to the files, after the tool's own first sentence.
pub(in crate::opencode) fn made(first: &str, made: &Made, diffs: &[Unified]) -> String {
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

/// Syntax faults that a change brings in, one a line. Empty where there are none.
pub(in crate::opencode) fn faults(shown: &str, old: Option<&[u8]>, new: Option<&[u8]>) -> String {
    let Some(language) = syntax::language(shown) else { return String::new() };
    let text = |bytes: &[u8]| View::new(bytes).ok().map(|view| view.text().to_string());
    let Some(after) = new.and_then(text) else { return String::new() };
    let introduced = syntax::introduced(language, old.and_then(text).as_deref(), &after);
    let each = introduced.iter().map(|fault| match &fault.kind {
        FaultKind::Missing(what) => format!("- {shown}:{}: {what} is missing\n", fault.line),
        FaultKind::Unexpected(what) => {
            format!("- {shown}:{}: unexpected {}\n", fault.line, short(what))
        }
    });
    each.collect()
}

/// Faults that are there now, to be put after what was done.
pub(in crate::opencode) fn brought_in(faults: &str) -> String {
    if faults.is_empty() {
        return String::new();
    }
    format!("\nThis change brought in faults of syntax:\n{faults}")
}

/// Faults that a change would bring in, where that is not wished.
pub(in crate::opencode) fn broken(faults: &str) -> ToolError {
    let message = format!(
        "This change would bring in faults of syntax. Nothing was written.\n{}",
        faults.trim_end()
    );
    ToolError::new(ErrorKind::Failed, message)
        .hint("Mend these lines (numbered as they would be) in the new text, and call again.")
}

fn remarks(written: &Written) -> String {
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
pub(in crate::opencode) fn counts(diffs: &[Unified]) -> String {
    let added: usize = diffs.iter().map(|diff| diff.additions).sum();
    let removed: usize = diffs.iter().map(|diff| diff.deletions).sum();
    let lines = if added == 1 { "line" } else { "lines" };
    format!("{added} {lines} added, {removed} removed")
}

/// How a quotation was matched, where it was not exact.
pub(in crate::opencode) fn leniently(
    tolerances: impl Iterator<Item = Tolerance>,
) -> Option<String> {
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

/// Why an edit was not made, and what to do. `which` names the edit, if there are several.
pub(in crate::opencode) fn refused(shown: &str, which: &str, refusal: &Refusal) -> ToolError {
    let invalid = |text: String| ToolError::new(ErrorKind::InvalidArgs, text);
    let stale = |text: String| ToolError::new(ErrorKind::Stale, text);
    let nothing = "Nothing was written.";
    match refusal {
        Refusal::Binary => {
            ToolError::new(ErrorKind::Failed, format!("{shown} is not text, so it cannot be edited."))
        }
        Refusal::Blank => invalid(format!("{which}oldString is blank. {nothing}"))
            .hint("Quote the lines that are to be replaced."),
        Refusal::Same => invalid(format!("{which}oldString and newString are the same. {nothing}")),
        Refusal::NotFound(None) => {
            stale(format!("{which}oldString is not in {shown}, and nothing in it is similar. {nothing}"))
                .hint("Read the file; it may be another one, or have changed.")
        }
        Refusal::NotFound(Some(nearest)) => not_found(shown, which, nearest),
        Refusal::Ambiguous { lines, count, .. } => stale(format!(
            "{which}oldString is in {shown} {count} times, at lines {}. {nothing}",
            numbers(lines, *count)
        ))
        .hint("Quote more lines around the one you mean, or set replaceAll to change all of them."),
        Refusal::WhiteSpaceOnly { line, .. } => stale(format!(
            "{which}newString differs only in white space, and oldString is not exactly what line {line} of {shown} has. {nothing}"
        ))
        .hint("Read the lines again and quote them exactly."),
        Refusal::Indentation { line, text } => stale(format!(
            "{which}the indentation of \"{}\" in newString has no counterpart near line {line} of {shown}. {nothing}",
            short(text)
        ))
        .hint("Quote oldString with the file's own indentation, and write newString in it."),
        Refusal::IndentationUnclear { line } => stale(format!(
            "{which}oldString is indented otherwise than line {line} of {shown}, and newString like the file: it is not clear which is meant. {nothing}"
        ))
        .hint("Read the lines again and quote them with their own indentation."),
        Refusal::LeftOut { text } => ToolError::new(
            ErrorKind::InvalidArgs,
            format!(
                "{which}newString leaves code out: the line \"{}\" would be written as it stands. {nothing}",
                short(text)
            ),
        )
        .hint("Write out all lines that are to be there, or quote less and leave the rest alone."),
        Refusal::Margin { line } => stale(format!(
            "{which}oldString begins after the indentation of line {line} of {shown}, and newString leaves open how far in the lines after it are to be. {nothing}"
        ))
        .hint("Quote whole lines, with their indentation, and indent newString like the file."),
        Refusal::Typography { line, character: '\t' } => stale(format!(
            "{which}line {line} of {shown} has tabs between its columns where the edit has blanks. {nothing}"
        ))
        .hint("Quote the lines exactly as they are, with the tabs, and use tabs in newString."),
        Refusal::Typography { line, character } => stale(format!(
            "{which}line {line} of {shown} has the typographic character {} where the edit has a plain one. {nothing}",
            named(*character)
        ))
        .hint("Quote the line exactly as it is, with that character."),
        Refusal::Escapes { line } => stale(format!(
            "{which}oldString is escaped once too often for line {line} of {shown}, and it is not clear what newString means. {nothing}"
        ))
        .hint("Send both strings without the extra backslashes."),
        Refusal::LineNumbers { line } => stale(format!(
            "{which}oldString carries the line numbers of the listing (line {line}), newString only in part. {nothing}"
        ))
        .hint("Leave the numbers out of both."),
        Refusal::CannotEncode { line, character, encoding } => ToolError::new(
            ErrorKind::Failed,
            format!(
                "{shown} is in {}, which has no form for {} (line {line} of newString). {nothing}",
                encoding.name(),
                named(*character)
            ),
        )
        .hint("Use another character, or convert the file first."),
        Refusal::NoEffect { line } => {
            stale(format!("{which}line {line} of {shown} already reads as newString says. {nothing}"))
        }
        Refusal::TooLarge => invalid(format!("{which}the edit is too large to be compared with {shown}. {nothing}"))
            .hint("Split it into smaller edits."),
    }
}

fn not_found(shown: &str, which: &str, nearest: &Nearest) -> ToolError {
    let Nearest { first_line, last_line, excerpt, difference, verdict } = nearest;
    let place = if first_line == last_line {
        format!("line {first_line}")
    } else {
        format!("lines {first_line}-{last_line}")
    };
    let mut text = format!(
        "{which}oldString is not in {shown}. Nothing was written. The nearest place is {place}: {}",
        said(*verdict)
    );
    if let Some(difference) = difference {
        text.push_str(&format!("\n{}", parting(difference)));
    }
    for (at, line) in excerpt.iter().enumerate() {
        text.push_str(&format!("\n{:05}| {line}", first_line + at));
    }
    ToolError::new(ErrorKind::Stale, text)
        .hint("Quote these lines as they stand, without their numbers, and call again.")
}

fn parting(difference: &Difference) -> String {
    let Difference { line, quoted_line, column, quoted, found } = difference;
    let told = |character: &Option<char>| character.map_or("the end of the line".into(), named);
    format!(
        "They part at line {line}, column {column} (line {quoted_line} of oldString): the file has {}, oldString has {}.",
        told(found),
        told(quoted)
    )
}

fn said(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::TrailingBlanks => "only blanks at line ends differ.",
        Verdict::Indentation => {
            "the lines are the same, but not all moved by the same indentation."
        }
        Verdict::TabsAgainstSpaces => "the lines are the same, but for tabs against spaces.",
        Verdict::Spacing => "only white space within lines differs.",
        Verdict::BlankLines => "only blank lines differ.",
        Verdict::LineEndings => "only line endings differ.",
        Verdict::Typographic => "typographic characters stand against plain ones.",
        Verdict::Escapes => "oldString is escaped once too often.",
        Verdict::LineNumbers => "oldString carries the line numbers of the listing.",
        Verdict::CaseOnly => "only the letter case differs.",
        Verdict::LookAlike => "a letter of another script looks the same.",
        Verdict::NormalForm => {
            "accented letters are composed on one side and decomposed on the other."
        }
        Verdict::StaleValue => "a value is another one now.",
        Verdict::Changed => "some lines read differently.",
        Verdict::Reordered => "the lines are there in another order.",
        Verdict::NotSeen => "the file has lines in between that oldString leaves out.",
        Verdict::NotThere => "some quoted lines are not in the file.",
        Verdict::Elided => {
            "oldString leaves lines out with a mark in their place; every line must be quoted."
        }
        Verdict::Different => "it is similar, no more.",
    }
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
