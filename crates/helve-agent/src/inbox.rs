//! Messages that a person sends during a turn. They are stored at once, so that none is lost if the process is killed.

use std::sync::Arc;

use helve_core::store::StoreError;
use helve_core::transcript::{Delivery, Transcripts, WaitingMessage};
use parking_lot::Mutex;

/// The messages of a session that the model has not received yet.
pub struct Inbox {
    session: Arc<str>,
    store: Arc<dyn Transcripts>,
    /// Oldest first.
    waiting: Mutex<Vec<WaitingMessage>>,
}

impl Inbox {
    /// Loads the messages that an earlier process did not deliver.
    pub async fn load(session: Arc<str>, store: Arc<dyn Transcripts>) -> Result<Self, StoreError> {
        let waiting = Mutex::new(store.waiting(&session).await?);
        Ok(Self { session, store, waiting })
    }

    /// Adds a message. The model receives it with the next request.
    pub fn steer(&self, text: impl Into<String>) {
        self.add(Delivery::Steer, text.into());
    }

    /// Adds a message. It is delivered when the model would otherwise end the turn; queued messages are delivered one
    /// at a time.
    pub fn queue(&self, text: impl Into<String>) {
        self.add(Delivery::Queue, text.into());
    }

    fn add(&self, delivery: Delivery, text: String) {
        let id = uuid::Uuid::now_v7().simple().to_string();
        let message = WaitingMessage { id, delivery, text };
        // Both under the lock, so that a message is stored before it is delivered.
        let mut waiting = self.waiting.lock();
        self.store.add_waiting(&self.session, message.clone());
        waiting.push(message);
    }

    /// Removes and returns all messages, so that they are not delivered.
    pub fn take(&self) -> Vec<String> {
        let waiting = std::mem::take(&mut *self.waiting.lock());
        for message in &waiting {
            self.store.remove_waiting(&self.session, &message.id);
        }
        waiting.into_iter().map(|message| message.text).collect()
    }

    /// Takes the next steering message, for the coming request. It stays in the store until the transcript contains it.
    pub(crate) fn next(&self) -> Option<WaitingMessage> {
        let mut waiting = self.waiting.lock();
        let position = waiting.iter().position(|it| it.delivery == Delivery::Steer)?;
        Some(waiting.remove(position))
    }

    /// Returns whether the turn must continue because a message is waiting. If all waiting messages are queued,
    /// promotes the oldest one, so that [`Inbox::next`] returns it.
    pub(crate) fn prepare_next_step(&self) -> bool {
        let mut waiting = self.waiting.lock();
        if !waiting.iter().any(|it| it.delivery == Delivery::Steer)
            && let Some(first) = waiting.first_mut()
        {
            first.delivery = Delivery::Steer;
        }
        !waiting.is_empty()
    }
}
