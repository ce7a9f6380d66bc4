//! Makes the answers of a scripted provider in each protocol, and runs turns against it.

use std::time::Duration;

use helve::agent_loop::event::AgentEvent;
use helve::agent_loop::http::{Endpoint, Timeouts};
use helve::agent_loop::item::{Entry, MessagePart, ModelRef, Protocol};
use helve::agent_loop::model::ActiveModel;
use helve::agent_loop::request::ModelSettings;
use helve::agent_loop::turn::{Compaction, TurnLimits};
use helve::{Toolbox, TurnOptions, TurnReport};
use helve_testkit::{ScriptedAnswer, ScriptedProvider};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// A part of a model's reply.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    Text(&'static str),
    Call { id: String, name: &'static str, arguments: Value },
}

pub(crate) fn text(text: &'static str) -> Part {
    Part::Text(text)
}

pub(crate) fn call(id: &str, name: &'static str, arguments: Value) -> Part {
    Part::Call { id: id.into(), name, arguments }
}

/// Why a reply ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    Normal,
    Length,
    /// The provider pauses. Only one protocol has this; in the others the reply ends normally.
    Pause,
}

/// A reply that ends normally.
pub(crate) fn reply(protocol: Protocol, parts: &[Part]) -> ScriptedAnswer {
    reply_with_stop(protocol, parts, Stop::Normal)
}

pub(crate) fn reply_with_stop(protocol: Protocol, parts: &[Part], stop: Stop) -> ScriptedAnswer {
    let events = events(protocol, parts, stop);
    ScriptedAnswer::events(&events.iter().map(String::as_str).collect::<Vec<_>>())
}

/// A reply whose connection breaks before the event that ends it.
pub(crate) fn cut_reply(protocol: Protocol, parts: &[Part]) -> ScriptedAnswer {
    let mut events = events(protocol, parts, Stop::Normal);
    let ending = match protocol {
        Protocol::Chat | Protocol::Messages => 2,
        Protocol::Responses => 1,
    };
    events.truncate(events.len() - ending);
    ScriptedAnswer::events(&events.iter().map(String::as_str).collect::<Vec<_>>()).cut()
}

/// The events of a streamed reply, as JSON texts.
pub(crate) fn events(protocol: Protocol, parts: &[Part], stop: Stop) -> Vec<String> {
    let events = match protocol {
        Protocol::Chat => chat_events(parts, stop),
        Protocol::Responses => responses_events(parts, stop),
        Protocol::Messages => messages_events(parts, stop),
    };
    let mut events: Vec<String> = events.iter().map(Value::to_string).collect();
    if protocol == Protocol::Chat {
        events.push("[DONE]".into());
    }
    events
}

fn has_calls(parts: &[Part]) -> bool {
    parts.iter().any(|part| matches!(part, Part::Call { .. }))
}

fn chat_events(parts: &[Part], stop: Stop) -> Vec<Value> {
    let chunk = |delta: Value| json!({"choices": [{"index": 0, "delta": delta}]});
    let mut events = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        events.push(match part {
            Part::Text(text) => chunk(json!({"content": text})),
            Part::Call { id, name, arguments } => chunk(json!({"tool_calls": [{
                "index": index, "id": id, "type": "function",
                "function": {"name": name, "arguments": arguments.to_string()},
            }]})),
        });
    }
    let reason = match stop {
        Stop::Length => "length",
        Stop::Normal | Stop::Pause if has_calls(parts) => "tool_calls",
        Stop::Normal | Stop::Pause => "stop",
    };
    events.push(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}));
    events
}

fn responses_events(parts: &[Part], stop: Stop) -> Vec<Value> {
    let item = |item: Value| json!({"type": "response.output_item.done", "item": item});
    let mut events = Vec::new();
    for part in parts {
        events.push(item(match part {
            Part::Text(text) => json!({
                "type": "message", "role": "assistant",
                "content": [{"type": "output_text", "text": text}],
            }),
            Part::Call { id, name, arguments } => json!({
                "type": "function_call", "call_id": id, "name": name,
                "arguments": arguments.to_string(),
            }),
        }));
    }
    events.push(match stop {
        Stop::Normal | Stop::Pause => json!({"type": "response.completed", "response": {}}),
        Stop::Length => json!({
            "type": "response.incomplete",
            "response": {"incomplete_details": {"reason": "max_output_tokens"}},
        }),
    });
    events
}

fn messages_events(parts: &[Part], stop: Stop) -> Vec<Value> {
    let mut events =
        vec![json!({"type": "message_start", "message": {"usage": {"input_tokens": 1}}})];
    for (index, part) in parts.iter().enumerate() {
        let (block, delta) = match part {
            Part::Text(text) => {
                (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": text}))
            }
            Part::Call { id, name, arguments } => (
                json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
                json!({"type": "input_json_delta", "partial_json": arguments.to_string()}),
            ),
        };
        events.push(json!({"type": "content_block_start", "index": index, "content_block": block}));
        events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    let reason = match stop {
        Stop::Length => "max_tokens",
        Stop::Pause => "pause_turn",
        Stop::Normal if has_calls(parts) => "tool_use",
        Stop::Normal => "end_turn",
    };
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": reason}}));
    events.push(json!({"type": "message_stop"}));
    events
}

/// The results of turns that were run against a script.
pub(crate) struct Run {
    protocol: Protocol,
    pub(crate) folder: TempDir,
    /// How the last turn ended.
    pub(crate) report: TurnReport,
    /// The bodies of all requests.
    pub(crate) requests: Vec<Value>,
    /// The stored transcript.
    pub(crate) entries: Vec<Entry>,
    pub(crate) events: Vec<AgentEvent>,
    /// Number of bytes sent by answers that flood the client.
    pub(crate) flooded_bytes: usize,
}

impl Run {
    pub(crate) async fn turn(protocol: Protocol, script: Vec<ScriptedAnswer>) -> Run {
        Run::turns(protocol, script, &["say hello"]).await
    }

    /// Runs a turn with a changed model.
    pub(crate) async fn turn_with(
        protocol: Protocol,
        script: Vec<ScriptedAnswer>,
        change: impl Fn(&mut ActiveModel),
    ) -> Run {
        Run::turns_with(protocol, script, &["say hello"], change).await
    }

    /// Runs a turn per prompt, each in an agent of its own that continues the same session. Nobody answers questions.
    pub(crate) async fn turns(
        protocol: Protocol,
        script: Vec<ScriptedAnswer>,
        prompts: &[&str],
    ) -> Run {
        Run::turns_with(protocol, script, prompts, |_| {}).await
    }

    async fn turns_with(
        protocol: Protocol,
        script: Vec<ScriptedAnswer>,
        prompts: &[&str],
        change: impl Fn(&mut ActiveModel),
    ) -> Run {
        let (folder, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(folder.path().join("a.txt"), "alpha\n").unwrap();
        let provider = ScriptedProvider::start(script).unwrap();
        let toolbox =
            Toolbox::builder().dir(folder.path()).data(data.path()).build().await.unwrap();
        let mut report = None;
        let events = Mutex::new(Vec::new());
        for prompt in prompts {
            let mut model = model(protocol, &provider.url);
            change(&mut model);
            let mut agent = toolbox.agent(model).await.unwrap();
            let options = TurnOptions {
                limits: TurnLimits::default(),
                compaction: Compaction::Automatic,
                output_schema: None,
            };
            let prompt = vec![MessagePart::Text(prompt.to_string())];
            let emit = |event| events.lock().push(event);
            let turn = agent.run(prompt, &options, &emit, CancellationToken::new());
            report = Some(turn.await.unwrap());
        }
        let entries = toolbox.transcript(toolbox.session_id()).await.unwrap();
        toolbox.close().await;
        let (report, requests) = (report.unwrap(), provider.requests());
        let (events, flooded_bytes) = (events.into_inner(), provider.flooded_bytes());
        Run { protocol, folder, report, requests, entries, events, flooded_bytes }
    }

    /// The messages of a request, without marks for the provider's cache.
    pub(crate) fn messages(&self, request: &Value) -> Vec<Value> {
        let field = match self.protocol {
            Protocol::Chat | Protocol::Messages => "messages",
            Protocol::Responses => "input",
        };
        let mut messages = request[field].as_array().unwrap().clone();
        messages.iter_mut().for_each(remove_marks);
        messages
    }

    /// The results in a request: the ids of the calls, and the results as JSON text.
    pub(crate) fn results(&self, request: usize) -> Vec<(String, String)> {
        let mut results = Vec::new();
        let messages = self.messages(&self.requests[request]);
        let blocks = messages.iter().flat_map(|message| match &message["content"] {
            Value::Array(blocks) => blocks.clone(),
            _ => vec![message.clone()],
        });
        for block in blocks.chain(messages.clone()) {
            for field in ["tool_call_id", "call_id", "tool_use_id"] {
                let is_call = block.get("arguments").is_some();
                if let Some(id) = block[field].as_str().filter(|_| !is_call) {
                    let found = (id.to_string(), block.to_string());
                    if !results.contains(&found) {
                        results.push(found);
                    }
                }
            }
        }
        results
    }
}

/// Removes the marks for the provider's cache.
fn remove_marks(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("cache_control");
            fields.values_mut().for_each(remove_marks);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_marks),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

pub(crate) fn model(protocol: Protocol, url: &str) -> ActiveModel {
    ActiveModel {
        reference: ModelRef { provider: "test".into(), name: "scripted".into(), protocol },
        endpoint: Endpoint {
            base_url: url.into(),
            protocol,
            key: None,
            headers: Vec::new(),
            timeouts: Timeouts {
                first_retry_wait: Duration::from_millis(1),
                ..Timeouts::for_url(url)
            },
        },
        settings: ModelSettings::default(),
        window: 200_000,
        is_window_assumed: false,
        prices: None,
    }
}
