//! Sends events to subscribers and to the store.

use std::sync::Arc;

use crate::call::CallRef;
use crate::event::{Event, EventKind, Events};
use crate::store::Store;

/// Sends the events of calls to subscribers, and to the store if there is one.
#[derive(Clone)]
pub struct Recorder {
    pub events: Events,
    store: Option<Arc<dyn Store>>,
}

impl Recorder {
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { events: Events::default(), store: Some(store) }
    }

    /// A recorder for calls that are only judged and not run. They leave no history.
    pub(crate) fn without_store() -> Self {
        Self { events: Events::default(), store: None }
    }

    /// Records an event of a call. Never waits.
    pub(crate) fn emit(&self, call: &CallRef, kind: EventKind) {
        let event = Event::now(call, kind);
        if let Some(store) = &self.store {
            store.append(&event);
        }
        self.events.send(event);
    }

    /// Waits until everything recorded so far is on disk.
    pub async fn flush(&self) {
        if let Some(store) = &self.store {
            store.flush().await;
        }
    }
}
