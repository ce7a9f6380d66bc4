//! The store: one SQLite file, one thread that owns the connection, a queue in between.

mod base;
mod calls;
mod journal;
mod keeper;
mod ledger;
mod open;
mod owner;
mod queue;
mod rules;
mod schema;
mod slots;
mod trouble;
mod trust;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use helve_core::BoxFuture;
use helve_core::event::{CallState, Event};
use helve_core::permission::Rule;
use helve_core::store::{ApprovalOwner, Store, StoreError};
use serde_json::Value;
use tokio::sync::oneshot;

use keeper::Keeper;
use queue::{Queue, Setting, Thread};

/// How long another process may hold the database before this one goes on in memory.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long the last handle waits for what is queued.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// The store and the journal in `store.db` of a data folder.
///
/// Nothing is touched before the first question or note. Trouble with the file never fails a call:
/// the store goes on in memory, or with a new file, and [`Store::notice`] says so.
pub struct Sqlite {
    folder: PathBuf,
    patience: Duration,
    queue: Arc<Queue>,
}

impl Sqlite {
    pub fn at(folder: PathBuf) -> Self {
        Self { folder, patience: PATIENCE, queue: Arc::default() }
    }

    /// How many events found no room in the queue.
    pub fn dropped(&self) -> u64 {
        let lost = self.queue.lost();
        lost.progress + lost.others
    }

    /// Sends a question when the future is first polled.
    fn ask<'a, T: Send + 'static>(
        &'a self,
        question: impl FnOnce(&mut Keeper) -> Result<T, StoreError> + Send + 'static,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        Box::pin(async move {
            let (sender, receiver) = oneshot::channel();
            self.start(self.queue.ask(Box::new(move |keeper| {
                // Whoever asked may have gone away meanwhile.
                sender.send(question(keeper)).ok();
            })));
            let gone = |_| Err(StoreError::other("The thread of the store has ended."));
            receiver.await.unwrap_or_else(gone)
        })
    }

    fn start(&self, thread: Thread) {
        match thread {
            Thread::Started => return,
            Thread::Missing => {}
        }
        let ending = Ending(self.queue.clone());
        let keeper = Keeper::new(self.folder.clone(), self.patience);
        let work = move || keeper.run(&ending.0);
        // A thread that cannot be started drops `ending`, so that nobody waits for it.
        std::thread::Builder::new().name("helve-store".into()).spawn(work).ok();
    }
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        self.queue.close(LAST_WORDS);
    }
}

/// Ends the queue with its thread, however that ends.
struct Ending(Arc<Queue>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl Store for Sqlite {
    fn get<'a>(
        &'a self,
        session: &'a str,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<(u64, Value)>, StoreError>> {
        let (session, key) = (session.to_owned(), key.to_owned());
        self.ask(move |keeper| keeper.attempt(|base| slots::get(base, &session, &key)))
    }

    fn put<'a>(
        &'a self,
        session: &'a str,
        key: &'a str,
        seen: u64,
        value: Value,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let (session, key) = (session.to_owned(), key.to_owned());
        self.ask(move |keeper| {
            let value = slots::encode(&value)?;
            keeper.attempt(|base| slots::put(base, &session, &key, seen, &value))
        })
    }

    fn note(&self, session: &str, key: &str, value: Value) {
        // What cannot be kept costs the next process a question, nothing else.
        if let Ok(value) = slots::encode(&value) {
            let (session, key) = (session.to_owned(), key.to_owned());
            self.start(self.queue.set(Setting { session, key, value }));
        }
    }

    fn append(&self, event: &Event) {
        if let Some(note) = calls::note(event) {
            self.start(self.queue.note(note));
        }
    }

    fn calls<'a>(
        &'a self,
        session: Option<&'a str>,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<CallState>, StoreError>> {
        let session = session.map(str::to_owned);
        self.ask(move |keeper| {
            keeper.write_all();
            keeper.attempt(|base| calls::newest(base, session.as_deref(), most))
        })
    }

    fn remember<'a>(
        &'a self,
        owner: ApprovalOwner<'a>,
        rule: &'a Rule,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let (owner, rule) = (rules::Holder::of(owner), rule.clone());
        self.ask(move |keeper| keeper.attempt(|base| rules::remember(base, &owner, &rule)))
    }

    fn remembered<'a>(
        &'a self,
        session: &'a str,
        root: &'a Path,
    ) -> BoxFuture<'a, Result<Vec<Rule>, StoreError>> {
        let holders = [
            ApprovalOwner::Everyone,
            ApprovalOwner::Project(root),
            ApprovalOwner::Session(session),
        ];
        let holders = holders.map(rules::Holder::of);
        self.ask(move |keeper| keeper.attempt(|base| rules::remembered(base, &holders)))
    }

    fn trusted<'a>(&'a self, root: &'a Path) -> BoxFuture<'a, Result<Option<String>, StoreError>> {
        let root = root.to_owned();
        self.ask(move |keeper| keeper.attempt(|base| trust::trusted(base, &root)))
    }

    fn trust<'a>(
        &'a self,
        root: &'a Path,
        digest: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let (root, digest) = (root.to_owned(), digest.map(str::to_owned));
        self.ask(move |keeper| keeper.attempt(|base| trust::trust(base, &root, digest.as_deref())))
    }

    fn flush(&self) -> BoxFuture<'_, ()> {
        let flushed = self.ask(|keeper| {
            keeper.write_all();
            Ok(())
        });
        Box::pin(async {
            // Without a thread nothing waits to be written.
            flushed.await.ok();
        })
    }

    fn notice(&self) -> BoxFuture<'_, Option<String>> {
        let queue = self.queue.clone();
        let notice = self.ask(move |keeper| Ok(keeper.notice(queue.lost())));
        Box::pin(async { notice.await.unwrap_or_else(|gone| Some(gone.to_string())) })
    }
}

/// Milliseconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// SQLite's integers have a sign; ours do not need the upper half.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

#[cfg(test)]
mod tests;
