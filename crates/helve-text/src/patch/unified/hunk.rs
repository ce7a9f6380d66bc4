//! The hunks of a unified diff.

use super::{has_names, is_signature, starts_git};
use crate::patch::{
    Hunk, Kind, Malformed, Problem,
    head::{HunkHead, hunk_head},
    rows::{Reader, Row},
};

/// How many lines the head still promises; a head may promise nothing.
#[derive(Clone, Copy)]
struct Left {
    old: usize,
    new: usize,
}

/// Reads a hunk with its head.
///
/// Those who write diffs by hand miscount. The lines themselves say where a hunk ends, so the counts only tell what
/// could be both a line and the next file, and whether the last hunk was cut short.
pub(super) fn read(reader: &mut Reader<'_, '_>) -> Result<Hunk, Malformed> {
    let Some(head) = reader.next() else { return Ok(Hunk::default()) };
    let mut hunk = Hunk { row: head.number, ..Hunk::default() };
    let mut left = None;
    match hunk_head(head.text()) {
        Some(HunkHead::Numbers { old_start, old, new }) => {
            hunk.old_start = Some(old_start);
            left = Some(Left { old, new });
        }
        Some(HunkHead::Hint(hint)) => hunk.hints.push(hint.to_owned()),
        Some(HunkHead::Bare) => {}
        None => return Err(head.malformed(Problem::BadHunkHead)),
    }
    let mut body: Vec<Row<'_>> = Vec::new();
    // What the lines that no newline follows have ended.
    let mut ended = Vec::new();
    while let Some(row) = reader.peek() {
        if row.raw.starts_with('\\') {
            let Some(line) = hunk.lines.last_mut() else {
                return Err(row.malformed(Problem::NoHunkLine));
            };
            line.is_open = true;
            hunk.at_end = true;
            ended.push(line.kind);
            reader.next();
            continue;
        }
        let Some(line) = row.line().filter(|_| !is_over(reader.rows, left)) else { break };
        if ended.iter().any(|kind| shares_side(*kind, line.kind)) {
            return Err(row.malformed(Problem::AfterLast));
        }
        if let Some(left) = &mut left {
            left.old = left.old.saturating_sub(usize::from(line.kind != Kind::Add));
            left.new = left.new.saturating_sub(usize::from(line.kind != Kind::Remove));
        }
        hunk.lines.push(line);
        body.push(row);
        reader.next();
    }
    check_whole(&hunk, head, reader, left)?;
    // A diff that travelled with its own carriage returns says nothing about the file's.
    if !head.raw.ends_with('\r') {
        check_endings(&hunk, &body)?;
    }
    Ok(hunk)
}

/// Whether the first row belongs to something else although it may look like a line.
fn is_over(rows: &[Row<'_>], left: Option<Left>) -> bool {
    let Some(row) = rows.first() else { return true };
    match left {
        Some(Left { old: 0, new: 0 }) => {
            row.text().is_empty() || is_signature(*row) || has_names(rows)
        }
        // Two lines that look like the names of the next file, unless they are just what is missing.
        Some(Left { old: 1, new: 1 }) => false,
        Some(_) => has_names(rows) && rows.get(2).is_some_and(|row| row.raw.starts_with("@@")),
        None => is_signature(*row) || has_names(rows) || is_separating(rows),
    }
}

/// Blank rows up to the next file or the end of the text, where no count says that they are lines.
fn is_separating(rows: &[Row<'_>]) -> bool {
    // Not far, because this is asked at every row.
    let blanks = rows.iter().take(8).take_while(|row| row.text().is_empty()).count();
    let after = &rows[blanks..];
    blanks > 0 && (after.is_empty() || starts_git(after[0]) || has_names(after))
}

fn shares_side(one: Kind, other: Kind) -> bool {
    one == Kind::Keep || other == Kind::Keep || one == other
}

fn check_whole(
    hunk: &Hunk,
    head: Row<'_>,
    reader: &Reader<'_, '_>,
    left: Option<Left>,
) -> Result<(), Malformed> {
    if hunk.lines.is_empty() {
        let problem = if reader.rows.is_empty() { Problem::EmptyHunk } else { Problem::NoHunkLine };
        return Err(reader.peek().unwrap_or(head).malformed(problem));
    }
    match left {
        Some(Left { old, new }) if reader.rows.is_empty() && old + new > 0 => {
            Err(head.malformed(Problem::CutShort { old, new }))
        }
        Some(_) | None => Ok(()),
    }
}

/// Refuses lines that go and come again with another ending: the ending of a new line is its neighbour's.
fn check_endings(hunk: &Hunk, body: &[Row<'_>]) -> Result<(), Malformed> {
    let lines: Vec<_> = hunk.lines.iter().zip(body).collect();
    for change in lines.split(|(line, _)| line.kind == Kind::Keep) {
        let side = |kind: Kind| change.iter().filter(move |(line, _)| line.kind == kind);
        let (old, new) = (side(Kind::Remove), side(Kind::Add));
        let is_same = old
            .clone()
            .map(|(line, _)| (&line.text, line.is_open))
            .eq(new.clone().map(|(line, _)| (&line.text, line.is_open)));
        let differs = old
            .zip(new)
            .find(|((_, old), (_, new))| old.raw != new.raw && old.raw[1..] != new.raw[1..]);
        if let Some(((_, row), _)) = differs.filter(|_| is_same) {
            return Err(row.malformed(Problem::OnlyEndings));
        }
    }
    Ok(())
}
