//! Formatters and language servers, which run after a write.

use std::path::PathBuf;

use bytes::Bytes;

use crate::BoxFuture;
use crate::machine::commit::HardLinks;
use crate::resolved::Resolved;

/// Formats and checks files after a write. A failure or a delay never fails the write.
pub trait AfterWrite: Send + Sync {
    /// Returns the formatted content; `None` to leave the file as it is.
    fn format<'a>(&'a self, path: &'a Resolved, bytes: &'a Bytes) -> BoxFuture<'a, Option<Bytes>>;

    /// Returns problems in the written files.
    fn diagnose<'a>(&'a self, written: &'a [WrittenFile]) -> BoxFuture<'a, Vec<Diagnostic>>;
}

/// A problem in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The path as displayed: relative to the root if inside it.
    pub display_path: String,
    /// Counted from 1.
    pub line: u64,
    pub message: String,
}

/// A file after a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenFile {
    pub path: PathBuf,
    /// The path as displayed: relative to the root if inside it.
    pub display_path: String,
    /// The content now; `None` if the file was removed.
    pub bytes: Option<Bytes>,
    /// Whether somebody else changed the file during the call, so that both changes were merged.
    pub rebased: bool,
    /// Number of hard links that the file had.
    pub hard_links: u64,
    /// What happened to the other hard links.
    pub link_mode: HardLinks,
    pub formatted: bool,
}
