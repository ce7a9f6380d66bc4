//! What waits to be written: calls that have not ended or whose end is not written, and slots that were set.

use std::collections::HashMap;
use std::sync::Arc;

use helve_core::event::{CallState, CallStatus, Event, EventKind};
use rusqlite::{Transaction, TransactionBehavior};

use super::base::{Base, Place};
use super::queue::Setting;
use super::{calls, slots};

#[derive(Default)]
pub(crate) struct Ledger {
    live: HashMap<Key, Live>,
    /// By session and key; only the last value counts.
    slots: HashMap<(String, String), String>,
    begun: u64,
    /// Calls that began while too many were running.
    pub(crate) unheeded: u64,
}

/// A call, by session and id: clients number their calls as they like.
type Key = (Arc<str>, Arc<str>);

struct Live {
    state: CallState,
    /// The how manieth it is.
    number: u64,
    /// Where it was written, and in which row there.
    row: Option<(Place, i64)>,
    unwritten: Unwritten,
}

/// How much of a call is not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Unwritten {
    Nothing,
    /// Only somebody who looks now would miss it.
    Little,
    /// It must survive a crash.
    Much,
}

/// How many calls may run at once before the history loses sight of further ones.
const LIVE: usize = 4096;

impl Ledger {
    pub(crate) fn note(&mut self, event: &Event) {
        let key = (event.session.clone(), event.call.clone());
        if let Some(state) = CallState::begin(event) {
            if self.live.len() >= LIVE {
                self.unheeded += 1;
                return;
            }
            self.begun += 1;
            let (number, unwritten) = (self.begun, Unwritten::Little);
            self.live.insert(key, Live { state, number, row: None, unwritten });
        } else if let Some(live) = self.live.get_mut(&key) {
            live.state.fold(event);
            let is_much = matches!(event.what, EventKind::Running { .. } | EventKind::Finished(_));
            let news = if is_much { Unwritten::Much } else { Unwritten::Little };
            live.unwritten = live.unwritten.max(news);
        }
    }

    pub(crate) fn set(&mut self, Setting { session, key, value }: Setting) {
        self.slots.insert((session, key), value);
    }

    pub(crate) fn has_slots(&self) -> bool {
        !self.slots.is_empty()
    }

    /// Whether there are slots, or calls of which at least so much is unwritten.
    pub(crate) fn has(&self, least: Unwritten) -> bool {
        self.has_slots() || self.live.values().any(|live| live.unwritten >= least)
    }

    /// Writes the slots, and the calls of which at least so much is unwritten, all together.
    pub(crate) fn write(&self, base: &Base, least: Unwritten) -> rusqlite::Result<Written> {
        let immediate = TransactionBehavior::Immediate;
        let transaction = Transaction::new_unchecked(&base.main, immediate)?;
        for ((session, key), value) in &self.slots {
            slots::set(base, session, key, value)?;
        }
        let is_due = |(_, live): &(&Key, &Live)| live.unwritten >= least;
        let mut due: Vec<_> = self.live.iter().filter(is_due).collect();
        // Calls of one moment are told apart by their rows.
        due.sort_by_key(|(_, live)| live.number);
        let mut rows = Vec::new();
        for (key, live) in due {
            let row = live.row.filter(|(place, _)| *place == base.place).map(|(_, row)| row);
            let row = calls::write(&transaction, &base.owner, row, &live.state)?;
            rows.push((key.clone(), row));
        }
        transaction.commit()?;
        Ok(Written { place: base.place, rows })
    }

    /// Takes note of what was written; what has ended is out of sight from here on.
    pub(crate) fn wrote(&mut self, written: Written) {
        self.slots.clear();
        for (key, row) in written.rows {
            let Some(live) = self.live.get_mut(&key) else { continue };
            match live.state.status {
                CallStatus::Pending | CallStatus::Running => {
                    live.row = Some((written.place, row));
                    live.unwritten = Unwritten::Nothing;
                }
                CallStatus::Completed | CallStatus::Error => {
                    self.live.remove(&key);
                }
            }
        }
    }

    /// Gives up on what could not be written anywhere.
    pub(crate) fn give_up(&mut self) {
        self.slots.clear();
        self.live.retain(|_, live| match live.state.status {
            CallStatus::Pending | CallStatus::Running => true,
            CallStatus::Completed | CallStatus::Error => false,
        });
    }
}

/// The rows of what was written.
pub(crate) struct Written {
    place: Place,
    rows: Vec<(Key, i64)>,
}

#[cfg(test)]
mod tests;
