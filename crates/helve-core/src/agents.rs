//! The interface through which tools start sub-agents and follow their progress.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::BoxFuture;
use crate::session::{ParentCall, Session};
use crate::spec::Caller;

/// Runs sub-agents. Each works in a session of its own, a child of the session that starts it.
pub trait Agents: Send + Sync {
    /// The agents that a caller may start, sorted by name. Those that rules deny are left out.
    fn list(&self, caller: &Caller) -> Vec<AgentInfo>;

    /// Starts a sub-agent, or queues it if too many are running. Returns the id of its task. Cancelling `cancel` aborts
    /// the sub-agent.
    fn start<'a>(
        &'a self,
        parent: ParentCall,
        spec: ChildSpec,
        cancel: CancellationToken,
    ) -> BoxFuture<'a, Result<String, ChildError>>;

    /// Waits until a task has ended, for at most `timeout`, and returns its state.
    fn wait<'a>(
        &'a self,
        session: &'a Session,
        task: &'a str,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<ChildReport, ChildError>>;

    /// The tasks that a session has started in this process, oldest first.
    fn tasks<'a>(&'a self, session: &'a Session) -> BoxFuture<'a, Vec<ChildReport>>;

    /// Aborts a task. Does nothing if it has ended.
    fn abort(&self, session: &Session, task: &str) -> Result<(), ChildError>;
}

/// An agent that can be started as a sub-agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentInfo {
    pub name: String,
    pub description: String,
}

/// The task for a sub-agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildSpec {
    pub agent: String,
    /// A few words for people.
    pub description: String,
    pub prompt: String,
    /// Id of the task to resume; `None` starts a new one.
    pub resumes: Option<String>,
    /// Whether the sub-agent runs in the background: the model that started it continues with other work, and is
    /// notified when the sub-agent has ended.
    pub in_background: bool,
}

/// The state of a task and its results so far.
#[derive(Clone, Debug, PartialEq)]
pub struct ChildReport {
    /// The id of the task, which is the id of its session.
    pub task: String,
    pub agent: String,
    pub description: String,
    pub state: ChildState,
    /// The text of its last message.
    pub text: String,
    /// The files that the sub-agent changed.
    pub files: Vec<String>,
    /// Number of requests to the model.
    pub steps: u32,
    /// Number of tool calls that the sub-agent made.
    pub calls: u32,
    /// What the sub-agent is doing now, in a few words, such as `read src/main.rs`.
    pub activity: String,
    pub tokens: u64,
    /// In dollars; `None` if the price is not known.
    pub cost: Option<f64>,
    pub elapsed: Duration,
}

/// The state of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChildState {
    /// The task waits until fewer sub-agents are running.
    Queued,
    Running,
    Completed,
    /// The sub-agent ended before its work was complete, with or without an answer. The text says why.
    Incomplete(String),
    Failed(String),
    Aborted,
}

impl ChildState {
    pub fn has_ended(&self) -> bool {
        match self {
            ChildState::Queued | ChildState::Running => false,
            ChildState::Completed
            | ChildState::Incomplete(_)
            | ChildState::Failed(_)
            | ChildState::Aborted => true,
        }
    }
}

/// Why a task cannot be started or found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChildError {
    UnknownAgent {
        name: String,
        /// Names of the agents that can be started.
        known: Vec<String>,
    },
    /// Sub-agents may not be nested this deeply.
    TooDeep {
        limit: u64,
    },
    /// Too many tasks were started.
    TooMany {
        limit: usize,
    },
    /// No task of this session or of its parent sessions has this id.
    UnknownTask {
        task: String,
        /// Ids of the tasks that exist.
        known: Vec<String>,
    },
    StillRunning {
        task: String,
    },
    /// The model cannot be used, or the session cannot be opened.
    Unavailable(String),
}
