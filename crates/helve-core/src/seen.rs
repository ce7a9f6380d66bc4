//! Records which file contents a session has seen or written. Changes are detected by content, not by modification
//! time.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::journal::FileImage;
use crate::machine::commit::ContentHash;
use crate::machine::{ContentFingerprint, WindowLines};

/// Maximum bytes of file content kept in memory, to show later what somebody else changed.
const MAX_CONTENT_BYTES: usize = 8 << 20;

/// Whether the session has seen the current content of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SeenState {
    /// The session has seen or written the current content.
    Current,
    /// The file has changed since the session last saw it. `previous` is the content at that time, if it is still in
    /// memory.
    Changed { previous: Option<Bytes> },
    /// The session has seen nothing of the file.
    Never,
}

/// Hash of the last content of a file that the session saw or wrote. Stored, so that it outlives the process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum SeenContent {
    /// The session has seen nothing of the file.
    #[default]
    Nothing,
    /// Hash of the whole file.
    Whole([u8; 32]),
    /// Hash of the bytes from `start` to `end`, for a file that is too large to hash as a whole. `size` is the size of
    /// the file.
    Piece { start: u64, end: u64, hash: [u8; 32], size: u64 },
}

impl SeenContent {
    /// For a file that the session has seen as a whole.
    pub(crate) fn whole(hash: ContentHash) -> Self {
        Self::Whole(hash.0)
    }

    /// For a file of which the session has seen a window.
    pub(crate) fn window(window: &WindowLines) -> Self {
        match window.fingerprint {
            ContentFingerprint::Whole(hash) => Self::Whole(hash.0),
            ContentFingerprint::Window(hash) => {
                let Range { start, end } = window.range;
                Self::Piece { start, end, hash: hash.0, size: window.size }
            }
            ContentFingerprint::Nothing => Self::Nothing,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::Nothing
    }

    /// Whether a file still has the content that was seen. For a [`SeenContent::Piece`], only that piece and the size
    /// of the file are compared.
    pub(crate) fn matches(&self, current: &FileImage) -> bool {
        match self {
            Self::Nothing => false,
            Self::Whole(hash) => *hash == current.hash().0,
            Self::Piece { start, end, hash, size } => {
                let range = usize::try_from(*start).ok().zip(usize::try_from(*end).ok());
                let piece = range.and_then(|(start, end)| current.bytes.get(start..end));
                *size == current.bytes.len() as u64
                    && piece.is_some_and(|piece| ContentHash::of(piece).0 == *hash)
            }
        }
    }
}

/// The whole content of a file that a session has seen or written.
#[derive(Clone, Debug)]
pub(crate) struct KnownContent {
    pub(crate) bytes: Bytes,
    pub(crate) hash: ContentHash,
}

impl KnownContent {
    pub(crate) fn of(image: &FileImage) -> Self {
        Self { bytes: image.bytes.clone(), hash: image.hash() }
    }

    /// The content of the file, if the window was cut from a file that was read as a whole.
    pub(crate) fn of_window(window: &WindowLines) -> Option<Self> {
        match (window.fingerprint, &window.whole) {
            (ContentFingerprint::Whole(hash), Some(bytes)) => {
                Some(Self { bytes: bytes.clone(), hash })
            }
            _ => None,
        }
    }
}

/// What a session has seen of each file in this process, with whole contents up to [`MAX_CONTENT_BYTES`].
#[derive(Default)]
pub(crate) struct SeenRecords {
    seen: HashMap<PathBuf, SeenContent>,
    contents: HashMap<PathBuf, KnownContent>,
    /// Total size of `contents`.
    content_bytes: usize,
}

impl SeenRecords {
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.seen.keys().map(PathBuf::as_path)
    }

    pub(crate) fn get(&self, path: &Path) -> Option<&SeenContent> {
        self.seen.get(path)
    }

    pub(crate) fn set(&mut self, path: &Path, seen: SeenContent) {
        self.seen.insert(path.into(), seen);
    }

    pub(crate) fn content(&self, path: &Path) -> Option<KnownContent> {
        self.contents.get(path).cloned()
    }

    /// Keeps the content of a file, unless it is too large. If memory is full, drops all other content.
    pub(crate) fn keep_content(&mut self, path: &Path, content: KnownContent) {
        self.drop_content(path);
        let size = content.bytes.len();
        if size > MAX_CONTENT_BYTES / 4 {
            return;
        }
        if self.content_bytes + size > MAX_CONTENT_BYTES {
            self.contents.clear();
            self.content_bytes = 0;
        }
        self.content_bytes += size;
        self.contents.insert(path.into(), content);
    }

    pub(crate) fn drop_content(&mut self, path: &Path) {
        if let Some(old) = self.contents.remove(path) {
            self.content_bytes -= old.bytes.len();
        }
    }
}
