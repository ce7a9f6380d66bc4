//! Journal entries: one for each commit, with the files before and after it.

use std::path::Path;

use helve_core::commit::ContentHash;
use helve_core::journal::{self, AfterImage, EntryId, JournalEntry, LazyHash, UndoneCall};
use rusqlite::{Transaction, TransactionBehavior, params};

use super::super::database::Database;
use super::super::signed;
use super::images::{self, NewImage};
use super::{min_row_number, path_bytes};

/// State of an entry whose files may have been changed.
pub(super) const BEGUN: &str = "begun";
/// State of an entry that also records the files after the commit.
pub(super) const DONE: &str = "done";

/// Stores a new entry. `before_images` are the images of its files, in order.
pub(super) fn begin(
    database: &Database,
    folder: &Path,
    entry: &JournalEntry,
    before_images: &[Option<NewImage>],
) -> rusqlite::Result<EntryId> {
    // Numbers define the order, and identify an entry even after the database was replaced.
    const ENTRY: &str = "INSERT INTO journal (number, owner, call, session, tool, root, at, state, undoes)
        VALUES ((SELECT max(coalesce(max(number), 0) + 1, ?1) FROM journal), ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
        RETURNING number";
    const FILE: &str = "INSERT INTO journal_files (entry, position, path, before, mode, meant)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    prepare(database, folder, before_images.iter().flatten())?;
    let transaction = Transaction::new_unchecked(&database.main, TransactionBehavior::Immediate)?;
    let JournalEntry { call, session, tool, root, at, undoes, files } = entry;
    let undoes = encode_undoes(undoes);
    let (root, at) = (path_bytes(root), signed(*at));
    let values =
        params![min_row_number(), database.owner, call, session, tool, root, at, BEGUN, undoes];
    let number = transaction.prepare_cached(ENTRY)?.query_row(values, |row| row.get(0))?;
    for (position, (file, before)) in files.iter().zip(before_images).enumerate() {
        let before = before.as_ref().map(|image| image.store(database, folder)).transpose()?;
        let mode = file.image.as_ref().map(|image| image.mode);
        let path = path_bytes(&file.path);
        let values = params![
            number,
            to_integer(position),
            path,
            before,
            mode,
            encode_intended(file.intended.as_ref())
        ];
        transaction.prepare_cached(FILE)?.execute(values)?;
    }
    transaction.commit()?;
    remember(database, before_images.iter().flatten());
    Ok(EntryId(number))
}

/// Encodes the undone calls for the column `undoes`.
fn encode_undoes(undoes: &[UndoneCall]) -> Option<String> {
    let json = (!undoes.is_empty()).then(|| serde_json::to_string(undoes));
    json?.ok()
}

/// Decodes the undone calls. What cannot be read counts as none.
pub(super) fn decode_undoes(json: Option<String>) -> Vec<UndoneCall> {
    json.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default()
}

/// Encodes the intended result for the column `meant`: a hash, or nothing for a file that is to be removed.
fn encode_intended(intended: Option<&LazyHash>) -> Vec<u8> {
    intended.map_or_else(Vec::new, |hash| hash.get().0.to_vec())
}

/// The state in which a call intended to leave a file.
pub(super) enum IntendedState {
    Content(ContentHash),
    Deleted,
    /// It was not recorded, or the record cannot be read.
    Unknown,
}

impl IntendedState {
    pub(super) fn decode(bytes: Option<Vec<u8>>) -> Self {
        match bytes {
            Some(bytes) if bytes.is_empty() => IntendedState::Deleted,
            Some(bytes) => bytes
                .try_into()
                .map_or(IntendedState::Unknown, |hash| IntendedState::Content(ContentHash(hash))),
            None => IntendedState::Unknown,
        }
    }

    pub(super) fn into_image(self) -> AfterImage {
        match self {
            IntendedState::Content(hash) => AfterImage::Intended(Some(hash)),
            IntendedState::Deleted => AfterImage::Intended(None),
            IntendedState::Unknown => AfterImage::Lost,
        }
    }
}

/// A file after a commit, to be stored.
pub(super) struct AfterFile {
    pub(super) image: NewImage,
    mode: u32,
}

impl AfterFile {
    /// Creates a file from its state after the commit and, if it existed, before the commit.
    pub(super) fn of(image: &journal::FileImage, before: Option<&journal::FileImage>) -> Self {
        Self { image: NewImage::derived(image, before), mode: image.mode }
    }
}

/// Whether an entry was completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CompletionResult {
    Completed,
    /// The entry does not exist, is complete already, or has another number of files.
    NotFound,
}

/// Completes an entry with the images of its files after the commit, in order.
pub(super) fn complete(
    database: &Database,
    folder: &Path,
    id: EntryId,
    after_files: &[Option<AfterFile>],
) -> rusqlite::Result<CompletionResult> {
    // The column `after` is the image after the commit, and `left_mode` the permissions with which the commit left the
    // file.
    const AFTER: &str =
        "UPDATE journal_files SET after = ?3, left_mode = ?4 WHERE entry = ?1 AND position = ?2";
    prepare(database, folder, after_files.iter().flatten().map(|file| &file.image))?;
    let transaction = Transaction::new_unchecked(&database.main, TransactionBehavior::Immediate)?;
    let files: i64 = transaction
        .prepare_cached("SELECT count(*) FROM journal_files WHERE entry = ?1")?
        .query_row([id.0], |row| row.get(0))?;
    let completed = transaction
        .prepare_cached("UPDATE journal SET state = ?2 WHERE number = ?1 AND state = ?3")?
        .execute(params![id.0, DONE, BEGUN])?;
    if completed == 0 || files != to_integer(after_files.len()) {
        return Ok(CompletionResult::NotFound);
    }
    for (position, after) in after_files.iter().enumerate() {
        let Some(after) = after else { continue };
        let values =
            params![id.0, to_integer(position), after.image.store(database, folder)?, after.mode];
        transaction.prepare_cached(AFTER)?.execute(values)?;
    }
    transaction.commit()?;
    remember(database, after_files.iter().flatten().map(|file| &file.image));
    Ok(CompletionResult::Completed)
}

/// Remembers that intact copies of these images are stored.
fn remember<'a>(database: &Database, images: impl Iterator<Item = &'a NewImage>) {
    let mut intact = database.intact_images.borrow_mut();
    images.for_each(|image| intact.insert(image.hash()));
}

fn prepare<'a>(
    database: &Database,
    folder: &Path,
    mut images: impl Iterator<Item = &'a NewImage>,
) -> rusqlite::Result<()> {
    images.try_for_each(|image| image.prepare(database, folder))
}

/// Removes an entry whose commit did not happen.
pub(super) fn discard(database: &Database, folder: &Path, id: EntryId) -> rusqlite::Result<()> {
    let transaction = Transaction::new_unchecked(&database.main, TransactionBehavior::Immediate)?;
    remove(&transaction, folder, id.0)?;
    transaction.commit()
}

/// Removes an entry and the images that only it uses. Returns the number of bytes freed.
pub(super) fn remove(
    transaction: &Transaction<'_>,
    folder: &Path,
    entry: i64,
) -> rusqlite::Result<u64> {
    let mut statement = transaction.prepare_cached(
        "SELECT before FROM journal_files WHERE entry = ?1 AND before IS NOT NULL
         UNION SELECT after FROM journal_files WHERE entry = ?1 AND after IS NOT NULL",
    )?;
    let images = statement.query_map([entry], |row| row.get(0))?;
    let images = images.collect::<rusqlite::Result<Vec<i64>>>()?;
    transaction.prepare_cached("DELETE FROM journal_files WHERE entry = ?1")?.execute([entry])?;
    transaction.prepare_cached("DELETE FROM journal WHERE number = ?1")?.execute([entry])?;
    let mut freed = 0u64;
    for image in images {
        freed = freed.saturating_add(images::release(transaction, folder, image)?);
    }
    Ok(freed)
}

fn to_integer(position: usize) -> i64 {
    i64::try_from(position).unwrap_or(i64::MAX)
}
