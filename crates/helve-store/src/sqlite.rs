//! The store: one SQLite file, one thread that owns the connection, and a queue to that thread.

mod calls;
mod database;
mod failure;
mod journal;
mod open;
mod pending;
mod process_lock;
mod queue;
mod requests;
mod rules;
mod schema;
mod slots;
mod transcripts;
mod trust;
mod worker;
mod writer_lock;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use helve_core::BoxFuture;
use helve_core::Rule;
use helve_core::event::{CallState, Event};
use helve_core::store::{ApprovalScopeRef, Store, StoreError, StoredApproval};
use helve_core::transcript::{
    ModelTotals, NewItem, RequestRecord, SearchHit, StoredItem, TotalsOf, TranscriptInfo,
    Transcripts, WaitingMessage, WriterClaim,
};
use serde_json::Value;
use tokio::sync::oneshot;

use queue::{Queue, SlotWrite, WorkerStart, WorkerTask};
use worker::StoreWorker;

/// How long another process may lock the database before this process continues in memory.
const LOCK_TIMEOUT: Duration = Duration::from_secs(3);
/// How long dropping the store waits for queued writes.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// The store and the journal in `store.db` of a data folder.
///
/// Nothing is created before the first query or write. A problem with the file never fails a call:
/// the store continues in memory, or with a new file, and [`Store::pending_warning`] reports the problem.
pub struct SqliteStore {
    folder: PathBuf,
    timeout: Duration,
    queue: Arc<Queue>,
}

impl SqliteStore {
    pub fn at(folder: PathBuf) -> Self {
        Self { folder, timeout: LOCK_TIMEOUT, queue: Arc::default() }
    }

    /// Returns the number of writes that were lost because the queue was full.
    pub fn lost_writes(&self) -> u64 {
        let dropped = self.queue.dropped();
        dropped.progress + dropped.other
    }

    /// Sends a query to the worker when the future is first polled.
    fn query<'a, T: Send + 'static>(
        &'a self,
        query: impl FnOnce(&mut StoreWorker) -> Result<T, StoreError> + Send + 'static,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        Box::pin(async move {
            let (task, answer) = answering_task(query);
            self.start_worker_if_needed(self.queue.query(task));
            answer.await
        })
    }

    /// Sends a query of the journal to the worker at once. The future only waits for the answer.
    fn journal_query<T: Send + 'static>(
        &self,
        query: impl FnOnce(&mut StoreWorker) -> Result<T, StoreError> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        let (task, answer) = answering_task(query);
        self.start_worker_if_needed(self.queue.journal_query(task));
        answer
    }

    /// Sends work of the journal to the worker, which does it soon. The future only waits for the answer.
    fn journal_write<T: Send + 'static>(
        &self,
        write: impl FnOnce(&mut StoreWorker) -> Result<T, StoreError> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        let (task, answer) = answering_task(write);
        self.start_worker_if_needed(self.queue.journal_write(task));
        answer
    }

    fn start_worker_if_needed(&self, worker: WorkerStart) {
        match worker {
            WorkerStart::NotNeeded => return,
            WorkerStart::Needed => {}
        }
        let guard = EndQueueOnDrop(self.queue.clone());
        let worker = StoreWorker::new(self.folder.clone(), self.timeout);
        let work = move || worker.run(&guard.0);
        // If the thread cannot be started, the guard is dropped, so that nobody waits.
        std::thread::Builder::new().name("helve-store".into()).spawn(work).ok();
    }
}

/// Returns a task for the worker, and a future that waits for its answer.
fn answering_task<T: Send + 'static>(
    query: impl FnOnce(&mut StoreWorker) -> Result<T, StoreError> + Send + 'static,
) -> (WorkerTask, BoxFuture<'static, Result<T, StoreError>>) {
    let (sender, receiver) = oneshot::channel();
    let task = Box::new(move |worker: &mut StoreWorker| {
        // Sending fails if the caller no longer waits for the answer.
        sender.send(query(worker)).ok();
    });
    let ended = |_| Err(StoreError::other("The store's worker thread has ended."));
    (task, Box::pin(async move { receiver.await.unwrap_or_else(ended) }))
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        self.queue.close(CLOSE_TIMEOUT);
    }
}

/// Ends the queue when the worker thread ends, even by a panic.
struct EndQueueOnDrop(Arc<Queue>);

impl Drop for EndQueueOnDrop {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl Store for SqliteStore {
    fn get<'a>(
        &'a self,
        session: &'a str,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<(u64, Value)>, StoreError>> {
        let (session, key) = (session.to_owned(), key.to_owned());
        self.query(move |worker| worker.attempt(|database| slots::get(database, &session, &key)))
    }

    fn put<'a>(
        &'a self,
        session: &'a str,
        key: &'a str,
        expected_version: u64,
        value: Value,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let (session, key) = (session.to_owned(), key.to_owned());
        self.query(move |worker| {
            let value = slots::encode(&value)?;
            worker.attempt(|database| {
                slots::compare_and_set(database, &session, &key, expected_version, &value)
            })
        })
    }

    fn set(&self, session: &str, key: &str, value: Value) {
        // A value that cannot be encoded is not stored. This process has its own copy; only later processes miss it.
        if let Ok(value) = slots::encode(&value) {
            let (session, key) = (session.to_owned(), key.to_owned());
            self.start_worker_if_needed(self.queue.push_slot(SlotWrite { session, key, value }));
        }
    }

    fn append(&self, event: &Event) {
        if let Some(reduced) = calls::reduce(event) {
            self.start_worker_if_needed(self.queue.push_event(reduced));
        }
    }

    fn calls<'a>(
        &'a self,
        session: Option<&'a str>,
        max: usize,
    ) -> BoxFuture<'a, Result<Vec<CallState>, StoreError>> {
        let session = session.map(str::to_owned);
        self.query(move |worker| {
            worker.write_all();
            worker.attempt(|database| calls::newest(database, session.as_deref(), max))
        })
    }

    fn remember<'a>(
        &'a self,
        scope: ApprovalScopeRef<'a>,
        rule: &'a Rule,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let (scope, rule) = (rules::StoredScope::of(scope), rule.clone());
        self.query(move |worker| {
            worker.attempt(|database| rules::remember(database, &scope, &rule))
        })
    }

    fn approvals<'a>(
        &'a self,
        session: &'a str,
        root: &'a Path,
    ) -> BoxFuture<'a, Result<Vec<Rule>, StoreError>> {
        let scopes = [
            ApprovalScopeRef::Everywhere,
            ApprovalScopeRef::Project(root),
            ApprovalScopeRef::Session(session),
        ];
        let scopes = scopes.map(rules::StoredScope::of);
        self.query(move |worker| worker.attempt(|database| rules::remembered(database, &scopes)))
    }

    fn all_approvals(&self) -> BoxFuture<'_, Result<Vec<StoredApproval>, StoreError>> {
        self.query(|worker| worker.attempt(rules::all))
    }

    fn revoke_approvals<'a>(&'a self, ids: &'a [u64]) -> BoxFuture<'a, Result<usize, StoreError>> {
        let ids = ids.to_vec();
        self.query(move |worker| worker.attempt(|database| rules::revoke(database, &ids)))
    }

    fn trusted_digest<'a>(
        &'a self,
        root: &'a Path,
    ) -> BoxFuture<'a, Result<Option<String>, StoreError>> {
        let root = root.to_owned();
        self.query(move |worker| worker.attempt(|database| trust::trusted_digest(database, &root)))
    }

    fn set_trusted_digest<'a>(
        &'a self,
        root: &'a Path,
        digest: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let (root, digest) = (root.to_owned(), digest.map(str::to_owned));
        self.query(move |worker| {
            worker.attempt(|database| trust::set_trusted_digest(database, &root, digest.as_deref()))
        })
    }

    fn flush(&self) -> BoxFuture<'_, ()> {
        let flushed = self.query(|worker| {
            worker.write_all();
            Ok(())
        });
        Box::pin(async {
            // Without a thread there is nothing to write.
            flushed.await.ok();
        })
    }

    fn pending_warning(&self) -> BoxFuture<'_, Option<String>> {
        let queue = self.queue.clone();
        let warning = self.query(move |worker| Ok(worker.pending_warning(queue.dropped())));
        Box::pin(async { warning.await.unwrap_or_else(|error| Some(error.to_string())) })
    }
}

impl Transcripts for SqliteStore {
    fn claim<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<WriterClaim, StoreError>> {
        Box::pin(async move { writer_lock::claim(&self.folder, session) })
    }

    fn register<'a>(
        &'a self,
        session: &'a str,
        root: &'a Path,
        title: &'a str,
        parent: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let (session, root, title) = (session.to_owned(), root.to_owned(), title.to_owned());
        let parent = parent.map(str::to_owned);
        self.query(move |worker| {
            worker.attempt(|database| {
                transcripts::register(database, &session, &root, &title, parent.as_deref())
            })
        })
    }

    fn set_title<'a>(
        &'a self,
        session: &'a str,
        title: &'a str,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let (session, title) = (session.to_owned(), title.to_owned());
        self.query(move |worker| {
            worker.attempt(|database| transcripts::set_title(database, &session, &title))
        })
    }

    fn fork<'a>(
        &'a self,
        session: &'a str,
        fork: &'a str,
        title: &'a str,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let (session, fork, title) = (session.to_owned(), fork.to_owned(), title.to_owned());
        self.query(move |worker| {
            worker.attempt(|database| transcripts::fork(database, &session, &fork, &title))
        })
    }

    fn load<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<Vec<StoredItem>, StoreError>> {
        let session = session.to_owned();
        self.query(move |worker| worker.attempt(|database| transcripts::load(database, &session)))
    }

    fn append<'a>(
        &'a self,
        session: &'a str,
        items: Vec<NewItem>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let session = session.to_owned();
        self.query(move |worker| {
            worker.attempt(|database| transcripts::append(database, &session, &items))
        })
    }

    fn add_waiting(&self, session: &str, message: WaitingMessage) {
        let session = session.to_owned();
        self.start_worker_if_needed(self.queue.query(Box::new(move |worker| {
            // If this fails, the message is still in memory, and is lost only if the process is killed as well.
            worker.attempt(|database| transcripts::add_waiting(database, &session, &message)).ok();
        })));
    }

    fn remove_waiting(&self, session: &str, id: &str) {
        let (session, id) = (session.to_owned(), id.to_owned());
        self.start_worker_if_needed(self.queue.query(Box::new(move |worker| {
            // A message that cannot be removed is offered again.
            worker.attempt(|database| transcripts::remove_waiting(database, &session, &id)).ok();
        })));
    }

    fn waiting<'a>(
        &'a self,
        session: &'a str,
    ) -> BoxFuture<'a, Result<Vec<WaitingMessage>, StoreError>> {
        let session = session.to_owned();
        self.query(move |worker| {
            worker.attempt(|database| transcripts::waiting(database, &session))
        })
    }

    fn record_request(&self, session: &str, request: RequestRecord) {
        let session = session.to_owned();
        self.start_worker_if_needed(self.queue.query(Box::new(move |worker| {
            // Statistics may lack a request; nothing else depends on it.
            worker.attempt(|database| requests::record(database, &session, &request)).ok();
        })));
    }

    fn totals<'a>(
        &'a self,
        of: TotalsOf<'a>,
    ) -> BoxFuture<'a, Result<Vec<ModelTotals>, StoreError>> {
        let (session, root) = match of {
            TotalsOf::Session(session) => (Some(session.to_owned()), None),
            TotalsOf::Folder(root) => (None, Some(root.to_owned())),
        };
        self.query(move |worker| {
            worker
                .attempt(|database| requests::totals(database, session.as_deref(), root.as_deref()))
        })
    }

    fn info<'a>(
        &'a self,
        session: &'a str,
    ) -> BoxFuture<'a, Result<Option<TranscriptInfo>, StoreError>> {
        let session = session.to_owned();
        self.query(move |worker| worker.attempt(|database| transcripts::info(database, &session)))
    }

    fn list<'a>(
        &'a self,
        root: Option<&'a Path>,
        max: usize,
    ) -> BoxFuture<'a, Result<Vec<TranscriptInfo>, StoreError>> {
        let root = root.map(Path::to_owned);
        self.query(move |worker| {
            worker.attempt(|database| transcripts::list(database, root.as_deref(), max))
        })
    }

    fn search<'a>(
        &'a self,
        root: &'a Path,
        words: &'a str,
        max: usize,
    ) -> BoxFuture<'a, Result<Vec<SearchHit>, StoreError>> {
        let (root, words) = (root.to_owned(), words.to_owned());
        self.query(move |worker| {
            worker.attempt(|database| transcripts::search(database, &root, &words, max))
        })
    }

    fn delete<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<bool, StoreError>> {
        let session = session.to_owned();
        self.query(move |worker| worker.attempt(|database| transcripts::delete(database, &session)))
    }
}

/// Returns the milliseconds since the Unix epoch.
fn now() -> i64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX)
}

/// Converts to SQLite's signed integers. Values above `i64::MAX` do not occur in practice and are reduced to it.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

#[cfg(test)]
mod tests;
