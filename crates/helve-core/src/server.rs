//! Errors and resources of MCP servers.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Map, Value};

use crate::BoxFuture;
use crate::validate::ArgumentProblem;

/// Why a server failed. `Display` is for people; dialects have their own messages for models.
///
/// The texts contain no secrets from the server's configuration.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ServerError {
    #[error("no such server is configured")]
    Unknown { known: Vec<String> },
    #[error("the server is switched off")]
    Off,
    #[error("the folder that configures it is not trusted")]
    Untrusted,
    #[error("it could not be started: {0}")]
    NotStarted(String),
    #[error("it could not be reached: {0}")]
    Unreachable(String),
    #[error("it requires a login{}", detail_suffix(.how))]
    NeedsLogin { how: String },
    #[error("no answer to {step} within {} s", .after.as_secs_f64())]
    NoAnswer { step: ServerStep, after: Duration },
    #[error("it exited{}", detail_suffix(.why))]
    Ended { why: String },
    #[error("it sent a message larger than {limit} bytes, and the connection was closed")]
    TooLarge { limit: usize },
    /// The server failed so often that it is not started again for a while.
    #[error("it failed {tries} times in a row; last error: {last}")]
    RestartLimitReached { tries: u32, last: Box<ServerError> },
    /// The server answered with a protocol error.
    #[error("it answered with error {code}: {message}")]
    ErrorReply { code: i64, message: String },
    #[error("its answer does not match the request")]
    InvalidReply,
    /// The server's tool is no longer the one that was offered, so an approval does not cover it.
    #[error("its tool {tool} has changed")]
    Changed { tool: String },
    /// The result of a tool does not match the schema that the server gave for it.
    #[error("the result of its tool {tool} does not match that tool's output schema")]
    WrongResult { tool: String, problems: Vec<ArgumentProblem>, text: String },
    #[error("it has no resources")]
    NoResources { others: Vec<String> },
}

/// The operation during which a server failed.
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

fn detail_suffix(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(": {text}") }
}

/// The resources of a workspace's servers.
pub trait Resources: Send + Sync {
    /// Lists the servers that have resources. Waits for servers that are starting.
    fn server_names(&self) -> BoxFuture<'_, Vec<String>>;

    /// Lists a server's resources or templates, as the server describes them.
    fn list<'a>(
        &'a self,
        server: &'a str,
        what: ResourceKind,
    ) -> BoxFuture<'a, Result<Vec<Map<String, Value>>, ServerError>>;

    /// Reads a resource.
    fn read<'a>(
        &'a self,
        server: &'a str,
        uri: &'a str,
    ) -> BoxFuture<'a, Result<Vec<ResourceItem>, ServerError>>;
}

/// What to list: resources, or templates for their URIs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceKind {
    Resources,
    Templates,
}

/// One item of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceItem {
    pub uri: String,
    pub mime: Option<String>,
    pub body: ResourceBody,
}

/// The content of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResourceBody {
    Text(String),
    Bytes(Bytes),
}
