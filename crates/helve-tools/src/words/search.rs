//! Messages about searches: what the result leaves out, and why a search failed.

use helve_core::machine::{BadPattern, FileCount, WalkEnd};
use helve_core::{ErrorKind, ToolError};
use helve_text::lines::clip_around;
use helve_text::visible;

use super::count;
use crate::ops::search::{SearchFailure, SearchSummary};

/// Maximum number of characters of a pattern that are quoted.
const MAX_QUOTED: usize = 80;

/// What a dialect calls the parameters of its search tools.
pub(crate) struct SearchTerms {
    pub(crate) path: &'static str,
    /// The parameter that includes ignored files.
    pub(crate) ignored: Option<&'static str>,
    /// The parameter that searches for plain text.
    pub(crate) literal: Option<&'static str>,
}

/// Whether a search opened files or only looked at their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SearchScope {
    Contents,
    Names,
}

/// Returns the counts as text, like `3 files and 1 folder`. Returns an empty text if both counts are zero.
pub(crate) fn amount(amount: FileCount) -> String {
    join_counts([(amount.files, "file", "files"), (amount.folders, "folder", "folders")])
}

/// Joins the counts that are not zero.
fn join_counts(parts: [(u64, &str, &str); 2]) -> String {
    let texts: Vec<String> = parts
        .into_iter()
        .filter(|(number, ..)| *number > 0)
        .map(|(number, one, many)| count(number, one, many))
        .collect();
    texts.join(" and ")
}

/// Returns sentences about what the result does not show and the reader should know.
pub(crate) fn notes(
    searched: &SearchSummary,
    scope: SearchScope,
    terms: &SearchTerms,
) -> Vec<String> {
    let (counts, skipped) = (&searched.counts, searched.counts.skipped);
    let mut notes = Vec::new();
    if counts.ended == WalkEnd::Incomplete {
        notes.push(format!(
            "The result is incomplete: the search stopped after {} seconds. Search a subfolder, or fewer files.",
            searched.timeout.as_secs()
        ));
    }
    if counts.matches == 0 {
        notes.extend(nothing_found(searched, scope));
        notes.extend(ignored_files(searched, scope, terms));
    }
    if skipped.not_permitted > 0 {
        let files = count(skipped.not_permitted, "file was", "files were");
        notes.push(format!(
            "{files} skipped because reading needs permission. To ask for permission, pass such a file as {}.",
            terms.path
        ));
    }
    if scope == SearchScope::Names && skipped.special > 0 {
        let links = count(skipped.special, "link or special file is", "links or special files are");
        notes.push(format!("{links} not listed."));
    }
    if skipped.too_large > 0 {
        let files = count(skipped.too_large, "file was", "files were");
        notes.push(format!("{files} skipped as too large."));
    }
    if skipped.unreadable != FileCount::default() {
        notes.push(format!("{} could not be read.", amount(skipped.unreadable)));
    }
    notes
}

fn nothing_found(searched: &SearchSummary, scope: SearchScope) -> Option<String> {
    if scope == SearchScope::Names {
        return None;
    }
    let binary = match searched.counts.skipped.binary {
        0 => String::new(),
        binary => {
            format!("; {} skipped", count(binary, "binary file was", "binary files were"))
        }
    };
    Some(match searched.counts.searched {
        0 => format!("No text file matches the filters{binary}."),
        files => format!("{} searched{binary}.", count(files, "file was", "files were")),
    })
}

/// Returns a sentence about matches in ignored files, which are searched if nothing else matches.
fn ignored_files(
    searched: &SearchSummary,
    scope: SearchScope,
    terms: &SearchTerms,
) -> Option<String> {
    let ignored = searched.counts.ignored_matches.as_ref()?;
    let hidden = amount(searched.counts.skipped.ignored);
    let first: Vec<String> = ignored.examples.iter().map(|path| searched.absolute(path)).collect();
    let how_to = |purpose: &str| match terms.ignored {
        Some(parameter) => format!(" Set {parameter} to true to {purpose}."),
        None => String::new(),
    };
    Some(match (ignored.files, ignored.ended) {
        (0, WalkEnd::Complete) => {
            let FileCount { files, folders } = searched.counts.skipped.ignored;
            let verb = if files + folders == 1 { "was" } else { "were" };
            let counts = [
                (files, "ignored file", "ignored files"),
                (folders, "ignored folder", "ignored folders"),
            ];
            format!("{} {verb} also searched, without a match.", join_counts(counts))
        }
        (0, WalkEnd::Incomplete) => {
            format!("Not all ignored files were searched ({hidden}).{}", how_to("search them"))
        }
        (_, WalkEnd::Incomplete) => {
            format!("Some ignored files match.{}", how_to("see them"))
        }
        (files, WalkEnd::Complete) => {
            let dots = if files > first.len() as u64 { ", …" } else { "" };
            let matches = match scope {
                SearchScope::Contents => {
                    format!("{} in ", count(ignored.matches, "match", "matches"))
                }
                SearchScope::Names => String::new(),
            };
            let (files, first) = (count(files, "file", "files"), first.join(", "));
            format!("Ignore rules hide {matches}{files}: {first}{dots}.{}", how_to("see more"))
        }
    })
}

/// Returns the notes, each in parentheses, as the end of an answer.
pub(crate) fn notes_text(notes: &[String]) -> String {
    let lines: Vec<String> = notes.iter().map(|note| format!("({note})")).collect();
    if lines.is_empty() { String::new() } else { format!("\n\n{}", lines.join("\n")) }
}

pub(crate) fn search_error(error: SearchFailure, terms: &SearchTerms) -> ToolError {
    match error {
        SearchFailure::Context(error) => error,
        SearchFailure::NotAFolder { display_path } => {
            let path = terms.path;
            let message = format!("{path} must be a folder, but {display_path} is not.");
            ToolError::new(ErrorKind::InvalidArgs, message)
                .hint(format!("Name a folder, or omit {path}."))
        }
        SearchFailure::Pattern { pattern, error } => bad_pattern(&pattern, &error, terms),
        SearchFailure::Glob { glob, why } => {
            let glob = visible::escape_line(&glob);
            let message = format!("The glob \"{glob}\" is invalid: {why}.");
            ToolError::new(ErrorKind::InvalidArgs, message)
                .hint("Use *, **, ?, {a,b} and [abc]; escape them with a backslash.")
        }
    }
}

/// Returns the error for an invalid pattern. Its message marks the place of the mistake in the pattern.
fn bad_pattern(pattern: &str, bad: &BadPattern, terms: &SearchTerms) -> ToolError {
    let mut message = format!("The pattern is not a valid regular expression: {}.", bad.message);
    if bad.at != (0..pattern.len()) {
        let excerpt = clip_around(pattern, bad.at.clone(), MAX_QUOTED);
        let at = pattern.floor_char_boundary(bad.at.start).max(excerpt.range.start);
        let before = visible::escape_line(&pattern[excerpt.range.start..at]).chars().count();
        let to = pattern.floor_char_boundary(bad.at.end).clamp(at, excerpt.range.end.max(at));
        let width = visible::escape_line(&pattern[at..to]).chars().count().max(1);
        let (blank, mark) = (" ".repeat(before), "^".repeat(width));
        let excerpt = visible::escape_line(excerpt.text);
        message.push_str(&format!("\n  {excerpt}\n  {blank}{mark}"));
    }
    let literal = terms
        .literal
        .map(|parameter| format!("To search for this text literally, set {parameter} to true."));
    let escaped = escaped(pattern).map(|escaped| format!("As a regular expression: {escaped}"));
    let hint: Vec<String> = literal.into_iter().chain(escaped).collect();
    ToolError::new(ErrorKind::InvalidArgs, message).hint(hint.join(" "))
}

/// Returns the regular expression that matches exactly `text`, if the expression is short enough to quote.
fn escaped(text: &str) -> Option<String> {
    let mut escaped = String::new();
    for letter in text.chars() {
        if "\\.+*?()|[]{}^$#&-~".contains(letter) && !matches!(letter, '#' | '&' | '-' | '~') {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    (escaped.chars().count() <= MAX_QUOTED && !escaped.contains(char::is_control))
        .then_some(escaped)
}
