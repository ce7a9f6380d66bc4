//! Who looks at files after they were written: formatters, language servers.

use std::path::PathBuf;

use bytes::Bytes;

use crate::BoxFuture;
use crate::machine::commit::HardLinks;
use crate::resolved::Resolved;

/// Looks at files after a write. A neighbour that fails or is slow never fails the write.
pub trait AfterWrite: Send + Sync {
    /// The same content in its proper form; `None` to leave it as it is.
    fn format<'a>(&'a self, path: &'a Resolved, bytes: &'a Bytes) -> BoxFuture<'a, Option<Bytes>>;

    /// What is wrong with the files as they are now.
    fn diagnose<'a>(&'a self, written: &'a [WrittenFile]) -> BoxFuture<'a, Vec<Diagnostic>>;
}

/// Something wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file as it is shown to people.
    pub shown: String,
    /// Counted from 1.
    pub line: u64,
    pub message: String,
}

/// A change that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenFile {
    pub path: PathBuf,
    /// The path for people.
    pub shown: String,
    /// The content now; `None` where the file was removed.
    pub bytes: Option<Bytes>,
    /// Others had changed the file meanwhile; their change was kept.
    pub moved_on: bool,
    /// How many names the file had.
    pub names: u64,
    /// What became of the others.
    pub links: HardLinks,
    pub formatted: bool,
}
