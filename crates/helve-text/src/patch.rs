//! Patches, in the marked form (`*** Begin Patch`) and as unified diffs: read whole before anything is touched.

mod head;
mod marked;
mod name;
pub mod place;
mod problem;
mod rows;
mod unified;

#[cfg(test)]
mod tests;

use crate::cut::count_lines;

pub use problem::{Malformed, Problem, Unsupported};

/// Bytes and rows that are far more than a model writes or a person reads; larger patches are not looked at.
const LARGEST: usize = 16 << 20;
const MOST_ROWS: usize = 1_000_000;

/// What a patch wants done, file by file, in its own order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    pub files: Vec<FilePatch>,
}

/// What is to become of one file. Paths are as the patch spells them, without the `a/` and `b/` of a diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilePatch {
    Add {
        path: String,
        text: String,
        /// Whether the file is to be executable, where the patch says so.
        executable: Option<bool>,
    },
    Delete {
        path: String,
        /// What is in the file, where the patch says so; a file that reads otherwise is not meant.
        was: Option<String>,
    },
    Update {
        path: String,
        /// Another name that the file is to have; without hunks it only moves.
        move_to: Option<String>,
        executable: Option<bool>,
        hunks: Vec<Hunk>,
    },
}

/// Lines that stand together in the file, and what becomes of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hunk {
    /// Lines that come before, outermost first, with anything in between: `@@ class Cat`, `@@ def purr`.
    pub hints: Vec<String>,
    pub lines: Vec<Line>,
    /// The last of `lines` is the last of the file.
    pub at_end: bool,
    /// The line, from 1, at which the patch believes the old lines to be, or before which to insert.
    pub old_start: Option<usize>,
    /// Where in the patch the hunk stands, for messages.
    pub row: usize,
}

/// One line of a hunk, without its ending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub kind: Kind,
    pub text: String,
    /// No newline follows it: the file ends with this line.
    pub is_open: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Keep,
    Remove,
    Add,
}

/// Reads a patch in either form, also inside a here-document or a code fence.
pub fn parse(text: &str) -> Result<Patch, Malformed> {
    if text.len() > LARGEST || count_lines(text) > MOST_ROWS {
        return Err(Malformed { row: 1, problem: Problem::TooLarge, found: String::new() });
    }
    let rows = rows::rows(text);
    let rows = rows::unwrapped(&rows);
    let patch = if unified::is_meant(rows) { unified::parse(rows) } else { marked::parse(rows) }?;
    match rows.last() {
        Some(row) if patch.files.is_empty() => Err(row.malformed(Problem::Nothing)),
        Some(_) | None => Ok(patch),
    }
}

impl Hunk {
    /// What the file has before, with the kept lines.
    pub fn old_lines(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(|line| line.kind != Kind::Add)
    }

    /// What the file has afterwards, with the kept lines.
    pub fn new_lines(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(|line| line.kind != Kind::Remove)
    }
}
