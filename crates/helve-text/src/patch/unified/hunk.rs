//! Parses the hunks of a unified diff.

use super::{has_names, is_git_header, is_signature};
use crate::patch::{
    PatchHunk, PatchLineKind, PatchParseError, PatchProblem,
    hunk_header::{HunkHeader, parse_hunk_header},
    source::{PatchRow, RowReader},
};

/// The number of lines that are still missing according to the header.
#[derive(Clone, Copy)]
struct MissingLines {
    old: usize,
    new: usize,
}

/// Parses a hunk with its header.
///
/// Counts in hand-written diffs are often wrong, so the lines themselves determine where a hunk ends. The counts only
/// decide whether a row is a line or the start of the next file, and whether the last hunk is incomplete.
pub(super) fn parse(reader: &mut RowReader<'_, '_>) -> Result<PatchHunk, PatchParseError> {
    let Some(header) = reader.next() else { return Ok(PatchHunk::default()) };
    let mut hunk = PatchHunk { row: header.number, ..PatchHunk::default() };
    let mut missing = None;
    match parse_hunk_header(header.text()) {
        Some(HunkHeader::Numbers { old_start, old_count, new_count }) => {
            hunk.old_start = Some(old_start);
            missing = Some(MissingLines { old: old_count, new: new_count });
        }
        Some(HunkHeader::Hint(hint)) => hunk.hints.push(hint.to_owned()),
        Some(HunkHeader::Bare) => {}
        None => return Err(header.error(PatchProblem::BadHunkHeader)),
    }
    let mut body: Vec<PatchRow<'_>> = Vec::new();
    // The kinds of the lines before `\ No newline at end of file`.
    let mut last_line_kinds = Vec::new();
    while let Some(row) = reader.peek() {
        if row.raw.starts_with('\\') {
            let Some(line) = hunk.lines.last_mut() else {
                return Err(row.error(PatchProblem::ExpectedHunkLine));
            };
            line.no_newline = true;
            hunk.at_end = true;
            last_line_kinds.push(line.kind);
            reader.next();
            continue;
        }
        let Some(line) = row.parse_line().filter(|_| !ends_hunk(reader.rows, missing)) else {
            break;
        };
        if last_line_kinds.iter().any(|kind| shares_side(*kind, line.kind)) {
            return Err(row.error(PatchProblem::LineAfterNoNewlineMarker));
        }
        if let Some(missing) = &mut missing {
            missing.old = missing.old.saturating_sub(usize::from(line.kind != PatchLineKind::Add));
            missing.new =
                missing.new.saturating_sub(usize::from(line.kind != PatchLineKind::Remove));
        }
        hunk.lines.push(line);
        body.push(row);
        reader.next();
    }
    check_complete(&hunk, header, reader, missing)?;
    // A diff whose own lines end in CRLF says nothing about the line endings of the file.
    if !header.raw.ends_with('\r') {
        check_endings(&hunk, &body)?;
    }
    Ok(hunk)
}

/// Whether the first row ends the hunk although it may look like a line.
fn ends_hunk(rows: &[PatchRow<'_>], missing: Option<MissingLines>) -> bool {
    let Some(row) = rows.first() else { return true };
    match missing {
        Some(MissingLines { old: 0, new: 0 }) => {
            row.text().is_empty() || is_signature(*row) || has_names(rows)
        }
        // Two rows that look like file names are a removed and an added line if exactly these two are missing.
        Some(MissingLines { old: 1, new: 1 }) => false,
        Some(_) => has_names(rows) && rows.get(2).is_some_and(|row| row.raw.starts_with("@@")),
        None => is_signature(*row) || has_names(rows) || is_separator(rows),
    }
}

/// Whether only blank rows follow up to the next file or the end. Without counts, they are not lines of the hunk.
fn is_separator(rows: &[PatchRow<'_>]) -> bool {
    // The lookahead is short, because this runs for every row.
    let blanks = rows.iter().take(8).take_while(|row| row.text().is_empty()).count();
    let after = &rows[blanks..];
    blanks > 0 && (after.is_empty() || is_git_header(after[0]) || has_names(after))
}

/// Whether two lines both belong to the old version of the file, or both to the new one.
fn shares_side(one: PatchLineKind, other: PatchLineKind) -> bool {
    one == PatchLineKind::Keep || other == PatchLineKind::Keep || one == other
}

/// Refuses a hunk that has no lines, or fewer lines than its header says at the end of the patch.
fn check_complete(
    hunk: &PatchHunk,
    header: PatchRow<'_>,
    reader: &RowReader<'_, '_>,
    missing: Option<MissingLines>,
) -> Result<(), PatchParseError> {
    if hunk.lines.is_empty() {
        let problem = if reader.rows.is_empty() {
            PatchProblem::EmptyHunk
        } else {
            PatchProblem::ExpectedHunkLine
        };
        return Err(reader.peek().unwrap_or(header).error(problem));
    }
    // A hunk that ends with context is complete, even if its header counts too many lines.
    let ends_with_context = hunk
        .lines
        .last()
        .is_some_and(|line| line.kind == PatchLineKind::Keep && !line.text.trim().is_empty());
    match missing {
        Some(MissingLines { old, new })
            if reader.rows.is_empty() && old + new > 0 && !ends_with_context =>
        {
            Err(header.error(PatchProblem::CutShort { old, new }))
        }
        Some(_) | None => Ok(()),
    }
}

/// Refuses a change that only changes line endings, because new lines take the ending of their neighbours.
fn check_endings(hunk: &PatchHunk, body: &[PatchRow<'_>]) -> Result<(), PatchParseError> {
    let lines: Vec<_> = hunk.lines.iter().zip(body).collect();
    for change in lines.split(|(line, _)| line.kind == PatchLineKind::Keep) {
        let side = |kind: PatchLineKind| change.iter().filter(move |(line, _)| line.kind == kind);
        let (old, new) = (side(PatchLineKind::Remove), side(PatchLineKind::Add));
        let is_same = old
            .clone()
            .map(|(line, _)| (&line.text, line.no_newline))
            .eq(new.clone().map(|(line, _)| (&line.text, line.no_newline)));
        let differing = old
            .zip(new)
            .find(|((_, old), (_, new))| old.raw != new.raw && old.raw[1..] != new.raw[1..]);
        if let Some(((_, row), _)) = differing.filter(|_| is_same) {
            return Err(row.error(PatchProblem::OnlyLineEndingsDiffer));
        }
    }
    Ok(())
}
