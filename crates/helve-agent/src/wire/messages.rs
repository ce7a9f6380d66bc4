//! Anthropic's Messages API.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use super::json::{MAX_BLOCKS, lenient, parse, text_input_schema, tokens, too_many_blocks};
use crate::failure::{Failure, FailureKind};
use crate::item::StopReason;
use crate::item::{Block, CallBlock, CallForm};
use crate::reply::{Delta, ModelReply, Usage};
use crate::request::{
    AssistantPart, CallPart, InputPart, Message, ModelRequest, ResultPart, ToolChoice, ToolInput,
};

/// Default output limit. The provider requires one.
const DEFAULT_MAX_OUTPUT: u64 = 4_096;
/// Distance in blocks between the two cache marks in the messages. The provider looks for a cache entry in the 20
/// blocks before a mark.
const BLOCKS_BETWEEN_MARKS: usize = 15;

#[derive(Debug, Serialize)]
pub(super) struct MessagesBody<'a> {
    model: &'a str,
    max_tokens: u64,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ToolEntry<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<ToolChoiceEntry>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<SystemBlock<'a>>,
    messages: Vec<WireMessage<'a>>,
}

#[derive(Debug, Serialize)]
struct Thinking {
    r#type: &'static str,
}

#[derive(Debug, Serialize)]
struct OutputConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<OutputFormat<'a>>,
}

#[derive(Debug, Serialize)]
struct OutputFormat<'a> {
    r#type: &'static str,
    schema: &'a RawValue,
}

#[derive(Debug, Serialize)]
struct ToolEntry<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: Cow<'a, RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheMark>,
}

#[derive(Debug, Serialize)]
struct ToolChoiceEntry {
    r#type: &'static str,
}

#[derive(Debug, Serialize)]
struct SystemBlock<'a> {
    r#type: &'static str,
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheMark>,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct CacheMark {
    r#type: &'static str,
}

const MARK: CacheMark = CacheMark { r#type: "ephemeral" };

#[derive(Debug, Serialize)]
struct WireMessage<'a> {
    role: &'static str,
    content: Vec<MarkedBlock<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum MarkedBlock<'a> {
    Known {
        #[serde(flatten)]
        block: KnownBlock<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheMark>,
    },
    /// A block that is sent back as it was received.
    Raw(&'a RawValue),
}

impl<'a> From<KnownBlock<'a>> for MarkedBlock<'a> {
    fn from(block: KnownBlock<'a>) -> Self {
        MarkedBlock::Known { block, cache_control: None }
    }
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum KnownBlock<'a> {
    Text { text: &'a str },
    Image { source: Source<'a> },
    Document { source: Source<'a> },
    ToolUse { id: &'a str, name: &'a str, input: Box<RawValue> },
    ToolResult { tool_use_id: &'a str, is_error: bool, content: Vec<KnownBlock<'a>> },
}

#[derive(Debug, Serialize)]
struct Source<'a> {
    r#type: &'static str,
    media_type: &'a str,
    data: &'a str,
}

pub(super) fn body<'a>(request: &'a ModelRequest<'a>) -> MessagesBody<'a> {
    let settings = request.settings;
    let quirks = &settings.quirks;
    let effort = settings.effort.as_deref().filter(|_| quirks.allows("effort"));
    let format = request.output_schema.map(|schema| OutputFormat { r#type: "json_schema", schema });
    let mut messages = messages(request);
    mark_messages(&mut messages);
    MessagesBody {
        model: &request.model.name,
        max_tokens: settings.max_output.unwrap_or(DEFAULT_MAX_OUTPUT),
        stream: true,
        thinking: effort
            .filter(|_| quirks.allows("thinking"))
            .map(|_| Thinking { r#type: "adaptive" }),
        output_config: (effort.is_some() || format.is_some())
            .then_some(OutputConfig { effort, format }),
        temperature: settings
            .temperature
            .filter(|_| effort.is_none() && quirks.allows("temperature")),
        top_p: settings.top_p.filter(|_| effort.is_none() && quirks.allows("top_p")),
        tools: tools(request),
        tool_choice: (!request.tools.is_empty()).then_some(ToolChoiceEntry {
            r#type: match request.tool_choice {
                ToolChoice::Auto => "auto",
                ToolChoice::None => "none",
            },
        }),
        system: system(request),
        messages,
    }
}

fn tools<'a>(request: &'a ModelRequest<'a>) -> Vec<ToolEntry<'a>> {
    let last = request.tools.len().saturating_sub(1);
    let entry = |(at, tool): (usize, &'a crate::request::ToolDefinition)| ToolEntry {
        name: &tool.name,
        description: &tool.about,
        input_schema: match &tool.input {
            ToolInput::Json(schema) => Cow::Borrowed(&**schema),
            ToolInput::Text { field, about, .. } => Cow::Owned(text_input_schema(field, about)),
        },
        cache_control: (at == last).then_some(MARK),
    };
    request.tools.iter().enumerate().map(entry).collect()
}

fn system<'a>(request: &'a ModelRequest<'a>) -> Vec<SystemBlock<'a>> {
    let texts: Vec<&String> =
        request.system.iter().filter(|text| !text.trim().is_empty()).collect();
    let last = texts.len().saturating_sub(1);
    let block = |(at, text): (usize, &'a String)| SystemBlock {
        r#type: "text",
        text,
        cache_control: (at == last).then_some(MARK),
    };
    texts.into_iter().enumerate().map(block).collect()
}

/// Converts messages. Results and the user message after them become one message, results first.
fn messages<'a>(request: &'a ModelRequest<'a>) -> Vec<WireMessage<'a>> {
    let mut messages: Vec<WireMessage<'a>> = Vec::new();
    for message in &request.messages {
        let (role, blocks): (&'static str, Vec<MarkedBlock<'a>>) = match message {
            Message::User(parts) => {
                ("user", parts.iter().filter_map(input).map(Into::into).collect())
            }
            Message::Assistant(parts) => ("assistant", parts.iter().filter_map(output).collect()),
            Message::Results(results) => ("user", results.iter().map(result).collect()),
        };
        match messages.last_mut() {
            Some(last) if last.role == role => last.content.extend(blocks),
            Some(_) | None if blocks.is_empty() => {}
            Some(_) | None => messages.push(WireMessage { role, content: blocks }),
        }
    }
    messages
}

fn input<'a>(part: &'a InputPart<'a>) -> Option<KnownBlock<'a>> {
    match part {
        InputPart::Text(text) if text.trim().is_empty() => None,
        InputPart::Text(text) => Some(KnownBlock::Text { text }),
        InputPart::Media { mime, data, .. } => {
            let source = Source { r#type: "base64", media_type: mime, data };
            Some(match mime.starts_with("image/") {
                true => KnownBlock::Image { source },
                false => KnownBlock::Document { source },
            })
        }
    }
}

fn output<'a>(part: &'a AssistantPart<'a>) -> Option<MarkedBlock<'a>> {
    match part {
        // Only OpenAI's messages have phases.
        AssistantPart::Phase(_) => None,
        AssistantPart::Text(text) if text.trim().is_empty() => None,
        AssistantPart::Text(text) => Some(KnownBlock::Text { text }.into()),
        AssistantPart::Reasoning(raw) | AssistantPart::Other(raw) => Some(MarkedBlock::Raw(raw)),
        AssistantPart::Call(call) => {
            let input = arguments(call);
            Some(KnownBlock::ToolUse { id: &call.id, name: &call.name, input }.into())
        }
    }
}

fn arguments(call: &CallPart<'_>) -> Box<RawValue> {
    RawValue::from_string(call.arguments.to_string()).unwrap_or_default()
}

fn result<'a>(result: &'a ResultPart<'a>) -> MarkedBlock<'a> {
    let content = result.content.iter().filter_map(input).collect();
    let (tool_use_id, is_error) = (&*result.call, result.is_error);
    KnownBlock::ToolResult { tool_use_id, is_error, content }.into()
}

/// Sets two cache marks: at the last block of the newest user message, and at a block some way before it.
fn mark_messages(messages: &mut [WireMessage<'_>]) {
    let from_newest = messages.iter_mut().rev().skip_while(|message| message.role != "user");
    let mut blocks = from_newest.flat_map(|message| message.content.iter_mut().rev());
    let mut mark_next = |skipped: usize| {
        let known = blocks.by_ref().skip(skipped).find_map(|block| match block {
            MarkedBlock::Known { cache_control, .. } => Some(cache_control),
            MarkedBlock::Raw(_) => None,
        });
        if let Some(cache_control) = known {
            *cache_control = Some(MARK);
        }
    };
    mark_next(0);
    mark_next(BLOCKS_BETWEEN_MARKS - 1);
}

/// Reads the events of a streamed message.
#[derive(Debug, Default)]
pub struct MessagesDecoder {
    /// The blocks received so far, each with the index that the provider gave it.
    blocks: Vec<(u64, PendingBlock)>,
    usage: Option<MessagesUsage>,
    stop_reason: Option<String>,
    is_done: bool,
}

/// A block in progress.
#[derive(Debug)]
enum PendingBlock {
    Text(String),
    Thinking {
        text: String,
        signature: String,
    },
    Call {
        id: String,
        name: String,
        arguments: String,
    },
    /// A block that is sent in one piece, or has an unknown kind.
    Raw(Box<RawValue>),
}

#[derive(Debug, Deserialize)]
struct EventType {
    #[serde(default)]
    r#type: String,
}

#[derive(Debug, Deserialize)]
struct MessageStart {
    message: StartedMessage,
}

#[derive(Debug, Deserialize)]
struct StartedMessage {
    #[serde(default, deserialize_with = "lenient")]
    usage: Option<MessagesUsage>,
}

#[derive(Debug, Deserialize)]
struct BlockStart {
    index: u64,
    content_block: Box<RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StartedBlock {
    r#type: String,
    text: String,
    thinking: String,
    signature: String,
    id: String,
    name: String,
    input: Option<Box<RawValue>>,
}

#[derive(Debug, Deserialize)]
struct BlockDelta {
    index: u64,
    delta: DeltaFields,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct DeltaFields {
    text: Option<String>,
    partial_json: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
}

#[derive(Debug, Deserialize)]
struct MessageDelta {
    #[serde(default)]
    delta: MessageDeltaFields,
    #[serde(default, deserialize_with = "lenient")]
    usage: Option<MessagesUsage>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct MessageDeltaFields {
    stop_reason: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct MessagesUsage {
    #[serde(deserialize_with = "tokens")]
    input_tokens: Option<u64>,
    #[serde(deserialize_with = "tokens")]
    cache_creation_input_tokens: Option<u64>,
    #[serde(deserialize_with = "tokens")]
    cache_read_input_tokens: Option<u64>,
    #[serde(deserialize_with = "tokens")]
    output_tokens: Option<u64>,
}

/// A message in a response that is not streamed.
#[derive(Debug, Deserialize)]
struct WholeMessage {
    content: Vec<Box<RawValue>>,
    #[serde(default)]
    stop_reason: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    usage: Option<MessagesUsage>,
}

impl MessagesDecoder {
    pub(super) fn event(&mut self, data: &str, deltas: &mut Vec<Delta>) -> Result<(), Failure> {
        if self.is_done || data.trim().is_empty() {
            return Ok(());
        }
        let EventType { r#type } = parse(data)?;
        match r#type.as_str() {
            "message_start" => {
                let start: MessageStart = parse(data)?;
                self.merge_usage(start.message.usage);
            }
            "content_block_start" => {
                let start: BlockStart = parse(data)?;
                self.start_block(start, deltas)?;
            }
            "content_block_delta" => self.add_delta(parse(data)?, deltas),
            "message_delta" => {
                let message: MessageDelta = parse(data)?;
                self.merge_usage(message.usage);
                self.stop_reason = message.delta.stop_reason.or(self.stop_reason.take());
            }
            "message_stop" => self.is_done = true,
            "error" => return Err(Failure::from_event(data)),
            _ => {}
        }
        Ok(())
    }

    pub(super) fn whole_reply(&mut self, body: &str) -> Result<(), Failure> {
        let EventType { r#type } = parse(body)?;
        if r#type == "error" {
            return Err(Failure::from_event(body));
        }
        let message: WholeMessage = parse(body)?;
        for (index, content_block) in (0..).zip(message.content) {
            self.start_block(BlockStart { index, content_block }, &mut Vec::new())?;
        }
        self.merge_usage(message.usage);
        self.stop_reason = message.stop_reason;
        self.is_done = true;
        Ok(())
    }

    fn start_block(&mut self, start: BlockStart, deltas: &mut Vec<Delta>) -> Result<(), Failure> {
        if self.blocks.len() == MAX_BLOCKS {
            return Err(too_many_blocks());
        }
        let block: StartedBlock = parse(start.content_block.get())?;
        let pending = match block.r#type.as_str() {
            "text" => PendingBlock::Text(block.text),
            "thinking" => {
                PendingBlock::Thinking { text: block.thinking, signature: block.signature }
            }
            "tool_use" => {
                deltas.push(Delta::Call { name: block.name.clone() });
                let input = block.input.map_or_else(String::new, |input| input.get().to_string());
                // In a stream, a call starts with an empty object. Its arguments follow as deltas.
                let arguments = if input == "{}" { String::new() } else { input };
                PendingBlock::Call { id: block.id, name: block.name, arguments }
            }
            _ => PendingBlock::Raw(start.content_block),
        };
        self.blocks.push((start.index, pending));
        Ok(())
    }

    fn add_delta(&mut self, delta: BlockDelta, deltas: &mut Vec<Delta>) {
        let block = self.blocks.iter_mut().rev().find(|(index, _)| *index == delta.index);
        let Some((_, block)) = block else { return };
        let fields = delta.delta;
        match block {
            PendingBlock::Text(text) => {
                if let Some(more) = fields.text {
                    text.push_str(&more);
                    deltas.push(Delta::Text(more));
                }
            }
            PendingBlock::Thinking { text, signature } => {
                signature.push_str(&fields.signature.unwrap_or_default());
                if let Some(more) = fields.thinking {
                    text.push_str(&more);
                    deltas.push(Delta::Reasoning(more));
                }
            }
            PendingBlock::Call { arguments, .. } => {
                if let Some(more) = fields.partial_json {
                    arguments.push_str(&more);
                    deltas.push(Delta::Arguments(more));
                }
            }
            PendingBlock::Raw(_) => {}
        }
    }

    /// Updates the token counts. Each count is a running total; absent counts keep their earlier values.
    fn merge_usage(&mut self, usage: Option<MessagesUsage>) {
        let Some(new) = usage else { return };
        let old = self.usage.unwrap_or_default();
        self.usage = Some(MessagesUsage {
            input_tokens: new.input_tokens.or(old.input_tokens),
            cache_creation_input_tokens: new
                .cache_creation_input_tokens
                .or(old.cache_creation_input_tokens),
            cache_read_input_tokens: new.cache_read_input_tokens.or(old.cache_read_input_tokens),
            output_tokens: new.output_tokens.or(old.output_tokens),
        });
    }

    pub(super) fn is_complete(&self) -> bool {
        self.is_done
    }

    pub(super) fn finish(self) -> Result<ModelReply, Failure> {
        if !self.is_done {
            let message = "the stream ended before the reply was complete";
            return Err(Failure::new(FailureKind::Cut, message));
        }
        let blocks: Vec<Block> =
            self.blocks.into_iter().map(|(_, block)| block.into_block()).collect();
        let has_calls = blocks.iter().any(|block| matches!(block, Block::Call(_)));
        let stop = match self.stop_reason.as_deref() {
            Some("max_tokens") => StopReason::Length,
            Some("model_context_window_exceeded") => StopReason::ContextFull,
            Some("refusal") => StopReason::Refused,
            Some("pause_turn") => StopReason::Paused,
            _ if has_calls => StopReason::ToolUse,
            Some("end_turn" | "stop_sequence" | "tool_use") | None => StopReason::EndTurn,
            Some(other) => StopReason::Other(other.into()),
        };
        let usage = self.usage.map(|usage| Usage {
            input: usage.input_tokens.unwrap_or(0),
            cache_read: usage.cache_read_input_tokens.unwrap_or(0),
            cache_write: usage.cache_creation_input_tokens.unwrap_or(0),
            output: usage.output_tokens.unwrap_or(0),
            reasoning: 0,
        });
        Ok(ModelReply { blocks, stop, usage })
    }
}

impl PendingBlock {
    fn into_block(self) -> Block {
        match self {
            PendingBlock::Text(text) => Block::Text(text),
            PendingBlock::Thinking { text, signature } => {
                // The provider rejects reasoning without a signature.
                let raw = (!signature.is_empty()).then(|| ThinkingBlock {
                    r#type: "thinking",
                    thinking: &text,
                    signature: &signature,
                });
                let raw = raw.and_then(|block| to_raw_value(&block).ok());
                Block::Reasoning { text, raw }
            }
            PendingBlock::Call { id, name, arguments } => {
                Block::Call(CallBlock { id, name, arguments, form: CallForm::Json })
            }
            PendingBlock::Raw(raw) => {
                let EventType { r#type } =
                    serde_json::from_str(raw.get()).unwrap_or(EventType { r#type: String::new() });
                match r#type.as_str() {
                    "redacted_thinking" => Block::Reasoning { text: String::new(), raw: Some(raw) },
                    _ => Block::Other(raw),
                }
            }
        }
    }
}

#[derive(Serialize)]
struct ThinkingBlock<'a> {
    r#type: &'static str,
    thinking: &'a str,
    signature: &'a str,
}
