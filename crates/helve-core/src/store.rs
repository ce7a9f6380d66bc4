//! What must outlive a process; implemented by `helve-store` and, in memory, by the test kit.

use std::path::{Path, PathBuf};

use helve_policy::{Rule, Scope};
use serde_json::Value;

use crate::BoxFuture;
use crate::event::{CallState, Event};
use crate::output::Saved;

/// Why the store could not answer, in words for a person.
pub type StoreError = std::io::Error;

/// Memory of sessions, calls, approvals and trust.
pub trait Store: Send + Sync {
    /// A slot of a session with its version; versions count from 1.
    fn get<'a>(
        &'a self,
        session: &'a str,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<(u64, Value)>, StoreError>>;

    /// Replaces a slot; false when `seen` (0 for none) is no longer its version.
    fn put<'a>(
        &'a self,
        session: &'a str,
        key: &'a str,
        seen: u64,
        value: Value,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Sets a slot, whatever it was. Queued: never waits, never fails the call.
    fn note(&self, session: &str, key: &str, value: Value);

    /// Takes note of an event. Queued: never waits, never fails the call.
    fn append(&self, event: &Event);

    /// The newest calls of a session, or of all, newest first.
    fn calls<'a>(
        &'a self,
        session: Option<&'a str>,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<CallState>, StoreError>>;

    /// Keeps an approval for as long as its scope says.
    fn remember<'a>(
        &'a self,
        owner: ApprovalOwner<'a>,
        rule: &'a Rule,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Every approval that holds for a session in a folder.
    fn remembered<'a>(
        &'a self,
        session: &'a str,
        root: &'a Path,
    ) -> BoxFuture<'a, Result<Vec<Rule>, StoreError>>;

    /// The digest a person trusted a folder with; `None` when nobody did.
    fn trusted<'a>(&'a self, root: &'a Path) -> BoxFuture<'a, Result<Option<String>, StoreError>>;

    /// Records or, with `None`, withdraws trust in a folder.
    fn trust<'a>(
        &'a self,
        root: &'a Path,
        digest: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Waits until everything appended so far is on disk.
    fn flush(&self) -> BoxFuture<'_, ()>;

    /// What a person should know about the store: moved aside, read-only, off.
    fn notice(&self) -> BoxFuture<'_, Option<String>>;
}

/// Who a lasting yes belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalOwner<'a> {
    Session(&'a str),
    Project(&'a Path),
    Everyone,
}

impl<'a> ApprovalOwner<'a> {
    /// `None` for a yes that does not last.
    pub fn of(scope: Scope, session: &'a str, root: &'a Path) -> Option<Self> {
        match scope {
            Scope::Once => None,
            Scope::Session => Some(ApprovalOwner::Session(session)),
            Scope::Project => Some(ApprovalOwner::Project(root)),
            Scope::Everywhere => Some(ApprovalOwner::Everyone),
        }
    }
}

/// Where whole outputs are kept when a model is shown a part.
pub trait Outputs: Send + Sync {
    fn save<'a>(
        &'a self,
        session: &'a str,
        text: &'a str,
    ) -> BoxFuture<'a, Result<Saved, StoreError>>;

    /// The name of a file that does not exist yet, in a folder that may not either, for an output that is saved while it comes.
    fn reserve(&self, session: &str) -> Saved;

    /// A folder for a session's temporary files, made if it is not there.
    fn scratch(&self, session: &str) -> Result<PathBuf, StoreError>;

    /// A saved output of a session, or the beginning of a very long one; `None` where it has none of that id, or not any more.
    fn load<'a>(
        &'a self,
        session: &'a str,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, StoreError>>;

    /// The folder of a session's saved outputs, readable without asking.
    fn folder(&self, session: &str) -> PathBuf;
}
