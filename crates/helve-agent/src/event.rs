//! Events that report the progress of a turn.

use std::time::Duration;

use helve_core::agents::ChildReport;
use helve_core::output::ErrorKind;

use crate::reply::Usage;

/// An event during a turn.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentEvent {
    /// A request is sent. `attempt` counts from 1 for each request.
    Request {
        step: u32,
        attempt: u32,
    },
    /// A piece of the answer. If the attempt fails later, its pieces must be discarded.
    Text(String),
    Reasoning(String),
    /// A request failed, and is sent again after `wait`.
    Retry {
        attempt: u32,
        wait: Duration,
        reason: String,
    },
    /// A call begins.
    Call {
        id: String,
        name: String,
        arguments: String,
    },
    /// A running call has something to show.
    Progress {
        id: String,
        text: String,
    },
    /// A person is asked about a call.
    Asked {
        id: String,
        question: String,
    },
    /// A call ended.
    Result {
        id: String,
        name: String,
        title: String,
        error: Option<(ErrorKind, String)>,
        took: Duration,
        /// What the call changed, as a unified diff.
        diff: Option<String>,
        /// Handle of a process that the call left running.
        process: Option<String>,
    },
    /// What a request used.
    Usage {
        tokens: Usage,
        /// Whether the tokens are estimated, because the provider did not report them.
        is_estimated: bool,
        /// In dollars; `None` if the price is not known.
        cost: Option<f64>,
    },
    /// A message for the person.
    Notice(String),
    /// The to-do list has changed.
    Todos(Vec<TodoEntry>),
    /// Something happened in a sub-agent.
    Child {
        /// The id of the task.
        task: String,
        agent: String,
        event: Box<AgentEvent>,
    },
    /// A sub-agent has ended.
    ChildEnded(Box<ChildReport>),
}

/// An entry of the to-do list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TodoEntry {
    pub content: String,
    /// `pending`, `in_progress`, `completed` or `cancelled`.
    pub status: String,
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq)]
pub enum TurnEnd {
    /// The model answered.
    Answered,
    /// The provider failed, or the session could not be stored.
    Failed(String),
    /// A call was refused by a person, or because nobody could be asked, and the work is not complete.
    NotAllowed,
    /// A limit was reached.
    OverBudget(BudgetKind),
    /// The model refused to answer.
    Refused,
    /// The model sent an empty reply twice.
    NoAnswer,
    /// The model made the same call again and again.
    Loop,
    Aborted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetKind {
    Steps,
    Tokens,
    Cost,
    Time,
    /// Too many replies were cut at the output limit in the middle of a call.
    OutputLength,
}
