//! The rows of a patch, numbered, and the wrapping that may surround them.

use super::{Kind, Line, Malformed, Problem};
use crate::lines::clip;

/// What a message quotes of a row.
const QUOTED: usize = 200;

/// One row of the patch text, which may end with a carriage return.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row<'a> {
    /// From 1, in the text as it was given.
    pub(super) number: usize,
    pub(super) raw: &'a str,
}

impl<'a> Row<'a> {
    /// Without a carriage return at its end: lines take the ending that the file has.
    pub(super) fn text(self) -> &'a str {
        self.raw.strip_suffix('\r').unwrap_or(self.raw)
    }

    pub(super) fn is_blank(self) -> bool {
        self.raw.trim().is_empty()
    }

    pub(super) fn malformed(self, problem: Problem) -> Malformed {
        Malformed { row: self.number, problem, found: clip(self.text(), QUOTED).0.to_owned() }
    }

    /// The line of a hunk that this row is; a row without anything is an empty line to keep.
    pub(super) fn line(self) -> Option<Line> {
        let text = self.text();
        let (kind, text) = match text.as_bytes().first() {
            None => (Kind::Keep, text),
            Some(b' ') => (Kind::Keep, &text[1..]),
            Some(b'-') => (Kind::Remove, &text[1..]),
            Some(b'+') => (Kind::Add, &text[1..]),
            Some(_) => return None,
        };
        Some(Line { kind, text: text.to_owned(), is_open: false })
    }
}

/// Goes through rows, one by one.
#[derive(Clone, Copy)]
pub(super) struct Reader<'r, 'a> {
    pub(super) rows: &'r [Row<'a>],
}

impl<'a> Reader<'_, 'a> {
    pub(super) fn peek(&self) -> Option<Row<'a>> {
        self.rows.first().copied()
    }

    pub(super) fn next(&mut self) -> Option<Row<'a>> {
        let (first, rest) = self.rows.split_first()?;
        self.rows = rest;
        Some(*first)
    }
}

pub(super) fn rows(text: &str) -> Vec<Row<'_>> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.split('\n').enumerate().map(|(n, raw)| Row { number: n + 1, raw }).collect()
}

/// What is inside a here-document or code fence, if there is one around the rest.
pub(super) fn unwrapped<'r, 'a>(rows: &'r [Row<'a>]) -> &'r [Row<'a>] {
    let mut rows = rows;
    while let [first, inner @ .., last] = without_blanks(rows)
        && closing(first.text().trim()).is_some_and(|closing| last.text().trim() == closing)
    {
        rows = inner;
    }
    rows
}

pub(super) fn without_blanks<'r, 'a>(rows: &'r [Row<'a>]) -> &'r [Row<'a>] {
    let Some(first) = rows.iter().position(|row| !row.is_blank()) else { return &[] };
    let end = rows.iter().rposition(|row| !row.is_blank()).map_or(first, |last| last + 1);
    &rows[first..end]
}

/// The row that ends what `row` opens.
fn closing(row: &str) -> Option<&str> {
    if row.starts_with("```") {
        return Some("```");
    }
    let word =
        ["apply_patch", "applypatch"].iter().find_map(|name| row.strip_prefix(name)).unwrap_or(row);
    let word = word.trim_start().strip_prefix("<<")?.trim_start_matches('-').trim();
    let bare = ['\'', '"']
        .iter()
        .find_map(|quote| word.strip_prefix(*quote)?.strip_suffix(*quote))
        .unwrap_or(word);
    let is_word =
        !bare.is_empty() && bare.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_word.then_some(bare)
}
