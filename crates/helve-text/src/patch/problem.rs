//! Why a text is not a patch.

use std::fmt;

/// Where a patch cannot be read, and what stands there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    /// The row of the patch text, from 1.
    pub row: usize,
    pub problem: Problem,
    /// The row as it is, clipped; empty at the end of the text.
    pub found: String,
}

/// What a row of a patch should have been.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    TooLarge,
    /// The patch changes nothing.
    Nothing,
    /// The first row is not `*** Begin Patch`.
    NoBegin,
    /// The last row is not `*** End Patch`.
    NoEnd,
    AfterEnd,
    /// Not one of the rows that start a file.
    NoHeader,
    NoPath,
    BadQuoting,
    /// A row of a new file that does not start with `+`.
    NoAddition,
    EmptyUpdate {
        path: String,
    },
    EmptyHunk,
    /// Not a line of a hunk, where its first is expected.
    NoHunkLine,
    /// Neither another line of a hunk nor the start of the next.
    NoHunkStart,
    /// A hunk's head (`@@ -1,2 +1,3 @@`) that cannot be read.
    BadHunkHead,
    /// A hunk before any `---` and `+++`.
    NoFileNames,
    /// `---` and `+++` name two files, and nothing says which is meant.
    TwoNames {
        old: String,
        new: String,
    },
    /// The text ends before the lines that the hunk's head counted.
    CutShort {
        old: usize,
        new: usize,
    },
    /// A hunk of a new file with old lines, or of a deleted one with new lines.
    OneSided,
    /// A line after one that the patch calls the last of the file.
    AfterLast,
    /// A change of nothing but line endings, which a patch cannot carry reliably.
    OnlyEndings,
    Binary,
    Unsupported(Unsupported),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsupported {
    Copy,
    Link,
    Submodule,
    /// The diff of a merge, with several old sides.
    Merge,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.row, self.problem)?;
        if self.found.is_empty() { Ok(()) } else { write!(f, ", found {:?}", self.found) }
    }
}

impl std::error::Error for Malformed {}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Problem::TooLarge => "expected a patch of at most 16 MiB and 1,000,000 lines",
            Problem::Nothing => "expected a patch that changes at least one file",
            Problem::NoBegin => "expected `*** Begin Patch`, or a unified diff",
            Problem::NoEnd => "expected `*** End Patch` as the last line",
            Problem::AfterEnd => "expected nothing after `*** End Patch`",
            Problem::NoHeader => "expected `*** Add File: `, `*** Delete File: ` or `*** Update File: `",
            Problem::NoPath => "expected a path",
            Problem::BadQuoting => "expected a path with C escapes between double quotes",
            Problem::NoAddition => "expected a line of the new file, starting with `+`, or the next file",
            Problem::EmptyUpdate { path } => return write!(f, "expected a change of {path:?}"),
            Problem::EmptyHunk => "expected the lines of a hunk",
            Problem::NoHunkLine => "expected a line starting with a space (kept), `+` (added) or `-` (removed)",
            Problem::NoHunkStart => {
                "expected a line starting with a space, `+` or `-`, or `@@` for the next hunk, or the next file"
            }
            Problem::BadHunkHead => "expected `@@ -LINE,COUNT +LINE,COUNT @@`",
            Problem::NoFileNames => "expected `--- PATH` and `+++ PATH` before the first hunk",
            Problem::TwoNames { old, new } => return write!(f, "expected one file, not {old:?} and {new:?}"),
            Problem::CutShort { old, new } => {
                return write!(f, "expected {old} more old and {new} more new lines in this hunk");
            }
            Problem::OneSided => "expected only `+` lines in a new file and only `-` lines in a deleted one",
            Problem::AfterLast => "expected no line after the one that ends the file without a newline",
            Problem::OnlyEndings => "expected a change of more than line endings",
            Problem::Binary => "expected text, not a binary patch",
            Problem::Unsupported(Unsupported::Copy) => "expected no copied file",
            Problem::Unsupported(Unsupported::Link) => "expected no symbolic link",
            Problem::Unsupported(Unsupported::Submodule) => "expected no submodule",
            Problem::Unsupported(Unsupported::Merge) => "expected a diff with one old side, not that of a merge",
        })
    }
}
