//! A session: one conversation, with its caller, its person, its rules and its memory.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use helve_policy::Rule;
use helve_text::cut::Limits;
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::call::CallRef;
use crate::dialect::Dialect;
use crate::gate::Gate;
use crate::journal::{self, FileImage};
use crate::paths;
use crate::seen::{KnownContent, SeenContent, SeenRecords, SeenState};
use crate::spec::{Caller, ToolSwitch};
use crate::store::{Outputs, Store, StoreError};
use crate::workspace::Workspace;

/// One conversation with a model, in one workspace.
pub struct Session {
    pub id: Arc<str>,
    pub caller: Caller,
    pub workspace: Arc<Workspace>,
    pub gate: Gate,
    pub dialect: &'static Dialect,
    /// The dialect's limits, unless the configuration overrides them.
    pub limits: Limits,
    /// Which tools are switched on or off.
    pub switches: Vec<ToolSwitch>,
    pub store: Arc<dyn Store>,
    pub outputs: Arc<dyn Outputs>,
    /// Which file contents the session has seen. Also kept in the store.
    pub seen_files: SeenFiles,
    /// Set for a sub-agent's session: the call that opened it.
    pub parent: Option<ParentCall>,
}

/// The call that opened a sub-agent's session, and the session of that call.
#[derive(Clone)]
pub struct ParentCall {
    pub call: Arc<CallRef>,
    pub session: Arc<Session>,
}

/// What distinguishes a sub-agent's session from its parent.
#[derive(Debug, Default)]
pub struct ChildSession {
    /// The id of the session to resume; `None` for a new one.
    pub id: Option<String>,
    pub agent: String,
    /// Each list is a wall of its own.
    pub rules: Vec<Vec<Rule>>,
    /// Which tools are on. Those that are off in the parent stay off.
    pub switches: Vec<ToolSwitch>,
}

/// Which file contents a session has seen in this process.
#[derive(Default)]
pub struct SeenFiles(Mutex<SeenRecords>);

impl SeenFiles {
    /// The folders of the files that were read or written in this process.
    pub fn folders(&self) -> BTreeSet<PathBuf> {
        let records = self.0.lock();
        records.paths().filter_map(Path::parent).map(Path::to_path_buf).collect()
    }
}

/// A value that a session remembers across calls and processes, stored under [`Slot::KEY`].
pub trait Slot: Default + Serialize + DeserializeOwned + Send + 'static {
    const KEY: &'static str;
}

/// How many times an update of a slot is tried while other processes keep changing it.
const MAX_TRIES: usize = 100;

impl Session {
    /// Opens a sub-agent's session. It has its own memory, but the same folder and person. Its rules can only forbid
    /// more than those of its parent.
    pub fn child(parent: ParentCall, child: ChildSession) -> Arc<Self> {
        let session = &parent.session;
        // Random, because one call may open several sub-agents.
        let new_id = || format!("{}/{}", session.id, uuid::Uuid::now_v7().simple());
        Arc::new(Self {
            id: child.id.unwrap_or_else(new_id).into(),
            caller: Caller { agent: child.agent.clone(), ..session.caller.clone() },
            workspace: session.workspace.clone(),
            gate: session.gate.child(&child.agent, child.rules),
            dialect: session.dialect,
            limits: session.limits,
            switches: child.switches,
            store: session.store.clone(),
            outputs: session.outputs.clone(),
            seen_files: SeenFiles::default(),
            parent: Some(parent),
        })
    }

    /// The parent of this session, its parent, and so on.
    pub fn ancestors(&self) -> impl Iterator<Item = &Arc<Session>> {
        std::iter::successors(self.parent_session(), |session| session.parent_session())
    }

    fn parent_session(&self) -> Option<&Arc<Session>> {
        self.parent.as_ref().map(|parent| &parent.session)
    }

    /// The id of the outermost session.
    pub fn root_id(&self) -> &Arc<str> {
        self.ancestors().last().map_or(&self.id, |session| &session.id)
    }

    /// Records that the session has seen a file of which it does not know the whole content.
    pub(crate) fn mark_seen(&self, path: &Path, seen: SeenContent) {
        self.store_seen(path, &seen);
        let mut records = self.seen_files.0.lock();
        records.drop_content(path);
        records.set(path, seen);
    }

    /// Records that the session has seen or written this content of a file.
    pub(crate) fn mark_content(&self, path: &Path, content: KnownContent) {
        let seen = SeenContent::whole(content.hash);
        self.store_seen(path, &seen);
        let mut records = self.seen_files.0.lock();
        records.keep_content(path, content);
        records.set(path, seen);
    }

    /// Forgets what the session has seen of a file that was removed or moved.
    pub(crate) fn forget(&self, path: &Path) {
        self.store_seen(path, &SeenContent::default());
        let mut records = self.seen_files.0.lock();
        records.drop_content(path);
        records.set(path, SeenContent::default());
    }

    /// Whether the session has seen or written the current content of a file.
    pub(crate) async fn seen_state(&self, path: &Path, current: &FileImage) -> SeenState {
        let known = self.seen_files.0.lock().content(path);
        if let Some(known) = &known
            && known.bytes == current.bytes
        {
            // Comparing is faster than hashing, and the hash need not be computed again.
            current.set_hash(known.hash);
            return SeenState::Current;
        }
        let seen = self.seen_content(path).await;
        if seen.is_empty() {
            return SeenState::Never;
        }
        journal::hash_in_background(current).await;
        if seen.matches(current) {
            SeenState::Current
        } else {
            SeenState::Changed { previous: known.map(|known| known.bytes) }
        }
    }

    /// Returns what the session last saw of a file, in this process or an earlier one.
    async fn seen_content(&self, path: &Path) -> SeenContent {
        if let Some(seen) = self.seen_files.0.lock().get(path) {
            return seen.clone();
        }
        let stored = self.store.get(&self.id, &seen_key(path)).await;
        let value = stored.ok().flatten().map_or(Value::Null, |(_, value)| value);
        serde_json::from_value(value).unwrap_or_default()
    }

    /// Queues a record for the store, so that later processes of this session can read it. Never waits.
    fn store_seen(&self, path: &Path, seen: &SeenContent) {
        if let Ok(value) = serde_json::to_value(seen) {
            self.store.set(&self.id, &seen_key(path), value);
        }
    }

    /// Returns folders that may be read without asking: the saved outputs of this session and of its parent sessions.
    pub(crate) fn output_folders(&self) -> Vec<PathBuf> {
        let mut folders = Vec::new();
        let mut session = Some(self);
        while let Some(current) = session {
            folders.push(current.outputs.folder(&current.id));
            session = current.parent.as_ref().map(|parent| &*parent.session);
        }
        folders
    }

    /// Returns what a slot holds, or the default.
    pub async fn recall<T: Slot>(&self) -> Result<T, StoreError> {
        Ok(self.load_slot::<T>().await?.1)
    }

    /// Changes a slot with optimistic locking, so that no update is lost when several processes share the session.
    /// `change` may run more than once.
    pub async fn update<T: Slot, R>(
        &self,
        mut change: impl FnMut(&mut T) -> R,
    ) -> Result<R, StoreError> {
        for _ in 0..MAX_TRIES {
            let (version, mut state) = self.load_slot::<T>().await?;
            let result = change(&mut state);
            let value = serde_json::to_value(&state)?;
            if self.store.put(&self.id, T::KEY, version, value).await? {
                return Ok(result);
            }
        }
        Err(StoreError::other("other processes keep changing this slot"))
    }

    /// Returns a slot with its version, 0 if it was never written.
    async fn load_slot<T: Slot>(&self) -> Result<(u64, T), StoreError> {
        let (version, value) = self.store.get(&self.id, T::KEY).await?.unwrap_or((0, Value::Null));
        // A slot that another version of Helve wrote and this one cannot read counts as empty.
        Ok((version, serde_json::from_value(value).unwrap_or_default()))
    }
}

/// Returns the key of the slot that records what the session has seen of a file. The prefix `shown:` is part of the
/// storage format.
fn seen_key(path: &Path) -> String {
    format!("shown:{}", paths::display(path))
}
