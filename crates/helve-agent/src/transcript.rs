//! A transcript in memory, every item of which is stored before it has an effect.

use std::sync::Arc;

use helve_core::store::StoreError;
use helve_core::transcript::{StoredItem, Transcripts};

use crate::item::{Entry, Item};

/// The transcript of one session.
pub struct Transcript {
    session: Arc<str>,
    entries: Vec<Entry>,
    store: Arc<dyn Transcripts>,
}

impl Transcript {
    /// Loads a session's transcript; empty for a new session. Items that cannot be read are left out.
    pub async fn load(session: Arc<str>, store: Arc<dyn Transcripts>) -> Result<Self, StoreError> {
        let stored = store.load(&session).await?;
        let entry = |stored: StoredItem| {
            let item = serde_json::from_str(&stored.json).ok()?;
            Some(Entry { seq: stored.seq, item })
        };
        let entries = stored.into_iter().filter_map(entry).collect();
        Ok(Self { session, entries, store })
    }

    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Appends items. They are stored when the future is done.
    pub async fn append(&mut self, items: Vec<Item>) -> Result<(), StoreError> {
        let first = self.entries.last().map_or(1, |entry| entry.seq + 1);
        let new: Vec<Entry> = (first..).zip(items).map(|(seq, item)| Entry { seq, item }).collect();
        let stored = |entry: &Entry| {
            let json = serde_json::to_string(&entry.item).map_err(std::io::Error::other)?;
            Ok(StoredItem { seq: entry.seq, json })
        };
        let stored = new.iter().map(stored).collect::<Result<Vec<_>, StoreError>>()?;
        self.store.append(&self.session, stored).await?;
        self.entries.extend(new);
        Ok(())
    }
}
