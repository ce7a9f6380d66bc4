//! Persistent storage. Implemented by `helve-store` and, in memory, by the test kit.

use std::path::{Path, PathBuf};

use helve_policy::{Rule, Scope};
use serde_json::Value;

use crate::BoxFuture;
use crate::event::{CallState, Event, Millis};
use crate::output::Saved;

/// Why the store failed. Its message is for a person.
pub type StoreError = std::io::Error;

/// Stores sessions, calls, approvals and trust.
pub trait Store: Send + Sync {
    /// Returns the version and value of a session's slot. Versions start at 1.
    fn get<'a>(
        &'a self,
        session: &'a str,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<(u64, Value)>, StoreError>>;

    /// Replaces a slot if its version is still `expected_version`, where 0 means that the slot does not exist.
    /// Otherwise returns false.
    fn put<'a>(
        &'a self,
        session: &'a str,
        key: &'a str,
        expected_version: u64,
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
        max_calls: usize,
    ) -> BoxFuture<'a, Result<Vec<CallState>, StoreError>>;

    /// Stores a lasting approval.
    fn remember<'a>(
        &'a self,
        scope: ApprovalScopeRef<'a>,
        rule: &'a Rule,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Returns every lasting approval that applies to a session in a folder.
    fn approvals<'a>(
        &'a self,
        session: &'a str,
        root: &'a Path,
    ) -> BoxFuture<'a, Result<Vec<Rule>, StoreError>>;

    /// Returns all lasting approvals of this user, oldest first.
    fn all_approvals(&self) -> BoxFuture<'_, Result<Vec<StoredApproval>, StoreError>>;

    /// Withdraws approvals by their ids. Returns how many existed.
    fn revoke_approvals<'a>(&'a self, ids: &'a [u64]) -> BoxFuture<'a, Result<usize, StoreError>>;

    /// Returns the digest of the configuration that a person trusted in a folder; `None` if nobody did.
    fn trusted_digest<'a>(
        &'a self,
        root: &'a Path,
    ) -> BoxFuture<'a, Result<Option<String>, StoreError>>;

    /// Records that a person trusts a folder while its configuration has this digest. `None` withdraws the trust.
    fn set_trusted_digest<'a>(
        &'a self,
        root: &'a Path,
        digest: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Waits until everything recorded so far is on disk.
    fn flush(&self) -> BoxFuture<'_, ()>;

    /// Returns a warning for a person if the store does not work fully, for example because it is read-only or a
    /// damaged database was moved aside.
    fn pending_warning(&self) -> BoxFuture<'_, Option<String>>;
}

/// Where a lasting approval applies, borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalScopeRef<'a> {
    Session(&'a str),
    Project(&'a Path),
    Everywhere,
}

impl<'a> ApprovalScopeRef<'a> {
    /// Returns where an approval of this scope applies; `None` if it is for one call only.
    pub fn of(scope: Scope, session: &'a str, root: &'a Path) -> Option<Self> {
        match scope {
            Scope::Once => None,
            Scope::Session => Some(ApprovalScopeRef::Session(session)),
            Scope::Project => Some(ApprovalScopeRef::Project(root)),
            Scope::Everywhere => Some(ApprovalScopeRef::Everywhere),
        }
    }
}

/// A lasting approval, and where it applies.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredApproval {
    /// If the same approval is given again, it gets a new id.
    pub id: u64,
    pub scope: ApprovalScope,
    pub rule: Rule,
    /// When the approval was given.
    pub at: Millis,
}

/// The owned form of [`ApprovalScopeRef`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalScope {
    Session(String),
    Project(PathBuf),
    Everywhere,
}

/// Stores outputs in full when a model is shown only part of them.
pub trait Outputs: Send + Sync {
    /// Saves an output in full.
    fn save<'a>(
        &'a self,
        session: &'a str,
        text: &'a str,
    ) -> BoxFuture<'a, Result<Saved, StoreError>>;

    /// Returns a path for a new file, to which a running command's output is written as it arrives. The file and its
    /// folder need not exist yet.
    fn reserve(&self, session: &str) -> Saved;

    /// Returns a folder for temporary files of a session's commands, and creates it if necessary.
    fn scratch(&self, session: &str) -> Result<PathBuf, StoreError>;

    /// Returns the text of a saved output, cut at the end if it is very long; `None` if no output has this id or it has
    /// expired.
    fn load<'a>(
        &'a self,
        session: &'a str,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, StoreError>>;

    /// Returns the folder of a session's saved outputs, which the session may read without asking.
    fn folder(&self, session: &str) -> PathBuf;
}
