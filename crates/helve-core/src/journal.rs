//! The journal: the content of files before calls changed them, for undo.

use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use crate::BoxFuture;
use crate::event::Millis;
use crate::machine::commit::{ContentHash, LINK_MODE, is_link_mode};
use crate::store::StoreError;

/// Records the content of files before calls change them. Old entries expire.
pub trait Journal: Send + Sync {
    /// Records what the files contain now. Called before any of them changes.
    fn begin<'a>(&'a self, entry: &'a JournalEntry) -> BoxFuture<'a, Result<EntryId, StoreError>>;

    /// Marks a change as applied, with the new content of each file. This method itself queues the record, ahead of any
    /// later operation. The returned future only reports whether the record was stored, and may be dropped. If the
    /// process dies before that, the entry still has the old content and the hash of the intended content.
    fn mark_applied(
        &self,
        id: EntryId,
        after: Vec<Option<FileImage>>,
    ) -> BoxFuture<'static, Result<(), StoreError>>;

    /// Discards an entry whose change was not applied.
    fn discard(&self, id: EntryId);

    /// Returns the newest changes of a folder, newest first, without content.
    fn changes<'a>(
        &'a self,
        root: &'a Path,
        max_entries: usize,
    ) -> BoxFuture<'a, Result<Vec<RecordedChange>, StoreError>>;

    /// Returns everything a call changed; `None` if it changed nothing or the record has expired.
    fn change<'a>(
        &'a self,
        call: &'a str,
    ) -> BoxFuture<'a, Result<Option<RecordedChange>, StoreError>>;

    /// Like [`Journal::change`], for a call of this session. Calls of other sessions may have the same id, because
    /// models choose the ids.
    fn change_in_session<'a>(
        &'a self,
        session: &'a str,
        call: &'a str,
    ) -> BoxFuture<'a, Result<Option<RecordedChange>, StoreError>>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EntryId(pub i64);

/// What is recorded before a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalEntry {
    pub call: String,
    pub session: String,
    pub tool: String,
    pub root: PathBuf,
    pub at: Millis,
    /// The calls that this one undoes.
    pub undoes: Vec<UndoneCall>,
    pub files: Vec<BeforeImage>,
}

/// A call whose changes another call undid.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct UndoneCall {
    pub session: String,
    pub call: String,
}

/// A file before a change, and its intended state afterwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BeforeImage {
    pub path: PathBuf,
    /// The old content; `None` if there was no file.
    pub image: Option<FileImage>,
    /// The intended content; `None` if the file is to be removed.
    pub intended: Option<LazyHash>,
}

/// The hash of some content. Computed on first use, by whoever needs it first, and shared by all copies.
#[derive(Clone)]
pub struct LazyHash {
    content: Bytes,
    hash: Arc<OnceLock<ContentHash>>,
}

impl LazyHash {
    pub fn of(content: Bytes) -> Self {
        Self { content, hash: Arc::default() }
    }

    /// Returns the hash. The first call takes a while for large content.
    pub fn get(&self) -> ContentHash {
        *self.hash.get_or_init(|| ContentHash::of(&self.content))
    }
}

impl fmt::Debug for LazyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

impl PartialEq for LazyHash {
    fn eq(&self, other: &Self) -> bool {
        self.content == other.content
    }
}

impl Eq for LazyHash {}

/// A file at one point in time.
#[derive(Clone)]
pub struct FileImage {
    pub bytes: Bytes,
    pub mode: u32,
    /// Hash of the bytes. Computed on first use, and shared by all copies of the image.
    hash: Arc<OnceLock<ContentHash>>,
}

impl FileImage {
    pub fn new(bytes: Bytes, mode: u32) -> Self {
        Self { bytes, mode, hash: Arc::default() }
    }

    /// An image of content that is also hashed elsewhere.
    pub fn with_hash(LazyHash { content, hash }: LazyHash, mode: u32) -> Self {
        Self { bytes: content, mode, hash }
    }

    /// Returns the hash of the bytes. The first call takes a while for a large file.
    pub fn hash(&self) -> ContentHash {
        *self.hash.get_or_init(|| ContentHash::of(&self.bytes))
    }

    /// Sets the hash of the bytes, so that it need not be computed.
    pub(crate) fn set_hash(&self, hash: ContentHash) {
        // If the hash is known already, it is the same.
        self.hash.set(hash).ok();
    }

    /// The image of a symbolic link.
    pub fn link(target: Bytes) -> Self {
        Self::new(target, LINK_MODE)
    }

    /// Whether this is a symbolic link. If so, the bytes are its target.
    pub fn is_link(&self) -> bool {
        is_link_mode(self.mode)
    }
}

/// Returns the hash of an image, computed on a thread for blocking work if the image is large and the hash is not known
/// yet.
pub(crate) async fn hash_in_background(image: &FileImage) -> ContentHash {
    if image.bytes.len() > MAX_INLINE_BYTES && image.hash.get().is_none() {
        let image = image.clone();
        // If that thread fails, the hash is computed below.
        tokio::task::spawn_blocking(move || image.hash()).await.ok();
    }
    image.hash()
}

/// The largest content, in bytes, that is hashed or compared on a thread of the async runtime.
pub(crate) const MAX_INLINE_BYTES: usize = 64 << 10;

impl PartialEq for FileImage {
    fn eq(&self, other: &Self) -> bool {
        (self.mode, &self.bytes) == (other.mode, &other.bytes)
    }
}

impl Eq for FileImage {}

impl fmt::Debug for FileImage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bytes, mode, hash: _ } = self;
        formatter.debug_struct("FileImage").field("bytes", bytes).field("mode", mode).finish()
    }
}

/// What a call changed, before and after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedChange {
    pub call: String,
    pub session: String,
    pub tool: String,
    pub at: Millis,
    /// The calls that this one undid.
    pub undoes: Vec<UndoneCall>,
    pub files: Vec<ChangedFile>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedFile {
    pub path: PathBuf,
    /// The old content; `None` if there was no file.
    pub before: Option<FileImage>,
    pub after: AfterImage,
}

/// The state of a file after a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AfterImage {
    /// The call recorded this state; `None` if it left no file.
    Known(Option<FileImage>),
    /// The call was interrupted before it could record the state. This is the hash of the intended content, `None` if
    /// the file was to be removed. Only the file itself shows whether the change happened.
    Intended(Option<ContentHash>),
    /// The state is unknown, because the record has expired or is damaged.
    Lost,
}

/// Returns the changes that can be undone next, newest first: those that are in effect and are not undos themselves.
/// `changes` is a history, newest first.
pub fn undoable(changes: &[RecordedChange]) -> Vec<&RecordedChange> {
    let in_effect = in_effect(changes);
    in_effect.into_iter().filter(|change| change.undoes.is_empty()).collect()
}

/// Minimum length of a short id: the beginning or the end of a call's id.
const MIN_ID: usize = 4;

/// Length of the ids that people are shown.
const SHORT_ID: usize = 8;

/// Returns the end of a call's id, which is easier to type than the whole id.
pub fn short_id(call: &str) -> &str {
    let start = call.char_indices().rev().nth(SHORT_ID - 1).map_or(0, |(at, _)| at);
    &call[start..]
}

/// Returns the changes of the calls that a short id stands for: those whose ids begin or end with it.
pub fn with_short_id<'c>(changes: &'c [RecordedChange], id: &str) -> Vec<&'c RecordedChange> {
    let is_match = |change: &&RecordedChange| {
        id.len() >= MIN_ID && (change.call.starts_with(id) || change.call.ends_with(id))
    };
    changes.iter().filter(is_match).collect()
}

/// Returns the undo that can be redone next; `None` if another change was made after the last undo. Redos do not count
/// as such changes, so that several undos can be redone one after the other.
pub fn redoable(changes: &[RecordedChange]) -> Option<&RecordedChange> {
    let newest = in_effect(changes).into_iter().find(|change| !is_redo(change, changes))?;
    (!newest.undoes.is_empty()).then_some(newest)
}

/// Returns the changes that are not undone, newest first. An undo that was undone itself does not count.
pub fn in_effect(changes: &[RecordedChange]) -> Vec<&RecordedChange> {
    let mut undone: HashSet<(&str, &str)> = HashSet::new();
    let mut effective = Vec::new();
    for change in changes {
        if undone.contains(&(&*change.session, &*change.call)) {
            continue;
        }
        undone.extend(change.undoes.iter().map(|it| (&*it.session, &*it.call)));
        effective.push(change);
    }
    effective
}

/// Whether a change undid an undo.
fn is_redo(change: &RecordedChange, changes: &[RecordedChange]) -> bool {
    let is_undo = |undone: &UndoneCall| {
        changes.iter().any(|it| {
            !it.undoes.is_empty() && (&it.session, &it.call) == (&undone.session, &undone.call)
        })
    };
    !change.undoes.is_empty() && change.undoes.iter().all(is_undo)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each word is a call, oldest first; `u=a,b` is a call `u` that undid `a` and `b`.
    fn check(history: &str, expected_undoable: &str, expected_redoable: Option<&str>) {
        let change = |word: &str| {
            let (call, undoes) = word.split_once('=').unwrap_or((word, ""));
            let undone = |call: &str| UndoneCall { session: "s".into(), call: call.into() };
            RecordedChange {
                call: call.into(),
                session: "s".into(),
                tool: String::new(),
                at: 0,
                undoes: undoes.split(',').filter(|it| !it.is_empty()).map(undone).collect(),
                files: Vec::new(),
            }
        };
        let changes: Vec<RecordedChange> = history.split_whitespace().rev().map(change).collect();
        let calls: Vec<&str> = undoable(&changes).iter().map(|change| &*change.call).collect();
        assert_eq!(calls.join(" "), expected_undoable, "undoable after {history}");
        let redo = redoable(&changes).map(|change| &*change.call);
        assert_eq!(redo, expected_redoable, "redoable after {history}");
    }

    #[test]
    fn undo_goes_back_and_redo_goes_forward() {
        check("", "", None);
        check("a b", "b a", None);
        check("a b u=b", "a", Some("u"));
        check("a b u=b v=a", "", Some("v"));
        check("a b u=b v=a r=v", "a", Some("u"));
        check("a b u=b v=a r=v q=u", "b a", None);
        check("a b u=b c", "c a", None);
        check("a b u=b c v=c", "a", Some("v"));
        check("a b u=a,b", "", Some("u"));
        check("a b u=a,b r=u", "b a", None);
        // After undo and redo, a second undo of the same call.
        check("a u=a r=u v=a", "", Some("v"));
    }
}
