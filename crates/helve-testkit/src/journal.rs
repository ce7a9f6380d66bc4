//! A journal in memory.

use std::path::Path;

use helve_core::BoxFuture;
use helve_core::journal::{
    AfterImage, ChangedFile, EntryId, FileImage, Journal, JournalEntry, LazyHash, RecordedChange,
};
use helve_core::store::StoreError;
use parking_lot::Mutex;

/// A journal that keeps its entries in a list, oldest first. Entry ids are numbered from 0.
#[derive(Default)]
pub struct MemoryJournal(Mutex<JournalState>);

#[derive(Default)]
struct JournalState {
    records: Vec<JournalRecord>,
    /// The id of the next entry.
    next_id: i64,
}

struct JournalRecord {
    id: EntryId,
    entry: JournalEntry,
    /// The files after the change; `None` until the entry is marked as applied.
    after: Option<Vec<Option<FileImage>>>,
}

impl Journal for MemoryJournal {
    fn begin<'a>(&'a self, entry: &'a JournalEntry) -> BoxFuture<'a, Result<EntryId, StoreError>> {
        let mut journal = self.0.lock();
        let id = EntryId(journal.next_id);
        journal.next_id += 1;
        journal.records.push(JournalRecord { id, entry: entry.clone(), after: None });
        Box::pin(async move { Ok(id) })
    }

    fn mark_applied(
        &self,
        id: EntryId,
        after: Vec<Option<FileImage>>,
    ) -> BoxFuture<'static, Result<(), StoreError>> {
        let mut journal = self.0.lock();
        if let Some(record) = journal.records.iter_mut().find(|record| record.id == id) {
            record.after.get_or_insert(after);
        }
        Box::pin(async { Ok(()) })
    }

    fn discard(&self, id: EntryId) {
        self.0.lock().records.retain(|record| record.id != id);
    }

    fn changes<'a>(
        &'a self,
        root: &'a Path,
        max: usize,
    ) -> BoxFuture<'a, Result<Vec<RecordedChange>, StoreError>> {
        let journal = self.0.lock();
        let mut found: Vec<RecordedChange> = Vec::new();
        for JournalRecord { entry, .. } in
            journal.records.iter().rev().filter(|record| record.entry.root == root)
        {
            if !found.iter().any(|known| known.call == entry.call) {
                found.extend(journal.change(&entry.call, None));
            }
        }
        found.truncate(max);
        Box::pin(async { Ok(found) })
    }

    fn change<'a>(
        &'a self,
        call: &'a str,
    ) -> BoxFuture<'a, Result<Option<RecordedChange>, StoreError>> {
        let found = self.0.lock().change(call, None);
        Box::pin(async { Ok(found) })
    }

    fn change_in_session<'a>(
        &'a self,
        session: &'a str,
        call: &'a str,
    ) -> BoxFuture<'a, Result<Option<RecordedChange>, StoreError>> {
        let found = self.0.lock().change(call, Some(session));
        Box::pin(async { Ok(found) })
    }
}

impl JournalState {
    /// Combines all entries of a call: each file as it was before the first entry and after the last.
    fn change(&self, call: &str, session: Option<&str>) -> Option<RecordedChange> {
        let mut change: Option<RecordedChange> = None;
        let is_of_call = |entry: &JournalEntry| {
            entry.call == call && session.is_none_or(|session| entry.session == session)
        };
        for JournalRecord { entry, after, .. } in
            self.records.iter().filter(|record| is_of_call(&record.entry))
        {
            let change = change.get_or_insert_with(|| RecordedChange {
                call: entry.call.clone(),
                session: entry.session.clone(),
                tool: entry.tool.clone(),
                at: entry.at,
                undoes: entry.undoes.clone(),
                files: Vec::new(),
            });
            for (index, file) in entry.files.iter().enumerate() {
                let after = after.as_ref().and_then(|after| after.get(index)).cloned();
                let after = after.map_or(
                    AfterImage::Intended(file.intended.as_ref().map(LazyHash::get)),
                    AfterImage::Known,
                );
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
