//! The items of a transcript. A transcript is an append-only list.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// An item with its position in the transcript.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Entry {
    pub seq: u64,
    pub item: Item,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Item {
    /// A person's message.
    User { content: Vec<MessagePart> },
    /// A message of the model: complete, or stopped by a person.
    Assistant(AssistantMessage),
    /// The result of one call of the preceding assistant message.
    Result(CallResult),
    /// Information for the model. It is sent as part of a user message.
    Note { note: NoteKind, text: String },
    /// Replaces all items before position `tail`, except those at the positions in `kept`.
    Summary { text: String, kept: Vec<u64>, tail: u64 },
    /// Replaces each output before this position with one line.
    OutputsCleared { before: u64 },
    /// The provider rejected an image or document, which is replaced with a sentence. It is the part with index `part`
    /// of the item at position `seq`.
    MediaRejected { seq: u64, part: usize },
    /// A person undid all items from this position on. `call` is the call that restored changed files, if there were
    /// any.
    Undone {
        from: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<String>,
    },
    /// A person redid what the `Undone` item at this position had undone.
    Redone { undone: u64 },
}

/// A piece of a user's message or of a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessagePart {
    Text(String),
    /// An image or a document, in base64.
    Media {
        mime: String,
        data: String,
        name: Option<String>,
    },
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AssistantMessage {
    pub blocks: Vec<Block>,
    pub origin: ModelRef,
    pub stop: StopReason,
    /// Whether a person stopped the reply. If so, only its text is sent back.
    pub is_partial: bool,
}

impl AssistantMessage {
    /// Returns the calls that need a result.
    pub fn calls(&self) -> impl Iterator<Item = &CallBlock> {
        self.blocks.iter().filter(|_| !self.is_partial).filter_map(|block| match block {
            Block::Call(call) => Some(call),
            Block::Text(_) | Block::Reasoning { .. } | Block::Phase(_) | Block::Other(_) => None,
        })
    }

    pub fn text(&self) -> String {
        let texts = self.blocks.iter().filter_map(|block| match block {
            Block::Text(text) => Some(text.as_str()),
            Block::Call(_) | Block::Reasoning { .. } | Block::Phase(_) | Block::Other(_) => None,
        });
        texts.collect()
    }
}

/// Why a reply ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    EndTurn,
    ToolUse,
    /// The limit of output tokens was reached.
    Length,
    /// The context window was full.
    ContextFull,
    Refused,
    /// The provider paused the reply. It continues when the transcript is sent again.
    Paused,
    Other(String),
}

/// A model, its provider, and the protocol to use.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ModelRef {
    pub provider: String,
    #[serde(rename = "model")]
    pub name: String,
    pub protocol: Protocol,
}

/// The API protocol of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// OpenAI's Chat Completions, which most servers support.
    Chat,
    /// OpenAI's Responses.
    Responses,
    /// Anthropic's Messages.
    Messages,
}

/// A block of a model's message.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Block {
    Text(String),
    /// The reasoning of the model. `raw` is the provider's own form; it is sent back unchanged, and only to the same
    /// model.
    Reasoning {
        text: String,
        raw: Option<Box<RawValue>>,
    },
    Call(CallBlock),
    /// What the text that follows is for, in the provider's terms (`commentary`, `final_answer`). It is sent back to
    /// the same model.
    Phase(String),
    /// A block that Helve does not know. It is sent back unchanged to the same model.
    Other(Box<RawValue>),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallBlock {
    pub id: String,
    pub name: String,
    /// The arguments as received: JSON for [`CallForm::Json`], any text for [`CallForm::Text`].
    pub arguments: String,
    pub form: CallForm,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallForm {
    Json,
    /// The input is raw text, not JSON.
    Text,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallResult {
    /// The id of the call.
    pub call: String,
    /// A short title for a person, such as the path.
    pub title: String,
    pub content: Vec<MessagePart>,
    pub is_error: bool,
    /// Where the full output was saved.
    pub saved: Option<String>,
}

impl CallResult {
    /// Returns all text of the result.
    pub fn text(&self) -> String {
        let texts = self.content.iter().filter_map(|part| match part {
            MessagePart::Text(text) => Some(text.as_str()),
            MessagePart::Media { .. } => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoteKind {
    /// The working folder, the platform and the date.
    Environment,
    /// The person, or the time limit, aborted the previous turn.
    Aborted,
    /// How much of the budget is left.
    Budget,
    /// Another agent, or another mode, takes over.
    AgentSwitched,
    /// A file has changed since the model read it.
    FilesChanged,
    /// A process or a sub-agent finished.
    Finished,
    /// The previous answer cannot be used as it is.
    Correction,
    /// Instructions of a folder in which files were read.
    Instructions,
    /// Skills appeared, changed or disappeared.
    Skills,
}
