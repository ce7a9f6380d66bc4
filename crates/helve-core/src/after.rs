//! The interface to formatters and language servers, which run after a tool has written files.

use std::path::PathBuf;

use bytes::Bytes;

use crate::BoxFuture;
use crate::machine::commit::HardLinks;
use crate::resolved::Resolved;

/// Formats and checks files after a write. A failure or a delay never fails the write.
pub trait AfterWrite: Send + Sync {
    /// Returns the formatted content; `None` to leave the file as it is.
    fn format<'a>(&'a self, path: &'a Resolved, bytes: &'a Bytes) -> BoxFuture<'a, Option<Bytes>>;

    /// Returns the problems that the writes introduced.
    fn diagnose<'a>(&'a self, written: &'a [WrittenFile]) -> BoxFuture<'a, DiagnosticReport>;
}

/// Problems that a change introduced, the most important first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiagnosticReport {
    pub diagnostics: Vec<Diagnostic>,
    /// Problems introduced by earlier changes that were not checked in time.
    pub earlier: Vec<Diagnostic>,
    /// Number of problems that are not listed.
    pub left_out: usize,
    /// Programs that have not checked the change yet.
    pub unchecked: Vec<MissedCheck>,
}

impl DiagnosticReport {
    /// Adds the report of another program.
    pub(crate) fn add(&mut self, other: DiagnosticReport) {
        let DiagnosticReport { diagnostics, earlier, left_out, unchecked } = other;
        self.diagnostics.extend(diagnostics);
        self.earlier.extend(earlier);
        self.left_out += left_out;
        self.unchecked.extend(unchecked);
    }
}

/// A check that a program did not finish in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissedCheck {
    pub program: String,
    pub reason: UncheckedReason,
}

/// Why a change was not checked in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UncheckedReason {
    /// The program is starting.
    Starting,
    /// The program is loading the project.
    Loading,
    /// The program did not answer.
    NoAnswer,
}

/// A problem in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The path as displayed: relative to the root if inside it.
    pub display_path: String,
    /// Counted from 1.
    pub line: u64,
    /// Counted from 1, in characters.
    pub column: u64,
    pub severity: DiagnosticSeverity,
    pub message: String,
    pub code: Option<String>,
    /// The program that found the problem.
    pub source: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DiagnosticSeverity {
    Error,
    Warning,
    Information,
    Hint,
}

/// A file after a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenFile {
    pub path: PathBuf,
    /// The path as displayed: relative to the root if inside it.
    pub display_path: String,
    /// The content before the change; `None` if there was no file. Of a moved file, the content at its old path.
    pub before: Option<Bytes>,
    /// The content now; `None` if the file was removed.
    pub bytes: Option<Bytes>,
    /// The old path of a moved file.
    pub moved_from: Option<PathBuf>,
    /// Whether somebody else changed the file during the call, so that this change was rebased onto theirs.
    pub rebased: bool,
    /// Number of hard links that the file had.
    pub hard_links: u64,
    /// What happened to the other hard links.
    pub link_mode: HardLinks,
    /// The content that was written before a formatter changed it; `None` if none did.
    pub before_formatting: Option<Bytes>,
}
