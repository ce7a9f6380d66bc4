//! Patches between `*** Begin Patch` and `*** End Patch`.

use super::{
    FilePatch, Hunk, Kind, Malformed, Patch, Problem,
    head::{HunkHead, hunk_head},
    rows::{Reader, Row, without_blanks},
};

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ADD: &str = "*** Add File:";
const DELETE: &str = "*** Delete File:";
const UPDATE: &str = "*** Update File:";
const MOVE: &str = "*** Move to:";
const END_OF_FILE: &str = "*** End of File";

/// Whether a row belongs to this form and to no other.
pub(super) fn is_begin(row: Row<'_>) -> bool {
    row.text().trim() == BEGIN
}

pub(super) fn parse(rows: &[Row<'_>]) -> Result<Patch, Malformed> {
    let Some((first, rest)) = without_blanks(rows).split_first() else {
        return Err(Row { number: 1, raw: "" }.malformed(Problem::NoBegin));
    };
    if !is_begin(*first) {
        return Err(first.malformed(Problem::NoBegin));
    }
    let mut reader = Reader { rows: body(*first, rest)? };
    let mut files = Vec::new();
    while let Some(row) = reader.next() {
        if row.is_blank() {
            continue;
        }
        files.push(match head(row.text().trim()) {
            Some(FileHead::Add(path)) => add(&mut reader, named(row, path)?)?,
            Some(FileHead::Delete(path)) => {
                FilePatch::Delete { path: named(row, path)?, was: None }
            }
            Some(FileHead::Update(path)) => update(&mut reader, row, named(row, path)?)?,
            Some(FileHead::End) => {
                return Err(reader.peek().unwrap_or(row).malformed(Problem::AfterEnd));
            }
            None => return Err(row.malformed(Problem::NoHeader)),
        });
    }
    Ok(Patch { files })
}

/// What stands before the last row, which ends the patch.
fn body<'r, 'a>(first: Row<'a>, rest: &'r [Row<'a>]) -> Result<&'r [Row<'a>], Malformed> {
    let is_end = |row: &Row<'_>| row.text().trim() == END;
    match rest.split_last() {
        Some((last, body)) if is_end(last) => Ok(body),
        Some((_, body)) if let Some(end) = body.iter().position(is_end) => {
            Err(rest[end + 1].malformed(Problem::AfterEnd))
        }
        Some((last, _)) => Err(last.malformed(Problem::NoEnd)),
        None => Err(first.malformed(Problem::NoEnd)),
    }
}

enum FileHead<'a> {
    Add(&'a str),
    Delete(&'a str),
    Update(&'a str),
    End,
}

fn head(row: &str) -> Option<FileHead<'_>> {
    if row == END {
        return Some(FileHead::End);
    }
    (row.strip_prefix(ADD).map(FileHead::Add))
        .or_else(|| row.strip_prefix(DELETE).map(FileHead::Delete))
        .or_else(|| row.strip_prefix(UPDATE).map(FileHead::Update))
}

fn named(row: Row<'_>, path: &str) -> Result<String, Malformed> {
    match path.trim() {
        "" => Err(row.malformed(Problem::NoPath)),
        path if path.contains('\0') => Err(row.malformed(Problem::NoPath)),
        path => Ok(path.to_owned()),
    }
}

fn add(reader: &mut Reader<'_, '_>, path: String) -> Result<FilePatch, Malformed> {
    let mut text = String::new();
    // Rows without anything are lines of the file only if more of it follows.
    let mut blanks = 0;
    while let Some(row) = reader.peek()
        && head(row.text().trim()).is_none()
    {
        reader.next();
        if row.text().is_empty() {
            blanks += 1;
            continue;
        }
        let Some(line) = row.text().strip_prefix('+') else {
            let problem =
                if row.text().starts_with("***") { Problem::NoHeader } else { Problem::NoAddition };
            return Err(row.malformed(problem));
        };
        text.extend(std::iter::repeat_n('\n', std::mem::take(&mut blanks)));
        text.push_str(line);
        text.push('\n');
    }
    Ok(FilePatch::Add { path, text, executable: None })
}

fn update(
    reader: &mut Reader<'_, '_>,
    header: Row<'_>,
    path: String,
) -> Result<FilePatch, Malformed> {
    let mut move_to = None;
    if let Some(row) = reader.peek()
        && let Some(target) = row.text().trim().strip_prefix(MOVE)
    {
        reader.next();
        move_to = Some(named(row, target)?).filter(|target| *target != path);
    }
    let hunks = hunks(reader)?;
    if hunks.is_empty() && move_to.is_none() {
        return Err(header.malformed(Problem::EmptyUpdate { path }));
    }
    Ok(FilePatch::Update { path, move_to, executable: None, hunks })
}

fn hunks(reader: &mut Reader<'_, '_>) -> Result<Vec<Hunk>, Malformed> {
    let mut hunks = Hunks::default();
    // Only the end is trimmed: a kept line may look like a header.
    while let Some(row) = reader.peek()
        && head(row.text().trim_end()).is_none()
    {
        reader.next();
        hunks.take(row)?;
    }
    hunks.close()?;
    Ok(hunks.done)
}

#[derive(Default)]
struct Hunks<'a> {
    done: Vec<Hunk>,
    open: Option<(Row<'a>, Hunk)>,
}

impl<'a> Hunks<'a> {
    fn take(&mut self, row: Row<'a>) -> Result<(), Malformed> {
        let text = row.text().trim_end();
        if text == "@@" || text.starts_with("@@ ") {
            return self.start(row);
        }
        let (_, hunk) =
            self.open.get_or_insert_with(|| (row, Hunk { row: row.number, ..Hunk::default() }));
        if text == END_OF_FILE && !hunk.lines.is_empty() {
            hunk.at_end = true;
            return Ok(());
        }
        match row.line() {
            _ if hunk.at_end && text.is_empty() => {}
            Some(line) if !hunk.at_end => hunk.lines.push(line),
            Some(_) | None if hunk.lines.is_empty() => {
                return Err(row.malformed(Problem::NoHunkLine));
            }
            Some(_) | None => return Err(row.malformed(Problem::NoHunkStart)),
        }
        Ok(())
    }

    /// Several `@@` in a row are one hunk's hints.
    fn start(&mut self, row: Row<'a>) -> Result<(), Malformed> {
        if self.open.as_ref().is_some_and(|(_, hunk)| !hunk.lines.is_empty()) {
            self.close()?;
        }
        let (_, hunk) =
            self.open.get_or_insert_with(|| (row, Hunk { row: row.number, ..Hunk::default() }));
        match hunk_head(row.text()) {
            Some(HunkHead::Numbers { old_start, .. }) => hunk.old_start = Some(old_start),
            Some(HunkHead::Hint(hint)) => hunk.hints.push(hint.to_owned()),
            Some(HunkHead::Bare) => {}
            None => return Err(row.malformed(Problem::BadHunkHead)),
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), Malformed> {
        let Some((row, hunk)) = self.open.take() else { return Ok(()) };
        let says_nothing =
            hunk.lines.iter().all(|line| line.kind == Kind::Keep && line.text.is_empty());
        match row.text().starts_with("@@") {
            true if says_nothing => return Err(row.malformed(Problem::EmptyHunk)),
            // Blank rows between a header and the first `@@`.
            false if says_nothing => {}
            true | false => self.done.push(hunk),
        }
        Ok(())
    }
}
