//! What searching has to say: what is not shown and why, and what was wrong with the question.

use std::path::Path;
use std::time::Duration;

use helve_core::machine::{Amount, BadPattern, Counts, Ended, SearchError};
use helve_core::{ErrorKind, Resolved, ToolContext, ToolError, paths};
use helve_text::lines::clip_around;
use helve_text::visible;

/// How much of a pattern is quoted.
const QUOTED: usize = 80;

pub(in crate::opencode) fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// `3 files and 1 folder`; empty for nothing.
pub(in crate::opencode) fn amount(amount: Amount) -> String {
    let parts = [(amount.files, "file", "files"), (amount.folders, "folder", "folders")];
    let told: Vec<String> = parts
        .into_iter()
        .filter(|(number, ..)| *number > 0)
        .map(|(number, one, many)| count(number, one, many))
        .collect();
    told.join(" and ")
}

/// The absolute path of something below a path, on one line.
pub(in crate::opencode) fn absolute(path: &Resolved, below: &Path) -> String {
    let real = path.real();
    let whole = if below.as_os_str().is_empty() { real } else { real.join(below) };
    paths::shown(&whole).into_owned()
}

/// What was looked at, for the words.
pub(in crate::opencode) struct Looked<'a> {
    pub(in crate::opencode) path: &'a Resolved,
    pub(in crate::opencode) counts: &'a Counts,
    pub(in crate::opencode) deadline: Duration,
    /// Files were opened, not only found.
    pub(in crate::opencode) content: bool,
}

impl Looked<'_> {
    /// What the reader cannot see in the answer and should know, one sentence each.
    pub(in crate::opencode) fn notes(&self) -> Vec<String> {
        let (counts, skipped) = (self.counts, self.counts.skipped);
        let mut notes = Vec::new();
        if counts.ended == Ended::Deadline {
            notes.push(format!(
                "This is incomplete: it was stopped after {} seconds. Name a folder further down, or fewer files.",
                self.deadline.as_secs()
            ));
        }
        if counts.matches == 0 {
            notes.extend(self.nothing());
        }
        if skipped.unasked > 0 {
            let files = count(skipped.unasked, "file that needs", "files that need");
            notes.push(format!(
                "{files} permission to read {} left out; name one as path to ask for it.",
                was(skipped.unasked)
            ));
        }
        if skipped.too_large > 0 {
            let files = count(skipped.too_large, "file is", "files are");
            notes.push(format!("{files} too large and {} left out.", was(skipped.too_large)));
        }
        if skipped.unreadable != Amount::default() {
            notes.push(format!("{} could not be read.", amount(skipped.unreadable)));
        }
        notes
    }

    /// Where what was not found may still be.
    fn nothing(&self) -> Vec<String> {
        let (counts, skipped) = (self.counts, self.counts.skipped);
        let mut notes = Vec::new();
        if self.content {
            let binary = match skipped.binary {
                0 => String::new(),
                binary => {
                    format!(", {}", count(binary, "binary file was not", "binary files were not"))
                }
            };
            notes.push(match counts.looked_at {
                0 => format!("No file was searched: none is like that{binary}."),
                files => format!("{} searched{binary}.", count(files, "file was", "files were")),
            });
        }
        let Some(beyond) = &counts.beyond else { return notes };
        let hidden = amount(skipped.ignored);
        let first: Vec<String> =
            beyond.first.iter().map(|below| absolute(self.path, below)).collect();
        notes.push(match (beyond.files, beyond.ended) {
            (0, Ended::Complete) => format!("Nor is anything in what ignore rules hide: {hidden}."),
            (0, Ended::Deadline) => {
                format!("What ignore rules hide was only glanced at: {hidden}. Set ignored to true to look there.")
            }
            (_, Ended::Deadline) => {
                "Ignore rules hide files that match. Set ignored to true to see them.".into()
            }
            (files, Ended::Complete) => {
                let dots = if files > first.len() as u64 { ", …" } else { "" };
                let what = match self.content {
                    true => format!("{} in ", count(beyond.matches, "match", "matches")),
                    false => String::new(),
                };
                let (files, first) = (count(files, "file", "files"), first.join(", "));
                format!("Ignore rules hide {what}{files}: {first}{dots}. Set ignored to true to see more.")
            }
        });
        notes
    }
}

fn was(number: u64) -> &'static str {
    if number == 1 { "was" } else { "were" }
}

/// Notes as the end of an answer.
pub(in crate::opencode) fn ending(notes: &[String]) -> String {
    let lines: Vec<String> = notes.iter().map(|note| format!("({note})")).collect();
    if lines.is_empty() { String::new() } else { format!("\n\n{}", lines.join("\n")) }
}

pub(in crate::opencode) fn failed(
    ctx: &ToolContext,
    path: &Resolved,
    pattern: &str,
    err: &SearchError,
) -> ToolError {
    match err {
        SearchError::Pattern(bad) => bad_pattern(pattern, bad),
        SearchError::Glob { glob, why } => {
            let glob = visible::escape_line(glob);
            let message = format!("The glob \"{glob}\" cannot be used: {why}.");
            ToolError::new(ErrorKind::InvalidArgs, message)
                .hint("Use *, **, ?, {a,b} and [abc]; a backslash takes away their meaning.")
        }
        SearchError::NotGranted => ctx.words().not_granted(),
        SearchError::Machine(err) => ctx.words().machine(path.shown(), err),
    }
}

/// Points at the place.
fn bad_pattern(pattern: &str, bad: &BadPattern) -> ToolError {
    let mut message = format!("The pattern is not a regular expression: {}.", bad.what);
    if bad.at != (0..pattern.len()) {
        let shown = clip_around(pattern, bad.at.clone(), QUOTED);
        let at = pattern.floor_char_boundary(bad.at.start).max(shown.range.start);
        let before = visible::escape_line(&pattern[shown.range.start..at]).chars().count();
        let to = pattern.floor_char_boundary(bad.at.end).clamp(at, shown.range.end.max(at));
        let wide = visible::escape_line(&pattern[at..to]).chars().count().max(1);
        let (blank, mark) = (" ".repeat(before), "^".repeat(wide));
        let shown = visible::escape_line(shown.text);
        message.push_str(&format!("\n  {shown}\n  {blank}{mark}"));
    }
    let hint = "To find this text as it is, set literal to true.";
    ToolError::new(ErrorKind::InvalidArgs, message).hint(match escaped(pattern) {
        Some(escaped) => format!("{hint} As a regular expression it is {escaped}"),
        None => hint.into(),
    })
}

/// The pattern that stands for a text, if it is short enough to be quoted.
fn escaped(text: &str) -> Option<String> {
    let mut escaped = String::new();
    for letter in text.chars() {
        if "\\.+*?()|[]{}^$#&-~".contains(letter) && !matches!(letter, '#' | '&' | '-' | '~') {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    (escaped.chars().count() <= QUOTED && !escaped.contains(char::is_control)).then_some(escaped)
}
