//! The interface to the machine that has the files. Requests and answers are plain data, so that every operation can be
//! sent over a pipe.

use std::ffi::OsString;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::BoxFuture;
use crate::process::Processes;
use commit::{AwaitRecorded, CommitChange, CommitError, Committed, ComputeChange, ContentHash};

pub mod commit;
mod tree;

pub use tree::{
    BadPattern, CaseMode, ContextLines, FileCount, FileTree, FindFlow, FindOrder, FindRequest,
    FoundFile, HiddenFiles, IgnoredMatches, IgnoredMode, LineCut, LineRole, MatchedFile,
    MatchedLine, Multiline, PatternSyntax, RestrictedFiles, RestrictedRequest, ResultShape,
    SearchCounts, SearchError, SearchFlow, SearchRequest, SkippedFiles, WalkEnd,
};

/// Operations on files. Each does much at once, so that it needs only one round trip to the machine. Dropping a
/// returned future cancels the operation.
pub trait Machine: Send + Sync {
    /// Follows every link of an absolute path as far as the path exists. Reads no content.
    fn locate<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<LocatedPath, MachineError>>;

    /// Reads some lines of a file of any size. Memory use depends only on the window.
    fn window<'a>(
        &'a self,
        at: &'a Place,
        request: WindowRequest,
    ) -> BoxFuture<'a, Result<WindowLines, MachineError>>;

    /// Reads a whole file. Fails if it is larger than `max_bytes`.
    fn read<'a>(
        &'a self,
        at: &'a Place,
        max_bytes: u64,
    ) -> BoxFuture<'a, Result<FileContent, MachineError>>;

    /// Returns the target of a symbolic link; `None` if there is no link at this place.
    fn read_link<'a>(&'a self, at: &'a Place)
    -> BoxFuture<'a, Result<Option<Bytes>, MachineError>>;

    /// Applies all changes or none. This is the only operation that changes files. It may compare files and write
    /// temporary ones at once, but waits for `recorded` before it changes the first file. Once started it completes,
    /// even if the future is dropped.
    fn commit(
        &self,
        changes: Vec<CommitChange>,
        recorded: AwaitRecorded,
    ) -> BoxFuture<'static, Result<Vec<Committed>, CommitError>>;

    /// Reads a file of at most `max_bytes`, and commits the change that `compute` derives from it. If it derives none,
    /// the result is empty. Otherwise like [`Machine::commit`].
    ///
    /// A machine that has threads for blocking work does all of it on one thread, which saves waking another one for
    /// each step.
    fn read_and_commit<'a>(
        &'a self,
        at: Place,
        max_bytes: u64,
        compute: ComputeChange,
        recorded: AwaitRecorded,
    ) -> BoxFuture<'a, Result<Vec<Committed>, CommitError>> {
        Box::pin(async move {
            match compute(self.read(&at, max_bytes).await) {
                Some(change) => self.commit(vec![change], recorded).await,
                None => Ok(Vec::new()),
            }
        })
    }

    /// Lists a folder, sorted by name, at most `max_entries` entries.
    fn list<'a>(
        &'a self,
        at: &'a Place,
        max_entries: usize,
    ) -> BoxFuture<'a, Result<DirListing, MachineError>>;

    /// Finds files by name, in a deterministic order.
    fn find(&self, request: FindRequest) -> FindFlow;

    /// Searches the lines of files, in a deterministic order.
    fn search(&self, request: SearchRequest) -> SearchFlow;

    /// Finds, below a folder, the files and folders that rules restrict. Fails if that folder does not exist.
    fn find_restricted(
        &self,
        request: RestrictedRequest,
    ) -> BoxFuture<'static, Result<RestrictedFiles, MachineError>>;

    /// Returns the operations on this machine's processes; `None` if it cannot start any.
    ///
    /// Each machine has its own, so that a command cannot be judged on one machine and run on another.
    fn processes(&self) -> Option<Arc<dyn Processes>> {
        None
    }
}

/// A path that was judged. It is opened from the folder `anchor` without following links, so that a link that appears
/// between judging and opening causes an error instead of leading elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    pub anchor: PathBuf,
    /// The rest of the path, relative to `anchor`; may be empty.
    pub beneath: PathBuf,
}

impl Place {
    /// The whole path.
    pub fn path(&self) -> PathBuf {
        if self.beneath.as_os_str().is_empty() {
            return self.anchor.clone();
        }
        self.anchor.join(&self.beneath)
    }
}

/// The result of [`Machine::locate`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocatedPath {
    /// The path with every link followed. Components that do not exist are appended as given.
    pub real: PathBuf,
    /// `None` if nothing exists at the path.
    pub kind: Option<FileKind>,
}

/// What is at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileKind {
    File,
    Folder,
    /// A link that was not followed, because its target does not exist or because the link itself was looked up. Other
    /// links have the kind of their target.
    UnfollowedLink,
    Fifo,
    Socket,
    Device,
    Other,
}

/// Which lines of a file to read.
#[derive(Clone, Copy, Debug)]
pub struct WindowRequest {
    /// The first line to read, counted from 1.
    pub first: u64,
    /// Maximum number of lines.
    pub lines: u64,
    /// Maximum bytes kept per line. The rest of a longer line is skipped.
    pub line_bytes: usize,
    /// Maximum bytes kept in total. The window ends before the line that would exceed this, but has at least one line.
    pub max_bytes: usize,
    pub timeout: Duration,
}

/// Some lines of a file, as bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowLines {
    /// The kept bytes of all lines in sequence, without line endings. UTF-16 is converted to UTF-8.
    pub bytes: Bytes,
    /// Where each line ends in `bytes`, and how much of it was skipped.
    pub lines: Vec<LineSpan>,
    /// The first line of the window, counted from 1.
    pub first: u64,
    /// Whether the file has lines after the window.
    pub has_more: bool,
    /// Number of lines from the start of the file to the end of the window.
    pub lines_read: u64,
    /// Number of lines after the window; `None` if the rest of the file is too large to count them.
    pub later_lines: Option<u64>,
    /// The size when the file was opened. Later growth is ignored.
    pub size: u64,
    /// The bytes of the file that the window covers, line endings included.
    pub range: Range<u64>,
    /// Identifies the content, to find out later whether the file has changed.
    pub fingerprint: ContentFingerprint,
    /// The whole file, if it was hashed as a whole.
    pub whole: Option<Bytes>,
    /// The first bytes of the file, for detecting binary content.
    pub sample: Bytes,
}

/// Identifies the content of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentFingerprint {
    /// Hash of the whole file.
    Whole(ContentHash),
    /// Hash of a window of a file that is too large to hash as a whole.
    Window(ContentHash),
    /// No hash was computed, so changes cannot be detected.
    Nothing,
}

/// One line in [`WindowLines::bytes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineSpan {
    /// Where the line ends in the kept bytes. It starts where the previous line ends.
    pub end: usize,
    /// How many bytes of the line were left out.
    pub skipped: u64,
}

impl WindowLines {
    /// Returns the kept bytes of each line and how many were left out.
    pub fn each(&self) -> impl Iterator<Item = (&[u8], u64)> {
        let mut start = 0;
        self.lines.iter().map(move |span| {
            let line = self.bytes.get(start..span.end).unwrap_or_default();
            start = span.end;
            (line, span.skipped)
        })
    }
}

/// A whole file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileContent {
    pub bytes: Bytes,
    /// The permission bits.
    pub mode: u32,
}

/// The names in a folder.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct DirListing {
    pub entries: Vec<ListedEntry>,
    /// Number of entries that were not returned.
    pub left_out: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedEntry {
    pub name: OsString,
    pub kind: FileKind,
    /// Whether the entry is a link to something of this kind.
    pub is_link: bool,
}

/// Why an operation on files failed. The dialect has the messages for models.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MachineError {
    #[error("the file does not exist")]
    NotFound,
    #[error("the system denied access")]
    NotPermitted,
    #[error("not a regular file")]
    NotAFile(FileKind),
    #[error("not a folder")]
    NotAFolder,
    #[error("the path changed while it was being opened")]
    PathChanged,
    #[error("too many symbolic links")]
    LinkLoop,
    #[error("the file has {size} bytes; the limit is {limit}")]
    TooLarge { size: u64, limit: u64 },
    #[error("timed out after {0:?}")]
    TimedOut(Duration),
    #[error("too many open files")]
    TooManyOpenFiles,
    #[error("{0}")]
    Other(String),
}
