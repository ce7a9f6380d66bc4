//! Persistent storage. Implemented by `helve-store` and, in memory, by the test kit.

use std::path::{Path, PathBuf};

use helve_policy::{Rule, Scope};
use serde_json::Value;

use crate::BoxFuture;
use crate::event::{CallState, Event};
use crate::output::Saved;

/// Why the store failed, in words for a person.
pub type StoreError = std::io::Error;

/// Stores sessions, calls, approvals and trust.
pub trait Store: Send + Sync {
    /// Returns a slot of a session with its version. Versions start at 1.
    fn get<'a>(
        &'a self,
        session: &'a str,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<(u64, Value)>, StoreError>>;

    /// Replaces a slot. Returns false if `seen` (0 for none) is no longer its version.
    fn put<'a>(
        &'a self,
        session: &'a str,
        key: &'a str,
        seen: u64,
        value: Value,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Sets a slot unconditionally. Queued: never waits, never fails the call.
    fn set(&self, session: &str, key: &str, value: Value);

    /// Records an event. Queued: never waits, never fails the call.
    fn append(&self, event: &Event);

    /// Returns the newest calls of a session, or of all sessions, newest first.
    fn calls<'a>(
        &'a self,
        session: Option<&'a str>,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<CallState>, StoreError>>;

    /// Stores an approval with its scope.
    fn remember<'a>(
        &'a self,
        owner: ApprovalOwner<'a>,
        rule: &'a Rule,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Returns every approval that applies to a session in a folder.
    fn remembered<'a>(
        &'a self,
        session: &'a str,
        root: &'a Path,
    ) -> BoxFuture<'a, Result<Vec<Rule>, StoreError>>;

    /// Returns the digest with which a person trusted a folder; `None` if nobody did.
    fn trusted<'a>(&'a self, root: &'a Path) -> BoxFuture<'a, Result<Option<String>, StoreError>>;

    /// Records trust in a folder or, with `None`, withdraws it.
    fn trust<'a>(
        &'a self,
        root: &'a Path,
        digest: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Waits until everything recorded so far is on disk.
    fn flush(&self) -> BoxFuture<'_, ()>;

    /// A notice about the store for a person: moved aside, read-only, off.
    fn notice(&self) -> BoxFuture<'_, Option<String>>;
}

/// What a lasting approval belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalOwner<'a> {
    Session(&'a str),
    Project(&'a Path),
    Everyone,
}

impl<'a> ApprovalOwner<'a> {
    /// `None` for an approval that does not last.
    pub fn of(scope: Scope, session: &'a str, root: &'a Path) -> Option<Self> {
        match scope {
            Scope::Once => None,
            Scope::Session => Some(ApprovalOwner::Session(session)),
            Scope::Project => Some(ApprovalOwner::Project(root)),
            Scope::Everywhere => Some(ApprovalOwner::Everyone),
        }
    }
}

/// Stores full outputs of which a model is shown a part.
pub trait Outputs: Send + Sync {
    fn save<'a>(
        &'a self,
        session: &'a str,
        text: &'a str,
    ) -> BoxFuture<'a, Result<Saved, StoreError>>;

    /// Returns the path of a new file for output that is saved while it arrives. Neither it nor its folder need exist.
    fn reserve(&self, session: &str) -> Saved;

    /// Returns a folder for a session's temporary files, which is created if necessary.
    fn scratch(&self, session: &str) -> Result<PathBuf, StoreError>;

    /// Returns a saved output, or the start of a very long one; `None` if there is none of that id, or it has expired.
    fn load<'a>(
        &'a self,
        session: &'a str,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, StoreError>>;

    /// The folder of a session's saved outputs, which may be read without asking.
    fn folder(&self, session: &str) -> PathBuf;
}
