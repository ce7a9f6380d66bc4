//! What a tool returns: output or an error.

use std::collections::BTreeMap;
use std::path::PathBuf;

use helve_text::cut::Keep;
use serde_json::{Map, Value};

/// What a tool returns.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolOutput {
    /// A short title for a person, such as the path or the command.
    pub title: String,
    pub content: Vec<Content>,
    /// Facts for programs. The model does not see them.
    pub metadata: Map<String, Value>,
    /// Which part to keep if the text is too long.
    pub keep: Keep,
    /// Where the full output is, if the tool or the engine saved it.
    pub saved: Option<Saved>,
    /// Set if another agent takes over the conversation. A person has agreed to that.
    pub handover: Option<Handover>,
}

/// Another agent takes over the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handover {
    pub agent: String,
    /// The message that the agent begins with.
    pub message: String,
}

impl ToolOutput {
    pub fn text(title: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            content: vec![Content::Text(text.into())],
            metadata: Map::new(),
            keep: Keep::Head,
            saved: None,
            handover: None,
        }
    }

    pub fn keep(mut self, keep: Keep) -> Self {
        self.keep = keep;
        self
    }

    /// Adds an entry to the metadata.
    pub fn with_metadata(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.metadata.insert(key.into(), value.into());
        self
    }

    /// Returns all text pieces, joined by newlines.
    pub fn joined_text(&self) -> String {
        let mut all = String::new();
        for content in &self.content {
            if let Content::Text(text) = content {
                if !all.is_empty() {
                    all.push('\n');
                }
                all.push_str(text);
            }
        }
        all
    }
}

/// A piece of output.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    Text(String),
    /// An attachment, such as an image or a PDF.
    Media {
        mime: String,
        data: bytes::Bytes,
    },
    Link {
        uri: String,
        name: String,
    },
}

/// Why a call failed: a kind for code, a message for the model, and a hint with the next step.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    pub kind: ErrorKind,
    pub message: String,
    pub hint: Option<String>,
    /// The whole message for a person at a terminal, if it differs from that for the model.
    pub for_person: Option<String>,
    /// For programs, for example how far a streamed call got, or the list of problems.
    pub metadata: BTreeMap<String, Value>,
}

impl ToolError {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            hint: None,
            for_person: None,
            metadata: BTreeMap::new(),
        }
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub fn for_person(mut self, text: impl Into<String>) -> Self {
        self.for_person = Some(text.into());
        self
    }

    /// Returns the message followed by the hint, as the model reads it.
    pub fn full_message(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{}\n{hint}", self.message),
            None => self.message.clone(),
        }
    }
}

/// What went wrong, for code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    UnknownTool,
    InvalidArgs,
    NotFound,
    /// A file does not have the content that the call expected.
    Stale,
    /// A rule denies the call, or a person refused it and gave a reason, so that the model can try something else.
    Denied,
    /// A person refused the call without a reason. This ends the turn.
    Rejected,
    /// The call needs permission, and nobody answered the ask.
    Unanswered,
    Cancelled,
    TimedOut,
    Failed,
    /// For `helve why`: the call was judged and not run.
    #[serde(rename = "explained")]
    ExplainOnly,
}

/// An output that was saved in full. People and the `read` tool use its path, links use its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    pub id: String,
    pub path: PathBuf,
    pub bytes: u64,
}
