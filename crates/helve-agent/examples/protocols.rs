//! Shows what the three protocols send and understand, so that other programs can check it. `cargo xtask e2e` compares
//! it with the types of the providers' own libraries.
//!
//! - `protocols bodies COUNT` prints request bodies of generated transcripts, one JSON object per line.
//! - `protocols replies` reads one JSON object per line, `{"protocol": "chat", "events": ["…"]}`, and prints the reply
//!   that the events make.
#![expect(clippy::print_stdout, reason = "the output of a command-line program")]

use std::io::BufRead;

use fastrand::Rng;
use helve_agent::compose::{self, Target};
use helve_agent::failure::Failure;
use helve_agent::item::{
    AssistantMessage, Block, CallBlock, CallForm, CallResult, Entry, Item, MessagePart, ModelRef,
    NoteKind, Protocol, StopReason,
};
use helve_agent::reply::ModelReply;
use helve_agent::request::{ModelRequest, ModelSettings, Quirks, ToolChoice};
use helve_agent::request::{ToolDefinition, ToolInput};
use helve_agent::wire::{self, ReplyDecoder};
use helve_text::sse::SseEvent;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

const PROTOCOLS: [Protocol; 3] = [Protocol::Chat, Protocol::Responses, Protocol::Messages];
/// A picture of one pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

fn main() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["bodies", count] => {
            let count = count.parse().map_err(|err| format!("{count}: {err}"))?;
            print_bodies(count);
            Ok(())
        }
        ["replies"] => print_replies(),
        _ => Err("usage: protocols bodies COUNT | protocols replies".into()),
    }
}

/// Prints bodies for each protocol, from the same transcripts.
fn print_bodies(count: u64) {
    for protocol in PROTOCOLS {
        for seed in 0..count {
            let body = Generated::new(seed, protocol).body();
            println!("{}", json!({"protocol": protocol, "seed": seed, "body": body}));
        }
    }
}

/// A generated transcript and the settings of a request.
struct Generated {
    rng: Rng,
    model: ModelRef,
    entries: Vec<Entry>,
    calls: usize,
}

impl Generated {
    fn new(seed: u64, protocol: Protocol) -> Self {
        let model = ModelRef { provider: "p".into(), name: "m".into(), protocol };
        let mut generated =
            Self { rng: Rng::with_seed(seed), model, entries: Vec::new(), calls: 0 };
        generated.add(Item::Note { note: NoteKind::Environment, text: "Platform: any".into() });
        for _ in 0..generated.rng.usize(1..12) {
            generated.add_step();
        }
        let content = generated.message_parts();
        generated.add(Item::User { content });
        generated
    }

    fn add(&mut self, item: Item) {
        let seq = self.entries.len() as u64 + 1;
        self.entries.push(Entry { seq, item });
    }

    fn add_step(&mut self) {
        let last = self.entries.len() as u64;
        match self.rng.u8(0..12) {
            0..2 => {
                let content = self.message_parts();
                self.add(Item::User { content });
            }
            2..8 => self.add_reply(),
            8 => self.add(Item::Undone { from: last.saturating_sub(2).max(2), call: None }),
            9 => {
                let (text, tail) = ("what happened".into(), last.saturating_sub(3).max(1));
                self.add(Item::Summary { text, kept: vec![2], tail });
            }
            10 => self.add(Item::OutputsCleared { before: last }),
            _ => self.add(Item::Note { note: NoteKind::Budget, text: "Half is left.".into() }),
        }
    }

    fn message_parts(&mut self) -> Vec<MessagePart> {
        let parts = self.rng.usize(1..4);
        (0..parts).map(|_| self.message_part()).collect()
    }

    fn message_part(&mut self) -> MessagePart {
        let media = |mime: &str, name: &str| MessagePart::Media {
            mime: mime.into(),
            data: PNG.into(),
            name: Some(name.into()),
        };
        match self.rng.u8(0..6) {
            0 => media("image/png", "picture.png"),
            1 => media("application/pdf", "paper.pdf"),
            2 => MessagePart::Text(" ".into()),
            _ => MessagePart::Text("Größe \"x\" 🙂\n".into()),
        }
    }

    /// Adds a reply of this model or another one, and results for most of its calls.
    fn add_reply(&mut self) {
        let origin = match self.rng.u8(0..4) {
            0 => ModelRef { name: "another".into(), ..self.model.clone() },
            _ => self.model.clone(),
        };
        let is_partial = self.rng.u8(0..6) == 0;
        let mut blocks = Vec::new();
        if self.rng.bool() {
            blocks.extend(self.reasoning());
        }
        if self.rng.bool() {
            blocks.push(Block::Text("I look.".into()));
        }
        let calls: Vec<CallBlock> = (0..self.rng.usize(0..4)).map(|_| self.call()).collect();
        blocks.extend(calls.iter().cloned().map(Block::Call));
        let stop = if calls.is_empty() { StopReason::EndTurn } else { StopReason::ToolUse };
        self.add(Item::Assistant(AssistantMessage { blocks, origin, stop, is_partial }));
        for call in calls.iter().filter(|_| !is_partial) {
            // An interrupted call has no result.
            if self.rng.u8(0..5) > 0 {
                let (content, is_error) = (self.message_parts(), self.rng.bool());
                self.add(Item::Result(CallResult {
                    call: call.id.clone(),
                    title: "a.txt".into(),
                    content,
                    is_error,
                    saved: None,
                }));
            }
        }
    }

    /// Reasoning as the provider of the protocol sends it.
    fn reasoning(&mut self) -> Vec<Block> {
        let raws = match self.model.protocol {
            Protocol::Chat => vec![json!({"reasoning_content": "hm"})],
            Protocol::Responses => vec![json!({
                "type": "reasoning", "id": "rs_1", "encrypted_content": "gAAA",
                "summary": [{"type": "summary_text", "text": "hm"}],
            })],
            Protocol::Messages => vec![
                json!({"type": "thinking", "thinking": "hm", "signature": "sig"}),
                json!({"type": "redacted_thinking", "data": "gAAA"}),
            ],
        };
        let raw = |raw: &Value| to_raw_value(raw).ok();
        raws.iter().map(|value| Block::Reasoning { text: "hm".into(), raw: raw(value) }).collect()
    }

    fn call(&mut self) -> CallBlock {
        self.calls += 1;
        let number = self.calls;
        let id = match self.rng.u8(0..3) {
            0 => format!("call|{number}+{}", "x".repeat(80)),
            _ => format!("call_{number}"),
        };
        let patch = "*** Begin Patch\n*** Delete File: a.txt\n*** End Patch";
        let (name, arguments, form) = match self.rng.u8(0..7) {
            0 => ("read", "{\"filePath\": \"a", CallForm::Json),
            1 => ("read", "", CallForm::Json),
            2 => ("functions.read file", "[1]", CallForm::Json),
            3 => ("apply_patch", patch, CallForm::Text),
            _ => ("read", "{\"filePath\": \"a.txt\"}", CallForm::Json),
        };
        CallBlock { id, name: name.into(), arguments: arguments.into(), form }
    }

    fn settings(&mut self) -> ModelSettings {
        ModelSettings {
            max_output: self.rng.bool().then_some(8_000),
            effort: self.rng.bool().then(|| "high".into()),
            temperature: self.rng.bool().then_some(0.5),
            top_p: self.rng.bool().then_some(0.9),
            quirks: Quirks {
                is_openai: self.rng.bool(),
                reads_images: self.rng.u8(0..4) > 0,
                reads_documents: self.rng.u8(0..4) > 0,
                requires_reasoning: self.rng.bool(),
                requires_content: self.rng.bool(),
                ..Quirks::default()
            },
        }
    }

    fn body(mut self) -> Value {
        let settings = self.settings();
        let tools = if self.rng.u8(0..6) > 0 { tools() } else { Vec::new() };
        let schema = self.rng.bool().then(output_schema);
        let target = Target { model: &self.model, quirks: &settings.quirks, tools: &tools };
        let system = ["You work with tools.".to_string(), "Be brief.".to_string()];
        let body = wire::body(&ModelRequest {
            model: &self.model,
            system: &system[..self.rng.usize(0..3)],
            tools: &tools,
            messages: compose::messages(&self.entries, &target),
            tool_choice: if self.rng.bool() { ToolChoice::Auto } else { ToolChoice::None },
            settings: &settings,
            output_schema: schema.as_deref(),
            cache_key: "session",
        });
        serde_json::from_slice(&body).unwrap_or_default()
    }
}

fn tools() -> Vec<ToolDefinition> {
    let schema = json!({
        "type": "object", "properties": {"filePath": {"type": "string"}}, "required": ["filePath"],
    });
    let text = ToolInput::Text {
        grammar: "start: /.+/".into(),
        field: "patchText".into(),
        about: "The patch.".into(),
    };
    let json = ToolInput::Json(to_raw_value(&schema).unwrap_or_default());
    let tool =
        |name: &str, input| ToolDefinition { name: name.into(), about: "A tool.".into(), input };
    vec![tool("apply_patch", text), tool("read", json)]
}

fn output_schema() -> Box<RawValue> {
    let schema =
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    to_raw_value(&schema).unwrap_or_default()
}

/// One line of the input.
#[derive(Deserialize)]
struct RecordedStream {
    protocol: Protocol,
    /// The data of each event.
    events: Vec<String>,
}

fn print_replies() -> Result<(), String> {
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|err| err.to_string())?;
        let stream: RecordedStream =
            serde_json::from_str(&line).map_err(|err| format!("{err}: {line}"))?;
        println!(
            "{}",
            match decode(stream) {
                Ok(reply) => shown(&reply),
                Err(failure) => json!({"failure": failure.message}),
            }
        );
    }
    Ok(())
}

fn decode(stream: RecordedStream) -> Result<ModelReply, Failure> {
    let mut decoder = ReplyDecoder::new(stream.protocol, None);
    for data in stream.events {
        decoder.event(&SseEvent { name: String::new(), data }, &mut Vec::new())?;
    }
    decoder.finish()
}

fn shown(reply: &ModelReply) -> Value {
    let calls = reply.calls().map(|call| {
        json!({"id": call.id, "name": call.name, "arguments": call.arguments, "form": call.form})
    });
    let reasoning = reply.blocks.iter().filter_map(|block| match block {
        Block::Reasoning { text, raw } => Some(json!({"text": text, "raw": raw})),
        Block::Text(_) | Block::Call(_) | Block::Phase(_) | Block::Other(_) => None,
    });
    json!({
        "text": reply.text(),
        "calls": calls.collect::<Value>(),
        "reasoning": reasoning.collect::<Value>(),
        "stop": reply.stop,
        "usage": reply.usage,
    })
}
