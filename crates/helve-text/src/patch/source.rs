//! Splits the text of a patch into numbered rows. Here "row" means a line of the patch, "line" a line of a file.

use super::{PatchLine, PatchLineKind, PatchParseError, PatchProblem};
use crate::lines::clip;

/// Maximum number of characters of a row that an error quotes.
const MAX_QUOTED: usize = 200;

/// One row of the patch text. It may end with a carriage return.
#[derive(Debug, Clone, Copy)]
pub(super) struct PatchRow<'a> {
    /// The number of the row in the original text, counted from 1.
    pub(super) number: usize,
    pub(super) raw: &'a str,
}

impl<'a> PatchRow<'a> {
    /// Returns the row without a carriage return at its end. Lines get the file's line ending when they are applied.
    pub(super) fn text(self) -> &'a str {
        self.raw.strip_suffix('\r').unwrap_or(self.raw)
    }

    pub(super) fn is_blank(self) -> bool {
        self.raw.trim().is_empty()
    }

    pub(super) fn error(self, problem: PatchProblem) -> PatchParseError {
        PatchParseError {
            row: self.number,
            problem,
            found: clip(self.text(), MAX_QUOTED).0.to_owned(),
            is_diff: false,
        }
    }

    /// Parses the row as a line of a hunk. An empty row is an empty context line.
    pub(super) fn parse_line(self) -> Option<PatchLine> {
        let text = self.text();
        let (kind, text) = match text.as_bytes().first() {
            None => (PatchLineKind::Keep, text),
            Some(b' ') => (PatchLineKind::Keep, &text[1..]),
            Some(b'-') => (PatchLineKind::Remove, &text[1..]),
            Some(b'+') => (PatchLineKind::Add, &text[1..]),
            Some(_) => return None,
        };
        Some(PatchLine { kind, text: text.to_owned(), no_newline: false })
    }
}

/// Iterates over rows with lookahead.
#[derive(Clone, Copy)]
pub(super) struct RowReader<'r, 'a> {
    pub(super) rows: &'r [PatchRow<'a>],
}

impl<'a> RowReader<'_, 'a> {
    pub(super) fn peek(&self) -> Option<PatchRow<'a>> {
        self.rows.first().copied()
    }

    pub(super) fn next(&mut self) -> Option<PatchRow<'a>> {
        let (first, rest) = self.rows.split_first()?;
        self.rows = rest;
        Some(*first)
    }
}

pub(super) fn split_rows(text: &str) -> Vec<PatchRow<'_>> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.split('\n').enumerate().map(|(n, raw)| PatchRow { number: n + 1, raw }).collect()
}

/// Returns the rows inside a here-document or code fence, if one surrounds the patch.
pub(super) fn strip_wrapper<'r, 'a>(rows: &'r [PatchRow<'a>]) -> &'r [PatchRow<'a>] {
    let mut rows = rows;
    while let [first, inner @ .., last] = trim_blank_rows(rows)
        && closing_row(first.text().trim()).is_some_and(|closing| last.text().trim() == closing)
    {
        rows = inner;
    }
    rows
}

pub(super) fn trim_blank_rows<'r, 'a>(rows: &'r [PatchRow<'a>]) -> &'r [PatchRow<'a>] {
    let Some(first) = rows.iter().position(|row| !row.is_blank()) else { return &[] };
    let end = rows.iter().rposition(|row| !row.is_blank()).map_or(first, |last| last + 1);
    &rows[first..end]
}

/// Returns the row that closes the code fence or here-document that `row` opens.
fn closing_row(row: &str) -> Option<&str> {
    if row.starts_with("```") {
        return Some("```");
    }
    let word = ["apply_patch", "applypatch", "cat"]
        .iter()
        .find_map(|name| row.strip_prefix(name))
        .unwrap_or(row);
    let word = word.trim_start().strip_prefix("<<")?.trim_start_matches('-').trim();
    let delimiter = ['\'', '"']
        .iter()
        .find_map(|quote| word.strip_prefix(*quote)?.strip_suffix(*quote))
        .unwrap_or(word);
    let is_word = !delimiter.is_empty()
        && delimiter.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_word.then_some(delimiter)
}
