//! Stored transcripts of sessions. What an item says is up to the agent; here it is JSON text with a position.

use std::path::{Path, PathBuf};

use crate::BoxFuture;
use crate::event::Millis;
use crate::store::StoreError;

/// An item of a transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredItem {
    /// Its position: larger than that of every earlier item of the session.
    pub seq: u64,
    pub json: String,
}

/// A session that has a transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranscriptInfo {
    pub session: String,
    pub root: PathBuf,
    pub title: String,
    pub created: Millis,
    pub updated: Millis,
}

/// Keeps transcripts. A session has one writer at a time.
pub trait Transcripts: Send + Sync {
    /// Adds a session to the list if it is not there yet.
    fn register<'a>(
        &'a self,
        session: &'a str,
        root: &'a Path,
        title: &'a str,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Returns all items of a session, oldest first.
    fn load<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<Vec<StoredItem>, StoreError>>;

    /// Appends items. They are stored when the future is done.
    fn append<'a>(
        &'a self,
        session: &'a str,
        items: Vec<StoredItem>,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Returns the sessions of a folder, or of all folders, newest first.
    fn list<'a>(
        &'a self,
        root: Option<&'a Path>,
        max: usize,
    ) -> BoxFuture<'a, Result<Vec<TranscriptInfo>, StoreError>>;

    /// Removes a session's transcript. Returns whether there was one.
    fn delete<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<bool, StoreError>>;
}
