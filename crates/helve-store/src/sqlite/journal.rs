//! The journal: the contents of files before calls changed them, in the same database.

mod changes;
mod entries;
mod images;
pub(super) mod sweep;

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};

use helve_core::BoxFuture;
use helve_core::journal::{self, BeforeImage, EntryId, Journal, JournalEntry, RecordedChange};
use helve_core::store::StoreError;

use super::SqliteStore;
use super::now;
use super::worker::StoreWorker;
use changes::LostImage;
use entries::{AfterFile, CompletionResult};
use images::NewImage;

/// Returns the folder for large file contents in a data folder.
pub(super) fn folder_in(data: &Path) -> PathBuf {
    data.join("journal")
}

impl Journal for SqliteStore {
    fn begin<'a>(&'a self, entry: &'a JournalEntry) -> BoxFuture<'a, Result<EntryId, StoreError>> {
        let (entry, folder) = (entry.clone(), folder_in(&self.folder));
        self.journal_query(move |worker| {
            let id = begin(worker, &folder, &entry)?;
            worker.incomplete_entries.push(id, entry);
            Ok(id)
        })
    }

    fn mark_applied(
        &self,
        id: EntryId,
        after: Vec<Option<journal::FileImage>>,
    ) -> BoxFuture<'static, Result<(), StoreError>> {
        let folder = folder_in(&self.folder);
        self.journal_write(move |worker| {
            let incomplete = worker.incomplete_entries.take(id);
            let before = |at: usize| incomplete.as_ref()?.files.get(at)?.image.as_ref();
            let after_file = |(at, image): (usize, &Option<journal::FileImage>)| {
                image.as_ref().map(|image| AfterFile::of(image, before(at)))
            };
            let images: Vec<_> = after.iter().enumerate().map(after_file).collect();
            let mut completed =
                worker.attempt(|database| entries::complete(database, &folder, id, &images))?;
            if completed == CompletionResult::NotFound
                && let Some(entry) = incomplete.filter(|entry| entry.files.len() == after.len())
            {
                let id = begin(worker, &folder, &entry)?;
                completed =
                    worker.attempt(|database| entries::complete(database, &folder, id, &images))?;
            }
            worker.count_added_bytes(
                images.iter().flatten().map(|file| file.image.added_bytes()).sum(),
            );
            match completed {
                CompletionResult::Completed => Ok(()),
                CompletionResult::NotFound => Err(no_incomplete_entry()),
            }
        })
    }

    fn discard(&self, id: EntryId) {
        let folder = folder_in(&self.folder);
        self.start_worker_if_needed(self.queue.query(Box::new(move |worker| {
            worker.incomplete_entries.take(id);
            // If the entry cannot be removed, it is harmless: nothing was committed, so it still describes the files
            // correctly.
            worker.attempt(|database| entries::discard(database, &folder, id)).ok();
        })));
    }

    fn changes<'a>(
        &'a self,
        root: &'a Path,
        max: usize,
    ) -> BoxFuture<'a, Result<Vec<RecordedChange>, StoreError>> {
        let root = root.to_owned();
        self.journal_query(move |worker| {
            worker.attempt(|database| changes::newest(database, &root, max))
        })
    }

    fn change<'a>(
        &'a self,
        call: &'a str,
    ) -> BoxFuture<'a, Result<Option<RecordedChange>, StoreError>> {
        let (call, folder) = (call.to_owned(), folder_in(&self.folder));
        self.query(move |worker| {
            let found =
                worker.attempt(|database| changes::change(database, &folder, &call, None))?;
            found.transpose().map_err(|lost| lost_image_error(&call, &lost))
        })
    }

    fn change_in_session<'a>(
        &'a self,
        session: &'a str,
        call: &'a str,
    ) -> BoxFuture<'a, Result<Option<RecordedChange>, StoreError>> {
        let (session, call) = (session.to_owned(), call.to_owned());
        let folder = folder_in(&self.folder);
        self.query(move |worker| {
            let found = worker
                .attempt(|database| changes::change(database, &folder, &call, Some(&session)))?;
            found.transpose().map_err(|lost| lost_image_error(&call, &lost))
        })
    }
}

fn begin(
    worker: &mut StoreWorker,
    folder: &Path,
    entry: &JournalEntry,
) -> Result<EntryId, StoreError> {
    let image = |file: &BeforeImage| file.image.as_ref().map(NewImage::of);
    let images: Vec<_> = entry.files.iter().map(image).collect();
    let id = worker.attempt(|database| entries::begin(database, folder, entry, &images))?;
    worker.count_added_bytes(images.iter().flatten().map(NewImage::added_bytes).sum());
    Ok(id)
}

/// Entries that are not completed yet. If the database is replaced before an entry is completed, the copy here is
/// written to the new database.
#[derive(Default)]
pub(super) struct IncompleteEntries(VecDeque<(EntryId, JournalEntry)>);

/// Maximum number of incomplete entries. The oldest entries beyond it are dropped.
const MAX_INCOMPLETE_ENTRIES: usize = 32;

impl IncompleteEntries {
    fn push(&mut self, id: EntryId, entry: JournalEntry) {
        self.0.truncate(MAX_INCOMPLETE_ENTRIES - 1);
        self.0.push_front((id, entry));
    }

    fn take(&mut self, id: EntryId) -> Option<JournalEntry> {
        let index = self.0.iter().position(|(known, _)| *known == id)?;
        self.0.remove(index).map(|(_, entry)| entry)
    }
}

/// Returns the smallest number that a new row may get: microseconds since the Unix epoch, so that no number is reused.
fn min_row_number() -> i64 {
    now().saturating_mul(1000)
}

fn path_bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_encoded_bytes()
}

fn no_incomplete_entry() -> StoreError {
    let why = "The journal has no such incomplete entry.";
    io::Error::new(io::ErrorKind::NotFound, why)
}

fn lost_image_error(call: &str, LostImage { path }: &LostImage) -> StoreError {
    let path = path.display();
    let why = format!("The content of {path} before {call} is lost: the saved copy is damaged.");
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests;
