//! Parses patches in the marked form (`*** Begin Patch`) and as unified diffs, completely before anything is changed.

mod error;
mod file_name;
mod hunk_header;
mod marked;
pub mod place;
mod source;
mod unified;

#[cfg(test)]
mod tests;

use crate::cut::count_lines;

pub use error::{PatchParseError, PatchProblem, UnsupportedChange};

/// Maximum size of a patch in bytes and rows, far above what a model writes.
const MAX_BYTES: usize = 16 << 20;
const MAX_ROWS: usize = 1_000_000;

/// The changes of a patch, file by file, in its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    pub files: Vec<FilePatch>,
}

/// The change of one file. Paths are as in the patch, without the `a/` and `b/` of a diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilePatch {
    Add {
        path: String,
        text: String,
        /// Whether the file becomes executable, if the patch says so.
        executable: Option<bool>,
    },
    Delete {
        path: String,
        /// The content of the file, if the patch quotes it. A file with other content must not be deleted.
        content: Option<String>,
    },
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
    /// Lines that precede the hunk, outermost first, with anything in between: `@@ class Cat`, `@@ def purr`.
    pub hints: Vec<String>,
    pub lines: Vec<PatchLine>,
    /// The last of `lines` is the last of the file.
    pub at_end: bool,
    /// The line number, from 1, that the patch states for the old lines, or before which it inserts.
    pub old_start: Option<usize>,
    /// The row of the patch at which the hunk starts, for messages.
    pub row: usize,
}

/// One line of a hunk, without its ending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchLine {
    pub kind: PatchLineKind,
    pub text: String,
    /// The file ends with this line, without a newline.
    pub no_newline: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchLineKind {
    Keep,
    Remove,
    Add,
}

/// Parses a patch in either form, also inside a here-document or a code fence.
pub fn parse(text: &str) -> Result<Patch, PatchParseError> {
    if text.len() > MAX_BYTES || count_lines(text) > MAX_ROWS {
        return Err(PatchParseError {
            row: 1,
            problem: PatchProblem::TooLarge,
            found: String::new(),
        });
    }
    let rows = source::split_rows(text);
    let rows = source::strip_wrapper(&rows);
    let patch = if unified::is_unified(rows) { unified::parse(rows) } else { marked::parse(rows) }?;
    match rows.last() {
        Some(row) if patch.files.is_empty() => Err(row.error(PatchProblem::Nothing)),
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
