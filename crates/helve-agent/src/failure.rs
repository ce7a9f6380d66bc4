//! Failures of requests to models, and whether a retry may help.

use std::time::Duration;

mod classify;
mod error_body;

pub(crate) use classify::page_title;
pub use classify::{HttpResponse, OverflowHint};

/// A request that failed, or a stream that broke.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    pub kind: FailureKind,
    /// A message for the person, without the API key.
    pub message: String,
    /// How long the server asks to wait before the next attempt.
    pub retry_after: Option<Duration>,
    /// For [`FailureKind::Overflow`]: the sizes that the server named.
    pub overflow: Option<OverflowHint>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The API key is missing or wrong.
    Auth,
    Forbidden,
    NotFound,
    /// The quota of the account is used up, or the server asks for a very long wait.
    Quota,
    RateLimited,
    Overloaded,
    Server,
    /// The transcript does not fit into the context window.
    Overflow,
    /// The request has too many bytes.
    TooLarge,
    BadRequest,
    /// The provider refuses the content.
    Content,
    /// The connection failed.
    Transport,
    /// The server sent nothing for too long.
    Idle,
    /// The server kept the connection alive, but sent no piece of the reply for too long.
    Stalled,
    /// The stream ended before the reply was complete.
    Cut,
    /// The response does not follow the protocol.
    Protocol,
    /// A hook of the conversation failed; nothing was sent.
    Hook,
}

impl FailureKind {
    /// Whether the same request may succeed later.
    pub fn is_retriable(self) -> bool {
        match self {
            FailureKind::RateLimited
            | FailureKind::Overloaded
            | FailureKind::Server
            | FailureKind::Transport
            | FailureKind::Idle
            | FailureKind::Stalled
            | FailureKind::Cut => true,
            FailureKind::Auth
            | FailureKind::Forbidden
            | FailureKind::NotFound
            | FailureKind::Quota
            | FailureKind::Overflow
            | FailureKind::TooLarge
            | FailureKind::BadRequest
            | FailureKind::Content
            | FailureKind::Protocol
            | FailureKind::Hook => false,
        }
    }
}

impl Failure {
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_after: None, overflow: None }
    }
}
