//! OpenAI's Chat Completions, in the form that most servers support.

use std::borrow::Cow;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use super::json::{Calls, RawFields, lenient, parse, text_input_schema, tokens};
use crate::failure::{Failure, FailureKind};
use crate::item::StopReason;
use crate::item::{Block, CallForm};
use crate::reply::{Delta, ModelReply, Usage, UsageTotals};
use crate::request::{
    AssistantPart, InputPart, Message, ModelRequest, ResultPart, ToolChoice, ToolDefinition,
    ToolInput,
};

/// Fields in which servers send reasoning. If a server sends several, the first one is used.
const REASONING_FIELDS: [&str; 3] = ["reasoning_content", "reasoning", "reasoning_text"];

#[derive(Debug, Serialize)]
pub(super) struct ChatBody<'a> {
    model: &'a str,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<ResponseFormat<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ChatTool<'a>>,
    messages: Vec<ChatMessage<'a>>,
}

#[derive(Debug, Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Debug, Serialize)]
struct ResponseFormat<'a> {
    r#type: &'static str,
    json_schema: NamedSchema<'a>,
}

#[derive(Debug, Serialize)]
struct NamedSchema<'a> {
    name: &'static str,
    schema: &'a RawValue,
}

#[derive(Debug, Serialize)]
struct ChatTool<'a> {
    r#type: &'static str,
    function: ChatFunction<'a>,
}

#[derive(Debug, Serialize)]
struct ChatFunction<'a> {
    name: &'a str,
    description: &'a str,
    parameters: Cow<'a, RawValue>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum ChatMessage<'a> {
    /// System and user messages.
    Plain {
        role: &'static str,
        content: ChatContent<'a>,
    },
    Assistant(AssistantText<'a>),
    Result {
        role: &'static str,
        tool_call_id: &'a str,
        content: String,
    },
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum ChatContent<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<ChatPart<'a>>),
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ChatPart<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: ImageUrl },
    File { file: FileData<'a> },
}

#[derive(Debug, Serialize)]
struct ImageUrl {
    url: String,
}

#[derive(Debug, Serialize)]
struct FileData<'a> {
    filename: &'a str,
    file_data: String,
}

#[derive(Debug, Serialize)]
struct AssistantText<'a> {
    role: &'static str,
    #[serde(serialize_with = "content_or_null")]
    content: (String, bool),
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ChatCall<'a>>,
    /// Reasoning, in the same fields as the server sent it.
    #[serde(flatten)]
    reasoning: RawFields,
}

/// Serializes missing text as `null`, or as an empty string if the server requires that.
fn content_or_null<S: Serializer>(
    (text, requires_content): &(String, bool),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match text.is_empty() && !requires_content {
        true => serializer.serialize_none(),
        false => serializer.serialize_str(text),
    }
}

#[derive(Debug, Serialize)]
struct ChatCall<'a> {
    id: &'a str,
    r#type: &'static str,
    function: CalledFunction<'a>,
}

#[derive(Debug, Serialize)]
struct CalledFunction<'a> {
    name: &'a str,
    arguments: &'a str,
}

pub(super) fn body<'a>(request: &'a ModelRequest<'a>) -> ChatBody<'a> {
    let settings = request.settings;
    let quirks = &settings.quirks;
    let has_tools = !request.tools.is_empty();
    let (max_tokens, max_completion_tokens) =
        if quirks.is_openai { (None, settings.max_output) } else { (settings.max_output, None) };
    ChatBody {
        model: &request.model.name,
        stream: true,
        stream_options: quirks
            .allows("stream_options")
            .then_some(StreamOptions { include_usage: true }),
        max_tokens: max_tokens.filter(|_| quirks.allows("max_tokens")),
        max_completion_tokens,
        reasoning_effort: settings.effort.as_deref().filter(|_| quirks.allows("reasoning_effort")),
        temperature: settings.temperature.filter(|_| quirks.allows("temperature")),
        top_p: settings.top_p.filter(|_| quirks.allows("top_p")),
        tool_choice: has_tools.then_some(match request.tool_choice {
            ToolChoice::Auto => "auto",
            ToolChoice::None => "none",
        }),
        response_format: request.output_schema.filter(|_| quirks.allows("response_format")).map(
            |schema| ResponseFormat {
                r#type: "json_schema",
                json_schema: NamedSchema { name: "answer", schema },
            },
        ),
        prompt_cache_key: Some(request.cache_key)
            .filter(|_| quirks.is_openai && quirks.allows("prompt_cache_key")),
        tools: request.tools.iter().map(tool).collect(),
        messages: messages(request),
    }
}

fn tool(tool: &ToolDefinition) -> ChatTool<'_> {
    let parameters = match &tool.input {
        ToolInput::Json(schema) => Cow::Borrowed(&**schema),
        ToolInput::Text { field, about, .. } => Cow::Owned(text_input_schema(field, about)),
    };
    let function = ChatFunction { name: &tool.name, description: &tool.about, parameters };
    ChatTool { r#type: "function", function }
}

fn messages<'a>(request: &'a ModelRequest<'a>) -> Vec<ChatMessage<'a>> {
    let mut messages = Vec::new();
    if !request.system.is_empty() {
        let text = request.system.join("\n\n");
        let content = ChatContent::Text(Cow::Owned(text));
        messages.push(ChatMessage::Plain { role: "system", content });
    }
    for message in &request.messages {
        match message {
            Message::User(parts) => {
                messages.push(ChatMessage::Plain { role: "user", content: content(parts) })
            }
            Message::Assistant(parts) => messages.push(assistant(parts, request)),
            Message::Results(results) => add_results(&mut messages, results),
        }
    }
    messages
}

fn content<'a>(parts: &'a [InputPart<'a>]) -> ChatContent<'a> {
    match parts {
        [InputPart::Text(text)] => ChatContent::Text(Cow::Borrowed(text)),
        parts => ChatContent::Parts(parts.iter().map(part).collect()),
    }
}

fn part<'a>(part: &'a InputPart<'a>) -> ChatPart<'a> {
    match part {
        InputPart::Text(text) => ChatPart::Text { text },
        InputPart::Media { mime, data, name } => media(mime, data, *name),
    }
}

fn media<'a>(mime: &str, data: &str, name: Option<&'a str>) -> ChatPart<'a> {
    let url = format!("data:{mime};base64,{data}");
    match mime.starts_with("image/") {
        true => ChatPart::ImageUrl { image_url: ImageUrl { url } },
        false => ChatPart::File {
            file: FileData { filename: name.unwrap_or("document"), file_data: url },
        },
    }
}

fn assistant<'a>(parts: &'a [AssistantPart<'a>], request: &ModelRequest<'_>) -> ChatMessage<'a> {
    let quirks = &request.settings.quirks;
    let (mut text, mut tool_calls, mut reasoning) =
        (String::new(), Vec::new(), RawFields::default());
    for part in parts {
        match part {
            AssistantPart::Text(more) => text.push_str(more),
            AssistantPart::Reasoning(raw) => reasoning.merge(raw),
            AssistantPart::Call(call) => tool_calls.push(ChatCall {
                id: &call.id,
                r#type: "function",
                function: CalledFunction { name: &call.name, arguments: &call.arguments },
            }),
            AssistantPart::Phase(_) | AssistantPart::Other(_) => {}
        }
    }
    if quirks.requires_reasoning && !tool_calls.is_empty() && reasoning.is_empty() {
        reasoning.insert(REASONING_FIELDS[0], "");
    }
    ChatMessage::Assistant(AssistantText {
        role: "assistant",
        content: (text, quirks.requires_content),
        tool_calls,
        reasoning,
    })
}

/// Adds results. They can only contain text, so images and documents follow in a user message.
fn add_results<'a>(messages: &mut Vec<ChatMessage<'a>>, results: &'a [ResultPart<'a>]) {
    let mut attached: Vec<ChatPart<'a>> = Vec::new();
    for result in results {
        let mut text = String::new();
        for part in &result.content {
            let more = match part {
                InputPart::Text(more) => more,
                InputPart::Media { mime, data, name } => {
                    attached.push(media(mime, data, *name));
                    "(see the attachment below)"
                }
            };
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(more);
        }
        let call = &result.call;
        messages.push(ChatMessage::Result { role: "tool", tool_call_id: call, content: text });
    }
    if !attached.is_empty() {
        let label = ChatPart::Text { text: "Attachments of the results above:" };
        let parts = std::iter::once(label).chain(attached).collect();
        messages.push(ChatMessage::Plain { role: "user", content: ChatContent::Parts(parts) });
    }
}

/// Reads the chunks of a streamed completion.
#[derive(Debug)]
pub struct ChatDecoder {
    max_output: Option<u64>,
    text: String,
    /// The field in which the server sends reasoning, and the reasoning so far.
    reasoning: Option<(&'static str, String)>,
    reasoning_details: Vec<Box<RawValue>>,
    refusal: String,
    calls: Calls<u64>,
    finish_reason: Option<String>,
    usage: Option<ChatUsage>,
    is_done: bool,
}

#[derive(Debug, Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Option<Vec<Choice>>,
    #[serde(default, deserialize_with = "lenient")]
    usage: Option<ChatUsage>,
    #[serde(default)]
    error: Option<Box<RawValue>>,
}

#[derive(Debug, Deserialize)]
struct Choice {
    /// The message in a chunk of a stream.
    #[serde(default)]
    delta: Option<ChatDelta>,
    /// The message in a response that is not streamed.
    #[serde(default)]
    message: Option<ChatDelta>,
    #[serde(default)]
    finish_reason: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    usage: Option<ChatUsage>,
}

#[derive(Debug, Default, Deserialize)]
struct ChatDelta {
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    refusal: Option<String>,
    #[serde(default)]
    reasoning_content: Option<String>,
    #[serde(default)]
    reasoning: Option<String>,
    #[serde(default)]
    reasoning_text: Option<String>,
    #[serde(default)]
    reasoning_details: Option<Vec<Box<RawValue>>>,
    #[serde(default)]
    tool_calls: Option<Vec<CallDelta>>,
}

#[derive(Debug, Deserialize)]
struct CallDelta {
    #[serde(default)]
    index: Option<u64>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    function: Option<FunctionDelta>,
}

#[derive(Debug, Deserialize)]
struct FunctionDelta {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    arguments: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
struct ChatUsage {
    #[serde(default, deserialize_with = "tokens")]
    prompt_tokens: Option<u64>,
    #[serde(default, deserialize_with = "tokens")]
    completion_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    prompt_tokens_details: Option<PromptDetails>,
    #[serde(default, deserialize_with = "lenient")]
    completion_tokens_details: Option<CompletionDetails>,
    #[serde(default, deserialize_with = "tokens")]
    prompt_cache_hit_tokens: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
struct PromptDetails {
    #[serde(default, deserialize_with = "tokens")]
    cached_tokens: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
struct CompletionDetails {
    #[serde(default, deserialize_with = "tokens")]
    reasoning_tokens: Option<u64>,
}

impl ChatDecoder {
    pub(super) fn new(max_output: Option<u64>) -> Self {
        Self {
            max_output,
            text: String::new(),
            reasoning: None,
            reasoning_details: Vec::new(),
            refusal: String::new(),
            calls: Calls::default(),
            finish_reason: None,
            usage: None,
            is_done: false,
        }
    }

    pub(super) fn event(&mut self, data: &str, deltas: &mut Vec<Delta>) -> Result<(), Failure> {
        if self.is_done || data.trim().is_empty() {
            return Ok(());
        }
        if data.trim() == "[DONE]" {
            self.is_done = true;
            return Ok(());
        }
        let chunk: Chunk = parse(data)?;
        self.chunk(chunk, deltas)
    }

    pub(super) fn whole_reply(&mut self, body: &str) -> Result<(), Failure> {
        let chunk: Chunk = parse(body)?;
        self.chunk(chunk, &mut Vec::new())?;
        self.is_done = true;
        Ok(())
    }

    fn chunk(&mut self, chunk: Chunk, deltas: &mut Vec<Delta>) -> Result<(), Failure> {
        if let Some(error) = &chunk.error {
            return Err(Failure::from_event(error.get()));
        }
        self.usage = chunk.usage.or(self.usage);
        // Requests ask for one choice only.
        let Some(choice) = chunk.choices.unwrap_or_default().into_iter().next() else {
            return Ok(());
        };
        self.usage = choice.usage.or(self.usage);
        if let Some(delta) = choice.delta.or(choice.message) {
            self.delta(delta, deltas)?;
        }
        self.finish_reason = choice.finish_reason.or(self.finish_reason.take());
        Ok(())
    }

    fn delta(&mut self, delta: ChatDelta, deltas: &mut Vec<Delta>) -> Result<(), Failure> {
        let thought = [delta.reasoning_content, delta.reasoning, delta.reasoning_text];
        let sent = REASONING_FIELDS.into_iter().zip(thought);
        let mut sent = sent.filter_map(|(field, text)| Some((field, text?)));
        let first = sent.find(|(_, text)| !text.is_empty());
        if let Some((field, text)) = first {
            let (known, so_far) = self.reasoning.get_or_insert((field, String::new()));
            if *known == field {
                so_far.push_str(&text);
                deltas.push(Delta::Reasoning(text));
            }
        }
        self.reasoning_details.extend(delta.reasoning_details.unwrap_or_default());
        if let Some(text) = delta.content.filter(|text| !text.is_empty()) {
            self.text.push_str(&text);
            deltas.push(Delta::Text(text));
        }
        if let Some(text) = delta.refusal.filter(|text| !text.is_empty()) {
            self.refusal.push_str(&text);
            deltas.push(Delta::Text(text));
        }
        for (position, call) in delta.tool_calls.unwrap_or_default().into_iter().enumerate() {
            let slot = call.index.unwrap_or(position as u64);
            let function = call.function.unwrap_or(FunctionDelta { name: None, arguments: None });
            let known = self.calls.at(slot, CallForm::Json)?;
            known.set_id(call.id);
            known.set_name(function.name, deltas);
            known.add_arguments(function.arguments, deltas);
        }
        Ok(())
    }

    pub(super) fn is_complete(&self) -> bool {
        self.is_done
    }

    pub(super) fn finish(self) -> Result<ModelReply, Failure> {
        if self.finish_reason.is_none() && !(self.is_done && self.has_content()) {
            let message = "the stream ended before the reply was complete";
            return Err(Failure::new(FailureKind::Cut, message));
        }
        let usage = self.usage.map(usage);
        let stop = self.stop();
        let mut blocks = Vec::new();
        if let Some(reasoning) = self.reasoning_block() {
            blocks.push(reasoning);
        }
        let text = if self.text.is_empty() { self.refusal } else { self.text };
        if !text.is_empty() {
            blocks.push(Block::Text(text));
        }
        blocks.extend(self.calls.into_blocks());
        Ok(ModelReply { blocks, stop, usage })
    }

    fn has_content(&self) -> bool {
        !self.text.is_empty() || !self.calls.is_empty()
    }

    fn reasoning_block(&self) -> Option<Block> {
        let mut fields = RawFields::default();
        let text = match &self.reasoning {
            Some((field, text)) => {
                fields.insert(field, text);
                text.clone()
            }
            None => String::new(),
        };
        if !self.reasoning_details.is_empty() {
            fields.insert("reasoning_details", &self.reasoning_details);
        }
        let raw = fields.into_raw()?;
        Some(Block::Reasoning { text, raw: Some(raw) })
    }

    fn stop(&self) -> StopReason {
        let reason = self.finish_reason.as_deref().unwrap_or("stop");
        let written = self.usage.and_then(|usage| usage.completion_tokens);
        // Some servers report a reply as finished although it was cut at the limit.
        let is_cut = written.is_some()
            && written == self.max_output
            && (self.calls.is_empty() || !self.calls.are_valid_json());
        match reason {
            "length" | "max_tokens" => StopReason::Length,
            "content_filter" => StopReason::Refused,
            "stop" | "tool_calls" | "function_call" | "end" | "eos" if is_cut => StopReason::Length,
            _ if !self.calls.is_empty() => StopReason::ToolUse,
            _ if self.text.is_empty() && !self.refusal.is_empty() => StopReason::Refused,
            "stop" | "end" | "eos" | "end_turn" | "tool_calls" | "function_call" => {
                StopReason::EndTurn
            }
            other => StopReason::Other(other.into()),
        }
    }
}

fn usage(usage: ChatUsage) -> Usage {
    let cached = usage.prompt_tokens_details.and_then(|details| details.cached_tokens);
    let thought = usage.completion_tokens_details.and_then(|details| details.reasoning_tokens);
    Usage::from_totals(UsageTotals {
        input: usage.prompt_tokens.unwrap_or(0),
        output: usage.completion_tokens.unwrap_or(0),
        cache_read: cached.or(usage.prompt_cache_hit_tokens).unwrap_or(0),
        cache_write: 0,
        reasoning: thought.unwrap_or(0),
    })
}
