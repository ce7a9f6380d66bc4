//! Parses the `apply_patch` format: file sections between `*** Begin Patch` and `*** End Patch`.

use super::{
    FilePatch, Patch, PatchHunk, PatchLineKind, PatchParseError, PatchProblem,
    hunk_header::{HunkHeader, parse_hunk_header},
    source::{PatchRow, RowReader, trim_blank_rows},
    unified,
};

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ADD: &str = "*** Add File:";
const DELETE: &str = "*** Delete File:";
const UPDATE: &str = "*** Update File:";
const MOVE: &str = "*** Move to:";
const END_OF_FILE: &str = "*** End of File";

/// Whether a row is `*** Begin Patch`.
pub(super) fn is_begin_marker(row: PatchRow<'_>) -> bool {
    is_marker(row, BEGIN)
}

/// Whether a row is a marker, with or without asterisks at its end.
fn is_marker(row: PatchRow<'_>, marker: &str) -> bool {
    row.text().trim().trim_end_matches('*').trim_end() == marker
}

pub(super) fn parse(rows: &[PatchRow<'_>]) -> Result<Patch, PatchParseError> {
    let Some((first, rest)) = trim_blank_rows(rows).split_first() else {
        return Err(PatchRow { number: 1, raw: "" }.error(PatchProblem::ExpectedBegin));
    };
    if !is_begin_marker(*first) {
        let has_hunk = rest.iter().any(|row| row.raw.starts_with("@@ -"));
        let problem = match first.text() {
            text if is_escaped(text) => PatchProblem::Escaped,
            text if text.starts_with("@@") => PatchProblem::ExpectedFileNames,
            text if has_hunk && text.starts_with("+++ ") => PatchProblem::MissingOldName,
            text if has_hunk && text.starts_with("--- ") => PatchProblem::MissingNewName,
            _ => PatchProblem::ExpectedBegin,
        };
        return Err(PatchParseError { is_diff: has_hunk, ..first.error(problem) });
    }
    let mut reader = RowReader { rows: patch_body(*first, rest)? };
    let mut files = Vec::new();
    while let Some(row) = reader.next() {
        if row.is_blank() {
            continue;
        }
        files.push(match file_header(row.text().trim()) {
            Some(FileHeader::Add(path)) => parse_add(&mut reader, parse_path(row, path)?)?,
            Some(FileHeader::Delete(path)) => {
                FilePatch::Delete { path: parse_path(row, path)?, content: None }
            }
            Some(FileHeader::Update(path)) => {
                parse_update(&mut reader, row, parse_path(row, path)?)?
            }
            Some(FileHeader::End) => {
                return Err(reader.peek().unwrap_or(row).error(PatchProblem::AfterEnd));
            }
            None if unified::starts_file(&[&[row], reader.rows].concat()) => {
                return Err(row.error(PatchProblem::DiffInEnvelope));
            }
            None => return Err(row.error(PatchProblem::ExpectedFileHeader)),
        });
    }
    Ok(Patch { files })
}

/// Whether a row contains a whole patch, with a backslash and an `n` for each line break.
fn is_escaped(row: &str) -> bool {
    [BEGIN, "--- ", "diff --git "]
        .iter()
        .any(|start| row.trim_start_matches('"').starts_with(start))
        && row.contains("\\n")
}

/// Returns the rows before `*** End Patch`, which must be the last row.
fn patch_body<'r, 'a>(
    first: PatchRow<'a>,
    rest: &'r [PatchRow<'a>],
) -> Result<&'r [PatchRow<'a>], PatchParseError> {
    let is_end = |row: &PatchRow<'_>| is_marker(*row, END);
    match rest.split_last() {
        Some((last, body)) if is_end(last) => Ok(body),
        Some((_, body)) if let Some(end) = body.iter().position(is_end) => {
            Err(rest[end + 1].error(PatchProblem::AfterEnd))
        }
        Some((last, _)) => Err(last.error(PatchProblem::ExpectedEnd)),
        None => Err(first.error(PatchProblem::ExpectedEnd)),
    }
}

/// A row that starts a file section, or ends the patch.
enum FileHeader<'a> {
    Add(&'a str),
    Delete(&'a str),
    Update(&'a str),
    End,
}

fn file_header(row: &str) -> Option<FileHeader<'_>> {
    if row.trim_end_matches('*').trim_end() == END {
        return Some(FileHeader::End);
    }
    (row.strip_prefix(ADD).map(FileHeader::Add))
        .or_else(|| row.strip_prefix(DELETE).map(FileHeader::Delete))
        .or_else(|| row.strip_prefix(UPDATE).map(FileHeader::Update))
}

fn parse_path(row: PatchRow<'_>, path: &str) -> Result<String, PatchParseError> {
    match path.trim() {
        "" => Err(row.error(PatchProblem::ExpectedPath)),
        path if path.contains('\0') => Err(row.error(PatchProblem::ExpectedPath)),
        path => Ok(path.to_owned()),
    }
}

/// Parses the rows after `*** Add File:`.
fn parse_add(reader: &mut RowReader<'_, '_>, path: String) -> Result<FilePatch, PatchParseError> {
    let mut text = String::new();
    // Empty rows belong to the file only if another line of it follows.
    let mut blanks = 0;
    while let Some(row) = reader.peek()
        && file_header(row.text().trim()).is_none()
    {
        reader.next();
        if row.text().is_empty() {
            blanks += 1;
            continue;
        }
        let Some(line) = row.text().strip_prefix('+') else {
            let problem = if row.text().starts_with("***") {
                PatchProblem::ExpectedFileHeader
            } else {
                PatchProblem::ExpectedAddition
            };
            return Err(row.error(problem));
        };
        text.extend(std::iter::repeat_n('\n', std::mem::take(&mut blanks)));
        text.push_str(line);
        text.push('\n');
    }
    Ok(FilePatch::Add { path, text, executable: None })
}

/// Parses the rows after `*** Update File:`.
fn parse_update(
    reader: &mut RowReader<'_, '_>,
    header: PatchRow<'_>,
    path: String,
) -> Result<FilePatch, PatchParseError> {
    let mut move_to = None;
    if let Some(row) = reader.peek()
        && let Some(target) = row.text().trim().strip_prefix(MOVE)
    {
        reader.next();
        move_to = Some(parse_path(row, target)?).filter(|target| *target != path);
    }
    if unified::starts_file(reader.rows)
        && reader.rows.get(2).is_some_and(|row| row.raw.starts_with("@@"))
    {
        return Err(reader.peek().unwrap_or(header).error(PatchProblem::DiffInEnvelope));
    }
    let hunks = parse_hunks(reader)?;
    if hunks.is_empty() && move_to.is_none() {
        return Err(header.error(PatchProblem::EmptyUpdate { path }));
    }
    Ok(FilePatch::Update { path, move_to, executable: None, hunks })
}

fn parse_hunks(reader: &mut RowReader<'_, '_>) -> Result<Vec<PatchHunk>, PatchParseError> {
    let mut hunks = HunkBuilder::default();
    // Only the end is trimmed, because an indented context line may look like a header.
    while let Some(row) = reader.peek()
        && file_header(row.text().trim_end()).is_none()
    {
        reader.next();
        hunks.push_row(row)?;
    }
    hunks.close_hunk()?;
    Ok(hunks.finished)
}

/// Collects the hunks of a file section row by row.
#[derive(Default)]
struct HunkBuilder<'a> {
    finished: Vec<PatchHunk>,
    /// The hunk being parsed, with its first row.
    current: Option<(PatchRow<'a>, PatchHunk)>,
}

impl<'a> HunkBuilder<'a> {
    fn push_row(&mut self, row: PatchRow<'a>) -> Result<(), PatchParseError> {
        let text = row.text().trim_end();
        if text == "@@" || text.starts_with("@@ ") {
            return self.start_hunk(row);
        }
        let (_, hunk) = self
            .current
            .get_or_insert_with(|| (row, PatchHunk { row: row.number, ..PatchHunk::default() }));
        if text == END_OF_FILE && !hunk.lines.is_empty() {
            hunk.at_end = true;
            return Ok(());
        }
        match row.parse_line() {
            _ if hunk.at_end && text.is_empty() => {}
            Some(line) if !hunk.at_end => hunk.lines.push(line),
            Some(_) | None if hunk.lines.is_empty() => {
                return Err(row.error(PatchProblem::ExpectedHunkLine));
            }
            Some(_) | None => return Err(row.error(PatchProblem::ExpectedHunkStart)),
        }
        Ok(())
    }

    /// Handles a row that starts with `@@`. Consecutive rows of this kind belong to the same hunk.
    fn start_hunk(&mut self, row: PatchRow<'a>) -> Result<(), PatchParseError> {
        if self.current.as_ref().is_some_and(|(_, hunk)| !hunk.lines.is_empty()) {
            self.close_hunk()?;
        }
        let (_, hunk) = self
            .current
            .get_or_insert_with(|| (row, PatchHunk { row: row.number, ..PatchHunk::default() }));
        match parse_hunk_header(row.text()) {
            Some(HunkHeader::Numbers { old_start, .. }) => hunk.old_start = Some(old_start),
            Some(HunkHeader::Hint(hint)) => hunk.hints.push(hint.to_owned()),
            Some(HunkHeader::Bare) => {}
            None => return Err(row.error(PatchProblem::BadHunkHeader)),
        }
        Ok(())
    }

    /// Ends the current hunk, if there is one.
    fn close_hunk(&mut self) -> Result<(), PatchParseError> {
        let Some((row, hunk)) = self.current.take() else { return Ok(()) };
        let is_blank =
            hunk.lines.iter().all(|line| line.kind == PatchLineKind::Keep && line.text.is_empty());
        match row.text().starts_with("@@") {
            true if is_blank => return Err(row.error(PatchProblem::EmptyHunk)),
            // These were only blank rows between the file header and the first `@@`, not a hunk.
            false if is_blank => {}
            true | false => self.finished.push(hunk),
        }
        Ok(())
    }
}
