//! Parses unified diffs, as written by git and other tools.

mod hunk;
mod section;

use section::FileSection;

use super::{
    Patch, PatchParseError, PatchProblem, UnsupportedChange, apply_patch,
    source::{PatchRow, RowReader},
};

/// Whether the text is a unified diff rather than in the `apply_patch` format. The format whose header comes first
/// wins.
pub(super) fn is_unified(rows: &[PatchRow<'_>]) -> bool {
    let start = (0..rows.len())
        .find(|n| starts_file(&rows[*n..]) || apply_patch::is_begin_marker(rows[*n]));
    start.is_some_and(|start| starts_file(&rows[start..]))
}

pub(super) fn parse(rows: &[PatchRow<'_>]) -> Result<Patch, PatchParseError> {
    let mut reader = RowReader { rows };
    let mut files = Vec::new();
    // Rows outside a file section belong to a mail or log, and are skipped.
    let mut section: Option<FileSection<'_>> = None;
    while let Some(row) = reader.peek() {
        let is_git = is_git_header(row);
        if is_git || has_names(reader.rows) && section.as_ref().is_none_or(FileSection::has_names) {
            files.extend(section.take().map(FileSection::finish).transpose()?);
            section = Some(FileSection::new(row));
        }
        match &mut section {
            Some(_) if is_git => {
                reader.next();
            }
            Some(section) if has_names(reader.rows) => section.parse_names(&mut reader)?,
            Some(_) if row.raw.starts_with("@@@") => {
                return Err(row.error(PatchProblem::Unsupported(UnsupportedChange::Merge)));
            }
            Some(section) if row.raw.starts_with("@@") => section.parse_hunk(row, &mut reader)?,
            None if row.raw.starts_with("@@ -") => {
                return Err(row.error(PatchProblem::ExpectedFileNames));
            }
            Some(current) => {
                reader.next();
                if ends_section(row) {
                    files.extend(section.take().map(FileSection::finish).transpose()?);
                } else {
                    current.parse_header(row)?;
                }
            }
            None => {
                reader.next();
            }
        }
    }
    files.extend(section.map(FileSection::finish).transpose()?);
    Ok(Patch { files })
}

fn is_git_header(row: PatchRow<'_>) -> bool {
    row.raw.starts_with("diff --git ")
}

/// Whether the first two rows name the two sides of a file.
fn has_names(rows: &[PatchRow<'_>]) -> bool {
    matches!(rows, [old, new, ..] if old.raw.starts_with("--- ") && new.raw.starts_with("+++ "))
}

pub(super) fn starts_file(rows: &[PatchRow<'_>]) -> bool {
    rows.first().is_some_and(|row| is_git_header(*row)) || has_names(rows)
}

/// Whether a row ends a file section in a mail or log. Any other row after a hunk is an error.
fn ends_section(row: PatchRow<'_>) -> bool {
    const STARTS: [&str; 6] = ["commit ", "diff ", "From ", "Index: ", "Only in ", "====="];
    is_signature(row) || STARTS.iter().any(|start| row.raw.starts_with(start))
}

/// Whether a row separates a mail from its signature. Git writes its version number there.
fn is_signature(row: PatchRow<'_>) -> bool {
    matches!(row.text(), "-- " | "--")
}
