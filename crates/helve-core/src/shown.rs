//! What a session was shown of files, or wrote itself: by content, not by time.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::commit::ContentHash;
use crate::journal::Image;

/// How much of what was shown is kept to say later what changed.
const MOST_KEPT: usize = 8 << 20;
/// How many windows of one file are remembered.
const MOST_WINDOWS: usize = 64;

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

/// What is remembered of one file, in a form that outlives the process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seen {
    whole: Option<[u8; 32]>,
    windows: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Piece {
    start: u64,
    end: u64,
    hash: [u8; 32],
}

impl Seen {
    pub(crate) fn whole(hash: ContentHash) -> Self {
        Self { whole: Some(hash.0), windows: Vec::new() }
    }

    /// Adds a window of a file.
    pub(crate) fn add(&mut self, range: Range<u64>, hash: ContentHash) {
        self.windows.retain(|piece| (piece.start, piece.end) != (range.start, range.end));
        if self.windows.len() == MOST_WINDOWS {
            self.windows.remove(0);
        }
        self.windows.push(Piece { start: range.start, end: range.end, hash: hash.0 });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.whole.is_none() && self.windows.is_empty()
    }

    /// Whether anything that was shown is there unchanged, and nothing that was shown has changed.
    pub(crate) fn holds(&self, now: &Image) -> bool {
        let bytes = &now.bytes;
        if self.whole == Some(now.hash.0) {
            return true;
        }
        let unchanged = |piece: &Piece| {
            let range = usize::try_from(piece.start).ok().zip(usize::try_from(piece.end).ok());
            let now = range.and_then(|(start, end)| bytes.get(start..end));
            now.is_some_and(|now| ContentHash::of(now).0 == piece.hash)
        };
        self.whole.is_none() && !self.windows.is_empty() && self.windows.iter().all(unchanged)
    }
}

/// What this process remembers: everything, and the content itself as far as there is room.
#[derive(Default)]
pub(crate) struct Remembered {
    seen: HashMap<PathBuf, Seen>,
    kept: HashMap<PathBuf, Bytes>,
    bytes: usize,
}

impl Remembered {
    pub(crate) fn get(&self, path: &Path) -> Option<&Seen> {
        self.seen.get(path)
    }

    pub(crate) fn set(&mut self, path: &Path, seen: Seen) {
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
