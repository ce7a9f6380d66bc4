//! Removes journal entries that exceed the limits, about once an hour across all processes.

use std::path::Path;
use std::time::{Duration, SystemTime};

use rusqlite::{OptionalExtension, Transaction, TransactionBehavior};

use super::super::calls::PruneResult;
use super::super::database::{Database, Location};
use super::super::{now, unsigned};
use super::{entries, images};

/// How much is stored, and for how long.
#[derive(Clone, Copy, Debug)]
pub(super) struct JournalLimits {
    /// Maximum total size of images. The oldest entries are removed first.
    pub(super) max_bytes: u64,
    pub(super) max_entries: u64,
    /// Maximum age in milliseconds.
    pub(super) max_age: i64,
    /// Minimum time between two sweeps, in milliseconds.
    pub(super) interval: i64,
    /// How much this process may add before it sweeps regardless of the time.
    pub(super) max_unswept_bytes: u64,
}

const ON_DISK: JournalLimits = JournalLimits {
    max_bytes: 512 << 20,
    max_entries: 20_000,
    max_age: 30 * 24 * 3600 * 1000,
    interval: 3600 * 1000,
    max_unswept_bytes: 64 << 20,
};
const IN_MEMORY: JournalLimits =
    JournalLimits { max_bytes: 64 << 20, max_entries: 500, max_unswept_bytes: 8 << 20, ..ON_DISK };

impl JournalLimits {
    fn of(location: Location) -> Self {
        match location {
            Location::File(_) => ON_DISK,
            Location::Memory => IN_MEMORY,
        }
    }
}

/// How many entries are checked at a time. Queries run between two batches, so they do not wait for the whole sweep.
const BATCH_SIZE: i64 = 50;
/// A file without a row is kept for this long, because its row may be about to be written.
const STRAY_MIN_AGE: Duration = Duration::from_secs(3600);

/// When this process sweeps the journal.
#[derive(Debug, Default)]
pub(crate) struct SweepSchedule {
    stage: SweepStage,
    /// Earliest time of the next sweep, in milliseconds since the Unix epoch.
    next: i64,
    /// Number of bytes added to the journal since the last sweep.
    added: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SweepStage {
    #[default]
    Idle,
    /// A sweep is due, unless another process has done one recently.
    Due,
    /// A sweep is in progress. Ages are relative to the time of the previous sweep, so that nothing expires early if
    /// the clock jumps ahead.
    Sweeping { previous: i64 },
}

impl SweepSchedule {
    /// Counts bytes that were added to the journal, and schedules a sweep if there are enough of them.
    pub(crate) fn count_added_bytes(&mut self, location: Location, bytes: u64) {
        self.added = self.added.saturating_add(bytes);
        let is_due =
            now() >= self.next || self.added >= JournalLimits::of(location).max_unswept_bytes;
        if self.stage == SweepStage::Idle && is_due {
            self.stage = SweepStage::Due;
        }
    }

    /// Whether [`SweepSchedule::advance`] has something to do.
    pub(crate) fn has_work(&self) -> bool {
        self.stage != SweepStage::Idle
    }

    /// Does the next small part of a sweep. After an error, the next [`SweepSchedule::count_added_bytes`] triggers a
    /// retry.
    pub(crate) fn advance(&mut self, database: &Database, folder: &Path) -> rusqlite::Result<()> {
        let limits = JournalLimits::of(database.location);
        let stage = std::mem::take(&mut self.stage);
        match stage {
            SweepStage::Idle => {}
            SweepStage::Due => {
                let interval =
                    if self.added >= limits.max_unswept_bytes { 0 } else { limits.interval };
                if let Some(previous) = claim_sweep(database, interval)? {
                    self.stage = SweepStage::Sweeping { previous: previous.min(now()) };
                }
                (self.next, self.added) = (now().saturating_add(limits.interval), 0);
            }
            SweepStage::Sweeping { previous } => {
                match sweep(database, folder, &limits, previous)? {
                    PruneResult::Partial => self.stage = stage,
                    PruneResult::Complete => remove_strays(database, folder)?,
                }
            }
        }
        Ok(())
    }
}

/// Claims a sweep for this process and returns the time of the previous sweep. Returns `None` if another process has
/// swept within `interval`.
fn claim_sweep(database: &Database, interval: i64) -> rusqlite::Result<Option<i64>> {
    let transaction = Transaction::new_unchecked(&database.main, TransactionBehavior::Immediate)?;
    let sql = "SELECT at FROM sweeps WHERE what = 'journal'";
    let previous: Option<i64> = transaction.query_row(sql, [], |row| row.get(0)).optional()?;
    // A time in the future (from a wrong clock) is ignored: the sweep is due.
    let claimed = transaction.execute(
        "INSERT INTO sweeps (what, at) VALUES ('journal', ?1)
         ON CONFLICT (what) DO UPDATE SET at = ?1 WHERE at <= ?1 - ?2 OR at > ?1",
        [now(), interval],
    )?;
    transaction.commit()?;
    Ok((claimed > 0).then_some(previous.unwrap_or(0)))
}

/// Removes one batch of entries that were expired at the time `reference` or exceed the other limits. The newest entry
/// always stays.
pub(super) fn sweep(
    database: &Database,
    folder: &Path,
    limits: &JournalLimits,
    reference: i64,
) -> rusqlite::Result<PruneResult> {
    let transaction = Transaction::new_unchecked(&database.main, TransactionBehavior::Immediate)?;
    // `kept` is the number of bytes stored for an image.
    let totals = "SELECT (SELECT count(*) FROM journal), (SELECT coalesce(sum(kept), 0) FROM journal_images)";
    let (mut entries, mut bytes) = transaction
        .query_row(totals, [], |row| Ok((unsigned(row.get(0)?), unsigned(row.get(1)?))))?;
    let oldest = oldest(&transaction)?;
    let mut removed = 0;
    for (number, at) in oldest {
        let is_old = at < reference.saturating_sub(limits.max_age);
        if is_old || entries > limits.max_entries || bytes > limits.max_bytes {
            bytes = bytes.saturating_sub(entries::remove(&transaction, folder, number)?);
            entries = entries.saturating_sub(1);
            removed += 1;
        }
    }
    transaction.commit()?;
    Ok(if removed < BATCH_SIZE { PruneResult::Complete } else { PruneResult::Partial })
}

fn oldest(transaction: &Transaction<'_>) -> rusqlite::Result<Vec<(i64, i64)>> {
    let mut statement = transaction.prepare(
        "SELECT number, at FROM journal WHERE number < (SELECT max(number) FROM journal)
         ORDER BY number LIMIT ?1",
    )?;
    let rows = statement.query_map([BATCH_SIZE], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

/// Removes image files without a row, left by killed processes.
fn remove_strays(database: &Database, folder: &Path) -> rusqlite::Result<()> {
    match database.location {
        Location::File(_) => {}
        Location::Memory => return Ok(()),
    }
    let Ok(files) = std::fs::read_dir(folder) else { return Ok(()) };
    let transaction = Transaction::new_unchecked(&database.main, TransactionBehavior::Immediate)?;
    for file in files.filter_map(Result::ok) {
        // This does not follow links, but the journal contains none.
        let modified = file.metadata().and_then(|file| file.modified());
        let age = modified.map(|at| SystemTime::now().duration_since(at).unwrap_or_default());
        if !age.is_ok_and(|age| age >= STRAY_MIN_AGE) {
            continue;
        }
        let name = file.file_name();
        if !images::is_needed(&transaction, name.to_str().unwrap_or_default())? {
            // If the file cannot be removed, the next sweep tries again.
            std::fs::remove_file(file.path()).ok();
        }
    }
    transaction.commit()
}
