//! A small MCP client: JSON-RPC in lines over the pipes of a child process.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::process;

const REVISION: &str = "2025-06-18";
const LONGEST_MESSAGE: u64 = 64 << 20;
/// Messages that are not the answer, and pages of a list, before we give up.
const MOST_ASIDES: usize = 10_000;
const MOST_PAGES: usize = 1_000;

pub(crate) struct Client<R, W> {
    reader: R,
    writer: W,
    last_id: u64,
    /// Requests that were begun, and what they were answered with.
    begun: HashMap<u64, Option<Value>>,
}

/// What a tool answered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub text: String,
    pub is_error: bool,
}

impl Answer {
    pub(crate) fn of(tool: &str, result: &Value) -> Result<Answer, String> {
        let content = result["content"]
            .as_array()
            .ok_or_else(|| format!("{tool}: an answer without content: {result}"))?;
        let texts: Vec<_> = content.iter().filter_map(|part| part["text"].as_str()).collect();
        let is_error = result["isError"].as_bool().unwrap_or(false);
        Ok(Answer { text: texts.join("\n"), is_error })
    }
}

impl<R: BufRead, W: Write> Client<R, W> {
    pub(crate) fn new(reader: R, writer: W) -> Self {
        Client { reader, writer, last_id: 0, begun: HashMap::new() }
    }

    pub(crate) fn initialize(&mut self) -> Result<Value, String> {
        let client = json!({"name": "helve-xtask", "version": env!("CARGO_PKG_VERSION")});
        let parameters =
            json!({"protocolVersion": REVISION, "capabilities": {}, "clientInfo": client});
        let answer = self.request("initialize", &parameters)?;
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(answer)
    }

    /// All tools, over all pages.
    pub(crate) fn list_tools(&mut self) -> Result<Vec<Value>, String> {
        let mut tools = Vec::new();
        let mut parameters = json!({});
        for _ in 0..MOST_PAGES {
            let mut page = self.request("tools/list", &parameters)?;
            match page["tools"].take() {
                Value::Array(more) => tools.extend(more),
                other => return Err(format!("tools/list: `tools` is {other}")),
            }
            match page["nextCursor"].take() {
                Value::Null => return Ok(tools),
                cursor => parameters = json!({"cursor": cursor}),
            }
        }
        Err(format!("tools/list: more than {MOST_PAGES} pages"))
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Result<Answer, String> {
        let result = self.request("tools/call", &json!({"name": tool, "arguments": arguments}))?;
        Answer::of(tool, &result)
    }

    /// Sends a request whose answer is not waited for; it comes while others are.
    pub(crate) fn begin(&mut self, method: &str, parameters: &Value) -> Result<u64, String> {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": parameters}))?;
        self.begun.insert(id, None);
        Ok(id)
    }

    /// The result of a request that was begun, once it has come.
    pub(crate) fn ended(&mut self, id: u64) -> Option<Value> {
        self.begun.get_mut(&id)?.take()
    }

    /// The result of a request; an error of the server is an error here.
    pub(crate) fn request(&mut self, method: &str, parameters: &Value) -> Result<Value, String> {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": parameters}))?;
        for _ in 0..MOST_ASIDES {
            let mut message = self.receive(method)?;
            if message["method"].is_string() {
                self.answer_aside(&message)?;
            } else if message["id"] == id {
                return match message["error"].take() {
                    Value::Null => Ok(message["result"].take()),
                    error => Err(format!(
                        "{method}: {}",
                        error["message"].as_str().unwrap_or("an error without words")
                    )),
                };
            } else if let Some(begun) =
                message["id"].as_u64().and_then(|id| self.begun.get_mut(&id))
            {
                *begun = Some(message["result"].take());
            }
        }
        Err(format!("{method}: no answer among {MOST_ASIDES} messages"))
    }

    /// Notifications are passed over; of the server's own requests only `ping` is served.
    fn answer_aside(&mut self, message: &Value) -> Result<(), String> {
        let id = &message["id"];
        if id.is_null() {
            return Ok(());
        }
        if message["method"] == "ping" {
            return self.send(&json!({"jsonrpc": "2.0", "id": id, "result": {}}));
        }
        let error = json!({"code": -32601, "message": "this client does not do that"});
        self.send(&json!({"jsonrpc": "2.0", "id": id, "error": error}))
    }

    fn send(&mut self, message: &Value) -> Result<(), String> {
        let line = format!("{message}\n");
        let sent = self.writer.write_all(line.as_bytes()).and_then(|()| self.writer.flush());
        sent.map_err(|error| format!("the server takes no more: {error}"))
    }

    fn receive(&mut self, method: &str) -> Result<Value, String> {
        let mut line = Vec::new();
        let read = self.reader.by_ref().take(LONGEST_MESSAGE).read_until(b'\n', &mut line);
        read.map_err(|error| format!("{method}: {error}"))?;
        if line.last() != Some(&b'\n') {
            return Err(format!(
                "{method}: the server ended, or hung and was killed, before it answered"
            ));
        }
        serde_json::from_slice(&line)
            .map_err(|error| format!("{method}: a line that is no JSON: {error}"))
    }
}

/// A server process and the client that talks to it. Dropping it ends the process.
pub(crate) struct Server {
    client: Option<Client<BufReader<ChildStdout>, ChildStdin>>,
    child: Arc<Mutex<Child>>,
    /// Held for its drop, which sends the watchman home.
    _watch: Sender<()>,
}

impl Server {
    /// Starts a server, which is killed after `limit`: so no read of ours waits for ever.
    pub(crate) fn start(command: &mut Command, limit: Duration) -> Result<Server, String> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", command.get_program().to_string_lossy()))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            process::kill(&mut child);
            return Err("a child without pipes".into());
        };
        let child = Arc::new(Mutex::new(child));
        let (watch, watched) = mpsc::channel();
        let watched_child = Arc::clone(&child);
        thread::spawn(move || {
            if watched.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                process::kill(&mut lock(&watched_child));
            }
        });
        Ok(Server {
            client: Some(Client::new(BufReader::with_capacity(1 << 20, output), input)),
            child,
            _watch: watch,
        })
    }

    pub(crate) fn client(
        &mut self,
    ) -> Result<&mut Client<BufReader<ChildStdout>, ChildStdin>, String> {
        self.client.as_mut().ok_or_else(|| "the server was ended".into())
    }

    pub(crate) fn id(&self) -> u32 {
        lock(&self.child).id()
    }

    /// Kills the process from elsewhere.
    pub(crate) fn killer(&self) -> Killer {
        Killer(Arc::clone(&self.child))
    }

    /// Kills the process as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        process::kill(&mut lock(&self.child));
    }
}

/// Kills a server while somebody talks to it.
pub(crate) struct Killer(Arc<Mutex<Child>>);

impl Killer {
    pub(crate) fn kill(&self) {
        process::kill(&mut lock(&self.0));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Closing its input is how a stdio server is told to end.
        self.client = None;
        process::wait(&mut lock(&self.child), Duration::from_secs(5)).ok();
    }
}

fn lock(child: &Mutex<Child>) -> MutexGuard<'_, Child> {
    child.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
