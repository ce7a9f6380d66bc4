//! A client of `helve mcp` that writes as fast as the pipe takes it and reads nothing, then sends what has no end.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Ground;
use super::watch::Memory;
use crate::process;

/// How much memory all of it may cost, in MiB.
const MOST_MEMORY: f64 = 96.0;
/// A writer that gets rid of nothing for this long is held up.
const STALLED: Duration = Duration::from_secs(2);
const MEBIBYTE: usize = 1 << 20;

/// `count` is how many messages are written.
pub(super) fn run(ground: &Ground) -> Result<String, String> {
    let helve = ground.helve()?;
    std::fs::write(helve.workspace.join("file.txt"), "here\n").map_err(|err| err.to_string())?;
    let mut command = helve.mcp_command();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("helve mcp: {error}"))?;
    let outcome = talk(&mut child, ground.count);
    process::kill(&mut child);
    outcome
}

fn talk(child: &mut Child, count: usize) -> Result<String, String> {
    let id = child.id();
    let (Some(mut to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
        return Err("a child without pipes".into());
    };
    let mut from = BufReader::with_capacity(MEBIBYTE, from);
    hello(&mut to, &mut from)?;
    let memory = Memory::of(id)?;
    let mut said = vec![
        large(&mut to, &mut from)?,
        flood(&mut to, &mut from, count)?,
        memory.judged(MOST_MEMORY)?,
        endless(&mut to, &mut from)?,
    ];
    drop(to);
    let ended = process::wait(child, Duration::from_secs(10))?.ok_or("it did not end")?;
    let mut complaint = String::new();
    let stderr = child.stderr.take().ok_or("a child without pipes")?;
    stderr.take(4096).read_to_string(&mut complaint).map_err(|error| error.to_string())?;
    if ended.success() || !complaint.contains("did not end") {
        return Err(format!("it ended with {ended} and said: {complaint}"));
    }
    said.push(format!("it ended with {ended}: {}", complaint.trim()));
    Ok(said.join("\n   "))
}

fn send(to: &mut ChildStdin, message: &str) -> Result<(), String> {
    to.write_all(message.as_bytes()).map_err(|error| format!("writing: {error}"))
}

fn receive(from: &mut BufReader<ChildStdout>) -> Result<Value, String> {
    let mut line = String::new();
    from.read_line(&mut line).map_err(|error| format!("reading: {error}"))?;
    serde_json::from_str(&line).map_err(|error| format!("`{}`: {error}", line.trim()))
}

fn hello(to: &mut ChildStdin, from: &mut BufReader<ChildStdout>) -> Result<(), String> {
    let who = json!({"name": "helve-xtask", "version": env!("CARGO_PKG_VERSION")});
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": who});
    let hello = json!({"jsonrpc": "2.0", "id": "hi", "method": "initialize", "params": hello});
    send(to, &format!("{hello}\n"))?;
    receive(from)?;
    send(to, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n")
}

/// 10 MB is a message, 20 MiB is too long, and the connection survives both.
fn large(to: &mut ChildStdin, from: &mut BufReader<ChildStdout>) -> Result<String, String> {
    let ping = |id: &str, blanks: usize| {
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":\"{id}\",{}\"method\":\"ping\"}}\n",
            " ".repeat(blanks)
        )
    };
    send(to, &ping("ten", 10_000_000))?;
    let ten = receive(from)?;
    send(to, &ping("twenty", 20 * MEBIBYTE))?;
    let twenty = receive(from)?;
    send(to, &ping("small", 0))?;
    let small = receive(from)?;
    let refusal = twenty["error"]["message"].as_str().unwrap_or_default();
    if ten["id"] != "ten" || small["id"] != "small" || !refusal.contains("longer than") {
        return Err(format!("10 MB: {ten}; 20 MiB: {twenty}; then: {small}"));
    }
    Ok(format!("10 MB answered; 20 MiB: {refusal}"))
}

/// What the n-th message is, and whether it is answered.
fn message(number: usize) -> (String, Answered) {
    let request = |method: &str, params: &str| {
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{number},\"method\":\"{method}\",\"params\":{params}}}\n"
        )
    };
    match number % 5 {
        0 => (request("ping", "{}"), Answered::ById),
        1 => {
            let read = "{\"name\":\"read\",\"arguments\":{\"filePath\":\"file.txt\"}}";
            (request("tools/call", read), Answered::ById)
        }
        2 => (request("no/such/method", "{}"), Answered::ById),
        3 => {
            let note = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":\"x\"}}\n";
            (note.into(), Answered::Never)
        }
        _ => ("garbage\n".into(), Answered::WithoutId),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Answered {
    ById,
    WithoutId,
    Never,
}

/// Writes all, reads nothing until the writer is held up, then reads every answer.
fn flood(
    to: &mut ChildStdin,
    from: &mut BufReader<ChildStdout>,
    count: usize,
) -> Result<String, String> {
    let expected: Vec<Answered> = (0..count).map(|number| message(number).1).collect();
    let (mut wanted, mut nameless): (HashSet<usize>, usize) = (HashSet::new(), 0);
    for (number, answered) in expected.iter().enumerate() {
        match answered {
            Answered::ById => drop(wanted.insert(number)),
            Answered::WithoutId => nameless += 1,
            Answered::Never => {}
        }
    }
    let written = AtomicUsize::new(0);
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for number in 0..count {
                send(to, &message(number).0)?;
                written.store(number + 1, Ordering::Relaxed);
            }
            Ok::<(), String>(())
        });
        let held_up_at = stalled(&written, count);
        let start = Instant::now();
        let mut refused = 0;
        while !wanted.is_empty() || nameless > 0 {
            let answer = receive(from)?;
            match answer["id"].as_u64().and_then(|id| usize::try_from(id).ok()) {
                Some(id) if wanted.remove(&id) => {
                    let words = answer["error"]["message"].as_str().unwrap_or_default();
                    refused += usize::from(words.starts_with("Too many"));
                }
                Some(id) => {
                    return Err(format!("{id} was answered twice, or never asked: {answer}"));
                }
                None => nameless = nameless.checked_sub(1).ok_or("too many complaints")?,
            }
        }
        let took = start.elapsed().as_secs_f64();
        writer.join().map_err(|_| "the writer panicked")??;
        if count >= 100_000 && held_up_at >= count {
            return Err("the writer was never held up".into());
        }
        Ok(format!(
            "{count} messages: held up after {held_up_at} while nothing was read; then all answered in {took:.0} s ({:.0} a second), {refused} as too many",
            count as f64 / took
        ))
    })
}

/// How many messages were written when nothing went on any more.
fn stalled(written: &AtomicUsize, count: usize) -> usize {
    let (mut last, mut since) = (0, Instant::now());
    loop {
        let now = written.load(Ordering::Relaxed);
        if now != last {
            (last, since) = (now, Instant::now());
        }
        if now == count || since.elapsed() > STALLED {
            return now;
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// One line of 1 GiB: it is told so, and heard no more.
fn endless(to: &mut ChildStdin, from: &mut BufReader<ChildStdout>) -> Result<String, String> {
    let piece = vec![b'x'; MEBIBYTE];
    let mut written = 0;
    while written < 1 << 30 && to.write_all(&piece).is_ok() {
        written += piece.len();
    }
    let (first, last) = (receive(from)?, receive(from)?);
    let words = last["error"]["message"].as_str().unwrap_or_default();
    if written == 1 << 30 || !words.contains("The connection is closed") {
        return Err(format!("after {written} bytes of one line: {first}, {last}"));
    }
    Ok(format!("a line of 1 GiB: closed after {} MiB: {words}", written / MEBIBYTE))
}
