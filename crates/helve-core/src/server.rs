//! MCP servers as the spine knows them: what can go wrong with one, and what they hold besides tools.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Map, Value};

use crate::BoxFuture;

/// Why a server did not do its part. A value: the dialect words it for a model, its display for a person.
///
/// Whoever makes one has taken the secrets of the server's configuration out of every text in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServerError {
    #[error("no such server is set up")]
    Unknown { known: Vec<String> },
    #[error("it is switched off")]
    Off,
    #[error("the folder that brings it is not trusted")]
    Untrusted,
    #[error("it could not be started: {0}")]
    NotStarted(String),
    #[error("it could not be reached: {0}")]
    Unreachable(String),
    #[error("it wants a login{}", said(.how))]
    NeedsLogin { how: String },
    #[error("it did not answer to {step} within {} s", .after.as_secs_f64())]
    NoAnswer { step: ServerStep, after: Duration },
    #[error("it ended{}", said(.why))]
    Ended { why: String },
    #[error("it sent a message of more than {most} bytes, and the connection was closed")]
    TooLarge { most: usize },
    /// It failed so often that it is left alone for a while.
    #[error("it failed {tries} times in a row, the last time because {last}")]
    GaveUp { tries: u32, last: Box<ServerError> },
    /// It answered with an error of the protocol.
    #[error("it answered with error {code}: {message}")]
    Answered { code: i64, message: String },
    #[error("it answered with something else than what was asked")]
    Nonsense,
    /// The tool is not what it was when it was offered, and a yes to that one is no yes to this one.
    #[error("its tool {tool} has changed")]
    Changed { tool: String },
    #[error("it holds no resources")]
    NoResources { others: Vec<String> },
}

/// What a server was doing when it was last heard of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerStep {
    Start,
    List,
    Call,
    Resource,
}

impl std::fmt::Display for ServerStep {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            ServerStep::Start => "`initialize`",
            ServerStep::List => "`tools/list`",
            ServerStep::Call => "the call",
            ServerStep::Resource => "the request for resources",
        })
    }
}

fn said(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(": {text}") }
}

/// What the servers of a workspace hold besides tools.
pub trait Resources: Send + Sync {
    /// The servers that hold resources, once those that are starting have started.
    fn holders(&self) -> BoxFuture<'_, Vec<String>>;

    /// What one server lists, each entry as the server describes it.
    fn list<'a>(
        &'a self,
        server: &'a str,
        what: ResourceKind,
    ) -> BoxFuture<'a, Result<Vec<Map<String, Value>>, ServerError>>;

    fn read<'a>(
        &'a self,
        server: &'a str,
        uri: &'a str,
    ) -> BoxFuture<'a, Result<Vec<ResourceItem>, ServerError>>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceKind {
    Resources,
    Templates,
}

/// One piece of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceItem {
    pub uri: String,
    pub mime: Option<String>,
    pub body: ResourceBody,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResourceBody {
    Text(String),
    Bytes(Bytes),
}
