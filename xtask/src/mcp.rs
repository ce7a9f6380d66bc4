//! A small MCP client: one JSON-RPC message per line, over the pipes of a child process.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::process;

const PROTOCOL_VERSION: &str = "2025-06-18";
const MAX_MESSAGE_BYTES: u64 = 64 << 20;
/// Maximum number of messages that may arrive before the response to a request.
const MAX_UNRELATED: usize = 10_000;
const MAX_PAGES: usize = 1_000;

/// A client that reads responses from `reader` and writes requests to `writer`.
pub(crate) struct McpClient<R, W> {
    reader: R,
    writer: W,
    last_id: u64,
    /// Requests sent with `send_request`, with their results once those have arrived.
    pending: HashMap<u64, Option<Value>>,
}

/// The result of a tool call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ToolAnswer {
    pub text: String,
    pub is_error: bool,
}

impl ToolAnswer {
    pub(crate) fn from_result(tool: &str, result: &Value) -> Result<ToolAnswer, String> {
        let content = result["content"]
            .as_array()
            .ok_or_else(|| format!("{tool}: a result without content: {result}"))?;
        let texts: Vec<_> = content.iter().filter_map(|part| part["text"].as_str()).collect();
        let is_error = result["isError"].as_bool().unwrap_or(false);
        Ok(ToolAnswer { text: texts.join("\n"), is_error })
    }
}

impl<R: BufRead, W: Write> McpClient<R, W> {
    pub(crate) fn new(reader: R, writer: W) -> Self {
        McpClient { reader, writer, last_id: 0, pending: HashMap::new() }
    }

    /// Starts the session. Returns the server's response.
    pub(crate) fn initialize(&mut self) -> Result<Value, String> {
        let client = json!({"name": "helve-xtask", "version": env!("CARGO_PKG_VERSION")});
        let parameters =
            json!({"protocolVersion": PROTOCOL_VERSION, "capabilities": {}, "clientInfo": client});
        let answer = self.request("initialize", &parameters)?;
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(answer)
    }

    /// Returns all tools, over all pages.
    pub(crate) fn list_tools(&mut self) -> Result<Vec<Value>, String> {
        let mut tools = Vec::new();
        let mut parameters = json!({});
        for _ in 0..MAX_PAGES {
            let mut page = self.request("tools/list", &parameters)?;
            match page["tools"].take() {
                Value::Array(page_tools) => tools.extend(page_tools),
                other => return Err(format!("tools/list: `tools` is {other}")),
            }
            match page["nextCursor"].take() {
                Value::Null => return Ok(tools),
                cursor => parameters = json!({"cursor": cursor}),
            }
        }
        Err(format!("tools/list: more than {MAX_PAGES} pages"))
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Result<ToolAnswer, String> {
        let result = self.request("tools/call", &json!({"name": tool, "arguments": arguments}))?;
        ToolAnswer::from_result(tool, &result)
    }

    /// Sends a request without waiting for its response, which arrives while later requests wait for theirs.
    pub(crate) fn send_request(&mut self, method: &str, parameters: &Value) -> Result<u64, String> {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": parameters}))?;
        self.pending.insert(id, None);
        Ok(id)
    }

    /// Takes the result of a request sent with `send_request`, if its response has arrived.
    pub(crate) fn take_result(&mut self, id: u64) -> Option<Value> {
        self.pending.get_mut(&id)?.take()
    }

    /// Sends a request and returns its result. A JSON-RPC error is returned as an error.
    pub(crate) fn request(&mut self, method: &str, parameters: &Value) -> Result<Value, String> {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": parameters}))?;
        for _ in 0..MAX_UNRELATED {
            let mut message = self.receive(method)?;
            if message["method"].is_string() {
                self.handle_server_message(&message)?;
            } else if message["id"] == id {
                return match message["error"].take() {
                    Value::Null => Ok(message["result"].take()),
                    error => Err(format!(
                        "{method}: {}",
                        error["message"].as_str().unwrap_or("an error without a message")
                    )),
                };
            } else if let Some(pending) =
                message["id"].as_u64().and_then(|id| self.pending.get_mut(&id))
            {
                *pending = Some(message["result"].take());
            }
        }
        Err(format!("{method}: no response among {MAX_UNRELATED} messages"))
    }

    /// Answers a request of the server: `ping` with a result, any other request with an error. Ignores notifications.
    fn handle_server_message(&mut self, message: &Value) -> Result<(), String> {
        let id = &message["id"];
        if id.is_null() {
            return Ok(());
        }
        if message["method"] == "ping" {
            return self.send(&json!({"jsonrpc": "2.0", "id": id, "result": {}}));
        }
        let error = json!({"code": -32601, "message": "not supported by this client"});
        self.send(&json!({"jsonrpc": "2.0", "id": id, "error": error}))
    }

    fn send(&mut self, message: &Value) -> Result<(), String> {
        let line = format!("{message}\n");
        let sent = self.writer.write_all(line.as_bytes()).and_then(|()| self.writer.flush());
        sent.map_err(|error| format!("could not write to the server: {error}"))
    }

    fn receive(&mut self, method: &str) -> Result<Value, String> {
        let mut line = Vec::new();
        let read = self.reader.by_ref().take(MAX_MESSAGE_BYTES).read_until(b'\n', &mut line);
        read.map_err(|error| format!("{method}: {error}"))?;
        if line.last() != Some(&b'\n') {
            return Err(format!(
                "{method}: the server exited, or was killed at its time limit, before it responded"
            ));
        }
        serde_json::from_slice(&line)
            .map_err(|error| format!("{method}: a line is not JSON: {error}"))
    }
}

/// An MCP server process and a client connected to it. Dropping it stops the process.
pub(crate) struct McpProcess {
    client: Option<McpClient<BufReader<ChildStdout>, ChildStdin>>,
    child: Arc<Mutex<Child>>,
    /// Dropping it ends the thread that enforces the time limit.
    _limit_guard: Sender<()>,
}

impl McpProcess {
    /// Starts a server that is killed after `limit`, so that no read waits forever.
    pub(crate) fn start(command: &mut Command, limit: Duration) -> Result<McpProcess, String> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", command.get_program().to_string_lossy()))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            process::kill(&mut child);
            return Err("the server has no pipes".into());
        };
        let child = Arc::new(Mutex::new(child));
        let (limit_guard, guard_dropped) = mpsc::channel();
        let child_to_kill = Arc::clone(&child);
        thread::spawn(move || {
            if guard_dropped.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                process::kill(&mut lock(&child_to_kill));
            }
        });
        Ok(McpProcess {
            client: Some(McpClient::new(BufReader::with_capacity(1 << 20, output), input)),
            child,
            _limit_guard: limit_guard,
        })
    }

    pub(crate) fn client(
        &mut self,
    ) -> Result<&mut McpClient<BufReader<ChildStdout>, ChildStdin>, String> {
        self.client.as_mut().ok_or_else(|| "the server was stopped".into())
    }

    pub(crate) fn id(&self) -> u32 {
        lock(&self.child).id()
    }

    /// Returns a handle that can kill the process from another thread.
    pub(crate) fn killer(&self) -> Killer {
        Killer(Arc::clone(&self.child))
    }

    /// Kills the process as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        process::kill(&mut lock(&self.child));
    }
}

/// Kills a server while its client is in use.
pub(crate) struct Killer(Arc<Mutex<Child>>);

impl Killer {
    pub(crate) fn kill(&self) {
        process::kill(&mut lock(&self.0));
    }
}

impl Drop for McpProcess {
    fn drop(&mut self) {
        // A stdio server exits when its input is closed.
        self.client = None;
        process::wait(&mut lock(&self.child), Duration::from_secs(5)).ok();
    }
}

fn lock(child: &Mutex<Child>) -> MutexGuard<'_, Child> {
    child.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
