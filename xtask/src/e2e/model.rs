//! A model that follows a script. It serves the two APIs that agents use, on a loopback address.
//!
//! The number of tool results in a request decides which step of the script comes next.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use serde_json::{Value, json};

/// A call of one of Helve's tools that the model makes.
#[derive(Clone)]
pub(super) struct ScriptedCall {
    pub tool: &'static str,
    pub arguments: Value,
}

pub(super) struct ScriptedModel {
    port: u16,
    tool_results: Arc<Mutex<Vec<String>>>,
}

const MAX_BODY_BYTES: u64 = 64 << 20;

impl ScriptedModel {
    /// Starts the model in a thread, which runs until the process ends.
    pub(super) fn start(steps: Vec<ScriptedCall>) -> Result<ScriptedModel, String> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| format!("{error}"))?;
        let port = listener.local_addr().map_err(|error| format!("{error}"))?.port();
        let tool_results = Arc::new(Mutex::new(Vec::new()));
        let (recorded, steps) = (Arc::clone(&tool_results), Arc::new(steps));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (recorded, steps) = (Arc::clone(&recorded), Arc::clone(&steps));
                // An agent may close its connection at any time.
                thread::spawn(move || serve(stream, &steps, &recorded).ok());
            }
        });
        Ok(ScriptedModel { port, tool_results })
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// Returns the tool results that the last request contained.
    pub(super) fn tool_results(&self) -> Vec<String> {
        self.tool_results.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn serve(
    stream: TcpStream,
    steps: &[ScriptedCall],
    recorded: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut request_line = String::new();
    reader.read_line(&mut request_line)?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').unwrap_or((&line, ""));
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = Vec::new();
    reader.by_ref().take(length.min(MAX_BODY_BYTES)).read_to_end(&mut body)?;
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let (content_type, response) = if request_line.contains("/chat/completions ") {
        ("text/event-stream", chat(&request, steps, recorded))
    } else if request_line.contains("/responses ") {
        ("text/event-stream", responses(&request, steps, recorded))
    } else {
        ("application/json", json!({"object": "list", "data": [], "models": []}).to_string())
    };
    let mut stream = reader.into_inner();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{response}",
        response.len()
    )?;
    stream.flush()
}

/// Records the tool results of a request. Ignores a request with fewer results than before, such as one for a title.
fn record(recorded: &Mutex<Vec<String>>, results: &[String]) {
    let mut recorded = recorded.lock().unwrap_or_else(PoisonError::into_inner);
    if results.len() >= recorded.len() {
        *recorded = results.to_vec();
    }
}

/// Answers a request of the chat completions API.
fn chat(request: &Value, steps: &[ScriptedCall], recorded: &Mutex<Vec<String>>) -> String {
    let messages = request["messages"].as_array().into_iter().flatten();
    let results: Vec<String> =
        messages.filter(|it| it["role"] == "tool").map(|it| content_text(&it["content"])).collect();
    record(recorded, &results);
    let tools = request["tools"].as_array();
    let step = tools.and_then(|_| steps.get(results.len()));
    let (delta, reason) = match step {
        Some(step) => {
            let names =
                tools.into_iter().flatten().filter_map(|it| it["function"]["name"].as_str());
            let name = offered_name(names, step.tool);
            let function = json!({"name": name, "arguments": step.arguments.to_string()});
            let id = format!("call_{}", results.len());
            let call = json!({"index": 0, "id": id, "type": "function", "function": function});
            (json!({"role": "assistant", "content": null, "tool_calls": [call]}), "tool_calls")
        }
        None => (json!({"role": "assistant", "content": "done"}), "stop"),
    };
    let chunk = |choice: Value| json!({"id": "answer", "object": "chat.completion.chunk", "created": 0, "model": "script", "choices": [choice]});
    let first = chunk(json!({"index": 0, "delta": delta, "finish_reason": null}));
    let last = chunk(json!({"index": 0, "delta": {}, "finish_reason": reason}));
    format!("data: {first}\n\ndata: {last}\n\ndata: [DONE]\n\n")
}

/// Answers a request of the responses API.
fn responses(request: &Value, steps: &[ScriptedCall], recorded: &Mutex<Vec<String>>) -> String {
    let items = request["input"].as_array().into_iter().flatten();
    let outputs = items.filter(|it| it["type"] == "function_call_output");
    let results: Vec<String> = outputs.map(|it| content_text(&it["output"])).collect();
    record(recorded, &results);
    let item = match steps.get(results.len()) {
        Some(step) => {
            let number = results.len();
            let mut call = json!({
                "type": "function_call", "id": format!("fc_{number}"), "call_id": format!("call_{number}"),
                "name": step.tool, "arguments": step.arguments.to_string(), "status": "completed",
            });
            let tools: Vec<&Value> = request["tools"].as_array().into_iter().flatten().collect();
            let namespace = tools.iter().find(|it| {
                it["type"] == "namespace"
                    && it["name"].as_str().is_some_and(|it| it.contains("helve"))
            });
            match namespace {
                Some(namespace) => call["namespace"] = namespace["name"].clone(),
                None => {
                    let names = tools.iter().filter_map(|it| it["name"].as_str());
                    call["name"] = offered_name(names, step.tool).into();
                }
            }
            call
        }
        None => json!({
            "type": "message", "id": "msg", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": "done", "annotations": []}],
        }),
    };
    let event = |kind: &str, mut rest: Value| {
        rest["type"] = kind.into();
        format!("event: {kind}\ndata: {rest}\n\n")
    };
    let usage = json!({"input_tokens": 1, "output_tokens": 1, "total_tokens": 2});
    let completed = json!({"id": "r", "object": "response", "status": "completed", "output": [item], "usage": usage});
    let created = json!({"id": "r", "object": "response", "status": "in_progress", "output": []});
    event("response.created", json!({"response": created}))
        + &event("response.output_item.done", json!({"output_index": 0, "item": item}))
        + &event("response.completed", json!({"response": completed}))
}

/// Returns the name under which an agent offers a tool of Helve. Each agent adds its own prefix.
fn offered_name<'a>(mut names: impl Iterator<Item = &'a str>, tool: &str) -> String {
    let found = names.find(|name| name.contains("helve") && name.ends_with(&format!("_{tool}")));
    found.unwrap_or(tool).to_owned()
}

fn content_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(content_text).collect::<Vec<_>>().join("\n"),
        Value::Object(part) => {
            part.get("text").or(part.get("content")).map(content_text).unwrap_or_default()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps() -> Vec<ScriptedCall> {
        vec![ScriptedCall { tool: "read", arguments: json!({"filePath": "a"}) }]
    }

    #[test]
    fn each_tool_answer_leads_to_the_next_step() {
        let recorded = Mutex::new(Vec::new());
        let tools = json!([{"type": "function", "function": {"name": "helve_read"}}]);
        let first = chat(&json!({"messages": [], "tools": tools}), &steps(), &recorded);
        assert!(first.contains(r#""name":"helve_read""#), "{first}");
        let messages = json!([{"role": "tool", "content": "a line"}]);
        let second = chat(&json!({"messages": messages, "tools": tools}), &steps(), &recorded);
        assert!(second.contains(r#""content":"done""#), "{second}");
        assert_eq!(*recorded.lock().unwrap(), ["a line"]);
    }

    #[test]
    fn tools_in_a_namespace_are_called_with_it() {
        let recorded = Mutex::new(Vec::new());
        let tools = json!([{"type": "namespace", "name": "mcp__helve", "tools": []}]);
        let first = responses(&json!({"input": [], "tools": tools}), &steps(), &recorded);
        assert!(first.contains(r#""namespace":"mcp__helve""#), "{first}");
    }
}
