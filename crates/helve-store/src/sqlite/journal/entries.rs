//! One entry for each commit: what it found, what it left.

use std::path::Path;

use helve_core::commit::ContentHash;
use helve_core::journal::{self, EntryId, JournalEntry};
use rusqlite::{Transaction, TransactionBehavior, params};

use super::super::base::Base;
use super::super::signed;
use super::images::{self, Image};
use super::{bytes_of, numbers_from};

/// The state of an entry whose files may have been changed.
pub(super) const BEGUN: &str = "begun";
/// The state of an entry that also says what they became.
pub(super) const DONE: &str = "done";

/// Takes an entry down; `befores` are its images, in order.
pub(super) fn begin(
    base: &Base,
    folder: &Path,
    entry: &JournalEntry,
    befores: &[Option<Image>],
) -> rusqlite::Result<EntryId> {
    // Numbers tell the order, and which entry it is even after the database was replaced by another.
    const ENTRY: &str = "INSERT INTO journal (number, owner, call, session, tool, root, at, state)
        VALUES ((SELECT max(coalesce(max(number), 0) + 1, ?1) FROM journal), ?2, ?3, ?4, ?5, ?6, ?7, ?8)
        RETURNING number";
    const FILE: &str = "INSERT INTO journal_files (entry, position, path, before, mode, meant)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    prepare(base, folder, befores.iter().flatten())?;
    let transaction = Transaction::new_unchecked(&base.main, TransactionBehavior::Immediate)?;
    let JournalEntry { call, session, tool, root, at, files } = entry;
    let (root, at) = (bytes_of(root), signed(*at));
    let values = params![numbers_from(), base.owner, call, session, tool, root, at, BEGUN];
    let number = transaction.prepare_cached(ENTRY)?.query_row(values, |row| row.get(0))?;
    for (position, (file, before)) in files.iter().zip(befores).enumerate() {
        let before = before.as_ref().map(|image| image.keep(base, folder)).transpose()?;
        let mode = file.image.as_ref().map(|image| image.mode);
        let path = bytes_of(&file.path);
        let values = params![number, place(position), path, before, mode, meant(file.meant)];
        transaction.prepare_cached(FILE)?.execute(values)?;
    }
    transaction.commit()?;
    Ok(EntryId(number))
}

/// What is meant to be there afterwards: a hash, or no bytes for nothing.
fn meant(meant: Option<ContentHash>) -> Vec<u8> {
    meant.map_or_else(Vec::new, |hash| hash.0.to_vec())
}

/// What an entry says was meant; `None` where it does not say.
pub(super) fn meant_of(bytes: Option<Vec<u8>>) -> Option<Option<ContentHash>> {
    let bytes = bytes?;
    if bytes.is_empty() {
        return Some(None);
    }
    bytes.try_into().ok().map(|hash| Some(ContentHash(hash)))
}

/// What a call left, to be kept.
pub(super) struct Left {
    pub(super) image: Image,
    mode: u32,
}

impl Left {
    pub(super) fn of(left: &journal::FileImage) -> Self {
        Self { image: Image::of(left), mode: left.mode }
    }
}

/// Whether there was an entry to complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Completed {
    Yes,
    /// It is not there, is complete already, or has another number of files.
    No,
}

/// Completes an entry with what its files are now, in order.
pub(super) fn done(
    base: &Base,
    folder: &Path,
    id: EntryId,
    afters: &[Option<Left>],
) -> rusqlite::Result<Completed> {
    const AFTER: &str =
        "UPDATE journal_files SET after = ?3, left_mode = ?4 WHERE entry = ?1 AND position = ?2";
    prepare(base, folder, afters.iter().flatten().map(|left| &left.image))?;
    let transaction = Transaction::new_unchecked(&base.main, TransactionBehavior::Immediate)?;
    let files: i64 = transaction
        .prepare_cached("SELECT count(*) FROM journal_files WHERE entry = ?1")?
        .query_row([id.0], |row| row.get(0))?;
    let completed = transaction
        .prepare_cached("UPDATE journal SET state = ?2 WHERE number = ?1 AND state = ?3")?
        .execute(params![id.0, DONE, BEGUN])?;
    if completed == 0 || files != place(afters.len()) {
        return Ok(Completed::No);
    }
    for (position, after) in afters.iter().enumerate() {
        let Some(after) = after else { continue };
        let values = params![id.0, place(position), after.image.keep(base, folder)?, after.mode];
        transaction.prepare_cached(AFTER)?.execute(values)?;
    }
    transaction.commit()?;
    Ok(Completed::Yes)
}

fn prepare<'a>(
    base: &Base,
    folder: &Path,
    mut images: impl Iterator<Item = &'a Image>,
) -> rusqlite::Result<()> {
    images.try_for_each(|image| image.prepare(base, folder))
}

/// Forgets an entry that came to nothing.
pub(super) fn void(base: &Base, folder: &Path, id: EntryId) -> rusqlite::Result<()> {
    let transaction = Transaction::new_unchecked(&base.main, TransactionBehavior::Immediate)?;
    forget(&transaction, folder, id.0)?;
    transaction.commit()
}

/// Removes an entry and the images that only it needs; returns how many bytes that gives free.
pub(super) fn forget(
    transaction: &Transaction<'_>,
    folder: &Path,
    entry: i64,
) -> rusqlite::Result<u64> {
    let mut statement = transaction.prepare_cached(
        "SELECT before FROM journal_files WHERE entry = ?1 AND before IS NOT NULL
         UNION SELECT after FROM journal_files WHERE entry = ?1 AND after IS NOT NULL",
    )?;
    let needed = statement.query_map([entry], |row| row.get(0))?;
    let needed = needed.collect::<rusqlite::Result<Vec<i64>>>()?;
    transaction.prepare_cached("DELETE FROM journal_files WHERE entry = ?1")?.execute([entry])?;
    transaction.prepare_cached("DELETE FROM journal WHERE number = ?1")?.execute([entry])?;
    let mut freed = 0u64;
    for image in needed {
        freed = freed.saturating_add(images::release(transaction, folder, image)?);
    }
    Ok(freed)
}

fn place(position: usize) -> i64 {
    i64::try_from(position).unwrap_or(i64::MAX)
}
