//! What a session was shown of files, or wrote itself: by content, not by time.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::journal::FileImage;
use crate::machine::commit::ContentHash;
use crate::machine::{ContentMark, WindowLines};

/// How much of what was shown is kept to say later what changed.
const MOST_KEPT: usize = 8 << 20;

/// Whether what is in a file now was shown to the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    /// It was, and is as it was.
    AsItIs,
    /// It was, and is another now. What was shown, where that is still known.
    Changed {
        then: Option<Bytes>,
    },
    Never,
}

/// What is remembered of one file, in a form that outlives the process: the newest that was shown or written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum SeenContent {
    #[default]
    Nothing,
    Whole([u8; 32]),
    /// A piece of a file of this size, which is too large to look at all of it.
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
        match got.mark {
            ContentMark::Whole(hash) => Self::Whole(hash.0),
            ContentMark::Window(hash) => {
                let Range { start, end } = got.range;
                Self::Piece { start, end, hash: hash.0, size: got.size }
            }
            ContentMark::Nothing => Self::Nothing,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::Nothing
    }

    /// Whether the file is still what was shown, as far as that can be told.
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

/// What this process remembers: everything, and the content itself as far as there is room.
#[derive(Default)]
pub(crate) struct SeenFiles {
    seen: HashMap<PathBuf, SeenContent>,
    kept: HashMap<PathBuf, Bytes>,
    bytes: usize,
}

impl SeenFiles {
    pub(crate) fn get(&self, path: &Path) -> Option<&SeenContent> {
        self.seen.get(path)
    }

    pub(crate) fn set(&mut self, path: &Path, seen: SeenContent) {
        self.seen.insert(path.into(), seen);
    }

    pub(crate) fn then(&self, path: &Path) -> Option<Bytes> {
        self.kept.get(path).cloned()
    }

    pub(crate) fn keep(&mut self, path: &Path, bytes: &Bytes) {
        self.drop_kept(path);
        if bytes.len() > MOST_KEPT / 4 {
            return;
        }
        if self.bytes + bytes.len() > MOST_KEPT {
            self.kept.clear();
            self.bytes = 0;
        }
        self.bytes += bytes.len();
        self.kept.insert(path.into(), bytes.clone());
    }

    pub(crate) fn drop_kept(&mut self, path: &Path) {
        if let Some(old) = self.kept.remove(path) {
            self.bytes -= old.len();
        }
    }
}
