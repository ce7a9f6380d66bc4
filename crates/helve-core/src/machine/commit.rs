//! What a commit takes and gives back. Plain data, so that it can cross a pipe.

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;

use super::{MachineError, Place};

/// The content of a file, told by 32 bytes.
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

/// One change to files. A commit takes several, and makes all of them or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommitChange {
    /// The file has these bytes afterwards. Missing folders are created.
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
    /// The file is found under `to` afterwards, with new bytes if they are given. It keeps its mode and attributes.
    Move {
        from: Place,
        expect: ExpectedContent,
        to: Place,
        over: ExpectedContent,
        content: MovedContent,
    },
}

impl CommitChange {
    /// The place that is changed, or that a file is moved from.
    pub fn at(&self) -> &Place {
        match self {
            Self::Write { at, .. } | Self::Remove { at, .. } | Self::Move { from: at, .. } => at,
        }
    }
}

/// What must be there for a change to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectedContent {
    Absent,
    Hash(ContentHash),
}

/// The permission bits of a written file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileMode {
    /// As the file has them; a new file gets what the system gives new files.
    Keep,
    Set(u32),
}

/// What becomes of a file that has several names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HardLinks {
    /// The other names keep the old content.
    Part,
    /// All names show the new content. A crash in the middle can leave a mixture, because the file is written in place.
    InPlace,
}

/// What a moved file contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MovedContent {
    Same,
    New(Bytes),
}

/// What a commit did with one change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The permission bits now; `None` where the file was removed.
    pub mode: Option<u32>,
    /// The content before; `None` where nothing was there.
    pub was: Option<ContentHash>,
    /// How many names the file had that was written, moved or removed. With more than one the others kept their content, unless it was written in place.
    pub links: u64,
}

/// Why a commit changed nothing, [`CommitError::Torn`] aside.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommitError {
    #[error("the file is not what was expected")]
    Conflict {
        at: Place,
        /// What is there instead; `None` if nothing is.
        found: Option<ContentHash>,
    },
    #[error("the file is read-only")]
    ReadOnly { at: Place },
    #[error("the file is named twice in one commit")]
    Twice { at: Place },
    #[error("another process was writing there for {waited:?}")]
    Busy { at: Place, waited: Duration },
    #[error("the lock folder {}: {why}", folder.display())]
    Lock { folder: PathBuf, why: MachineError },
    #[error("{why}")]
    Failed { at: Place, why: MachineError },
    /// A step failed, and so did taking back what was done before it.
    #[error("{why}, and what was changed before could not be taken back")]
    Torn {
        at: Place,
        why: MachineError,
        /// Files that stayed changed, and where their old content lies.
        left: Vec<LeftChanged>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftChanged {
    pub changed: PathBuf,
    pub old: Option<PathBuf>,
}
