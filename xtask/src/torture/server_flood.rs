//! An MCP server that floods Helve with messages. Only calls of this server's tools may fail.

use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Context;
use super::measurements::{Latencies, MemoryGrowth};
use crate::mcp::ToolAnswer;

/// The hidden xtask command that runs the server.
pub(crate) const SERVER_COMMAND: &str = "flooding-server";
/// Limit for the memory growth of Helve, in MiB.
const MAX_MEMORY_GROWTH: f64 = 96.0;
/// Time limit for calls of Helve's own tools during the flood.
const MAX_LATENCY: Duration = Duration::from_secs(1);
/// The timeout that is configured for the server.
const SERVER_TIMEOUT: Duration = Duration::from_secs(10);

/// Kinds of floods, each with the error that the call of the flooding tool must return.
const FLOODS: &[(&str, &str)] = &[
    ("line", "it sent a message larger than 16777216 bytes, and the connection was closed"),
    ("notifications", "no answer to the call within 10 s"),
    ("responses", "no answer to the call within 10 s"),
    ("requests", "no answer to the call within 10 s"),
    ("noise", "no answer to the call within 10 s"),
];

/// Runs the test. `count` of the context is the number of messages per flood.
pub(super) fn run(context: &Context) -> Result<String, String> {
    let helve = context.helve()?;
    std::fs::write(helve.workspace.join("file.txt"), "here\n").map_err(|err| err.to_string())?;
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let counter = context.scratch.folder("counter")?.join("sent");
    let command = json!([program, SERVER_COMMAND, context.count.to_string(), counter]);
    let flood =
        json!({"type": "local", "command": command, "timeout": SERVER_TIMEOUT.as_millis() as u64});
    let config = counter.with_file_name("config.json");
    std::fs::write(&config, json!({"mcp": {"flood": flood}}).to_string())
        .map_err(|error| error.to_string())?;
    let config = config.display().to_string();
    let mut reports = Vec::new();
    for (flood, expected) in FLOODS {
        reports.push(call_during_flood(context, &config, &counter, flood, expected)?);
    }
    Ok(reports.join("\n   "))
}

/// Calls Helve's own tools while a tool of the server floods.
fn call_during_flood(
    context: &Context,
    config: &str,
    counter: &PathBuf,
    flood: &str,
    expected: &str,
) -> Result<String, String> {
    let mut server = context.helve()?.start_mcp_with(&["--config", config, "--yes"])?;
    let process = server.id();
    let client = server.client()?;
    client.initialize()?;
    // Listing the tools waits until the server has started.
    client.list_tools()?;
    let echo = client.call("flood_echo", &json!({}))?;
    if echo.is_error {
        return Err(format!("the server does not work: {}", echo.text));
    }
    let memory = MemoryGrowth::start(process)?;
    let start = Instant::now();
    let call = client
        .send_request("tools/call", &json!({"name": format!("flood_{flood}"), "arguments": {}}))?;
    let mut latencies = Latencies::default();
    let flood_answer = loop {
        let call_start = Instant::now();
        let read = client.call("read", &json!({"filePath": "file.txt"}))?;
        latencies.add(call_start.elapsed());
        if read.is_error {
            return Err(format!("a call of another tool failed: {}", read.text));
        }
        if let Some(result) = client.take_result(call) {
            break ToolAnswer::from_result("flood", &result)?;
        }
        if start.elapsed() > SERVER_TIMEOUT * 6 {
            return Err(format!("{flood}: the call did not end"));
        }
        thread::sleep(Duration::from_millis(5));
    };
    let took = start.elapsed().as_secs_f64();
    let sent = std::fs::read_to_string(counter).unwrap_or_default();
    let report = format!(
        "{flood}: {} sent in {took:.1} s; {} calls of other tools: {}; {}",
        if flood == "line" { "one endless line" } else { sent.trim() },
        latencies.count(),
        latencies.report(),
        memory.check(MAX_MEMORY_GROWTH)?
    );
    if !flood_answer.text.contains(expected) || latencies.quantile(1.0) > MAX_LATENCY {
        return Err(format!("{report}; the call ended with: {}", flood_answer.text));
    }
    Ok(report)
}

/// Runs the server. It answers the usual requests, and floods if one of its tools, except `echo`, is called.
pub(crate) fn serve(mut arguments: impl Iterator<Item = String>) -> Result<(), String> {
    let count: usize =
        arguments.next().and_then(|count| count.parse().ok()).ok_or("missing argument: count")?;
    let counter = PathBuf::from(arguments.next().ok_or("missing argument: file")?);
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|error| error.to_string())?;
        let message: Value = serde_json::from_str(&line).map_err(|error| error.to_string())?;
        let mut respond = |result: Value| {
            let response = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
            writeln!(out, "{response}")
                .and_then(|()| out.flush())
                .map_err(|error| error.to_string())
        };
        match message["method"].as_str().unwrap_or_default() {
            "initialize" => respond(json!({
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "flood", "version": "1"},
            }))?,
            "tools/list" => {
                let schema = json!({"type": "object", "properties": {}});
                let tool = |name: &str| json!({"name": name, "inputSchema": schema});
                let mut tools: Vec<Value> = FLOODS.iter().map(|(name, _)| tool(name)).collect();
                tools.push(tool("echo"));
                respond(json!({"tools": tools}))?;
            }
            "tools/call" => {
                let name = message["params"]["name"].as_str().unwrap_or_default().to_owned();
                if name != "echo" {
                    flood(&name, count, &counter)?;
                }
                respond(json!({"content": [{"type": "text", "text": "done"}]}))?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Sends a flood of this kind. Writes the number of messages sent so far to the file `counter`.
fn flood(name: &str, count: usize, counter: &PathBuf) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    let write_error = |error: std::io::Error| error.to_string();
    if name == "line" {
        let piece = vec![b'x'; 1 << 20];
        return (0..1024).try_for_each(|_| out.write_all(&piece)).map_err(write_error);
    }
    for number in 0..count {
        let message = match name {
            "notifications" => {
                json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": number}})
            }
            "responses" => json!({"jsonrpc": "2.0", "id": number + 1_000_000, "result": {}}),
            "requests" => {
                json!({"jsonrpc": "2.0", "id": number, "method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}})
            }
            _ => json!(["no", "message", number]),
        };
        writeln!(out, "{message}").map_err(write_error)?;
        if number % 100 == 0 {
            std::fs::write(counter, number.to_string()).map_err(write_error)?;
        }
    }
    out.flush().map_err(write_error)
}
