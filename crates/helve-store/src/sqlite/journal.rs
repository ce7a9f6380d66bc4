//! The journal: what files were before calls changed them, in the same database.

mod entries;
mod images;
pub(super) mod sweep;

use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use helve_core::BoxFuture;
use helve_core::journal::{Before, Change, Entry, EntryId, Journal};
use helve_core::store::StoreError;

use super::Sqlite;
use entries::{Completed, Lost};

/// The large images of a data folder.
pub(super) fn folder_in(data: &Path) -> PathBuf {
    data.join("journal")
}

impl Journal for Sqlite {
    fn begin<'a>(&'a self, entry: &'a Entry) -> BoxFuture<'a, Result<EntryId, StoreError>> {
        let (entry, folder) = (entry.clone(), folder_in(&self.folder));
        self.ask(move |keeper| {
            let before =
                |file: &Before| file.image.as_ref().map(|image| images::Image::of(&image.bytes));
            let befores: Vec<_> = entry.files.iter().map(before).collect();
            let id = keeper.attempt(|base| entries::begin(base, &folder, &entry, &befores))?;
            keeper.added(befores.iter().flatten().map(images::Image::added).sum());
            Ok(id)
        })
    }

    fn done<'a>(
        &'a self,
        id: EntryId,
        after: &'a [Option<Bytes>],
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let (after, folder) = (after.to_vec(), folder_in(&self.folder));
        self.ask(move |keeper| {
            let image = |bytes: &Option<Bytes>| bytes.as_ref().map(images::Image::of);
            let afters: Vec<_> = after.iter().map(image).collect();
            match keeper.attempt(|base| entries::done(base, &folder, id, &afters))? {
                Completed::Yes => {}
                Completed::No => return Err(no_entry()),
            }
            keeper.added(afters.iter().flatten().map(images::Image::added).sum());
            Ok(())
        })
    }

    fn void(&self, id: EntryId) {
        let folder = folder_in(&self.folder);
        self.start(self.queue.ask(Box::new(move |keeper| {
            // An entry that stays says what was there, which is true all the same.
            keeper.attempt(|base| entries::void(base, &folder, id)).ok();
        })));
    }

    fn entries<'a>(
        &'a self,
        root: &'a Path,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<Change>, StoreError>> {
        let root = root.to_owned();
        self.ask(move |keeper| keeper.attempt(|base| entries::newest(base, &root, most)))
    }

    fn change<'a>(&'a self, call: &'a str) -> BoxFuture<'a, Result<Option<Change>, StoreError>> {
        let (call, folder) = (call.to_owned(), folder_in(&self.folder));
        self.ask(move |keeper| {
            let found = keeper.attempt(|base| entries::change(base, &folder, &call))?;
            found.transpose().map_err(|lost| gone(&call, &lost))
        })
    }
}

fn no_entry() -> StoreError {
    let why = "The journal has no entry to complete; what it had before is as it was.";
    io::Error::new(io::ErrorKind::NotFound, why)
}

fn gone(call: &str, Lost { path }: &Lost) -> StoreError {
    let path = path.display();
    let why = format!("What {path} was before {call} is lost: the copy of it is damaged.");
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests;
