//! The journal: what files were before calls changed them, in the same database.

mod entries;
mod images;
pub(super) mod sweep;
mod told;

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};

use helve_core::BoxFuture;
use helve_core::journal::{self, BeforeImage, EntryId, Journal, JournalEntry, RecordedChange};
use helve_core::store::StoreError;

use super::Sqlite;
use super::keeper::Keeper;
use super::now;
use entries::{Completed, Left};
use images::Image;
use told::Lost;

/// The large images of a data folder.
pub(super) fn folder_in(data: &Path) -> PathBuf {
    data.join("journal")
}

impl Journal for Sqlite {
    fn begin<'a>(&'a self, entry: &'a JournalEntry) -> BoxFuture<'a, Result<EntryId, StoreError>> {
        let (entry, folder) = (entry.clone(), folder_in(&self.folder));
        self.ask(move |keeper| {
            let id = begin(keeper, &folder, &entry)?;
            keeper.open.push(id, entry);
            Ok(id)
        })
    }

    fn done<'a>(
        &'a self,
        id: EntryId,
        after: &'a [Option<journal::FileImage>],
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let (after, folder) = (after.to_vec(), folder_in(&self.folder));
        self.ask(move |keeper| {
            let open = keeper.open.take(id);
            let images: Vec<_> = after.iter().map(|left| left.as_ref().map(Left::of)).collect();
            let mut completed = keeper.attempt(|base| entries::done(base, &folder, id, &images))?;
            if completed == Completed::No
                && let Some(entry) = open.filter(|entry| entry.files.len() == after.len())
            {
                let id = begin(keeper, &folder, &entry)?;
                completed = keeper.attempt(|base| entries::done(base, &folder, id, &images))?;
            }
            keeper.added(images.iter().flatten().map(|left| left.image.added()).sum());
            match completed {
                Completed::Yes => Ok(()),
                Completed::No => Err(no_entry()),
            }
        })
    }

    fn void(&self, id: EntryId) {
        let folder = folder_in(&self.folder);
        self.start(self.queue.ask(Box::new(move |keeper| {
            keeper.open.take(id);
            // An entry that stays says what was there, which is true all the same.
            keeper.attempt(|base| entries::void(base, &folder, id)).ok();
        })));
    }

    fn entries<'a>(
        &'a self,
        root: &'a Path,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<RecordedChange>, StoreError>> {
        let root = root.to_owned();
        self.ask(move |keeper| keeper.attempt(|base| told::newest(base, &root, most)))
    }

    fn change<'a>(
        &'a self,
        call: &'a str,
    ) -> BoxFuture<'a, Result<Option<RecordedChange>, StoreError>> {
        let (call, folder) = (call.to_owned(), folder_in(&self.folder));
        self.ask(move |keeper| {
            let found = keeper.attempt(|base| told::change(base, &folder, &call))?;
            found.transpose().map_err(|lost| gone(&call, &lost))
        })
    }
}

fn begin(keeper: &mut Keeper, folder: &Path, entry: &JournalEntry) -> Result<EntryId, StoreError> {
    let image = |file: &BeforeImage| file.image.as_ref().map(Image::of);
    let images: Vec<_> = entry.files.iter().map(image).collect();
    let id = keeper.attempt(|base| entries::begin(base, folder, entry, &images))?;
    keeper.added(images.iter().flatten().map(Image::added).sum());
    Ok(id)
}

/// Entries that are not done, should the database be replaced before they are.
#[derive(Default)]
pub(super) struct Open(VecDeque<(EntryId, JournalEntry)>);

/// How many commits may be under way; those that end neither way are not remembered for ever.
const MOST_OPEN: usize = 32;

impl Open {
    fn push(&mut self, id: EntryId, entry: JournalEntry) {
        self.0.truncate(MOST_OPEN - 1);
        self.0.push_front((id, entry));
    }

    fn take(&mut self, id: EntryId) -> Option<JournalEntry> {
        let place = self.0.iter().position(|(open, _)| *open == id)?;
        self.0.remove(place).map(|(_, entry)| entry)
    }
}

/// The least number of what is new, in microseconds since 1970: beyond all that were ever given.
fn numbers_from() -> i64 {
    now().saturating_mul(1000)
}

fn bytes_of(path: &Path) -> &[u8] {
    path.as_os_str().as_encoded_bytes()
}

fn no_entry() -> StoreError {
    let why = "The journal has no such entry to complete.";
    io::Error::new(io::ErrorKind::NotFound, why)
}

fn gone(call: &str, Lost { path }: &Lost) -> StoreError {
    let path = path.display();
    let why = format!("What {path} was before {call} is lost: the copy of it is damaged.");
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests;
