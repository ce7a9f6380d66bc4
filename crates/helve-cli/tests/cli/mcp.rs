//! `helve mcp` with raw JSON lines. Only the wiring is tested; the server has tests in its own crate.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::stage::Stage;

pub(crate) struct McpClient {
    pub(crate) child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    last_id: u64,
}

impl McpClient {
    pub(crate) fn start(stage: &Stage, args: &[&str]) -> Self {
        Self::start_command(stage.command(), args)
    }

    /// Starts a prepared `helve` command, for example one with additional environment variables.
    pub(crate) fn start_command(mut command: Command, args: &[&str]) -> Self {
        command.arg("mcp").args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut client = Self { child, input, output: BufReader::new(output), last_id: 0 };
        client.request(
            "initialize",
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}}),
        );
        client.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    pub(crate) fn send(&mut self, message: Value) {
        writeln!(self.input, "{message}").unwrap();
    }

    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        self.send(
            json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params}),
        );
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the server is gone");
            let answer: Value = serde_json::from_str(&line).unwrap();
            if answer["id"] == self.last_id {
                return answer["result"].clone();
            }
        }
    }

    /// Sends all requests before reading the first answer. Returns the results in the order of arrival.
    pub(crate) fn requests(&mut self, requests: Vec<(&str, Value)>) -> Vec<Value> {
        let count = requests.len();
        let first = self.last_id + 1;
        for (method, params) in requests {
            self.last_id += 1;
            let id = self.last_id;
            self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        }
        let mut results = Vec::new();
        while results.len() < count {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the server is gone");
            let answer: Value = serde_json::from_str(&line).unwrap();
            if answer["id"].as_u64().is_some_and(|id| id >= first) {
                assert!(answer["error"].is_null(), "{answer}");
                results.push(answer["result"].clone());
            }
        }
        results
    }

    fn read(&mut self, path: &str) -> (bool, String) {
        self.call("read", json!({"filePath": path}))
    }

    /// Returns whether the call failed, and its text.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> (bool, String) {
        let result = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        let text = result["content"][0]["text"].as_str().unwrap().to_string();
        (result["isError"] == true, text)
    }

    /// Closes standard input and waits for the exit code.
    fn close(self) -> i32 {
        let Self { mut child, input, .. } = self;
        drop(input);
        child.wait().unwrap().code().unwrap()
    }
}

#[test]
fn tools_are_listed_and_called_and_a_refusal_names_the_flag_to_allow_it() {
    let stage = Stage::new();
    let mut client = McpClient::start(&stage, &[]);
    let tools = client.request("tools/list", json!({}));
    let names: Vec<&str> = tools["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert!(names.contains(&"read") && !names.contains(&"invalid"), "{names:?}");
    let (failed, text) = client.read("README.md");
    assert!(!failed && text.contains("00001| # app"), "{text}");
    let (failed, text) = client.read(".env");
    assert!(failed && text.contains("--allow 'read:.env'"), "{text}");
    assert_eq!(client.close(), 0);
}

#[test]
fn yes_answers_questions_but_does_not_lift_a_deny() {
    let stage = Stage::new();
    let user = r#"{"permission": {"read": {"README.md": "deny"}}}"#;
    stage.write("home/.config/helve/helve.json", user);
    let mut client = McpClient::start(&stage, &["--yes"]);
    assert!(!client.read(".env").0);
    assert!(client.read("README.md").0);
    client.close();
}

#[test]
fn rules_are_not_reloaded_during_a_session() {
    let stage = Stage::new();
    let mut client = McpClient::start(&stage, &[]);
    assert!(client.read(".env").0);
    let allow = r#"{"permission": {"*": "allow"}}"#;
    stage.write("app/helve.json", allow);
    stage.write("home/.config/helve/helve.json", allow);
    assert!(client.read(".env").0, "a rule was loaded during the session");
    client.close();
}
