//! A call: its arguments, its identity and its result.

use std::collections::HashMap;
use std::sync::Arc;

use helve_policy::{AskKey, Reply};

use crate::input::Input;
use crate::output::{ToolError, ToolOutput};

/// A call as it came from a model, a person or another call.
#[derive(Clone, Debug)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    pub input: Input,
    pub origin: Origin,
    pub mode: CallMode,
    /// Answers to asks, sent along with the call. A client that cannot wait for an ask repeats the call with the
    /// answer.
    pub answers: HashMap<AskKey, Reply>,
}

impl ToolCall {
    /// A model's call, with a new id.
    pub fn new(name: impl Into<String>, input: impl Into<Input>) -> Self {
        Self {
            id: format!("call_{}", uuid::Uuid::now_v7().simple()),
            name: name.into(),
            input: input.into(),
            origin: Origin::Model,
            mode: CallMode::Run,
            answers: HashMap::new(),
        }
    }
}

/// Whether a call takes effect or only shows what it would change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallMode {
    Run,
    /// The call only shows what it would change. It needs the permission to read the files, not to change them.
    Preview,
}

/// Who made a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    Model,
    /// A person, who need not be asked about their own call.
    Person,
    /// Another call, in which this one is nested.
    Nested {
        parent: String,
    },
}

/// Identifies a call while it runs.
#[derive(Debug)]
pub struct CallRef {
    pub id: Arc<str>,
    /// The outermost call: this call itself, or the one it is nested in.
    pub root_call: Arc<str>,
    pub session: Arc<str>,
    pub agent: String,
    pub tool: String,
    pub origin: Origin,
    pub mode: CallMode,
    /// Number of calls that this one is nested in, including calls that started sub-agents.
    pub depth: u8,
    pub answers: HashMap<AskKey, Reply>,
}

/// Maximum depth of nested calls and sub-agents.
pub const MAX_DEPTH: u8 = 4;

/// The result of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResult {
    pub call: String,
    pub outcome: Result<ToolOutput, ToolError>,
}
