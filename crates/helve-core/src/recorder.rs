//! Where events go: to whoever watches, and into the store.

use std::sync::Arc;

use crate::call::CallRef;
use crate::event::{Event, EventKind, Events};
use crate::store::Store;

/// Sends events to subscribers and, unless it is off the record, to the store.
#[derive(Clone)]
pub struct Recorder {
    pub events: Events,
    store: Option<Arc<dyn Store>>,
}

impl Recorder {
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { events: Events::default(), store: Some(store) }
    }

    /// For calls that are only judged and leave no history.
    pub(crate) fn off_the_record() -> Self {
        Self { events: Events::default(), store: None }
    }

    /// Never waits.
    pub(crate) fn emit(&self, call: &CallRef, what: EventKind) {
        let event = Event::now(call, what);
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
