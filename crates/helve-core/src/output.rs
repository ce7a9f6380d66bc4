//! What a tool returns: output or an error.

use std::collections::BTreeMap;
use std::path::PathBuf;

use helve_text::cut::Keep;
use serde_json::{Map, Value};

/// What a tool returns.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolOutput {
    /// A short title for a person: the path, the command.
    pub title: String,
    pub content: Vec<Content>,
    /// For programs; never shown to the model.
    pub metadata: Map<String, Value>,
    /// Which end matters when the text is too long.
    pub keep: Keep,
    /// Where the full output is, if the tool or the engine saved it.
    pub saved: Option<Saved>,
}

impl ToolOutput {
    pub fn text(title: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            content: vec![Content::Text(text.into())],
            metadata: Map::new(),
            keep: Keep::Head,
            saved: None,
        }
    }

    pub fn keep(mut self, keep: Keep) -> Self {
        self.keep = keep;
        self
    }

    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.metadata.insert(key.into(), value.into());
        self
    }

    /// All text, as a model would read it.
    pub fn joined(&self) -> String {
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
    /// An attachment: an image, a PDF.
    Media {
        mime: String,
        data: bytes::Bytes,
    },
    Link {
        uri: String,
        name: String,
    },
}

/// A failure: a kind for code, a message for the model, the next step.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    pub kind: ErrorKind,
    pub message: String,
    pub hint: Option<String>,
    /// For programs: the state a streamed call had reached, the problems found.
    pub metadata: BTreeMap<String, Value>,
}

impl ToolError {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None, metadata: BTreeMap::new() }
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// What the model reads: the message and the next step.
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
    /// The file is not what the call expected.
    Stale,
    Denied,
    Cancelled,
    TimedOut,
    Failed,
    /// `helve why`: judged, not run.
    Explained,
}

/// An output that was saved in full: a file for people and for `read`, an id for links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    pub id: String,
    pub path: PathBuf,
    pub bytes: u64,
}
