//! A request to a model, independent of the protocol. [`crate::compose`] builds its messages from a transcript.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::item::{CallForm, ModelRef};

/// One request to a model. The same request is always serialized to the same bytes.
#[derive(Clone, Debug)]
pub struct ModelRequest<'a> {
    pub model: &'a ModelRef,
    /// The system prompt, in blocks.
    pub system: &'a [String],
    /// Sorted by name.
    pub tools: &'a [ToolDefinition],
    pub messages: Vec<Message<'a>>,
    pub tool_choice: ToolChoice,
    pub settings: &'a ModelSettings,
    /// JSON schema of the final answer, if it must be JSON.
    pub output_schema: Option<&'a RawValue>,
    /// Identifies the session, so that a provider can reuse its cache.
    pub cache_key: &'a str,
}

/// The definition of a tool that is sent to the model.
#[derive(Clone, Debug)]
pub struct ToolDefinition {
    pub name: String,
    pub about: String,
    pub input: ToolInput,
}

#[derive(Clone, Debug)]
pub enum ToolInput {
    /// An object with this JSON schema.
    Json(Box<RawValue>),
    /// Text with this grammar, in the syntax of Lark. If a protocol supports only objects, the text is in the field
    /// `field`.
    Text { grammar: String, field: String, about: String },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolChoice {
    Auto,
    /// Tools are listed, but must not be called.
    None,
}

/// Settings of a model that are the same for every request of a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelSettings {
    pub max_output: Option<u64>,
    /// The reasoning effort, in the provider's terms: `low`, `medium`, `high`.
    pub effort: Option<String>,
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    pub quirks: Quirks,
}

/// What a server or a model does differently from its protocol, and what it can read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quirks {
    /// Whether this is OpenAI itself, which accepts fields that other servers reject.
    pub is_openai: bool,
    /// Fields that are not sent, because the server rejected them before.
    pub without_fields: Vec<String>,
    /// Whether every assistant message with calls must carry `reasoning_content`, even an empty one.
    pub requires_reasoning: bool,
    /// Whether an assistant message without text must have an empty string instead of `null`.
    pub requires_content: bool,
    /// Whether the model can see images.
    pub reads_images: bool,
    /// Whether the model can read PDF documents.
    pub reads_documents: bool,
    /// Whether the server silently leaves out the beginning of a prompt that is too long, as Ollama does.
    pub cuts_prompts: bool,
}

impl Quirks {
    /// Returns what is known of a server by its URL, and of a model by its name: a model has the same quirks whichever
    /// server offers it.
    pub fn known(base_url: &str, model: &str) -> Self {
        let is_named = |names: &[&str]| {
            let places = [base_url.to_ascii_lowercase(), model.to_ascii_lowercase()];
            places.iter().any(|place| names.iter().any(|name| place.contains(name)))
        };
        let is_kimi = is_named(&["kimi", "moonshot"]);
        Self {
            is_openai: base_url.starts_with("https://api.openai.com"),
            requires_reasoning: is_kimi || is_named(&["deepseek"]),
            requires_content: is_kimi,
            ..Self::default()
        }
    }

    pub fn allows(&self, field: &str) -> bool {
        !self.without_fields.iter().any(|without| without == field)
    }
}

/// A message of a request. Messages of the same role never follow one another, and results directly follow their calls.
#[derive(Clone, Debug)]
pub enum Message<'a> {
    User(Vec<InputPart<'a>>),
    Assistant(Vec<AssistantPart<'a>>),
    /// The results of all calls of the preceding message, in the order of the calls.
    Results(Vec<ResultPart<'a>>),
}

#[derive(Clone, Debug)]
pub enum InputPart<'a> {
    Text(Cow<'a, str>),
    Media { mime: &'a str, data: &'a str, name: Option<&'a str> },
}

#[derive(Clone, Debug)]
pub enum AssistantPart<'a> {
    Text(&'a str),
    /// Reasoning of the model that the request goes to, in the provider's own form.
    Reasoning(&'a RawValue),
    Call(CallPart<'a>),
    /// The phase of the text that follows, exactly as the model that receives this request named it earlier. Only the
    /// Responses protocol has phases.
    Phase(&'a str),
    /// A block of the model that the request goes to, of a kind that Helve does not know.
    Other(&'a RawValue),
}

#[derive(Clone, Debug)]
pub struct CallPart<'a> {
    /// An id that the protocol accepts.
    pub id: Cow<'a, str>,
    pub name: Cow<'a, str>,
    /// A JSON object, unless the call takes text.
    pub arguments: Cow<'a, str>,
    /// [`CallForm::Text`] only in [`Protocol::Responses`](crate::item::Protocol::Responses).
    pub form: CallForm,
}

#[derive(Clone, Debug)]
pub struct ResultPart<'a> {
    pub call: Cow<'a, str>,
    pub form: CallForm,
    pub content: Vec<InputPart<'a>>,
    pub is_error: bool,
}
