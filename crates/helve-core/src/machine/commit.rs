//! Requests and results of a commit, as plain data that can be sent over a pipe.

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::oneshot;

use super::{FileContent, MachineError, Place};

/// BLAKE3 hash of a file's content.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ContentHash(pub [u8; 32]);

impl ContentHash {
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }
}

impl std::fmt::Debug for ContentHash {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}", &blake3::Hash::from_bytes(self.0).to_hex()[..12])
    }
}

/// One change to a file. A commit applies several of them, all or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommitChange {
    /// Writes these bytes. Missing folders are created.
    Write {
        at: Place,
        expect: ExpectedContent,
        bytes: Bytes,
        mode: FileMode,
        links: HardLinks,
    },
    Remove {
        at: Place,
        expect: ExpectedContent,
    },
    /// Moves a file and optionally gives it new content. It keeps its mode and attributes.
    Move {
        from: Place,
        expect: ExpectedContent,
        to: Place,
        /// What must be at `to` before the move.
        expect_at_target: ExpectedContent,
        content: MovedContent,
    },
}

impl CommitChange {
    /// Returns the path that is changed or, for a move, the old path.
    pub fn at(&self) -> &Place {
        match self {
            Self::Write { at, .. } | Self::Remove { at, .. } | Self::Move { from: at, .. } => at,
        }
    }
}

/// Makes a change of the content of a file, or of the error of reading it; `None` to change nothing.
pub type ComputeChange =
    Box<dyn FnOnce(Result<FileContent, MachineError>) -> Option<CommitChange> + Send>;

/// The content that a path must have for the change to be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpectedContent {
    /// There must be no file.
    Absent,
    /// A file with these bytes.
    File(Bytes),
    /// A symbolic link with this target.
    Link(Bytes),
}

/// Lets a commit prepare while the old content is still being recorded. Pass [`AwaitRecorded`] to the commit, and call
/// [`Recorded::confirm`] when the content is recorded. Dropping this value makes the commit fail.
#[derive(Debug)]
pub struct Recorded(oneshot::Sender<()>);

/// What a commit waits for before it changes the first file.
#[derive(Debug)]
pub struct AwaitRecorded(oneshot::Receiver<()>);

/// Returns the two ends of one signal.
pub fn record_signal() -> (Recorded, AwaitRecorded) {
    let (sender, receiver) = oneshot::channel();
    (Recorded(sender), AwaitRecorded(receiver))
}

impl Recorded {
    /// Permits the commit to change files.
    pub fn confirm(self) {
        // Sending fails if the commit has ended early. In that case it has changed nothing.
        self.0.send(()).ok();
    }
}

impl AwaitRecorded {
    /// For a commit that need not wait.
    pub fn nothing() -> Self {
        let (recorded, awaited) = record_signal();
        recorded.confirm();
        awaited
    }

    /// Waits until the old content is recorded. Fails if it was not recorded; then nothing may be changed.
    pub async fn wait(self) -> Result<(), NotRecorded> {
        self.0.await.map_err(|_dropped| NotRecorded)
    }

    /// Like [`AwaitRecorded::wait`], for a thread that may block.
    pub fn wait_blocking(self) -> Result<(), NotRecorded> {
        self.0.blocking_recv().map_err(|_dropped| NotRecorded)
    }
}

/// The old content could not be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotRecorded;

/// The mode of a symbolic link. The content of a link is the path of its target.
pub const LINK_MODE: u32 = 0o120_000;
/// The bits of a mode that tell the kind of file.
const KIND_BITS: u32 = 0o170_000;

/// Whether a mode denotes a symbolic link.
pub fn is_link_mode(mode: u32) -> bool {
    mode & KIND_BITS == LINK_MODE
}

/// The permission bits of a written file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileMode {
    /// Keeps the current mode of the file. A new file gets the system's default.
    Keep,
    /// With [`LINK_MODE`], makes a symbolic link instead of a file.
    Set(u32),
}

/// What happens to the other names of a file with several hard links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HardLinks {
    /// The other names keep the old content.
    Replace,
    /// All names show the new content. The file is written in place, so a crash can leave a mixture.
    InPlace,
}

/// The content of a moved file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MovedContent {
    Same,
    New(Bytes),
}

/// The result of one change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The mode now; `None` if the file was removed.
    pub mode: Option<u32>,
    /// How many hard links the file had before it was written, moved or removed.
    pub links: u64,
}

/// Why a commit failed. Except for [`CommitError::Torn`], it has changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommitError {
    #[error("the file is not what was expected")]
    Conflict {
        at: Place,
        /// Hash of the content that is there instead; `None` if there is no file.
        found: Option<ContentHash>,
    },
    #[error("the file is read-only")]
    ReadOnly { at: Place },
    #[error("the file occurs twice in one commit")]
    DuplicateFile { at: Place },
    #[error("another process held the file for {waited:?}")]
    Busy { at: Place, waited: Duration },
    #[error("cannot lock {}: {why}", folder.display())]
    Lock { folder: PathBuf, why: MachineError },
    #[error("the old content was not recorded")]
    NotRecorded { at: Place },
    #[error("{why}")]
    Failed { at: Place, why: MachineError },
    /// A step failed, and so did the rollback of earlier steps.
    #[error("{why}, and earlier changes could not be rolled back")]
    Torn {
        at: Place,
        why: MachineError,
        /// Files that could not be restored.
        left: Vec<NotRolledBack>,
    },
}

/// A file that stayed changed after a commit failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotRolledBack {
    pub changed: PathBuf,
    /// The file with the old content, if there was any.
    pub old: Option<PathBuf>,
}
