//! Stored transcripts of sessions. The agent defines what an item contains; here it is JSON text with a position.

use std::any::Any;
use std::path::{Path, PathBuf};

use crate::BoxFuture;
use crate::event::Millis;
use crate::store::StoreError;

/// An item of a transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredItem {
    /// The position of the item, which is larger than that of every earlier item of the session.
    pub seq: u64,
    pub json: String,
}

/// An item to be appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewItem {
    pub stored: StoredItem,
    /// The text that a search looks at; empty if a search cannot find the item.
    pub words: String,
    /// The id of the waiting message that the item delivers. Storing the item removes that message from the waiting
    /// ones.
    pub delivered_message: Option<String>,
}

/// A person's message that the model has not received yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingMessage {
    pub id: String,
    pub delivery: Delivery,
    pub text: String,
}

/// When a waiting message reaches the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// With the next request.
    Steer,
    /// When the turn would otherwise end.
    Queue,
}

/// A session that has a transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranscriptInfo {
    pub session: String,
    pub root: PathBuf,
    pub title: String,
    pub created: Millis,
    pub updated: Millis,
    /// Set if the session began as a copy of another one.
    pub fork: Option<ForkOrigin>,
    /// Set for a sub-agent's session: the session that started it.
    pub parent: Option<String>,
}

/// Where the first items of a fork come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForkOrigin {
    pub session: String,
    /// The position of the last item that was copied.
    pub last: u64,
}

/// What one request to a model used.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestRecord {
    pub provider: String,
    pub model: String,
    pub at: Millis,
    pub milliseconds: u64,
    pub tokens: TokenCounts,
    /// Whether the tokens are estimated, because the provider did not report them.
    pub is_estimated: bool,
    /// In dollars; `None` if the price is not known.
    pub cost: Option<f64>,
}

/// Tokens of requests. No token is counted twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenCounts {
    pub input: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    pub output: u64,
    pub reasoning: u64,
}

impl TokenCounts {
    pub fn plus(&self, other: &TokenCounts) -> TokenCounts {
        TokenCounts {
            input: self.input.saturating_add(other.input),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            output: self.output.saturating_add(other.output),
            reasoning: self.reasoning.saturating_add(other.reasoning),
        }
    }

    pub fn total(&self) -> u64 {
        let TokenCounts { input, cache_read, cache_write, output, reasoning } = *self;
        let others = [cache_read, cache_write, output, reasoning];
        others.iter().fold(input, |sum, tokens| sum.saturating_add(*tokens))
    }
}

/// The requests of a session to one model, added up.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelTotals {
    pub session: String,
    pub provider: String,
    pub model: String,
    pub requests: u64,
    pub tokens: TokenCounts,
    /// Requests whose tokens are estimated.
    pub estimated: u64,
    /// In dollars, of the requests whose price is known.
    pub cost: f64,
    /// Requests whose price is not known.
    pub unpriced: u64,
    pub milliseconds: u64,
}

/// An item that contains the words of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchHit {
    pub session: String,
    pub title: String,
    pub seq: u64,
    pub at: Millis,
    /// The text around the first word found.
    pub excerpt: String,
}

/// The right to append to a session. Dropping it gives the right back, and so does the end of the process.
pub struct WriterLock {
    _held: Box<dyn Any + Send + Sync>,
}

impl WriterLock {
    /// A lock that is held until `held` is dropped.
    pub fn new(held: impl Any + Send + Sync) -> Self {
        Self { _held: Box::new(held) }
    }
}

/// The result of an attempt to become a session's writer.
pub enum WriterClaim {
    Granted(WriterLock),
    /// Another process writes to the session. `process` is its id, if known.
    Taken {
        process: Option<u32>,
    },
}

/// Keeps transcripts. A session has one writer at a time.
pub trait Transcripts: Send + Sync {
    /// Claims the right to append to a session.
    fn claim<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<WriterClaim, StoreError>>;

    /// Adds a session to the list if it is not there yet. A sub-agent's session has a `parent`.
    fn register<'a>(
        &'a self,
        session: &'a str,
        root: &'a Path,
        title: &'a str,
        parent: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Changes a session's title.
    fn set_title<'a>(
        &'a self,
        session: &'a str,
        title: &'a str,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Copies all items and slots of a session to a new session. The records of its requests are not copied. Returns
    /// false if there is no such session, or if the new one exists already.
    fn fork<'a>(
        &'a self,
        session: &'a str,
        fork: &'a str,
        title: &'a str,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Returns all items of a session, oldest first.
    fn load<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<Vec<StoredItem>, StoreError>>;

    /// Appends items. They are stored when the future resolves.
    fn append<'a>(
        &'a self,
        session: &'a str,
        items: Vec<NewItem>,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Stores a message that waits for its delivery. Returns at once; later writes are made after this one.
    fn add_waiting(&self, session: &str, message: WaitingMessage);

    /// Removes a waiting message that will not be delivered. Returns at once.
    fn remove_waiting(&self, session: &str, id: &str);

    /// Returns the messages that wait, oldest first.
    fn waiting<'a>(
        &'a self,
        session: &'a str,
    ) -> BoxFuture<'a, Result<Vec<WaitingMessage>, StoreError>>;

    /// Records what a request used. Never waits.
    fn record_request(&self, session: &str, request: RequestRecord);

    /// Returns what the requests of a session, or of all sessions of a folder, used.
    fn totals<'a>(
        &'a self,
        of: TotalsOf<'a>,
    ) -> BoxFuture<'a, Result<Vec<ModelTotals>, StoreError>>;

    /// Returns the entry of a session; `None` if it is not in the list.
    fn info<'a>(
        &'a self,
        session: &'a str,
    ) -> BoxFuture<'a, Result<Option<TranscriptInfo>, StoreError>>;

    /// Returns the sessions of a folder, or of all folders, newest first, without those of sub-agents.
    fn list<'a>(
        &'a self,
        root: Option<&'a Path>,
        max: usize,
    ) -> BoxFuture<'a, Result<Vec<TranscriptInfo>, StoreError>>;

    /// Returns the items of a folder's sessions that contain all of these words, best first.
    fn search<'a>(
        &'a self,
        root: &'a Path,
        words: &'a str,
        max: usize,
    ) -> BoxFuture<'a, Result<Vec<SearchHit>, StoreError>>;

    /// Removes the transcript of a session and those of its sub-agents. Returns whether there was one.
    fn delete<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<bool, StoreError>>;
}

/// Whose requests are added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TotalsOf<'a> {
    Session(&'a str),
    Folder(&'a Path),
}
