//! What a session has seen or written of files, tracked by content rather than by time.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::journal::FileImage;
use crate::machine::commit::ContentHash;
use crate::machine::{ContentFingerprint, WindowLines};

/// Maximum bytes of shown content that are kept to report later what changed.
const MAX_KEPT: usize = 8 << 20;

/// Whether the session has seen the present content of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    /// It has.
    AsItIs,
    /// The file has changed since. `previous` is the content that was seen, if still known.
    Changed {
        previous: Option<Bytes>,
    },
    Never,
}

/// The last content of a file that was shown or written, in a form that outlives the process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum SeenContent {
    #[default]
    Nothing,
    Whole([u8; 32]),
    /// Part of a file that is too large to hash as a whole.
    Piece {
        start: u64,
        end: u64,
        hash: [u8; 32],
        size: u64,
    },
}

impl SeenContent {
    pub(crate) fn whole(hash: ContentHash) -> Self {
        Self::Whole(hash.0)
    }

    pub(crate) fn window(got: &WindowLines) -> Self {
        match got.fingerprint {
            ContentFingerprint::Whole(hash) => Self::Whole(hash.0),
            ContentFingerprint::Window(hash) => {
                let Range { start, end } = got.range;
                Self::Piece { start, end, hash: hash.0, size: got.size }
            }
            ContentFingerprint::Nothing => Self::Nothing,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::Nothing
    }

    /// Whether the file still has the content that was seen, as far as that is known.
    pub(crate) fn holds(&self, now: &FileImage) -> bool {
        match self {
            Self::Nothing => false,
            Self::Whole(hash) => *hash == now.hash.0,
            Self::Piece { start, end, hash, size } => {
                let range = usize::try_from(*start).ok().zip(usize::try_from(*end).ok());
                let piece = range.and_then(|(start, end)| now.bytes.get(start..end));
                *size == now.bytes.len() as u64
                    && piece.is_some_and(|piece| ContentHash::of(piece).0 == *hash)
            }
        }
    }
}

/// Everything this process has seen, and the content itself as far as space permits.
#[derive(Default)]
pub(crate) struct SeenRecords {
    seen: HashMap<PathBuf, SeenContent>,
    kept: HashMap<PathBuf, Bytes>,
    bytes: usize,
}

impl SeenRecords {
    pub(crate) fn get(&self, path: &Path) -> Option<&SeenContent> {
        self.seen.get(path)
    }

    pub(crate) fn set(&mut self, path: &Path, seen: SeenContent) {
        self.seen.insert(path.into(), seen);
    }

    pub(crate) fn content(&self, path: &Path) -> Option<Bytes> {
        self.kept.get(path).cloned()
    }

    pub(crate) fn keep_content(&mut self, path: &Path, bytes: &Bytes) {
        self.drop_content(path);
        if bytes.len() > MAX_KEPT / 4 {
            return;
        }
        if self.bytes + bytes.len() > MAX_KEPT {
            self.kept.clear();
            self.bytes = 0;
        }
        self.bytes += bytes.len();
        self.kept.insert(path.into(), bytes.clone());
    }

    pub(crate) fn drop_content(&mut self, path: &Path) {
        if let Some(old) = self.kept.remove(path) {
            self.bytes -= old.len();
        }
    }
}
