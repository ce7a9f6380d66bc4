//! A store and saved outputs in memory.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use helve_core::Saved;
use helve_core::store::{
    ApprovalScope, ApprovalScopeRef, Outputs, Store, StoreError, StoredApproval,
};
use helve_core::{BoxFuture, CallState, Event, Rule};
use parking_lot::Mutex;
use serde_json::Value;

use crate::machine::MemoryMachine;
use crate::tree::MemoryNode;

/// A store in memory.
#[derive(Default)]
pub struct MemoryStore {
    slots: Mutex<HashMap<(String, String), (u64, Value)>>,
    calls: Mutex<Vec<CallState>>,
    rules: Mutex<Vec<(ApprovalScope, Rule)>>,
    trust: Mutex<BTreeMap<PathBuf, String>>,
}

impl Store for MemoryStore {
    fn get<'a>(
        &'a self,
        session: &'a str,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<(u64, Value)>, StoreError>> {
        let found = self.slots.lock().get(&(session.into(), key.into())).cloned();
        Box::pin(async { Ok(found) })
    }

    fn put<'a>(
        &'a self,
        session: &'a str,
        key: &'a str,
        expected_version: u64,
        value: Value,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let mut slots = self.slots.lock();
        let slot = slots.entry((session.into(), key.into())).or_insert((0, Value::Null));
        let is_current = slot.0 == expected_version;
        if is_current {
            *slot = (expected_version + 1, value);
        }
        Box::pin(async move { Ok(is_current) })
    }

    fn set(&self, session: &str, key: &str, value: Value) {
        let mut slots = self.slots.lock();
        let slot = slots.entry((session.into(), key.into())).or_insert((0, Value::Null));
        *slot = (slot.0 + 1, value);
    }

    fn append(&self, event: &Event) {
        let mut calls = self.calls.lock();
        if let Some(state) = CallState::begin(event) {
            calls.push(state);
        } else if let Some(state) = calls.iter_mut().find(|state| *state.id == *event.call) {
            state.fold(event);
        }
    }

    fn calls<'a>(
        &'a self,
        session: Option<&'a str>,
        max: usize,
    ) -> BoxFuture<'a, Result<Vec<CallState>, StoreError>> {
        let calls = self.calls.lock();
        let matching =
            calls.iter().rev().filter(|state| session.is_none_or(|id| state.session == id));
        let found = matching.take(max).cloned().collect();
        Box::pin(async { Ok(found) })
    }

    fn remember<'a>(
        &'a self,
        scope: ApprovalScopeRef<'a>,
        rule: &'a Rule,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let scope = match scope {
            ApprovalScopeRef::Session(id) => ApprovalScope::Session(id.into()),
            ApprovalScopeRef::Project(root) => ApprovalScope::Project(root.into()),
            ApprovalScopeRef::Everywhere => ApprovalScope::Everywhere,
        };
        self.rules.lock().push((scope, rule.clone()));
        Box::pin(async { Ok(()) })
    }

    fn approvals<'a>(
        &'a self,
        session: &'a str,
        root: &'a Path,
    ) -> BoxFuture<'a, Result<Vec<Rule>, StoreError>> {
        let applies = |scope: &ApprovalScope| match scope {
            ApprovalScope::Session(id) => id == session,
            ApprovalScope::Project(project) => project == root,
            ApprovalScope::Everywhere => true,
        };
        let rules = self.rules.lock();
        let found = rules.iter().filter(|(scope, _)| applies(scope)).map(|(_, rule)| rule.clone());
        let found = found.collect();
        Box::pin(async { Ok(found) })
    }

    fn all_approvals(&self) -> BoxFuture<'_, Result<Vec<StoredApproval>, StoreError>> {
        let rules = self.rules.lock();
        let all = rules.iter().zip(1..).map(|((scope, rule), id)| StoredApproval {
            id,
            scope: scope.clone(),
            rule: rule.clone(),
            at: 0,
        });
        let all = all.collect();
        Box::pin(async { Ok(all) })
    }

    fn revoke_approvals<'a>(&'a self, ids: &'a [u64]) -> BoxFuture<'a, Result<usize, StoreError>> {
        let mut rules = self.rules.lock();
        let (count, mut id) = (rules.len(), 0);
        rules.retain(|_| {
            id += 1;
            !ids.contains(&id)
        });
        let revoked = count - rules.len();
        Box::pin(async move { Ok(revoked) })
    }

    fn trusted_digest<'a>(
        &'a self,
        root: &'a Path,
    ) -> BoxFuture<'a, Result<Option<String>, StoreError>> {
        let found = self.trust.lock().get(root).cloned();
        Box::pin(async { Ok(found) })
    }

    fn set_trusted_digest<'a>(
        &'a self,
        root: &'a Path,
        digest: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        match digest {
            Some(digest) => self.trust.lock().insert(root.into(), digest.into()),
            None => self.trust.lock().remove(root),
        };
        Box::pin(async { Ok(()) })
    }

    fn flush(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    fn pending_warning(&self) -> BoxFuture<'_, Option<String>> {
        Box::pin(async { None })
    }
}

/// Saved outputs as files of a memory machine, numbered from 1.
pub struct MemoryOutputs {
    pub machine: Arc<MemoryMachine>,
    /// Number of the last output.
    last: Mutex<u64>,
}

impl MemoryOutputs {
    pub fn on(machine: Arc<MemoryMachine>) -> Self {
        Self { machine, last: Mutex::new(0) }
    }
}

impl Outputs for MemoryOutputs {
    fn save<'a>(
        &'a self,
        session: &'a str,
        text: &'a str,
    ) -> BoxFuture<'a, Result<Saved, StoreError>> {
        let mut last = self.last.lock();
        *last += 1;
        let path = self.folder(session).join(format!("{last}.txt"));
        self.machine.write(path.clone(), Bytes::copy_from_slice(text.as_bytes()));
        let saved = Saved { id: last.to_string(), path, bytes: text.len() as u64 };
        Box::pin(async { Ok(saved) })
    }

    fn reserve(&self, session: &str) -> Saved {
        let mut last = self.last.lock();
        *last += 1;
        let path = self.folder(session).join(format!("{last}.txt"));
        Saved { id: last.to_string(), path, bytes: 0 }
    }

    fn scratch(&self, session: &str) -> Result<PathBuf, StoreError> {
        Ok(self.folder(session).join("scratch"))
    }

    fn load<'a>(
        &'a self,
        session: &'a str,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, StoreError>> {
        let path = self.folder(session).join(format!("{id}.txt"));
        let text = match self.machine.nodes.lock().get(&path) {
            Some(MemoryNode::File(bytes)) => Some(String::from_utf8_lossy(bytes).into_owned()),
            Some(_) | None => None,
        };
        Box::pin(async { Ok(text) })
    }

    fn folder(&self, session: &str) -> PathBuf {
        Path::new("/data/outputs").join(session)
    }
}
