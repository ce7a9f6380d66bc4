//! Messages between Helve and the helper process: one JSON object per line.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::bundle::ScriptError;

/// Maximum length of a message in bytes.
pub(crate) const MAX_MESSAGE: usize = 16 << 20;

/// A message from the helper process.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Incoming {
    /// Id of the request from Helve that this message answers or belongs to.
    pub(crate) id: Option<u64>,
    /// The answer to the request; it may be `null`.
    #[serde(deserialize_with = "some_even_if_null")]
    pub(crate) ok: Option<Value>,
    /// The error, if the request failed.
    pub(crate) error: Option<ThrownError>,
    /// The process has read the request, so code of a tool or plugin may be running.
    pub(crate) begun: bool,
    /// Progress that a tool reports during a call.
    pub(crate) metadata: Option<ReportedMetadata>,
    /// Set if this message is a request of a tool or plugin to Helve: its number, which Helve's answer repeats.
    pub(crate) request: Option<u64>,
    /// What `request` is about: `ask` for a permission, `client` for a request through the `client` object.
    pub(crate) method: Option<String>,
    pub(crate) params: Value,
    /// The process is about to end because of this error.
    pub(crate) fatal: Option<ThrownError>,
    /// In the first message of the process: the version of this protocol.
    pub(crate) hello: Option<u64>,
    /// In the first message of the process: `bun` or `node`, and its version.
    pub(crate) runtime: Option<String>,
    pub(crate) version: Option<String>,
}

/// Distinguishes `null` from a missing field.
fn some_even_if_null<'de, D: serde::Deserializer<'de>>(
    input: D,
) -> Result<Option<Value>, D::Error> {
    Value::deserialize(input).map(Some)
}

/// An error that JavaScript code threw.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct ThrownError {
    pub(crate) message: String,
    pub(crate) stack: String,
}

/// What a tool passed to the function `metadata`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ReportedMetadata {
    pub(crate) title: Option<String>,
    pub(crate) metadata: Option<Map<String, Value>>,
}

/// The answer to a call of a tool.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct CallAnswer {
    pub(crate) title: Option<String>,
    pub(crate) output: String,
    pub(crate) metadata: Option<Map<String, Value>>,
    pub(crate) attachments: Option<Vec<ReportedAttachment>>,
    /// Arguments that do not match the tool's schema.
    pub(crate) invalid: Option<Vec<InvalidArgument>>,
}

/// A file that a tool adds to its answer, as a `data:` URL.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ReportedAttachment {
    pub(crate) mime: String,
    pub(crate) url: String,
}

/// An argument that does not match the schema, and why.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct InvalidArgument {
    pub(crate) path: String,
    pub(crate) message: String,
}

/// The answer to a request to load a plugin.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct LoadedPlugin {
    pub(crate) hooks: Vec<String>,
    /// Names of members that the plugin provides and Helve does not use, such as `auth`.
    pub(crate) unused: Vec<String>,
    pub(crate) tools: Vec<crate::cache::ListedTool>,
    pub(crate) problems: Vec<ExportProblem>,
}

/// An error that an export of a plugin threw.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ExportProblem {
    pub(crate) export: String,
    pub(crate) message: String,
    pub(crate) stack: String,
}

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RequestError {
    /// The tool or plugin threw an error.
    #[error("{}", .0.message)]
    Thrown(ThrownError),
    /// The helper process ended or could not be started.
    #[error("{0}")]
    Process(String),
    /// The helper process ended before it read the request. The request may be repeated in another process.
    #[error("{0}")]
    NotBegun(String),
    #[error("it did not answer within {} s", .0.as_secs_f64())]
    TimedOut(std::time::Duration),
    /// The sources cannot be read or loaded, or they changed since they were trusted.
    #[error("{0}")]
    Script(ScriptError),
    #[error("the call was aborted")]
    Aborted,
}
