//! A model that follows a script, at the other end of the two APIs that agents speak. Loopback only.
//!
//! It keeps no state: how many answers of tools a request holds says which step is next.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use serde_json::{Value, json};

/// A call that the model makes, of one of Helve's tools.
#[derive(Clone)]
pub(super) struct Step {
    pub tool: &'static str,
    pub arguments: Value,
}

pub(super) struct Model {
    port: u16,
    answers: Arc<Mutex<Vec<String>>>,
}

const MOST_BODY: u64 = 64 << 20;

impl Model {
    /// Listens until the process ends.
    pub(super) fn start(steps: Vec<Step>) -> Result<Model, String> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| format!("{error}"))?;
        let port = listener.local_addr().map_err(|error| format!("{error}"))?.port();
        let answers = Arc::new(Mutex::new(Vec::new()));
        let (kept, steps) = (Arc::clone(&answers), Arc::new(steps));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (kept, steps) = (Arc::clone(&kept), Arc::clone(&steps));
                // One agent that goes away in the middle is its own affair.
                thread::spawn(move || serve(stream, &steps, &kept).ok());
            }
        });
        Ok(Model { port, answers })
    }

    pub(super) fn address(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// What the tools answered, as the model was last told.
    pub(super) fn answers(&self) -> Vec<String> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn serve(stream: TcpStream, steps: &[Step], kept: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first)?;
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
    reader.by_ref().take(length.min(MOST_BODY)).read_to_end(&mut body)?;
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let (kind, answer) = if first.contains("/chat/completions ") {
        ("text/event-stream", chat(&request, steps, kept))
    } else if first.contains("/responses ") {
        ("text/event-stream", responses(&request, steps, kept))
    } else {
        ("application/json", json!({"object": "list", "data": [], "models": []}).to_string())
    };
    let mut stream = reader.into_inner();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{answer}",
        answer.len()
    )?;
    stream.flush()
}

/// What tools answered so far; requests without tools are for titles and the like.
fn keep(kept: &Mutex<Vec<String>>, answers: &[String]) {
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    if answers.len() >= kept.len() {
        *kept = answers.to_vec();
    }
}

fn chat(request: &Value, steps: &[Step], kept: &Mutex<Vec<String>>) -> String {
    let messages = request["messages"].as_array().into_iter().flatten();
    let answers: Vec<String> =
        messages.filter(|it| it["role"] == "tool").map(|it| text(&it["content"])).collect();
    keep(kept, &answers);
    let tools = request["tools"].as_array();
    let step = tools.and_then(|_| steps.get(answers.len()));
    let (delta, reason) = match step {
        Some(step) => {
            let names =
                tools.into_iter().flatten().filter_map(|it| it["function"]["name"].as_str());
            let name = named(names, step.tool);
            let function = json!({"name": name, "arguments": step.arguments.to_string()});
            let id = format!("call_{}", answers.len());
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

fn responses(request: &Value, steps: &[Step], kept: &Mutex<Vec<String>>) -> String {
    let items = request["input"].as_array().into_iter().flatten();
    let outputs = items.filter(|it| it["type"] == "function_call_output");
    let answers: Vec<String> = outputs.map(|it| text(&it["output"])).collect();
    keep(kept, &answers);
    let item = match steps.get(answers.len()) {
        Some(step) => {
            let number = answers.len();
            let mut call = json!({
                "type": "function_call", "id": format!("fc_{number}"), "call_id": format!("call_{number}"),
                "name": step.tool, "arguments": step.arguments.to_string(), "status": "completed",
            });
            let all: Vec<&Value> = request["tools"].as_array().into_iter().flatten().collect();
            let space = all.iter().find(|it| {
                it["type"] == "namespace"
                    && it["name"].as_str().is_some_and(|it| it.contains("helve"))
            });
            match space {
                Some(space) => call["namespace"] = space["name"].clone(),
                None => {
                    let names = all.iter().filter_map(|it| it["name"].as_str());
                    call["name"] = named(names, step.tool).into();
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
    let whole = json!({"id": "r", "object": "response", "status": "completed", "output": [item], "usage": usage});
    let begun = json!({"id": "r", "object": "response", "status": "in_progress", "output": []});
    event("response.created", json!({"response": begun}))
        + &event("response.output_item.done", json!({"output_index": 0, "item": item}))
        + &event("response.completed", json!({"response": whole}))
}

/// The name under which an agent offers a tool of Helve: each puts something of its own before it.
fn named<'a>(mut names: impl Iterator<Item = &'a str>, tool: &str) -> String {
    let found = names.find(|name| name.contains("helve") && name.ends_with(&format!("_{tool}")));
    found.unwrap_or(tool).to_owned()
}

fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(text).collect::<Vec<_>>().join("\n"),
        Value::Object(part) => {
            part.get("text").or(part.get("content")).map(text).unwrap_or_default()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps() -> Vec<Step> {
        vec![Step { tool: "read", arguments: json!({"filePath": "a"}) }]
    }

    #[test]
    fn each_answer_of_a_tool_is_a_step() {
        let kept = Mutex::new(Vec::new());
        let tools = json!([{"type": "function", "function": {"name": "helve_read"}}]);
        let first = chat(&json!({"messages": [], "tools": tools}), &steps(), &kept);
        assert!(first.contains(r#""name":"helve_read""#), "{first}");
        let told = json!([{"role": "tool", "content": "a line"}]);
        let second = chat(&json!({"messages": told, "tools": tools}), &steps(), &kept);
        assert!(second.contains(r#""content":"done""#), "{second}");
        assert_eq!(*kept.lock().unwrap(), ["a line"]);
    }

    #[test]
    fn tools_in_a_namespace_are_called_in_it() {
        let kept = Mutex::new(Vec::new());
        let tools = json!([{"type": "namespace", "name": "mcp__helve", "tools": []}]);
        let first = responses(&json!({"input": [], "tools": tools}), &steps(), &kept);
        assert!(first.contains(r#""namespace":"mcp__helve""#), "{first}");
    }
}
