//! Pending writes: calls that still run, calls whose end is not written yet, and slots that were set.

use std::collections::HashMap;
use std::sync::Arc;

use helve_core::event::{CallState, CallStatus, Event, EventKind};
use rusqlite::{Transaction, TransactionBehavior};

use super::database::{Database, Location};
use super::queue::SlotWrite;
use super::{calls, slots};

#[derive(Default)]
pub(crate) struct PendingWrites {
    tracked: HashMap<Key, TrackedCall>,
    /// Values to write, by session and key. A later value replaces an earlier one, so only the last value is written.
    slots: HashMap<(String, String), String>,
    /// Number of calls that began so far.
    started: u64,
    /// Number of calls that are not written, because they began while too many calls were running.
    pub(crate) lost_calls: u64,
}

/// Identifies a call by session and id, because ids are chosen by clients.
type Key = (Arc<str>, Arc<str>);

struct TrackedCall {
    state: CallState,
    /// Sequence number of the call.
    number: u64,
    /// The database and row that the call was written to.
    row: Option<(Location, i64)>,
    urgency: WriteUrgency,
}

/// How soon a change of a call must be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WriteUrgency {
    /// The call has not changed since it was written.
    None,
    /// Before the next read.
    Lazy,
    /// With the current batch, because the change must survive a crash.
    Immediate,
}

/// Maximum number of calls tracked at a time. Further calls are not written.
const MAX_TRACKED_CALLS: usize = 4096;

impl PendingWrites {
    pub(crate) fn add_event(&mut self, event: &Event) {
        let key = (event.session.clone(), event.call.clone());
        if let Some(state) = CallState::begin(event) {
            if self.tracked.len() >= MAX_TRACKED_CALLS {
                self.lost_calls += 1;
                return;
            }
            self.started += 1;
            let (number, urgency) = (self.started, WriteUrgency::Lazy);
            self.tracked.insert(key, TrackedCall { state, number, row: None, urgency });
        } else if let Some(tracked) = self.tracked.get_mut(&key) {
            tracked.state.fold(event);
            let is_immediate =
                matches!(event.kind, EventKind::Running { .. } | EventKind::Finished(_));
            let urgency = if is_immediate { WriteUrgency::Immediate } else { WriteUrgency::Lazy };
            tracked.urgency = tracked.urgency.max(urgency);
        }
    }

    pub(crate) fn set_slot(&mut self, SlotWrite { session, key, value }: SlotWrite) {
        self.slots.insert((session, key), value);
    }

    pub(crate) fn has_slots(&self) -> bool {
        !self.slots.is_empty()
    }

    /// Whether there are slots to write, or calls of at least this urgency.
    pub(crate) fn has_writes_of(&self, min_urgency: WriteUrgency) -> bool {
        self.has_slots() || self.tracked.values().any(|tracked| tracked.urgency >= min_urgency)
    }

    /// Writes the slots and the calls of at least this urgency in one transaction.
    pub(crate) fn write(
        &self,
        database: &Database,
        min_urgency: WriteUrgency,
    ) -> rusqlite::Result<WrittenRows> {
        let immediate = TransactionBehavior::Immediate;
        let transaction = Transaction::new_unchecked(&database.main, immediate)?;
        for ((session, key), value) in &self.slots {
            slots::set(database, session, key, value)?;
        }
        let is_due = |(_, tracked): &(&Key, &TrackedCall)| tracked.urgency >= min_urgency;
        let mut due: Vec<_> = self.tracked.iter().filter(is_due).collect();
        // The row order must match the start order, even for calls of the same millisecond.
        due.sort_by_key(|(_, tracked)| tracked.number);
        let mut rows = Vec::new();
        for (key, tracked) in due {
            let row = tracked
                .row
                .filter(|(location, _)| *location == database.location)
                .map(|(_, row)| row);
            let row = calls::write(&transaction, &database.owner, row, &tracked.state)?;
            rows.push((key.clone(), row));
        }
        transaction.commit()?;
        Ok(WrittenRows { location: database.location, rows })
    }

    /// Records that these rows and all slots were written. Ended calls are no longer tracked.
    pub(crate) fn mark_written(&mut self, written: WrittenRows) {
        self.slots.clear();
        for (key, row) in written.rows {
            let Some(tracked) = self.tracked.get_mut(&key) else { continue };
            match tracked.state.status {
                CallStatus::Pending | CallStatus::Running => {
                    tracked.row = Some((written.location, row));
                    tracked.urgency = WriteUrgency::None;
                }
                CallStatus::Completed | CallStatus::Error => {
                    self.tracked.remove(&key);
                }
            }
        }
    }

    /// Discards the slots and the ended calls, because they could not be written anywhere.
    pub(crate) fn discard(&mut self) {
        self.slots.clear();
        self.tracked.retain(|_, tracked| match tracked.state.status {
            CallStatus::Pending | CallStatus::Running => true,
            CallStatus::Completed | CallStatus::Error => false,
        });
    }
}

/// The rows that were written.
pub(crate) struct WrittenRows {
    location: Location,
    rows: Vec<(Key, i64)>,
}

#[cfg(test)]
mod tests;
