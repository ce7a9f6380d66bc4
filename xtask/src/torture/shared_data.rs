//! Two servers and two callers write to the same data folder at the same time.

use std::thread;

use fastrand::Rng;
use serde_json::json;

use super::Context;
use super::todos;
use crate::helve::Helve;
use crate::mcp::McpProcess;

const SHARED_SESSION: &str = "torture-shared";

pub(super) fn run(context: &Context<'_>) -> Result<String, String> {
    let helve = &context.helve()?;
    let calls = context.count.div_ceil(4);
    let (servers, last_writes) = thread::scope(|scope| {
        let servers = [1, 2].map(|number| {
            scope.spawn(move || write_over_mcp(helve, number, context.count, context.rng(number)))
        });
        let callers =
            [3, 4].map(|number| scope.spawn(move || write_by_calls(helve, number, calls)));
        let panicked = |_| Err("a server thread panicked".to_owned());
        let servers: Result<Vec<McpProcess>, String> =
            servers.into_iter().map(|it| it.join().unwrap_or_else(panicked)).collect();
        let panicked = |_| Err("a caller thread panicked".to_owned());
        let last_writes: Result<Vec<u64>, String> =
            callers.into_iter().map(|it| it.join().unwrap_or_else(panicked)).collect();
        (servers, last_writes)
    });
    let (servers, last_writes) = (servers?, last_writes?);
    match todos::read(helve, SHARED_SESSION)? {
        Some(number) if last_writes.contains(&number) => {}
        found => {
            return Err(format!(
                "the shared list contains {found:?} instead of one of the last writes {last_writes:?}"
            ));
        }
    }
    kill_one(servers)?;
    let databases = todos::check_databases(&helve.data())?;
    Ok(format!(
        "2 × {} calls over MCP, 2 × {calls} processes, no write refused or lost, {databases}",
        context.count
    ))
}

/// Writes in the server's own session. Each read must return the last write of this session.
fn write_over_mcp(
    helve: &Helve,
    server_number: u64,
    count: usize,
    mut rng: Rng,
) -> Result<McpProcess, String> {
    let mut server = helve.start_mcp()?;
    let client = server.client()?;
    client.initialize()?;
    let mut last = None;
    for round in 0..count as u64 {
        let number = server_number * 1_000_000_000 + round;
        if last.is_none() || rng.u64(..3) > 0 {
            let answer = client.call("todowrite", &todos::list(number))?;
            if answer.is_error {
                return Err(format!("server {server_number}, write {number}: {}", answer.text));
            }
            last = Some(number);
        }
        let answer = client.call("todoread", &json!({}))?;
        if answer.is_error || todos::number_in(&answer.text)? != last {
            return Err(format!("server {server_number} wrote {last:?} and read: {}", answer.text));
        }
    }
    Ok(server)
}

/// Writes with one process after another, in the session that the other caller uses too. Returns the last write.
fn write_by_calls(helve: &Helve, caller_number: u64, count: usize) -> Result<u64, String> {
    let mut number = caller_number * 1_000_000_000;
    for _ in 0..count.max(1) {
        number += 1;
        let written = helve.call(SHARED_SESSION, "todowrite", &todos::list(number))?;
        written.success("helve call todowrite")?;
    }
    Ok(number)
}

/// Kills one server and checks that the others still work.
fn kill_one(mut servers: Vec<McpProcess>) -> Result<(), String> {
    if let Some(mut server) = servers.pop() {
        server.kill();
    }
    for server in &mut servers {
        let answer = server.client()?.call("todowrite", &todos::list(7))?;
        if answer.is_error {
            return Err(format!("after another server was killed: {}", answer.text));
        }
    }
    Ok(())
}
