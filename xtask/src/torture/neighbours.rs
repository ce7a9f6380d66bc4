//! Two servers and two callers that write into one data folder at the same time.

use std::thread;

use serde_json::json;

use super::Ground;
use super::random::Random;
use super::todos;
use crate::helve::Helve;
use crate::mcp::Server;

const SHARED: &str = "torture-shared";

pub(super) fn run(ground: &Ground<'_>) -> Result<String, String> {
    let helve = &ground.helve()?;
    let calls = ground.count.div_ceil(4);
    let (servers, last_writes) = thread::scope(|scope| {
        let servers = [1, 2].map(|side| {
            scope.spawn(move || serve(helve, side, ground.count, Random::new(ground.seed, side)))
        });
        let callers = [3, 4].map(|side| scope.spawn(move || call(helve, side, calls)));
        let joined = |_| Err("a side panicked".to_owned());
        let servers: Result<Vec<Server>, String> =
            servers.into_iter().map(|it| it.join().unwrap_or_else(joined)).collect();
        let joined = |_| Err("a side panicked".to_owned());
        let last: Result<Vec<u64>, String> =
            callers.into_iter().map(|it| it.join().unwrap_or_else(joined)).collect();
        (servers, last)
    });
    let (servers, last_writes) = (servers?, last_writes?);
    match todos::read(helve, SHARED)? {
        Some(number) if last_writes.contains(&number) => {}
        found => {
            return Err(format!(
                "the shared list holds {found:?}, not one of the last writes {last_writes:?}"
            ));
        }
    }
    outlive(servers)?;
    let databases = todos::check_databases(&helve.data())?;
    Ok(format!(
        "2 × {} calls over MCP, 2 × {calls} processes, none refused, none mixed up, {databases}",
        ground.count
    ))
}

/// One server in a session of its own: what it wrote is what it reads, whatever the others do.
fn serve(helve: &Helve, side: u64, count: usize, mut random: Random) -> Result<Server, String> {
    let mut server = helve.serve()?;
    let client = server.client()?;
    client.initialize()?;
    let mut last = None;
    for round in 0..count as u64 {
        let number = side * 1_000_000_000 + round;
        if last.is_none() || random.below(3) > 0 {
            let answer = client.call("todowrite", &todos::list(number))?;
            if answer.is_error {
                return Err(format!("server {side}, write {number}: {}", answer.text));
            }
            last = Some(number);
        }
        let answer = client.call("todoread", &json!({}))?;
        if answer.is_error || todos::number_in(&answer.text)? != last {
            return Err(format!("server {side} wrote {last:?} and read: {}", answer.text));
        }
    }
    Ok(server)
}

/// Processes one after the other, in the session that the other caller writes too.
fn call(helve: &Helve, side: u64, count: usize) -> Result<u64, String> {
    let mut number = side * 1_000_000_000;
    for _ in 0..count.max(1) {
        number += 1;
        helve.call(SHARED, "todowrite", &todos::list(number))?.good("helve call todowrite")?;
    }
    Ok(number)
}

/// A server that is killed takes nothing with it.
fn outlive(mut servers: Vec<Server>) -> Result<(), String> {
    if let Some(mut first) = servers.pop() {
        first.kill();
    }
    for server in &mut servers {
        let answer = server.client()?.call("todowrite", &todos::list(7))?;
        if answer.is_error {
            return Err(format!(
                "after its neighbour was killed, a server answered: {}",
                answer.text
            ));
        }
    }
    Ok(())
}
