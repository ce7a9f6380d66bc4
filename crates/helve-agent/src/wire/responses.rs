//! OpenAI's Responses API.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::json::{MAX_BLOCKS, RawFields, lenient, parse, tokens, too_many_blocks};
use crate::failure::{Failure, FailureKind};
use crate::item::StopReason;
use crate::item::{Block, CallBlock, CallForm};
use crate::reply::{Delta, ModelReply, Usage, UsageTotals};
use crate::request::{
    AssistantPart, InputPart, Message, ModelRequest, ResultPart, ToolChoice, ToolDefinition,
    ToolInput,
};

#[derive(Debug, Serialize)]
pub(super) struct ResponsesBody<'a> {
    model: &'a str,
    stream: bool,
    store: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    instructions: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    include: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<ReasoningSettings<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<TextSettings<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ResponsesTool<'a>>,
    input: Vec<InputItem<'a>>,
}

#[derive(Debug, Serialize)]
struct ReasoningSettings<'a> {
    effort: &'a str,
    summary: &'static str,
}

#[derive(Debug, Serialize)]
struct TextSettings<'a> {
    format: TextFormat<'a>,
}

#[derive(Debug, Serialize)]
struct TextFormat<'a> {
    r#type: &'static str,
    name: &'static str,
    schema: &'a RawValue,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ResponsesTool<'a> {
    Function { name: &'a str, description: &'a str, parameters: &'a RawValue, strict: bool },
    Custom { name: &'a str, description: &'a str, format: GrammarFormat<'a> },
}

#[derive(Debug, Serialize)]
struct GrammarFormat<'a> {
    r#type: &'static str,
    syntax: &'static str,
    definition: &'a str,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum InputItem<'a> {
    Known(KnownItem<'a>),
    /// An item that is sent back as it was received, but without its id.
    Raw(RawFields),
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum KnownItem<'a> {
    Message {
        role: &'static str,
        content: ItemContent<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<&'a str>,
    },
    FunctionCall {
        call_id: &'a str,
        name: &'a str,
        arguments: &'a str,
    },
    FunctionCallOutput {
        call_id: &'a str,
        output: ItemContent<'a>,
    },
    CustomToolCall {
        call_id: &'a str,
        name: &'a str,
        input: &'a str,
    },
    CustomToolCallOutput {
        call_id: &'a str,
        output: ItemContent<'a>,
    },
}

/// The content of a message or of a result.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum ItemContent<'a> {
    Text(&'a str),
    Parts(Vec<ContentPart<'a>>),
}

#[derive(Debug, Serialize)]
#[serde(tag = "type")]
enum ContentPart<'a> {
    #[serde(rename = "input_text")]
    Text { text: &'a str },
    #[serde(rename = "input_image")]
    Image { image_url: String, detail: &'static str },
    #[serde(rename = "input_file")]
    File { filename: &'a str, file_data: String },
}

pub(super) fn body<'a>(request: &'a ModelRequest<'a>) -> ResponsesBody<'a> {
    let settings = request.settings;
    let quirks = &settings.quirks;
    let has_tools = !request.tools.is_empty();
    let effort = settings.effort.as_deref().filter(|_| quirks.allows("reasoning"));
    ResponsesBody {
        model: &request.model.name,
        stream: true,
        store: false,
        instructions: request.system.join("\n\n"),
        include: match quirks.allows("include") {
            true => vec!["reasoning.encrypted_content"],
            false => Vec::new(),
        },
        reasoning: effort.map(|effort| ReasoningSettings { effort, summary: "auto" }),
        text: request.output_schema.filter(|_| quirks.allows("text")).map(|schema| TextSettings {
            format: TextFormat { r#type: "json_schema", name: "answer", schema },
        }),
        max_output_tokens: settings.max_output.filter(|_| quirks.allows("max_output_tokens")),
        temperature: settings
            .temperature
            .filter(|_| effort.is_none() && quirks.allows("temperature")),
        top_p: settings.top_p.filter(|_| effort.is_none() && quirks.allows("top_p")),
        prompt_cache_key: Some(request.cache_key).filter(|_| quirks.allows("prompt_cache_key")),
        tool_choice: has_tools.then_some(match request.tool_choice {
            ToolChoice::Auto => "auto",
            ToolChoice::None => "none",
        }),
        parallel_tool_calls: Some(true)
            .filter(|_| has_tools && quirks.allows("parallel_tool_calls")),
        tools: request.tools.iter().map(tool).collect(),
        input: input(request),
    }
}

fn tool(tool: &ToolDefinition) -> ResponsesTool<'_> {
    let (name, description) = (tool.name.as_str(), tool.about.as_str());
    match &tool.input {
        ToolInput::Json(parameters) => {
            ResponsesTool::Function { name, description, parameters, strict: false }
        }
        ToolInput::Text { grammar, .. } => ResponsesTool::Custom {
            name,
            description,
            format: GrammarFormat { r#type: "grammar", syntax: "lark", definition: grammar },
        },
    }
}

fn input<'a>(request: &'a ModelRequest<'a>) -> Vec<InputItem<'a>> {
    let mut items = Vec::new();
    for message in &request.messages {
        match message {
            Message::User(parts) => {
                let content = ItemContent::Parts(parts.iter().map(part).collect());
                items.push(InputItem::Known(KnownItem::Message {
                    role: "user",
                    content,
                    phase: None,
                }));
            }
            Message::Assistant(parts) => {
                let mut phase = None;
                for part in parts {
                    match part {
                        AssistantPart::Phase(next) => phase = Some(*next),
                        part => items.extend(output_item(part, phase.take())),
                    }
                }
            }
            Message::Results(results) => items.extend(results.iter().map(result)),
        }
    }
    items
}

fn part<'a>(part: &'a InputPart<'a>) -> ContentPart<'a> {
    match part {
        InputPart::Text(text) => ContentPart::Text { text },
        InputPart::Media { mime, data, name } => {
            let url = format!("data:{mime};base64,{data}");
            match mime.starts_with("image/") {
                true => ContentPart::Image { image_url: url, detail: "auto" },
                false => {
                    ContentPart::File { filename: name.unwrap_or("document.pdf"), file_data: url }
                }
            }
        }
    }
}

/// Converts a part of the model's message. `phase` is that of a text.
fn output_item<'a>(part: &'a AssistantPart<'a>, phase: Option<&'a str>) -> Option<InputItem<'a>> {
    match part {
        AssistantPart::Phase(_) => None,
        AssistantPart::Text("") => None,
        AssistantPart::Text(text) => {
            // As content parts, the text would need the id of a stored message. Without `store`, the provider has none.
            let content = ItemContent::Text(text);
            Some(InputItem::Known(KnownItem::Message { role: "assistant", content, phase }))
        }
        AssistantPart::Reasoning(raw) | AssistantPart::Other(raw) => {
            let mut fields = RawFields::default();
            fields.merge(raw);
            fields.remove("id");
            fields.remove("status");
            Some(InputItem::Raw(fields))
        }
        AssistantPart::Call(call) => {
            let (call_id, name) = (&*call.id, &*call.name);
            Some(InputItem::Known(match call.form {
                CallForm::Json => {
                    KnownItem::FunctionCall { call_id, name, arguments: &call.arguments }
                }
                CallForm::Text => {
                    KnownItem::CustomToolCall { call_id, name, input: &call.arguments }
                }
            }))
        }
    }
}

fn result<'a>(result: &'a ResultPart<'a>) -> InputItem<'a> {
    let output = match result.content.as_slice() {
        [InputPart::Text(text)] => ItemContent::Text(text),
        parts => ItemContent::Parts(parts.iter().map(part).collect()),
    };
    let call_id = &*result.call;
    InputItem::Known(match result.form {
        CallForm::Json => KnownItem::FunctionCallOutput { call_id, output },
        CallForm::Text => KnownItem::CustomToolCallOutput { call_id, output },
    })
}

/// Reads the events of a streamed response.
#[derive(Debug, Default)]
pub struct ResponsesDecoder {
    /// Finished items, in order.
    blocks: Vec<Block>,
    is_refusal: bool,
    end: Option<End>,
}

#[derive(Debug)]
struct End {
    stop: StopReason,
    usage: Option<ResponsesUsage>,
}

#[derive(Debug, Deserialize)]
struct ResponsesEvent {
    #[serde(default)]
    r#type: String,
    #[serde(default)]
    delta: Option<Box<RawValue>>,
    #[serde(default)]
    item: Option<Box<RawValue>>,
    #[serde(default)]
    response: Option<Box<RawValue>>,
}

/// An item of a response. Its fields depend on its type.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OutputItem {
    r#type: String,
    call_id: String,
    name: String,
    arguments: Option<String>,
    input: Option<String>,
    content: Option<Vec<OutputContent>>,
    summary: Option<Vec<OutputContent>>,
    encrypted_content: Option<String>,
    phase: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OutputContent {
    r#type: String,
    text: String,
    refusal: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ResponseObject {
    status: Option<String>,
    output: Option<Vec<Box<RawValue>>>,
    #[serde(deserialize_with = "lenient")]
    usage: Option<ResponsesUsage>,
    incomplete_details: Option<IncompleteDetails>,
    error: Option<Box<RawValue>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct IncompleteDetails {
    reason: String,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct ResponsesUsage {
    #[serde(deserialize_with = "tokens")]
    input_tokens: Option<u64>,
    #[serde(deserialize_with = "tokens")]
    output_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    input_tokens_details: Option<InputDetails>,
    #[serde(deserialize_with = "lenient")]
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct InputDetails {
    #[serde(deserialize_with = "tokens")]
    cached_tokens: Option<u64>,
    #[serde(deserialize_with = "tokens")]
    cache_write_tokens: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct OutputDetails {
    #[serde(deserialize_with = "tokens")]
    reasoning_tokens: Option<u64>,
}

impl ResponsesDecoder {
    pub(super) fn event(&mut self, data: &str, deltas: &mut Vec<Delta>) -> Result<(), Failure> {
        if self.end.is_some() || data.trim().is_empty() || data.trim() == "[DONE]" {
            return Ok(());
        }
        let event: ResponsesEvent = parse(data)?;
        let text = || {
            event
                .delta
                .as_deref()
                .and_then(|delta| serde_json::from_str::<String>(delta.get()).ok())
        };
        match event.r#type.as_str() {
            "response.output_text.delta" | "response.refusal.delta" => {
                deltas.extend(text().map(Delta::Text));
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                deltas.extend(text().map(Delta::Reasoning));
            }
            "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
                deltas.extend(text().map(Delta::Arguments));
            }
            "response.output_item.added" => {
                if let Some(item) = &event.item {
                    let item: OutputItem = parse(item.get())?;
                    if !item.name.is_empty() {
                        deltas.push(Delta::Call { name: item.name });
                    }
                }
            }
            // The finished item replaces what the deltas said.
            "response.output_item.done" => {
                if let Some(item) = event.item {
                    self.add_item(item)?;
                }
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                let response = event.response.as_deref().map_or("{}", RawValue::get);
                self.finish_response(response, event.r#type.trim_start_matches("response."))?;
            }
            "error" => return Err(Failure::from_event(data)),
            _ => {}
        }
        Ok(())
    }

    pub(super) fn whole_reply(&mut self, body: &str) -> Result<(), Failure> {
        let response: ResponseObject = parse(body)?;
        for item in response.output.unwrap_or_default() {
            self.add_item(item)?;
        }
        let status = response.status.unwrap_or_default();
        self.finish_response(body, &status)
    }

    fn add_item(&mut self, raw: Box<RawValue>) -> Result<(), Failure> {
        if self.blocks.len() == MAX_BLOCKS {
            return Err(too_many_blocks());
        }
        let item: OutputItem = parse(raw.get())?;
        let texts = |parts: Option<Vec<OutputContent>>| -> String {
            let parts = parts.unwrap_or_default().into_iter();
            parts.map(|part| if part.text.is_empty() { part.refusal } else { part.text }).collect()
        };
        match item.r#type.as_str() {
            "message" => {
                let is_refusal = |part: &OutputContent| part.r#type == "refusal";
                self.is_refusal |= item.content.iter().flatten().any(is_refusal);
                self.blocks.extend(item.phase.map(Block::Phase));
                self.blocks.push(Block::Text(texts(item.content)));
            }
            "reasoning" => {
                // Without encrypted content, the provider would look for the item on its side, where it is not stored.
                let raw = item.encrypted_content.is_some().then_some(raw);
                self.blocks.push(Block::Reasoning { text: texts(item.summary), raw });
            }
            "function_call" | "custom_tool_call" => {
                let form = match item.r#type == "function_call" {
                    true => CallForm::Json,
                    false => CallForm::Text,
                };
                let (id, name) = (item.call_id, item.name);
                let arguments = item.arguments.or(item.input).unwrap_or_default();
                self.blocks.push(Block::Call(CallBlock { id, name, arguments, form }));
            }
            _ => self.blocks.push(Block::Other(raw)),
        }
        Ok(())
    }

    fn finish_response(&mut self, response: &str, outcome: &str) -> Result<(), Failure> {
        let response: ResponseObject = parse(response)?;
        if outcome == "failed" {
            return Err(match &response.error {
                Some(error) => Failure::from_event(error.get()),
                None => {
                    Failure::new(FailureKind::Server, "the provider reported a failed response")
                }
            });
        }
        let has_calls = self.blocks.iter().any(|block| matches!(block, Block::Call(_)));
        let reason = response.incomplete_details.map(|details| details.reason).unwrap_or_default();
        let stop = match (outcome, reason.as_str()) {
            ("incomplete", "content_filter") => StopReason::Refused,
            ("incomplete", "max_output_tokens" | "") => StopReason::Length,
            ("incomplete", other) => StopReason::Other(other.into()),
            _ if has_calls => StopReason::ToolUse,
            _ if self.is_refusal => StopReason::Refused,
            _ => StopReason::EndTurn,
        };
        self.end = Some(End { stop, usage: response.usage });
        Ok(())
    }

    pub(super) fn is_complete(&self) -> bool {
        self.end.is_some()
    }

    pub(super) fn finish(self) -> Result<ModelReply, Failure> {
        let Some(end) = self.end else {
            let message = "the stream ended before the reply was complete";
            return Err(Failure::new(FailureKind::Cut, message));
        };
        Ok(ModelReply { blocks: self.blocks, stop: end.stop, usage: end.usage.map(usage) })
    }
}

fn usage(usage: ResponsesUsage) -> Usage {
    let input = usage.input_tokens_details.unwrap_or_default();
    let output = usage.output_tokens_details.unwrap_or_default();
    Usage::from_totals(UsageTotals {
        input: usage.input_tokens.unwrap_or(0),
        output: usage.output_tokens.unwrap_or(0),
        cache_read: input.cached_tokens.unwrap_or(0),
        cache_write: input.cache_write_tokens.unwrap_or(0),
        reasoning: output.reasoning_tokens.unwrap_or(0),
    })
}
