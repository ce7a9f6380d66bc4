//! What happens to calls, as events; the state of a call is a fold over them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::sync::broadcast;

use crate::call::CallRef;
use crate::output::ErrorKind;

/// Milliseconds since 1970.
pub type Millis = u64;

pub(crate) fn now() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Something that happened to a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub call: Arc<str>,
    /// The call that came over the wire, of which this one may be a part.
    pub root: Arc<str>,
    pub session: Arc<str>,
    pub at: Millis,
    pub what: What,
}

impl Event {
    /// Something that happens to a call now.
    pub fn now(call: &CallRef, what: What) -> Self {
        Self {
            call: call.id.clone(),
            root: call.root.clone(),
            session: call.session.clone(),
            at: now(),
            what,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum What {
    Started {
        tool: String,
        parent: Option<String>,
    },
    /// The arguments fit and the tool runs.
    Running {
        input: Arc<Value>,
    },
    Progress(Progress),
    /// A file was written, moved or removed.
    Edited {
        path: PathBuf,
    },
    /// A person is being asked.
    Asked {
        summary: String,
    },
    Answered {
        yes: bool,
    },
    Finished(Outcome),
}

/// News from a running call. What is given replaces what was there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    pub title: Option<String>,
    pub metadata: Map<String, Value>,
    /// Text for a person who watches.
    pub text: Option<String>,
    /// How much of how much is done.
    pub done: Option<(u64, Option<u64>)>,
}

impl Progress {
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), ..Self::default() }
    }
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    Completed { title: String, metadata: Map<String, Value>, output: String },
    Failed { kind: ErrorKind, error: String },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Pending,
    Running,
    Completed,
    Error,
}

/// Where a call stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallState {
    pub id: String,
    pub session: String,
    pub parent: Option<String>,
    pub tool: String,
    pub status: Status,
    pub input: Value,
    pub title: String,
    pub metadata: Map<String, Value>,
    pub output: Option<String>,
    pub error: Option<String>,
    pub created: Millis,
    pub started: Option<Millis>,
    pub ended: Option<Millis>,
}

/// The word in [`CallState::error`] for a call that a crash left running.
pub const INTERRUPTED: &str = "interrupted";

impl CallState {
    /// The state after the first event of a call; `None` if the event is not the first.
    pub fn begin(event: &Event) -> Option<Self> {
        let What::Started { tool, parent } = &event.what else { return None };
        Some(Self {
            id: event.call.to_string(),
            session: event.session.to_string(),
            parent: parent.clone(),
            tool: tool.clone(),
            status: Status::Pending,
            input: Value::Null,
            title: String::new(),
            metadata: Map::new(),
            output: None,
            error: None,
            created: event.at,
            started: None,
            ended: None,
        })
    }

    /// Moves on with the next event. A call that has ended stays as it is.
    pub fn fold(&mut self, event: &Event) {
        if matches!(self.status, Status::Completed | Status::Error) {
            return;
        }
        match &event.what {
            What::Started { .. }
            | What::Edited { .. }
            | What::Asked { .. }
            | What::Answered { .. } => {}
            What::Running { input } => {
                self.status = Status::Running;
                self.input = Value::clone(input);
                self.started = Some(event.at);
            }
            What::Progress(progress) => {
                if let Some(title) = &progress.title {
                    self.title.clone_from(title);
                }
                let news = progress.metadata.iter();
                self.metadata.extend(news.map(|(key, value)| (key.clone(), value.clone())));
            }
            What::Finished(outcome) => {
                self.ended = Some(event.at);
                self.finish(outcome);
            }
        }
    }

    fn finish(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Completed { title, metadata, output } => {
                self.status = Status::Completed;
                self.title.clone_from(title);
                self.metadata.clone_from(metadata);
                self.output = Some(output.clone());
            }
            Outcome::Failed { error, .. } => {
                self.status = Status::Error;
                self.error = Some(error.clone());
            }
        }
    }
}

/// The bus. Sending never waits: a subscriber that lags misses events and is told how many.
#[derive(Clone, Debug)]
pub struct Events(broadcast::Sender<Event>);

/// How many events a subscriber may lag behind.
const QUEUE: usize = 1024;

impl Default for Events {
    fn default() -> Self {
        Self(broadcast::Sender::new(QUEUE))
    }
}

impl Events {
    pub fn subscribe(&self) -> Subscription {
        Subscription(self.0.subscribe())
    }

    pub(crate) fn send(&self, event: Event) {
        // No subscriber is no failure.
        self.0.send(event).ok();
    }
}

/// One subscriber's queue.
#[derive(Debug)]
pub struct Subscription(broadcast::Receiver<Event>);

/// What a subscriber receives.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    Event(Event),
    /// This many were dropped because the subscriber was slow.
    Missed(u64),
}

impl Subscription {
    /// The next event; `None` when the bus is gone.
    pub async fn next(&mut self) -> Option<News> {
        match self.0.recv().await {
            Ok(event) => Some(News::Event(event)),
            Err(broadcast::error::RecvError::Lagged(missed)) => Some(News::Missed(missed)),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}
