//! What can go wrong with a request to a model, and whether trying again may help.

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
    /// For a person. Contains no key.
    pub message: String,
    /// How long the server asks to wait.
    pub retry_after: Option<Duration>,
    /// What the server said about the size of the context window.
    pub overflow: Option<OverflowHint>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The key is missing or wrong.
    Auth,
    Forbidden,
    NotFound,
    /// The account has nothing left, or the wait is too long.
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
    /// No byte arrived in time.
    Idle,
    /// Bytes arrived, but nothing of the reply.
    Stalled,
    /// The stream ended before the reply did.
    Cut,
    /// The response does not follow the protocol.
    Protocol,
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
            | FailureKind::Protocol => false,
        }
    }
}

impl Failure {
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_after: None, overflow: None }
    }
}
