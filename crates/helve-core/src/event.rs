//! Events of calls. The state of a call is a fold over its events.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::sync::broadcast;

use crate::call::CallRef;
use crate::output::ErrorKind;

/// Milliseconds since the Unix epoch.
pub type Millis = u64;

pub fn now() -> Millis {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
}

/// An event of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub call: Arc<str>,
    /// The outermost call: this call itself, or the one it is nested in.
    pub root_call: Arc<str>,
    pub session: Arc<str>,
    pub at: Millis,
    pub kind: EventKind,
}

impl Event {
    /// Makes an event with the current time.
    pub fn now(call: &CallRef, kind: EventKind) -> Self {
        Self {
            call: call.id.clone(),
            root_call: call.root_call.clone(),
            session: call.session.clone(),
            at: now(),
            kind,
        }
    }
}

/// What happened to a call.
#[derive(Clone, Debug, PartialEq)]
pub enum EventKind {
    Started {
        tool: String,
        /// Id of the call that this one is nested in.
        parent: Option<String>,
    },
    /// The arguments are valid and the tool starts.
    Running {
        input: Arc<Value>,
    },
    Progress(Progress),
    /// A file was written, moved or removed.
    Edited {
        path: PathBuf,
    },
    /// A person was asked.
    Asked {
        summary: String,
    },
    /// The person answered. `yes` means that they approved an ask, or did not skip a question.
    Answered {
        yes: bool,
    },
    Finished(CallOutcome),
}

/// Progress of a running call. Fields that are set replace their previous values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    pub title: Option<String>,
    pub metadata: Map<String, Value>,
    /// Text for a person who watches the call.
    pub text: Option<String>,
    /// Units done, and the total if it is known.
    pub units_done: Option<(u64, Option<u64>)>,
}

impl Progress {
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), ..Self::default() }
    }
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq)]
pub enum CallOutcome {
    Completed { title: String, metadata: Map<String, Value>, output: String },
    Failed { kind: ErrorKind, error: String },
}

/// How far a call has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CallStatus {
    Pending,
    Running,
    Completed,
    Error,
}

/// The state of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallState {
    pub id: String,
    pub session: String,
    pub parent: Option<String>,
    pub tool: String,
    pub status: CallStatus,
    pub input: Value,
    pub title: String,
    pub metadata: Map<String, Value>,
    pub output: Option<String>,
    pub error: Option<String>,
    pub created: Millis,
    /// When the tool started; `None` if the arguments were refused.
    pub started: Option<Millis>,
    pub ended: Option<Millis>,
}

/// The value of [`CallState::error`] for a call that was running when Helve crashed.
pub const INTERRUPTED: &str = "interrupted";

impl CallState {
    /// Returns the state after the first event of a call; `None` if the event is not the first.
    pub fn begin(event: &Event) -> Option<Self> {
        let EventKind::Started { tool, parent } = &event.kind else { return None };
        Some(Self {
            id: event.call.to_string(),
            session: event.session.to_string(),
            parent: parent.clone(),
            tool: tool.clone(),
            status: CallStatus::Pending,
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

    /// Applies the next event. A call that has ended does not change any more.
    pub fn fold(&mut self, event: &Event) {
        if matches!(self.status, CallStatus::Completed | CallStatus::Error) {
            return;
        }
        match &event.kind {
            EventKind::Started { .. }
            | EventKind::Edited { .. }
            | EventKind::Asked { .. }
            | EventKind::Answered { .. } => {}
            EventKind::Running { input } => {
                self.status = CallStatus::Running;
                self.input = Value::clone(input);
                self.started = Some(event.at);
            }
            EventKind::Progress(progress) => {
                if let Some(title) = &progress.title {
                    self.title.clone_from(title);
                }
                let entries = progress.metadata.iter();
                self.metadata.extend(entries.map(|(key, value)| (key.clone(), value.clone())));
            }
            EventKind::Finished(outcome) => {
                self.ended = Some(event.at);
                self.finish(outcome);
            }
        }
    }

    fn finish(&mut self, outcome: &CallOutcome) {
        match outcome {
            CallOutcome::Completed { title, metadata, output } => {
                self.status = CallStatus::Completed;
                self.title.clone_from(title);
                self.metadata.clone_from(metadata);
                self.output = Some(output.clone());
            }
            CallOutcome::Failed { error, .. } => {
                self.status = CallStatus::Error;
                self.error = Some(error.clone());
            }
        }
    }
}

/// Sends events to all subscribers without waiting. A subscriber that is too slow misses events and learns how many.
#[derive(Clone, Debug)]
pub struct Events(broadcast::Sender<Event>);

/// Number of events that a subscriber may lag behind before it misses some.
const QUEUE_LENGTH: usize = 1024;

impl Default for Events {
    fn default() -> Self {
        Self(broadcast::Sender::new(QUEUE_LENGTH))
    }
}

impl Events {
    pub fn subscribe(&self) -> Subscription {
        Subscription(self.0.subscribe())
    }

    pub(crate) fn send(&self, event: Event) {
        // Having no subscriber is not an error.
        self.0.send(event).ok();
    }
}

/// The queue of one subscriber.
#[derive(Debug)]
pub struct Subscription(broadcast::Receiver<Event>);

/// What a subscriber receives.
#[derive(Clone, Debug, PartialEq)]
pub enum EventDelivery {
    Event(Event),
    /// The number of events dropped because the subscriber was slow.
    Missed(u64),
}

impl Subscription {
    /// Returns the next event; `None` when there will be no more.
    pub async fn next(&mut self) -> Option<EventDelivery> {
        match self.0.recv().await {
            Ok(event) => Some(EventDelivery::Event(event)),
            Err(broadcast::error::RecvError::Lagged(missed)) => Some(EventDelivery::Missed(missed)),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}
