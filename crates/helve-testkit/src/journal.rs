//! A journal that lives as long as the test.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use helve_core::BoxFuture;
use helve_core::journal::{Change, Changed, Entry, EntryId, Journal};
use helve_core::store::StoreError;
use parking_lot::Mutex;

/// Entries in a list; an id is a place in it.
#[derive(Default)]
pub struct MemoryJournal(Mutex<Vec<Kept>>);

struct Kept {
    root: PathBuf,
    change: Change,
    made: bool,
}

impl Journal for MemoryJournal {
    fn begin<'a>(&'a self, entry: &'a Entry) -> BoxFuture<'a, Result<EntryId, StoreError>> {
        let files = entry.files.iter().map(|file| Changed {
            path: file.path.clone(),
            before: file.image.clone(),
            after: None,
        });
        let change = Change {
            call: entry.call.clone(),
            session: entry.session.clone(),
            tool: entry.tool.clone(),
            at: entry.at,
            files: files.collect(),
        };
        let mut kept = self.0.lock();
        kept.push(Kept { root: entry.root.clone(), change, made: false });
        let id = EntryId(kept.len() as i64 - 1);
        Box::pin(async move { Ok(id) })
    }

    fn done<'a>(
        &'a self,
        id: EntryId,
        after: &'a [Option<Bytes>],
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        if let Some(kept) = self.0.lock().get_mut(place(id)) {
            kept.made = true;
            for (file, after) in kept.change.files.iter_mut().zip(after) {
                file.after.clone_from(after);
            }
        }
        Box::pin(async { Ok(()) })
    }

    fn void(&self, id: EntryId) {
        if let Some(kept) = self.0.lock().get_mut(place(id)) {
            kept.made = false;
        }
    }

    fn entries<'a>(
        &'a self,
        root: &'a Path,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<Change>, StoreError>> {
        let kept = self.0.lock();
        let made = kept.iter().rev().filter(|kept| kept.made && kept.root == root);
        let found = made.take(most).map(|kept| kept.change.clone()).collect();
        Box::pin(async { Ok(found) })
    }

    fn change<'a>(&'a self, call: &'a str) -> BoxFuture<'a, Result<Option<Change>, StoreError>> {
        let kept = self.0.lock();
        let found = kept.iter().rev().find(|kept| kept.made && kept.change.call == call);
        let found = found.map(|kept| kept.change.clone());
        Box::pin(async { Ok(found) })
    }
}

fn place(id: EntryId) -> usize {
    usize::try_from(id.0).unwrap_or(usize::MAX)
}
