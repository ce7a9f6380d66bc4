//! Before-images: what a call found where it wrote, so that it can be undone.

use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::BoxFuture;
use crate::event::Millis;
use crate::machine::commit::ContentHash;
use crate::store::StoreError;

/// Keeps what files were before calls changed them. Bounded by size and age.
pub trait Journal: Send + Sync {
    /// Takes down what is there. It survives the end of this process before any file changes.
    fn begin<'a>(&'a self, entry: &'a JournalEntry) -> BoxFuture<'a, Result<EntryId, StoreError>>;

    /// The change was made: what is there now, file by file.
    fn done<'a>(
        &'a self,
        id: EntryId,
        after: &'a [Option<FileImage>],
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// The change was not made.
    fn void(&self, id: EntryId);

    /// The newest changes of a folder, newest first, without their content.
    fn entries<'a>(
        &'a self,
        root: &'a Path,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<RecordedChange>, StoreError>>;

    /// Everything a call changed; `None` when it changed nothing or was forgotten.
    fn change<'a>(
        &'a self,
        call: &'a str,
    ) -> BoxFuture<'a, Result<Option<RecordedChange>, StoreError>>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EntryId(pub i64);

/// What is taken down before a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalEntry {
    pub call: String,
    pub session: String,
    pub tool: String,
    pub root: PathBuf,
    pub at: Millis,
    pub files: Vec<BeforeImage>,
}

/// A file before a change, and what is meant to become of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BeforeImage {
    pub path: PathBuf,
    pub image: Option<FileImage>,
    /// What is to be there; `None` where nothing is.
    pub meant: Option<ContentHash>,
}

/// A file at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileImage {
    pub bytes: Bytes,
    pub mode: u32,
    /// That of the bytes: computed once, because it is asked for often.
    pub hash: ContentHash,
}

impl FileImage {
    pub fn new(bytes: Bytes, mode: u32) -> Self {
        let hash = ContentHash::of(&bytes);
        Self { bytes, mode, hash }
    }
}

/// What a call changed, before and after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedChange {
    pub call: String,
    pub session: String,
    pub tool: String,
    pub at: Millis,
    pub files: Vec<ChangedFile>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedFile {
    pub path: PathBuf,
    pub before: Option<FileImage>,
    pub after: AfterImage,
}

/// What a call left where it wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AfterImage {
    /// What it said itself; `None` where it left nothing.
    Known(Option<FileImage>),
    /// It was interrupted before it could say. This is what it meant to leave; the file shows whether it did.
    Meant(Option<ContentHash>),
    /// Neither can be said any more.
    Lost,
}
