//! Forgetting entries that are too old or too much, about once an hour for all processes together.

use std::path::Path;
use std::time::{Duration, SystemTime};

use rusqlite::{OptionalExtension, Transaction, TransactionBehavior};

use super::super::base::{Base, Place};
use super::super::calls::Pruned;
use super::super::{now, unsigned};
use super::{entries, images};

/// How much is kept, and for how long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// All images together; the oldest entries go first.
    pub(super) bytes: u64,
    pub(super) entries: u64,
    /// In milliseconds.
    pub(super) age: i64,
    /// How often what is too old or too much is looked for, in milliseconds.
    pub(super) every: i64,
    /// How much this process may add before it looks again, whatever the time.
    pub(super) unswept: u64,
}

const ON_DISK: Limits = Limits {
    bytes: 512 << 20,
    entries: 20_000,
    age: 30 * 24 * 3600 * 1000,
    every: 3600 * 1000,
    unswept: 64 << 20,
};
const IN_MEMORY: Limits = Limits { bytes: 64 << 20, entries: 500, unswept: 8 << 20, ..ON_DISK };

impl Limits {
    fn of(place: Place) -> Self {
        match place {
            Place::File(_) => ON_DISK,
            Place::Memory => IN_MEMORY,
        }
    }
}

/// How many entries are looked at in one go, so that nobody waits for it.
const HANDFUL: i64 = 50;
/// A file without a row is left alone for so long: its row may be about to be written.
const STRAY: Duration = Duration::from_secs(3600);

/// When this process looks through the journal.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    stage: Stage,
    /// Not before then, in milliseconds since 1970.
    next: i64,
    /// How many bytes were given to the journal since.
    added: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Resting,
    /// It may be time; another process may have seen to it.
    Asking,
    /// Ages are taken at the time of the sweep before: a clock that leaps makes nothing old.
    Sweeping { then: i64 },
}

impl Turn {
    /// Something was added to the journal.
    pub(crate) fn added(&mut self, place: Place, bytes: u64) {
        self.added = self.added.saturating_add(bytes);
        let is_due = now() >= self.next || self.added >= Limits::of(place).unswept;
        if self.stage == Stage::Resting && is_due {
            self.stage = Stage::Asking;
        }
    }

    pub(crate) fn has_come(&self) -> bool {
        self.stage != Stage::Resting
    }

    /// Does the next small part. After an error whoever adds next tries again.
    pub(crate) fn go_on(&mut self, base: &Base, folder: &Path) -> rusqlite::Result<()> {
        let limits = Limits::of(base.place);
        let stage = std::mem::take(&mut self.stage);
        match stage {
            Stage::Resting => {}
            Stage::Asking => {
                let every = if self.added >= limits.unswept { 0 } else { limits.every };
                if let Some(before) = claim(base, every)? {
                    self.stage = Stage::Sweeping { then: before.min(now()) };
                }
                (self.next, self.added) = (now().saturating_add(limits.every), 0);
            }
            Stage::Sweeping { then } => match sweep(base, folder, &limits, then)? {
                Pruned::Some => self.stage = stage,
                Pruned::All => remove_strays(base, folder)?,
            },
        }
        Ok(())
    }
}

/// Says that a sweep begins, unless the last one of any process is not so long ago; when that was.
fn claim(base: &Base, every: i64) -> rusqlite::Result<Option<i64>> {
    let transaction = Transaction::new_unchecked(&base.main, TransactionBehavior::Immediate)?;
    let before = "SELECT at FROM sweeps WHERE what = 'journal'";
    let before: Option<i64> = transaction.query_row(before, [], |row| row.get(0)).optional()?;
    // A time in the future is one of a clock that was wrong.
    let claimed = transaction.execute(
        "INSERT INTO sweeps (what, at) VALUES ('journal', ?1)
         ON CONFLICT (what) DO UPDATE SET at = ?1 WHERE at <= ?1 - ?2 OR at > ?1",
        [now(), every],
    )?;
    transaction.commit()?;
    Ok((claimed > 0).then_some(before.unwrap_or(0)))
}

/// Forgets a handful of entries that were too old `then`, or are too many or too much; never the newest.
pub(super) fn sweep(
    base: &Base,
    folder: &Path,
    limits: &Limits,
    then: i64,
) -> rusqlite::Result<Pruned> {
    let transaction = Transaction::new_unchecked(&base.main, TransactionBehavior::Immediate)?;
    let all = "SELECT (SELECT count(*) FROM journal), (SELECT coalesce(sum(kept), 0) FROM journal_images)";
    let (mut entries, mut bytes) =
        transaction.query_row(all, [], |row| Ok((unsigned(row.get(0)?), unsigned(row.get(1)?))))?;
    let oldest = oldest(&transaction)?;
    let mut forgotten = 0;
    for (number, at) in oldest {
        let is_old = at < then.saturating_sub(limits.age);
        if is_old || entries > limits.entries || bytes > limits.bytes {
            bytes = bytes.saturating_sub(entries::forget(&transaction, folder, number)?);
            entries = entries.saturating_sub(1);
            forgotten += 1;
        }
    }
    transaction.commit()?;
    Ok(if forgotten < HANDFUL { Pruned::All } else { Pruned::Some })
}

fn oldest(transaction: &Transaction<'_>) -> rusqlite::Result<Vec<(i64, i64)>> {
    let mut statement = transaction.prepare(
        "SELECT number, at FROM journal WHERE number < (SELECT max(number) FROM journal)
         ORDER BY number LIMIT ?1",
    )?;
    let rows = statement.query_map([HANDFUL], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

/// Removes files that a killed process left without a row.
fn remove_strays(base: &Base, folder: &Path) -> rusqlite::Result<()> {
    match base.place {
        Place::File(_) => {}
        Place::Memory => return Ok(()),
    }
    let Ok(files) = std::fs::read_dir(folder) else { return Ok(()) };
    let transaction = Transaction::new_unchecked(&base.main, TransactionBehavior::Immediate)?;
    for file in files.filter_map(Result::ok) {
        // Of the entry itself: a link is none of ours.
        let changed = file.metadata().and_then(|file| file.modified());
        let age = changed.map(|at| SystemTime::now().duration_since(at).unwrap_or_default());
        if !age.is_ok_and(|age| age >= STRAY) {
            continue;
        }
        let name = file.file_name();
        if !images::is_needed(&transaction, name.to_str().unwrap_or_default())? {
            // What cannot be removed is tried again next time.
            std::fs::remove_file(file.path()).ok();
        }
    }
    transaction.commit()
}
