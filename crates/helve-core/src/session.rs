//! A session: one conversation, with its caller, its person, its rules and its memory.

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
use crate::journal::FileImage;
use crate::paths;
use crate::shown::{SeenContent, SeenRecords, Shown};
use crate::spec::{Caller, ToolSwitch};
use crate::store::{Outputs, Store, StoreError};
use crate::workspace::Workspace;

/// A session.
pub struct Session {
    pub id: Arc<str>,
    pub caller: Caller,
    pub workspace: Arc<Workspace>,
    pub gate: Gate,
    pub dialect: &'static Dialect,
    /// The dialect's limits, unless the configuration overrides them.
    pub limits: Limits,
    pub switches: Vec<ToolSwitch>,
    pub store: Arc<dyn Store>,
    pub outputs: Arc<dyn Outputs>,
    /// What the session has seen of files. The store keeps it too.
    pub seen_files: SeenFiles,
    /// The call that a sub-agent's session works for.
    pub parent: Option<ParentCall>,
}

/// The call that opened a sub-agent's session, and the session of that call.
#[derive(Clone)]
pub struct ParentCall {
    pub call: Arc<CallRef>,
    pub session: Arc<Session>,
}

/// What a session has seen of files, in this process.
#[derive(Default)]
pub struct SeenFiles(Mutex<SeenRecords>);

/// Something a session remembers across calls and processes, keyed by type.
pub trait Slot: Default + Serialize + DeserializeOwned + Send + 'static {
    const KEY: &'static str;
}

/// How many times an update of a slot is retried when others keep changing it.
const TRIES: usize = 100;

impl Session {
    /// Opens a sub-agent's session: its own memory, the same folder and person, rules that only narrow.
    pub(crate) fn child(
        self: &Arc<Self>,
        parent: &Arc<CallRef>,
        agent: &str,
        rules: Vec<Rule>,
    ) -> Arc<Self> {
        Arc::new(Self {
            // Random, so that two children of one call differ.
            id: format!("{}/{}", self.id, uuid::Uuid::now_v7().simple()).into(),
            caller: Caller { agent: agent.into(), ..self.caller.clone() },
            workspace: self.workspace.clone(),
            gate: self.gate.child(agent, rules),
            dialect: self.dialect,
            limits: self.limits,
            switches: self.switches.clone(),
            store: self.store.clone(),
            outputs: self.outputs.clone(),
            seen_files: SeenFiles::default(),
            parent: Some(ParentCall { call: parent.clone(), session: self.clone() }),
        })
    }

    /// Records what was shown of a file.
    pub(crate) fn saw(&self, path: &Path, seen: SeenContent) {
        self.note(path, &seen);
        let mut shown = self.seen_files.0.lock();
        shown.drop_content(path);
        shown.set(path, seen);
    }

    /// Records what the session wrote.
    pub(crate) fn wrote(&self, path: &Path, now: &FileImage) {
        let seen = SeenContent::whole(now.hash);
        self.note(path, &seen);
        let mut shown = self.seen_files.0.lock();
        shown.keep_content(path, &now.bytes);
        shown.set(path, seen);
    }

    pub(crate) fn forget(&self, path: &Path) {
        self.note(path, &SeenContent::default());
        let mut shown = self.seen_files.0.lock();
        shown.drop_content(path);
        shown.set(path, SeenContent::default());
    }

    /// Whether the session has seen or written the present content of a file.
    pub(crate) async fn was_shown(&self, path: &Path, now: &FileImage) -> Shown {
        let seen = self.seen(path).await;
        if seen.is_empty() {
            Shown::Never
        } else if seen.holds(now) {
            Shown::AsItIs
        } else {
            Shown::Changed { previous: self.seen_files.0.lock().content(path) }
        }
    }

    async fn seen(&self, path: &Path) -> SeenContent {
        if let Some(seen) = self.seen_files.0.lock().get(path) {
            return seen.clone();
        }
        let stored = self.store.get(&self.id, &shown_key(path)).await;
        let value = stored.ok().flatten().map_or(Value::Null, |(_, value)| value);
        serde_json::from_value(value).unwrap_or_default()
    }

    /// Queues the record for the store, so that later processes of this session can read it. Never waits.
    fn note(&self, path: &Path, seen: &SeenContent) {
        if let Ok(value) = serde_json::to_value(seen) {
            self.store.set(&self.id, &shown_key(path), value);
        }
    }

    /// Folders that may be read without asking: the saved outputs of this session and of its parent sessions.
    pub(crate) fn output_folders(&self) -> Vec<PathBuf> {
        let mut folders = Vec::new();
        let mut session = Some(self);
        while let Some(current) = session {
            folders.push(current.outputs.folder(&current.id));
            session = current.parent.as_ref().map(|above| &*above.session);
        }
        folders
    }

    pub async fn recall<T: Slot>(&self) -> Result<T, StoreError> {
        Ok(self.stored::<T>().await?.1)
    }

    /// Changes a slot with optimistic locking, so that two processes of one session lose no update.
    pub async fn update<T: Slot, R>(
        &self,
        mut change: impl FnMut(&mut T) -> R,
    ) -> Result<R, StoreError> {
        for _ in 0..TRIES {
            let (version, mut state) = self.stored::<T>().await?;
            let answer = change(&mut state);
            let value = serde_json::to_value(&state)?;
            if self.store.put(&self.id, T::KEY, version, value).await? {
                return Ok(answer);
            }
        }
        Err(StoreError::other("other processes keep changing this slot"))
    }

    async fn stored<T: Slot>(&self) -> Result<(u64, T), StoreError> {
        let (version, value) = self.store.get(&self.id, T::KEY).await?.unwrap_or((0, Value::Null));
        // A slot that another version of Helve wrote and this one cannot read counts as empty.
        Ok((version, serde_json::from_value(value).unwrap_or_default()))
    }
}

fn shown_key(path: &Path) -> String {
    format!("shown:{}", paths::display(path))
}
