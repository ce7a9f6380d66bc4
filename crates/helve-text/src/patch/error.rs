//! Errors in the text of a patch.

use std::fmt;

/// A syntax error in a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchParseError {
    /// The number of the row in the patch, counted from 1.
    pub row: usize,
    pub problem: PatchProblem,
    /// The text of the row, clipped. The text is empty if the error is at the end of the patch.
    pub found: String,
    /// Whether the patch is a unified diff.
    pub is_diff: bool,
}

/// What is wrong with a row of a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatchProblem {
    /// The patch has too many bytes or lines.
    TooLarge,
    /// The patch changes nothing.
    NoChanges,
    /// The first row is not `*** Begin Patch`.
    ExpectedBegin,
    /// The whole patch is on one row, with the two characters `\n` for each line break.
    Escaped,
    /// A unified diff is inside `*** Begin Patch` and `*** End Patch`.
    DiffInEnvelope,
    /// The last row is not `*** End Patch`.
    ExpectedEnd,
    /// Text follows `*** End Patch`.
    AfterEnd,
    /// A row is not a file header such as `*** Add File: `.
    ExpectedFileHeader,
    /// A path is missing or invalid.
    ExpectedPath,
    /// A quoted path has an invalid escape or no closing quote.
    BadQuoting,
    /// A row of a new file does not start with `+`.
    ExpectedAddition,
    /// A file section changes nothing: it has no hunks and no new path.
    EmptyUpdate {
        path: String,
    },
    /// A hunk has no lines.
    EmptyHunk,
    /// The first row of a hunk is not a hunk line.
    ExpectedHunkLine,
    /// A row is neither a hunk line nor the start of the next hunk.
    ExpectedHunkStart,
    /// A hunk header (`@@ -1,2 +1,3 @@`) is invalid.
    BadHunkHeader,
    /// A hunk comes before any `---` and `+++`.
    ExpectedFileNames,
    /// The row `--- PATH` is missing before `+++ PATH`.
    MissingOldName,
    /// The row `+++ PATH` is missing after `--- PATH`.
    MissingNewName,
    /// `---` and `+++` name different files without a rename.
    TwoNames {
        old: String,
        new: String,
    },
    /// The patch ends before a hunk has as many lines as its header says. Contains the numbers of missing lines.
    CutShort {
        old: usize,
        new: usize,
    },
    /// A hunk of a new file has a line other than `+`, or a hunk of a deleted file has a line other than `-`.
    UnexpectedLineKind,
    /// Another line follows a line that is marked as the last of the file.
    LineAfterNoNewlineMarker,
    /// The hunk changes only line endings, which patches do not preserve reliably.
    OnlyLineEndingsDiffer,
    /// A patch of a binary file.
    Binary,
    Unsupported(UnsupportedChange),
}

/// A kind of change in a diff that is not supported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnsupportedChange {
    Copy,
    /// A symbolic link is created or changed.
    Link,
    Submodule,
    /// The patch is the diff of a merge, which has several old sides.
    Merge,
}

impl fmt::Display for PatchParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.found.as_str() {
            "" => write!(f, "line {}: {}", self.row, self.problem),
            found => write!(f, "line {} ({found:?}): {}", self.row, self.problem),
        }
    }
}

impl std::error::Error for PatchParseError {}

impl fmt::Display for PatchProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PatchProblem::TooLarge => "expected a patch of at most 16 MiB and 1,000,000 lines",
            PatchProblem::NoChanges => "expected a patch that changes at least one file",
            PatchProblem::ExpectedBegin => "expected `*** Begin Patch`, or a unified diff",
            PatchProblem::Escaped => {
                "the patch is escaped: it has the two characters `\\n` where it needs line breaks"
            }
            PatchProblem::DiffInEnvelope => {
                "a unified diff (`---`, `+++`) is inside `*** Begin Patch`; send either the diff alone or `*** Update File: PATH` and hunks"
            }
            PatchProblem::ExpectedEnd => "expected `*** End Patch` as the last line",
            PatchProblem::AfterEnd => "expected nothing after `*** End Patch`",
            PatchProblem::ExpectedFileHeader => "expected `*** Add File: `, `*** Delete File: ` or `*** Update File: `",
            PatchProblem::ExpectedPath => "expected a path",
            PatchProblem::BadQuoting => "expected a double-quoted path with C escapes",
            PatchProblem::ExpectedAddition => "expected a line of the new file, starting with `+`, or the next file",
            PatchProblem::EmptyUpdate { path } => return write!(f, "expected a change to {path:?}"),
            PatchProblem::EmptyHunk => "expected hunk lines",
            PatchProblem::ExpectedHunkLine => "expected a line starting with a space (kept), `+` (added) or `-` (removed)",
            PatchProblem::ExpectedHunkStart => {
                "expected a line starting with a space, `+` or `-`, or `@@` for the next hunk, or the next file"
            }
            PatchProblem::BadHunkHeader => "expected `@@ -LINE,COUNT +LINE,COUNT @@`",
            PatchProblem::ExpectedFileNames => "expected `--- PATH` and `+++ PATH` before the first hunk",
            PatchProblem::MissingOldName => "expected `--- PATH` before this line",
            PatchProblem::MissingNewName => "expected `+++ PATH` after this line",
            PatchProblem::TwoNames { old, new } => return write!(f, "expected one file name, not {old:?} and {new:?}"),
            PatchProblem::CutShort { old, new } => {
                return write!(f, "expected {old} more old and {new} more new lines in this hunk");
            }
            PatchProblem::UnexpectedLineKind => "expected only `+` lines in a new file and only `-` lines in a deleted one",
            PatchProblem::LineAfterNoNewlineMarker => "expected no line after the one that ends the file without a newline",
            PatchProblem::OnlyLineEndingsDiffer => "changing only line endings is not supported",
            PatchProblem::Binary => "binary patches are not supported",
            PatchProblem::Unsupported(UnsupportedChange::Copy) => "copying files is not supported",
            PatchProblem::Unsupported(UnsupportedChange::Link) => "symbolic links are not supported",
            PatchProblem::Unsupported(UnsupportedChange::Submodule) => "submodules are not supported",
            PatchProblem::Unsupported(UnsupportedChange::Merge) => "merge diffs are not supported",
        })
    }
}
