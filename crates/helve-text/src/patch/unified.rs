//! Unified diffs, of git and of others.

mod hunk;
mod section;

use section::Section;

use super::{
    Malformed, Patch, Problem, Unsupported, marked,
    rows::{Reader, Row},
};

/// Whether the rows look like a diff rather than the other form: whichever starts first.
pub(super) fn is_meant(rows: &[Row<'_>]) -> bool {
    let start = (0..rows.len()).find(|n| starts_file(&rows[*n..]) || marked::is_begin(rows[*n]));
    start.is_some_and(|start| starts_file(&rows[start..]))
}

pub(super) fn parse(rows: &[Row<'_>]) -> Result<Patch, Malformed> {
    let mut reader = Reader { rows };
    let mut files = Vec::new();
    // Outside of a file's section is whatever a mail or a log says.
    let mut section: Option<Section<'_>> = None;
    while let Some(row) = reader.peek() {
        let is_git = starts_git(row);
        if is_git || has_names(reader.rows) && section.as_ref().is_none_or(Section::has_names) {
            files.extend(section.take().map(Section::finish).transpose()?);
            section = Some(Section::new(row));
        }
        match &mut section {
            Some(_) if is_git => {
                reader.next();
            }
            Some(section) if has_names(reader.rows) => section.take_names(&mut reader)?,
            Some(_) if row.raw.starts_with("@@@") => {
                return Err(row.malformed(Problem::Unsupported(Unsupported::Merge)));
            }
            Some(section) if row.raw.starts_with("@@") => section.take_hunk(row, &mut reader)?,
            None if row.raw.starts_with("@@ -") => return Err(row.malformed(Problem::NoFileNames)),
            Some(open) => {
                reader.next();
                if ends_section(row) {
                    files.extend(section.take().map(Section::finish).transpose()?);
                } else {
                    open.take_head(row)?;
                }
            }
            None => {
                reader.next();
            }
        }
    }
    files.extend(section.map(Section::finish).transpose()?);
    Ok(Patch { files })
}

fn starts_git(row: Row<'_>) -> bool {
    row.raw.starts_with("diff --git ")
}

/// Whether the first two rows name the two sides of a file.
fn has_names(rows: &[Row<'_>]) -> bool {
    matches!(rows, [old, new, ..] if old.raw.starts_with("--- ") && new.raw.starts_with("+++ "))
}

fn starts_file(rows: &[Row<'_>]) -> bool {
    rows.first().is_some_and(|row| starts_git(*row)) || has_names(rows)
}

/// What stands between files in mails and logs; anything else after a hunk is a line that went wrong.
fn ends_section(row: Row<'_>) -> bool {
    const STARTS: [&str; 6] = ["commit ", "diff ", "From ", "Index: ", "Only in ", "====="];
    is_signature(row) || STARTS.iter().any(|start| row.raw.starts_with(start))
}

/// The row after which git writes its version at the end of a mail.
fn is_signature(row: Row<'_>) -> bool {
    matches!(row.text(), "-- " | "--")
}
