//! The queue to the thread that owns the connection: writes never wait, queries are answered in order.

use std::time::{Duration, Instant};

use helve_core::event::{CallOutcome, Event, EventKind, Progress};
use parking_lot::{Condvar, Mutex, MutexGuard};
use serde_json::{Map, Value};

use super::worker::StoreWorker;

pub(crate) enum QueueItem {
    Event(Event),
    Slot(SlotWrite),
    /// Work that somebody waits for, and that sees the slots queued before it.
    Query(WorkerTask),
    /// Work of the journal, which reads no slots.
    Journal(WorkerTask),
}

pub(crate) type WorkerTask = Box<dyn FnOnce(&mut StoreWorker) + Send>;

/// A slot and its new value.
pub(crate) struct SlotWrite {
    pub(crate) session: String,
    pub(crate) key: String,
    pub(crate) value: String,
}

/// How long writes are collected before they are written together.
const BATCH_TIME: Duration = Duration::from_millis(10);
/// The same after a query was answered: a call that asked the journal is about to end, and its last writes follow.
const BATCH_TIME_AFTER_QUERY: Duration = Duration::from_millis(2);
/// Maximum size of the queue in bytes. Writes beyond it are dropped.
const MAX_QUEUE_BYTES: usize = 32 << 20;
/// Above this number of waiting bytes, progress of running calls is dropped, because the end of a call replaces its
/// progress anyway.
const MAX_PROGRESS_BYTES: usize = MAX_QUEUE_BYTES / 2;
/// Size in bytes above which a batch is written without waiting for more writes.
const FULL_BATCH_BYTES: usize = 1 << 20;
/// Estimated size of an item besides its text.
const ITEM_BYTES: usize = 256;

#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<QueueState>,
    wake: Condvar,
    ended: Condvar,
}

#[derive(Default)]
struct QueueState {
    stage: QueueStage,
    items: Vec<QueueItem>,
    /// Estimated size of the items in bytes.
    weight: usize,
    /// Whether a caller waits for an answer.
    has_query: bool,
    /// Whether the thread sleeps without a timeout, so that a write must wake it.
    is_asleep: bool,
    dropped: DroppedWrites,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum QueueStage {
    /// The thread was not started yet.
    #[default]
    New,
    /// The thread processes items.
    Open,
    /// The store was dropped. The remaining items are still processed.
    Closing,
    /// The thread has ended.
    Ended,
}

/// Number of writes dropped because the queue was full or the thread had ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DroppedWrites {
    pub(crate) progress: u64,
    pub(crate) other: u64,
}

/// Which limit applies to an item.
#[derive(Clone, Copy)]
enum Quota {
    Progress,
    Any,
}

/// Whether the caller of the queue has to start the worker thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkerStart {
    Needed,
    NotNeeded,
}

/// Whether the thread has cleanup work to do while the queue is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdleWork {
    Pending,
    None,
}

/// What the worker thread does next.
pub(crate) struct Batch {
    /// In order. If there are none and no writes are due, there is time for idle work.
    pub(crate) items: Vec<QueueItem>,
    /// When the writes in this batch are due. A query is answered at once, but does not hasten the writes before it.
    pub(crate) write_by: Instant,
}

impl Queue {
    /// Queues an event if the queue is not full, otherwise counts it as dropped.
    pub(crate) fn push_event(&self, event: Event) -> WorkerStart {
        let weight = text_length(&event.kind);
        let is_progress = matches!(event.kind, EventKind::Progress(_));
        let quota = if is_progress { Quota::Progress } else { Quota::Any };
        self.push(QueueItem::Event(event), weight, quota)
    }

    /// Queues a slot write if the queue is not full, otherwise counts it as dropped.
    pub(crate) fn push_slot(&self, slot: SlotWrite) -> WorkerStart {
        let weight = slot.session.len() + slot.key.len() + slot.value.len();
        self.push(QueueItem::Slot(slot), weight, Quota::Any)
    }

    fn push(&self, item: QueueItem, weight: usize, quota: Quota) -> WorkerStart {
        let weight = ITEM_BYTES + weight;
        let mut state = self.state.lock();
        let limit = match quota {
            Quota::Progress => MAX_PROGRESS_BYTES,
            Quota::Any => MAX_QUEUE_BYTES,
        };
        if state.stage == QueueStage::Ended || state.weight + weight > limit {
            match quota {
                Quota::Progress => state.dropped.progress += 1,
                Quota::Any => state.dropped.other += 1,
            }
            return WorkerStart::NotNeeded;
        }
        state.items.push(item);
        state.weight += weight;
        let must_wake = std::mem::take(&mut state.is_asleep) || state.weight > FULL_BATCH_BYTES;
        let start = state.claim_thread_start();
        self.unlock_and_wake(state, must_wake);
        start
    }

    /// Unlocks the state, then wakes the worker thread. If it were woken first, the lock could be handed to the worker
    /// while it is not yet scheduled, and the next caller would wait until the worker runs.
    fn unlock_and_wake(&self, state: MutexGuard<'_, QueueState>, must_wake: bool) {
        drop(state);
        if must_wake {
            self.wake.notify_one();
        }
    }

    /// Queues a query. If the thread has ended, the query is dropped without an answer.
    pub(crate) fn query(&self, task: WorkerTask) -> WorkerStart {
        self.push_query(QueueItem::Query(task))
    }

    /// Queues a query of the journal, which does not wait until queued slots are written.
    pub(crate) fn journal_query(&self, task: WorkerTask) -> WorkerStart {
        self.push_query(QueueItem::Journal(task))
    }

    /// Queues work of the journal that nobody waits for. It is done with the next batch. If the thread has ended, the
    /// work is dropped.
    pub(crate) fn journal_write(&self, task: WorkerTask) -> WorkerStart {
        let mut state = self.state.lock();
        if state.stage == QueueStage::Ended {
            return WorkerStart::NotNeeded;
        }
        state.items.push(QueueItem::Journal(task));
        let must_wake = std::mem::take(&mut state.is_asleep);
        let start = state.claim_thread_start();
        self.unlock_and_wake(state, must_wake);
        start
    }

    fn push_query(&self, query: QueueItem) -> WorkerStart {
        let mut state = self.state.lock();
        if state.stage == QueueStage::Ended {
            return WorkerStart::NotNeeded;
        }
        state.items.push(query);
        state.has_query = true;
        state.is_asleep = false;
        let start = state.claim_thread_start();
        self.unlock_and_wake(state, true);
        start
    }

    /// Waits for items. Returns `None` if the store was dropped. `write_by` is when the writes of earlier batches are
    /// due.
    pub(crate) fn next_batch(
        &self,
        idle_work: IdleWork,
        write_by: Option<Instant>,
    ) -> Option<Batch> {
        let mut state = self.state.lock();
        while state.items.is_empty() {
            match state.stage {
                QueueStage::Closing | QueueStage::Ended => return None,
                QueueStage::New | QueueStage::Open => {}
            }
            match (write_by, idle_work) {
                (Some(due), _) => {
                    let timed_out = self.wake.wait_until(&mut state, due).timed_out();
                    if timed_out && state.items.is_empty() {
                        return Some(Batch { items: Vec::new(), write_by: due });
                    }
                }
                (None, IdleWork::Pending) => {
                    return Some(Batch { items: Vec::new(), write_by: Instant::now() });
                }
                (None, IdleWork::None) => {
                    state.is_asleep = true;
                    self.wake.wait(&mut state);
                    state.is_asleep = false;
                }
            }
        }
        let deadline = write_by.unwrap_or_else(|| Instant::now() + BATCH_TIME);
        while !state.has_query && state.stage == QueueStage::Open && state.weight < FULL_BATCH_BYTES
        {
            if self.wake.wait_until(&mut state, deadline).timed_out() {
                break;
            }
        }
        let write_by = match (state.weight >= FULL_BATCH_BYTES, state.has_query) {
            (true, _) => Instant::now(),
            (false, true) => deadline.min(Instant::now() + BATCH_TIME_AFTER_QUERY),
            (false, false) => deadline,
        };
        state.has_query = false;
        state.weight = 0;
        Some(Batch { items: std::mem::take(&mut state.items), write_by })
    }

    pub(crate) fn dropped(&self) -> DroppedWrites {
        self.state.lock().dropped
    }

    /// Closes the queue, and waits until the thread has processed it or the timeout is over.
    pub(crate) fn close(&self, timeout: Duration) {
        let mut state = self.state.lock();
        if state.stage != QueueStage::Open {
            return;
        }
        state.stage = QueueStage::Closing;
        self.wake.notify_one();
        let deadline = Instant::now() + timeout;
        while state.stage != QueueStage::Ended {
            if self.ended.wait_until(&mut state, deadline).timed_out() {
                return;
            }
        }
    }

    /// Records that the thread has ended, so that nobody waits for it.
    pub(crate) fn end(&self) {
        let mut state = self.state.lock();
        state.stage = QueueStage::Ended;
        let remaining = std::mem::take(&mut state.items);
        self.ended.notify_all();
        drop(state);
        drop(remaining);
    }
}

impl QueueState {
    /// Returns [`WorkerStart::Needed`] to the first caller only, which then has to start the thread.
    fn claim_thread_start(&mut self) -> WorkerStart {
        match self.stage {
            QueueStage::New => {
                self.stage = QueueStage::Open;
                WorkerStart::Needed
            }
            QueueStage::Open | QueueStage::Closing | QueueStage::Ended => WorkerStart::NotNeeded,
        }
    }
}

/// Estimates the memory that an event owns. Arguments do not count, because they are shared with the call.
fn text_length(kind: &EventKind) -> usize {
    match kind {
        EventKind::Progress(Progress { title, metadata, .. }) => {
            title.as_ref().map_or(0, String::len) + fields_length(metadata)
        }
        EventKind::Finished(CallOutcome::Completed { title, metadata, output }) => {
            title.len() + fields_length(metadata) + output.len()
        }
        EventKind::Finished(CallOutcome::Failed { error, .. }) => error.len(),
        EventKind::Started { .. }
        | EventKind::Running { .. }
        | EventKind::Edited { .. }
        | EventKind::Asked { .. }
        | EventKind::Answered { .. } => 0,
    }
}

/// Estimates the size of metadata. Counts only top-level strings, because long texts such as diffs are there.
fn fields_length(metadata: &Map<String, Value>) -> usize {
    metadata.values().map(|value| ITEM_BYTES + value.as_str().map_or(0, str::len)).sum()
}

#[cfg(test)]
mod tests;
