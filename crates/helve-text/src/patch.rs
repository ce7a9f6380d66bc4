//! Parses patches in the `apply_patch` format (`*** Begin Patch`) and unified diffs.

mod apply_patch;
mod error;
mod file_name;
mod hunk_header;
pub mod place;
mod source;
mod unified;

#[cfg(test)]
mod tests;

use crate::cut::count_lines;

pub use error::{PatchParseError, PatchProblem, UnsupportedChange};

/// Maximum size of a patch in bytes, far above what a model writes.
const MAX_BYTES: usize = 16 << 20;
/// Maximum number of lines of a patch.
const MAX_ROWS: usize = 1_000_000;

/// A parsed patch: the changes to each file, in the order of the patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    pub files: Vec<FilePatch>,
}

/// The change to one file. Paths are as in the patch, without the prefixes `a/` and `b/` of a diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilePatch {
    /// Creates a file.
    Add {
        path: String,
        text: String,
        /// Whether the file is executable, or `None` if the patch does not say.
        executable: Option<bool>,
    },
    /// Deletes a file.
    Delete {
        path: String,
        /// The content of the file, if the patch quotes it. A file with other content must not be deleted.
        content: Option<String>,
    },
    /// Changes or moves a file.
    Update {
        path: String,
        /// The new path of the file. Without hunks the file is only moved.
        move_to: Option<String>,
        executable: Option<bool>,
        hunks: Vec<PatchHunk>,
    },
}

/// Consecutive lines of the file, and their replacement.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PatchHunk {
    /// Lines that occur somewhere before the hunk, outermost first: `class Cat`, then `def purr`.
    pub hints: Vec<String>,
    pub lines: Vec<PatchLine>,
    /// Whether the hunk ends at the end of the file.
    pub at_end: bool,
    /// The line number, from 1, that the patch states for the first old line. For a hunk that only inserts, the number
    /// of the line before which it inserts.
    pub old_start: Option<usize>,
    /// The line of the patch, from 1, at which the hunk starts. Used in messages.
    pub row: usize,
}

/// One line of a hunk, without its ending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchLine {
    pub kind: PatchLineKind,
    pub text: String,
    /// Whether the file ends with this line, without a newline.
    pub no_newline: bool,
}

/// What a patch does with a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchLineKind {
    /// A context line, which stays unchanged.
    Keep,
    Remove,
    Add,
}

/// Parses a patch in either format. A surrounding here-document or code fence is ignored.
pub fn parse(text: &str) -> Result<Patch, PatchParseError> {
    if text.len() > MAX_BYTES || count_lines(text) > MAX_ROWS {
        return Err(PatchParseError {
            row: 1,
            problem: PatchProblem::TooLarge,
            found: String::new(),
            is_diff: false,
        });
    }
    let rows = source::split_rows(text);
    let rows = source::strip_wrapper(&rows);
    let patch = match unified::is_unified(rows) {
        true => unified::parse(rows).map_err(|error| PatchParseError { is_diff: true, ..error }),
        false => apply_patch::parse(rows),
    }?;
    match rows.last() {
        Some(row) if patch.files.is_empty() => Err(row.error(PatchProblem::NoChanges)),
        Some(_) | None => Ok(patch),
    }
}

impl PatchHunk {
    /// Returns the lines before the change, including context lines.
    pub fn old_lines(&self) -> impl Iterator<Item = &PatchLine> {
        self.lines.iter().filter(|line| line.kind != PatchLineKind::Add)
    }

    /// Returns the lines after the change, including context lines.
    pub fn new_lines(&self) -> impl Iterator<Item = &PatchLine> {
        self.lines.iter().filter(|line| line.kind != PatchLineKind::Remove)
    }
}
