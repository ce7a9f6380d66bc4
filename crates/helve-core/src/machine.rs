//! Where the work happens. Plain data in, plain data out, so that every verb can cross a pipe.

use std::ffi::OsString;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::BoxFuture;
use crate::process::Processes;
use commit::{CommitChange, CommitError, Committed, ContentHash};

pub mod commit;
mod tree;

pub use tree::{
    BadPattern, CaseMode, FileCount, FileTree, FindFlow, FindOrder, FindRequest, FoundFile,
    HiddenFiles, IgnoredMatches, IgnoredMode, LineCut, LineRole, MatchReach, MatchedFile,
    MatchedLine, PatternSyntax, ResultShape, SearchCounts, SearchError, SearchFlow, SearchRequest,
    SkippedFiles, WalkEnd,
};

/// The verbs of a machine. They are coarse: one hop each. Dropping a returned future cancels the verb.
pub trait Machine: Send + Sync {
    /// Follows every link of an absolute path as far as it exists. Says nothing of the content.
    fn locate<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<LocatedPath, MachineError>>;

    /// Some lines of a file of any size, in memory that depends on the window alone.
    fn window<'a>(
        &'a self,
        at: &'a Place,
        want: WindowRequest,
    ) -> BoxFuture<'a, Result<WindowLines, MachineError>>;

    /// A whole file, unless it is larger than `most`.
    fn read<'a>(
        &'a self,
        at: &'a Place,
        most: u64,
    ) -> BoxFuture<'a, Result<FileContent, MachineError>>;

    /// The only verb that changes files: all changes or none. Once begun it runs to its end, even if the future is dropped.
    fn commit(
        &self,
        changes: Vec<CommitChange>,
    ) -> BoxFuture<'static, Result<Vec<Committed>, CommitError>>;

    /// The names in a folder, at most `most` of them, in the order of their bytes.
    fn list<'a>(
        &'a self,
        at: &'a Place,
        most: usize,
    ) -> BoxFuture<'a, Result<DirListing, MachineError>>;

    /// Files of a tree by name, in an order that does not depend on how they were found.
    fn find(&self, want: FindRequest) -> FindFlow;

    /// Lines of the files of a tree, in an order that does not depend on how they were found.
    fn search(&self, want: SearchRequest) -> SearchFlow;

    /// The processes of this same machine; `None` if it cannot start any.
    ///
    /// The machine hands them out itself, so a command cannot be judged on one machine and run on another.
    fn processes(&self) -> Option<Arc<dyn Processes>> {
        None
    }
}

/// A path beneath a folder that was judged. It is opened from `anchor` without following links, so
/// a link that appears between judging and opening fails instead of leading elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    pub anchor: PathBuf,
    pub beneath: PathBuf,
}

impl Place {
    pub fn path(&self) -> PathBuf {
        if self.beneath.as_os_str().is_empty() {
            return self.anchor.clone();
        }
        self.anchor.join(&self.beneath)
    }
}

/// What [`Machine::locate`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocatedPath {
    /// The path with every link followed; what does not exist yet is appended as given.
    pub real: PathBuf,
    /// `None` where nothing is there.
    pub kind: Option<FileKind>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileKind {
    File,
    Folder,
    /// Only in listings: a link that leads nowhere. Others are shown as what they lead to.
    DeadLink,
    Fifo,
    Socket,
    Device,
    Other,
}

/// Which lines of a file are wanted.
#[derive(Clone, Copy, Debug)]
pub struct WindowRequest {
    /// Counted from 1.
    pub first: u64,
    pub lines: u64,
    /// How many bytes of one line are kept; the rest of a longer line is skipped.
    pub line_bytes: usize,
    /// How many bytes are kept in all; the window ends with the line that would pass it, unless it is the first.
    pub most_bytes: usize,
    pub deadline: Duration,
}

/// Some lines of a file, as bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowLines {
    /// The kept bytes of the lines, one after the other, without line endings. UTF-16 comes as UTF-8.
    pub bytes: Bytes,
    pub lines: Vec<LineSpan>,
    /// The first line of the window, counted from 1.
    pub first: u64,
    /// Whether lines follow the window.
    pub more: bool,
    /// Lines seen, which is all there are when `more` is false.
    pub seen: u64,
    /// The size when the file was opened; later growth is not followed.
    pub size: u64,
    /// The bytes of the file that the window covers, line endings included.
    pub range: Range<u64>,
    /// What tells later whether the file is still the one that was read.
    pub mark: ContentMark,
    /// The first bytes of the file, for telling text from other things.
    pub sample: Bytes,
}

/// What the content of a file is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentMark {
    /// All of its bytes.
    Whole(ContentHash),
    /// The bytes of a window, in a file that is too large to look at all of it.
    Window(ContentHash),
    Nothing,
}

/// One line in [`WindowLines::bytes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineSpan {
    /// Where the line ends in the kept bytes; it begins where the one before ends.
    pub end: usize,
    /// How many bytes of the line were left out.
    pub skipped: u64,
}

impl WindowLines {
    /// The kept bytes of each line and how many were left out.
    pub fn each(&self) -> impl Iterator<Item = (&[u8], u64)> {
        let mut from = 0;
        self.lines.iter().map(move |span| {
            let line = self.bytes.get(from..span.end).unwrap_or_default();
            from = span.end;
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
    pub hash: ContentHash,
}

/// The names in a folder.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct DirListing {
    pub entries: Vec<ListedEntry>,
    /// Names beyond those returned.
    pub left_out: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedEntry {
    pub name: OsString,
    pub kind: FileKind,
    /// Whether the name is a link to that.
    pub is_link: bool,
}

/// Why a verb failed. A value: the dialect words it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MachineError {
    #[error("nothing is there")]
    NotFound,
    #[error("the system does not permit it")]
    NotPermitted,
    #[error("it is not a file")]
    NotAFile(FileKind),
    #[error("it is not a folder")]
    NotAFolder,
    #[error("the path changed while it was being opened")]
    Moved,
    #[error("too many links")]
    LinkLoop,
    #[error("it has {size} bytes, and {most} are the most")]
    TooLarge { size: u64, most: u64 },
    #[error("it took longer than {0:?}")]
    TimedOut(Duration),
    #[error("too many open files")]
    TooManyOpen,
    #[error("{0}")]
    Other(String),
}
