//! A server that floods Helve: only its own calls may suffer.

use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Ground;
use super::watch::{Memory, Times};
use crate::mcp::Answer;

/// The word that makes this program the server.
pub(crate) const SERVER: &str = "flooding-server";
/// How much memory it may cost, in MiB.
const MOST_MEMORY: f64 = 96.0;
/// What a call of our own tools may take meanwhile.
const BAR: Duration = Duration::from_secs(1);
/// How long the server may go without a sign.
const PATIENCE: Duration = Duration::from_secs(10);

/// What it does, and the words of the failure that its own call must end with.
const FLOODS: &[(&str, &str)] = &[
    ("line", "it sent a message of more than 16777216 bytes, and the connection was closed"),
    ("notifications", "it did not answer to the call within 10 s"),
    ("responses", "it did not answer to the call within 10 s"),
    ("requests", "it did not answer to the call within 10 s"),
    ("noise", "it did not answer to the call within 10 s"),
];

/// `count` is how many messages it sends.
pub(super) fn run(ground: &Ground) -> Result<String, String> {
    let helve = ground.helve()?;
    std::fs::write(helve.workspace.join("file.txt"), "here\n").map_err(|err| err.to_string())?;
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let counter = ground.scratch.folder("counter")?.join("sent");
    let command = json!([program, SERVER, ground.count.to_string(), counter]);
    let flood =
        json!({"type": "local", "command": command, "timeout": PATIENCE.as_millis() as u64});
    let config = counter.with_file_name("config.json");
    std::fs::write(&config, json!({"mcp": {"flood": flood}}).to_string())
        .map_err(|error| error.to_string())?;
    let config = config.display().to_string();
    let mut said = Vec::new();
    for (flood, expected) in FLOODS {
        said.push(under(ground, &config, &counter, flood, expected)?);
    }
    Ok(said.join("\n   "))
}

/// Calls our own tools while one call of the server floods.
fn under(
    ground: &Ground,
    config: &str,
    counter: &PathBuf,
    flood: &str,
    expected: &str,
) -> Result<String, String> {
    let mut server = ground.helve()?.serve_with(&["--config", config, "--yes"])?;
    let process = server.id();
    let client = server.client()?;
    client.initialize()?;
    // Listing waits for servers that are starting.
    client.list_tools()?;
    let echo = client.call("flood_echo", &json!({}))?;
    if echo.is_error {
        return Err(format!("the server cannot be used: {}", echo.text));
    }
    let memory = Memory::of(process)?;
    let start = Instant::now();
    let call =
        client.begin("tools/call", &json!({"name": format!("flood_{flood}"), "arguments": {}}))?;
    let mut times = Times::default();
    let ended = loop {
        let began = Instant::now();
        let read = client.call("read", &json!({"filePath": "file.txt"}))?;
        times.add(began.elapsed());
        if read.is_error {
            return Err(format!("a call of our own failed: {}", read.text));
        }
        if let Some(ended) = client.ended(call) {
            break Answer::of("flood", &ended)?;
        }
        if start.elapsed() > PATIENCE * 6 {
            return Err(format!("{flood}: its call never ended"));
        }
        thread::sleep(Duration::from_millis(5));
    };
    let took = start.elapsed().as_secs_f64();
    let sent = std::fs::read_to_string(counter).unwrap_or_default();
    let said = format!(
        "{flood}: {} sent in {took:.1} s; {} calls of our own meanwhile: {}; {}",
        if flood == "line" { "bytes" } else { sent.trim() },
        times.count(),
        times.said(),
        memory.judged(MOST_MEMORY)?
    );
    if !ended.text.contains(expected) || times.at(1.0) > BAR {
        return Err(format!("{said}; its call ended with: {}", ended.text));
    }
    Ok(said)
}

/// The server itself: answers what it must, and floods when it is called.
pub(crate) fn serve(mut arguments: impl Iterator<Item = String>) -> Result<(), String> {
    let count: usize = arguments.next().and_then(|count| count.parse().ok()).ok_or("a count")?;
    let counter = PathBuf::from(arguments.next().ok_or("a file")?);
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|error| error.to_string())?;
        let message: Value = serde_json::from_str(&line).map_err(|error| error.to_string())?;
        let mut answer = |result: Value| {
            let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
            writeln!(out, "{answer}").and_then(|()| out.flush()).map_err(|error| error.to_string())
        };
        match message["method"].as_str().unwrap_or_default() {
            "initialize" => answer(json!({
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "flood", "version": "1"},
            }))?,
            "tools/list" => {
                let schema = json!({"type": "object", "properties": {}});
                let tool = |name: &str| json!({"name": name, "inputSchema": schema});
                let mut tools: Vec<Value> = FLOODS.iter().map(|(name, _)| tool(name)).collect();
                tools.push(tool("echo"));
                answer(json!({"tools": tools}))?;
            }
            "tools/call" => {
                let name = message["params"]["name"].as_str().unwrap_or_default().to_owned();
                if name != "echo" {
                    flood(&name, count, &counter)?;
                }
                answer(json!({"content": [{"type": "text", "text": "done"}]}))?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn flood(name: &str, count: usize, counter: &PathBuf) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    let gone = |error: std::io::Error| error.to_string();
    if name == "line" {
        let piece = vec![b'x'; 1 << 20];
        return (0..1024).try_for_each(|_| out.write_all(&piece)).map_err(gone);
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
        writeln!(out, "{message}").map_err(gone)?;
        if number % 100 == 0 {
            std::fs::write(counter, number.to_string()).map_err(gone)?;
        }
    }
    out.flush().map_err(gone)
}
