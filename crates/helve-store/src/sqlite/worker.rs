//! The worker thread that owns the connection: it processes queue items and recovers from database failures.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use helve_core::store::StoreError;

use super::calls::PruneResult;
use super::database::{Database, Location};
use super::failure::{self, DatabaseFailure, DatabaseProblem};
use super::journal::sweep::SweepSchedule;
use super::open::{self, OpenedDatabase};
use super::pending::{PendingWrites, WriteUrgency};
use super::process_lock::ProcessLock;
use super::queue::{Batch, DroppedWrites, IdleWork, Queue, QueueItem};
use super::{calls, journal, rules, slots};

pub(crate) struct StoreWorker {
    data: PathBuf,
    timeout: Duration,
    database: Option<Database>,
    lock: Option<ProcessLock>,
    warnings: Vec<String>,
    pending: PendingWrites,
    /// When the pending writes are due.
    write_by: Option<Instant>,
    cleanup: Cleanup,
    /// Decides when the journal is swept.
    schedule: SweepSchedule,
    pub(super) incomplete_entries: journal::IncompleteEntries,
}

/// Which tables have to be cleaned up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cleanup {
    /// No table. The number counts the batches of calls written since the last cleanup.
    None(u32),
    Calls,
    /// Calls, slots and rules.
    Everything,
}

/// How many times a query is attempted, with a recovery after each failure.
const MAX_ATTEMPTS: usize = 4;
/// Number of batches of calls after which the history is pruned.
const CLEANUP_INTERVAL: u32 = 64;
/// Maximum number of warnings kept. Later warnings are dropped.
const MAX_WARNINGS: usize = 4;

impl StoreWorker {
    pub(crate) fn new(data: PathBuf, timeout: Duration) -> Self {
        Self {
            data,
            timeout,
            database: None,
            lock: None,
            warnings: Vec::new(),
            pending: PendingWrites::default(),
            write_by: None,
            cleanup: Cleanup::Everything,
            schedule: SweepSchedule::default(),
            incomplete_entries: journal::IncompleteEntries::default(),
        }
    }

    /// Runs until the store is dropped and everything is written.
    pub(crate) fn run(mut self, queue: &Queue) {
        while let Some(Batch { items, write_by }) =
            queue.next_batch(self.idle_work(), self.write_by)
        {
            if items.is_empty() && self.write_by.is_none() {
                self.clean_up();
            }
            for item in items {
                match item {
                    QueueItem::Event(event) => self.pending.add_event(&event),
                    QueueItem::Slot(slot) => self.pending.set_slot(slot),
                    QueueItem::Query(task) => {
                        self.write_slots();
                        task(&mut self);
                    }
                    QueueItem::Journal(task) => task(&mut self),
                }
            }
            let due = self.write_by.map_or(write_by, |earlier| earlier.min(write_by));
            if due <= Instant::now() {
                self.write_at_least(WriteUrgency::Immediate);
            }
            let is_pending = self.pending.has_writes_of(WriteUrgency::Immediate);
            self.write_by = is_pending.then_some(due);
        }
        self.write_all();
        if let Some(database) = self.database {
            database.close(&self.data);
        }
    }

    /// Runs an operation on the database. After a failure of the database, recovers and runs the operation again.
    pub(crate) fn attempt<T>(
        &mut self,
        work: impl Fn(&Database) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        self.attempt_with_pending(|database, _| work(database))
    }

    fn attempt_with_pending<T>(
        &mut self,
        work: impl Fn(&Database, &PendingWrites) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let store_error = |failure: DatabaseFailure| StoreError::other(failure.why);
        for _ in 0..MAX_ATTEMPTS {
            self.open().map_err(store_error)?;
            let Some(database) = &self.database else { continue };
            if database.was_replaced(&self.data) {
                let why = "another process replaced the file".to_owned();
                self.recover(DatabaseFailure { problem: DatabaseProblem::Changed, why })
                    .map_err(store_error)?;
                continue;
            }
            let error = match work(database, &self.pending) {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            match DatabaseFailure::of(&error) {
                Some(failure) => self.recover(failure).map_err(store_error)?,
                None => return Err(failure::query_error(&error)),
            }
        }
        Err(StoreError::other("The store failed repeatedly."))
    }

    /// Returns a warning for the user if the store had a problem or lost events.
    pub(crate) fn pending_warning(&mut self, dropped: DroppedWrites) -> Option<String> {
        let mut warnings = match self.open() {
            Ok(()) => self.warnings.clone(),
            Err(failure) => vec![format!("The store is not available: {}.", failure.why)],
        };
        // Dropped progress events are not counted: the end of a call replaces its progress.
        let missing = dropped.other + self.pending.lost_calls;
        if missing > 0 {
            warnings.push(format!(
                "The history of calls lacks {missing} events, because events arrived faster than they could be written."
            ));
        }
        (!warnings.is_empty()).then(|| warnings.join(" "))
    }

    /// Counts bytes by which the journal has grown.
    pub(crate) fn count_added_bytes(&mut self, bytes: u64) {
        if let Some(database) = &self.database {
            self.schedule.count_added_bytes(database.location, bytes);
        }
    }

    /// Writes everything that is pending.
    pub(crate) fn write_all(&mut self) {
        self.write_at_least(WriteUrgency::Lazy);
    }

    /// Writes the slots that were set, so that the next query sees them.
    fn write_slots(&mut self) {
        if self.pending.has_slots() {
            self.write_at_least(WriteUrgency::Immediate);
        }
    }

    /// Writes what is pending with this urgency or a higher one.
    fn write_at_least(&mut self, min_urgency: WriteUrgency) {
        if !self.pending.has_writes_of(min_urgency) {
            return;
        }
        match self.attempt_with_pending(|database, pending| pending.write(database, min_urgency)) {
            Ok(written) => self.pending.mark_written(written),
            Err(_) => self.pending.discard(),
        }
        self.cleanup = match self.cleanup {
            Cleanup::None(batches) if batches < CLEANUP_INTERVAL => Cleanup::None(batches + 1),
            Cleanup::None(_) | Cleanup::Calls => Cleanup::Calls,
            Cleanup::Everything => Cleanup::Everything,
        };
    }

    fn open(&mut self) -> Result<(), DatabaseFailure> {
        if self.database.is_none() {
            let opened = open::open(&self.data, self.timeout, &mut self.lock, None)?;
            self.use_database(opened);
        }
        Ok(())
    }

    fn use_database(&mut self, opened: OpenedDatabase) {
        self.database = Some(opened.database);
        self.warnings.extend(opened.warning);
        self.warnings.truncate(MAX_WARNINGS);
    }

    /// Replaces a failed database with a working one.
    fn recover(&mut self, failure: DatabaseFailure) -> Result<(), DatabaseFailure> {
        let Some(database) = self.database.take() else { return Ok(()) };
        let (problem, identity) = match (failure.problem, database.location) {
            (_, Location::Memory) => {
                self.database = Some(database);
                return Err(failure);
            }
            (problem, Location::File(identity)) => (problem, identity),
        };
        let damaged = match problem {
            DatabaseProblem::Damaged => Some((identity, failure.why)),
            DatabaseProblem::Changed => None,
            DatabaseProblem::Locked
            | DatabaseProblem::Unwritable
            | DatabaseProblem::Newer { .. } => {
                let warning =
                    failure::in_memory_warning(&open::database_path(&self.data), &failure);
                self.use_database(OpenedDatabase {
                    database: database.into_memory()?,
                    warning: Some(warning),
                });
                return Ok(());
            }
        };
        drop(database);
        let opened = open::open(&self.data, self.timeout, &mut self.lock, damaged)?;
        self.use_database(opened);
        Ok(())
    }

    fn idle_work(&self) -> IdleWork {
        match (&self.database, self.cleanup) {
            (None, _) => IdleWork::None,
            (Some(_), Cleanup::None(_)) if !self.schedule.has_work() => IdleWork::None,
            (Some(_), Cleanup::None(_) | Cleanup::Calls | Cleanup::Everything) => IdleWork::Pending,
        }
    }

    /// Does a small part of the cleanup while the queue is empty.
    fn clean_up(&mut self) {
        let (prune, next): (fn(&Database) -> rusqlite::Result<PruneResult>, _) = match self.cleanup
        {
            Cleanup::None(_) => return self.sweep(),
            Cleanup::Calls => (calls::prune, Cleanup::None(0)),
            Cleanup::Everything => (prune_slots_and_rules, Cleanup::Calls),
        };
        let Some(database) = &self.database else { return };
        let result = database.without_busy_wait(self.timeout, prune);
        match result {
            Ok(PruneResult::Partial) => {}
            // After an error, the cleanup is not repeated until it is due again, and the database stays in use.
            Ok(PruneResult::Complete) | Err(_) => self.cleanup = next,
        }
    }

    fn sweep(&mut self) {
        let Some(database) = &self.database else { return };
        let folder = journal::folder_in(&self.data);
        // After an error the next addition to the journal triggers a retry.
        database
            .without_busy_wait(self.timeout, |database| self.schedule.advance(database, &folder))
            .ok();
    }
}

fn prune_slots_and_rules(database: &Database) -> rusqlite::Result<PruneResult> {
    slots::prune(database)?;
    rules::prune(database)?;
    Ok(PruneResult::Complete)
}
