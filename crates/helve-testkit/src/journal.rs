//! A journal that lives as long as the test.

use std::path::Path;

use helve_core::BoxFuture;
use helve_core::journal::{
    AfterImage, ChangedFile, EntryId, FileImage, Journal, JournalEntry, RecordedChange,
};
use helve_core::store::StoreError;
use parking_lot::Mutex;

/// Entries in a list, oldest first; an id is how many there were before.
#[derive(Default)]
pub struct MemoryJournal(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    entries: Vec<One>,
    begun: i64,
}

struct One {
    id: EntryId,
    entry: JournalEntry,
    /// What its files are since; not known while it is only begun.
    left: Option<Vec<Option<FileImage>>>,
}

impl Journal for MemoryJournal {
    fn begin<'a>(&'a self, entry: &'a JournalEntry) -> BoxFuture<'a, Result<EntryId, StoreError>> {
        let mut kept = self.0.lock();
        let id = EntryId(kept.begun);
        kept.begun += 1;
        kept.entries.push(One { id, entry: entry.clone(), left: None });
        Box::pin(async move { Ok(id) })
    }

    fn done<'a>(
        &'a self,
        id: EntryId,
        after: &'a [Option<FileImage>],
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let mut kept = self.0.lock();
        if let Some(one) = kept.entries.iter_mut().find(|one| one.id == id) {
            one.left.get_or_insert_with(|| after.to_vec());
        }
        Box::pin(async { Ok(()) })
    }

    fn void(&self, id: EntryId) {
        self.0.lock().entries.retain(|one| one.id != id);
    }

    fn entries<'a>(
        &'a self,
        root: &'a Path,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<RecordedChange>, StoreError>> {
        let kept = self.0.lock();
        let mut found: Vec<RecordedChange> = Vec::new();
        for One { entry, .. } in kept.entries.iter().rev().filter(|one| one.entry.root == root) {
            if !found.iter().any(|known| known.call == entry.call) {
                found.extend(kept.change(&entry.call));
            }
        }
        found.truncate(most);
        Box::pin(async { Ok(found) })
    }

    fn change<'a>(
        &'a self,
        call: &'a str,
    ) -> BoxFuture<'a, Result<Option<RecordedChange>, StoreError>> {
        let found = self.0.lock().change(call);
        Box::pin(async { Ok(found) })
    }
}

impl Kept {
    /// Each file from what it was before the first commit of a call to what it was after the last.
    fn change(&self, call: &str) -> Option<RecordedChange> {
        let mut change: Option<RecordedChange> = None;
        for One { entry, left, .. } in self.entries.iter().filter(|one| one.entry.call == call) {
            let change = change.get_or_insert_with(|| RecordedChange {
                call: entry.call.clone(),
                session: entry.session.clone(),
                tool: entry.tool.clone(),
                at: entry.at,
                files: Vec::new(),
            });
            for (at, file) in entry.files.iter().enumerate() {
                let left = left.as_ref().and_then(|left| left.get(at)).cloned();
                let after = left.map_or(AfterImage::Meant(file.meant), AfterImage::Known);
                match change.files.iter_mut().find(|known| known.path == file.path) {
                    Some(known) => known.after = after,
                    None => {
                        let (path, before) = (file.path.clone(), file.image.clone());
                        change.files.push(ChangedFile { path, before, after });
                    }
                }
            }
        }
        change
    }
}
