//! A client of `helve mcp` that sends oversized messages, many messages without reading the responses, and an endless
//! line.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Context;
use super::measurements::MemoryGrowth;
use crate::process;

/// Limit for the memory growth of Helve, in MiB.
const MAX_MEMORY_GROWTH: f64 = 96.0;
/// Time without progress after which a writer counts as blocked.
const BLOCKED_AFTER: Duration = Duration::from_secs(2);
const MEBIBYTE: usize = 1 << 20;

/// Runs the test. `count` of the context is the number of messages.
pub(super) fn run(context: &Context) -> Result<String, String> {
    let helve = context.helve()?;
    std::fs::write(helve.workspace.join("file.txt"), "here\n").map_err(|err| err.to_string())?;
    let mut command = helve.mcp_command();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("helve mcp: {error}"))?;
    let outcome = run_all(&mut child, context.count);
    process::kill(&mut child);
    outcome
}

/// Sends all kinds of messages, and returns a report.
fn run_all(child: &mut Child, count: usize) -> Result<String, String> {
    let id = child.id();
    let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err("helve mcp has no pipes".into());
    };
    let mut output = BufReader::with_capacity(MEBIBYTE, output);
    initialize(&mut input, &mut output)?;
    let memory = MemoryGrowth::start(id)?;
    let mut reports = vec![
        send_large(&mut input, &mut output)?,
        flood(&mut input, &mut output, count)?,
        memory.check(MAX_MEMORY_GROWTH)?,
        send_endless(&mut input, &mut output)?,
    ];
    drop(input);
    let status = process::wait(child, Duration::from_secs(10))?.ok_or("helve mcp did not exit")?;
    let mut message = String::new();
    let stderr = child.stderr.take().ok_or("helve mcp has no pipes")?;
    stderr.take(4096).read_to_string(&mut message).map_err(|error| error.to_string())?;
    if status.success() || !message.contains("did not end") {
        return Err(format!("exited with {status} and printed: {message}"));
    }
    reports.push(format!("exited with {status}: {}", message.trim()));
    Ok(reports.join("\n   "))
}

fn send(input: &mut ChildStdin, message: &str) -> Result<(), String> {
    input.write_all(message.as_bytes()).map_err(|error| format!("writing: {error}"))
}

fn receive(output: &mut BufReader<ChildStdout>) -> Result<Value, String> {
    let mut line = String::new();
    output.read_line(&mut line).map_err(|error| format!("reading: {error}"))?;
    serde_json::from_str(&line).map_err(|error| format!("`{}`: {error}", line.trim()))
}

fn initialize(input: &mut ChildStdin, output: &mut BufReader<ChildStdout>) -> Result<(), String> {
    let info = json!({"name": "helve-xtask", "version": env!("CARGO_PKG_VERSION")});
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info});
    let request = json!({"jsonrpc": "2.0", "id": "hi", "method": "initialize", "params": params});
    send(input, &format!("{request}\n"))?;
    receive(output)?;
    send(input, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n")
}

/// Checks that a message of 10 MB is accepted and one of 20 MiB is refused, and that the connection stays open.
fn send_large(
    input: &mut ChildStdin,
    output: &mut BufReader<ChildStdout>,
) -> Result<String, String> {
    let ping = |id: &str, padding: usize| {
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":\"{id}\",{}\"method\":\"ping\"}}\n",
            " ".repeat(padding)
        )
    };
    send(input, &ping("ten", 10_000_000))?;
    let ten = receive(output)?;
    send(input, &ping("twenty", 20 * MEBIBYTE))?;
    let twenty = receive(output)?;
    send(input, &ping("small", 0))?;
    let small = receive(output)?;
    let refusal = twenty["error"]["message"].as_str().unwrap_or_default();
    if ten["id"] != "ten" || small["id"] != "small" || !refusal.contains("longer than") {
        return Err(format!(
            "responses to 10 MB: {ten}; 20 MiB: {twenty}; a small message: {small}"
        ));
    }
    Ok(format!("10 MB accepted; 20 MiB: {refusal}"))
}

/// Returns the message with this number, and which response it gets.
fn message(number: usize) -> (String, ExpectedResponse) {
    let request = |method: &str, params: &str| {
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{number},\"method\":\"{method}\",\"params\":{params}}}\n"
        )
    };
    match number % 5 {
        0 => (request("ping", "{}"), ExpectedResponse::WithId),
        1 => {
            let read = "{\"name\":\"read\",\"arguments\":{\"filePath\":\"file.txt\"}}";
            (request("tools/call", read), ExpectedResponse::WithId)
        }
        2 => (request("no/such/method", "{}"), ExpectedResponse::WithId),
        3 => {
            let note = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":\"x\"}}\n";
            (note.into(), ExpectedResponse::None)
        }
        _ => ("garbage\n".into(), ExpectedResponse::WithoutId),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ExpectedResponse {
    WithId,
    WithoutId,
    None,
}

/// Writes all messages, reads nothing until the writer is blocked, then reads every response.
fn flood(
    input: &mut ChildStdin,
    output: &mut BufReader<ChildStdout>,
    count: usize,
) -> Result<String, String> {
    let expected: Vec<ExpectedResponse> = (0..count).map(|number| message(number).1).collect();
    let (mut with_id, mut without_id): (HashSet<usize>, usize) = (HashSet::new(), 0);
    for (number, response) in expected.iter().enumerate() {
        match response {
            ExpectedResponse::WithId => drop(with_id.insert(number)),
            ExpectedResponse::WithoutId => without_id += 1,
            ExpectedResponse::None => {}
        }
    }
    let written = AtomicUsize::new(0);
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for number in 0..count {
                send(input, &message(number).0)?;
                written.store(number + 1, Ordering::Relaxed);
            }
            Ok::<(), String>(())
        });
        let blocked_at = wait_until_blocked(&written, count);
        let start = Instant::now();
        let mut refused = 0;
        while !with_id.is_empty() || without_id > 0 {
            let response = receive(output)?;
            match response["id"].as_u64().and_then(|id| usize::try_from(id).ok()) {
                Some(id) if with_id.remove(&id) => {
                    let message = response["error"]["message"].as_str().unwrap_or_default();
                    refused += usize::from(message.starts_with("Too many"));
                }
                Some(id) => {
                    return Err(format!(
                        "a second response to {id}, or one that was not expected: {response}"
                    ));
                }
                None => {
                    without_id =
                        without_id.checked_sub(1).ok_or("too many responses without an id")?;
                }
            }
        }
        let took = start.elapsed().as_secs_f64();
        writer.join().map_err(|_| "the writer panicked")??;
        if count >= 100_000 && blocked_at >= count {
            return Err("the writer was never blocked".into());
        }
        Ok(format!(
            "{count} messages: blocked after {blocked_at} while nothing was read; then all responses in {took:.0} s ({:.0} per second), {refused} refused as too many",
            count as f64 / took
        ))
    })
}

/// Waits until the writer is blocked or done, and returns how many messages were written.
fn wait_until_blocked(written: &AtomicUsize, count: usize) -> usize {
    let (mut last, mut since) = (0, Instant::now());
    loop {
        let now = written.load(Ordering::Relaxed);
        if now != last {
            (last, since) = (now, Instant::now());
        }
        if now == count || since.elapsed() > BLOCKED_AFTER {
            return now;
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Sends a line of 1 GiB. Helve must refuse it and close the connection.
fn send_endless(
    input: &mut ChildStdin,
    output: &mut BufReader<ChildStdout>,
) -> Result<String, String> {
    let piece = vec![b'x'; MEBIBYTE];
    let mut written = 0;
    while written < 1 << 30 && input.write_all(&piece).is_ok() {
        written += piece.len();
    }
    let (first, last) = (receive(output)?, receive(output)?);
    let message = last["error"]["message"].as_str().unwrap_or_default();
    if written == 1 << 30 || !message.contains("The connection is closed") {
        return Err(format!("after {written} bytes of one line: {first}, {last}"));
    }
    Ok(format!("a line of 1 GiB: closed after {} MiB: {message}", written / MEBIBYTE))
}
