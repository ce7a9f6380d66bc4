//! Many clients call one `helve serve` at once. No call may fail or be slow, and the server's memory must not grow.

use std::fs;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Context;
use super::measurements::Latencies;
use crate::process::resident_memory;
use crate::web::{HttpClient, HttpServer};

const CLIENTS: usize = 8;
const CONNECTIONS_PER_CLIENT: usize = 8;
/// Time after which memory and latencies are measured.
const WARM_UP: Duration = Duration::from_secs(5);
/// Limit for the 99th percentile of latencies.
const MAX_LATENCY: Duration = Duration::from_millis(50);
/// How much more memory, in MiB, the server may use in the second half of the run than in the first.
const MAX_GROWTH: f64 = 8.0;

#[derive(Default)]
struct ClientResults {
    latencies: Latencies,
    errors: Vec<String>,
}

/// Calls tools from all clients at once. `context.count` is the number of seconds.
pub(super) fn run(context: &Context) -> Result<String, String> {
    let server = HttpServer::start(context.helve()?, Ipv4Addr::LOCALHOST)?;
    let start = Instant::now();
    let duration = Duration::from_secs(u64::try_from(context.count).unwrap_or(60)) + WARM_UP;
    let results = Arc::new(Mutex::new(ClientResults::default()));
    let workspace = context.helve()?.workspace.clone();
    let mut threads = Vec::new();
    let clients: Result<Vec<_>, _> = (0..CLIENTS).map(|_| HttpClient::connect(&server)).collect();
    let clients = clients?;
    for connection in 0..CLIENTS * CONNECTIONS_PER_CLIENT {
        let number = u64::try_from(connection).unwrap_or(0) + 1;
        let client = clients[connection % CLIENTS].same_session(&server, number)?;
        let file = format!("file-{connection}.txt");
        fs::write(workspace.join(&file), "first\nvalue 0\nlast\n")
            .map_err(|error| format!("{file}: {error}"))?;
        let results = results.clone();
        threads.push(thread::spawn(move || {
            if let Err(error) = call_repeatedly(client, &file, start, duration, &results) {
                results.lock().unwrap_or_else(PoisonError::into_inner).errors.push(error);
            }
        }));
    }
    let mut memory = Vec::new();
    while start.elapsed() < duration {
        thread::sleep(Duration::from_millis(500));
        if start.elapsed() > WARM_UP {
            memory.push(resident_memory(server.id())?);
        }
    }
    for thread in threads {
        thread.join().map_err(|_| "a client panicked")?;
    }
    let results = std::mem::take(&mut *results.lock().unwrap_or_else(PoisonError::into_inner));
    evaluate(results, &memory, duration - WARM_UP)
}

/// Reads and edits one file, and reads another one that all clients share.
fn call_repeatedly(
    mut client: HttpClient,
    file: &str,
    start: Instant,
    duration: Duration,
    results: &Mutex<ClientResults>,
) -> Result<(), String> {
    let mut latencies = Latencies::default();
    for round in 0_u64.. {
        if start.elapsed() > duration {
            break;
        }
        let edit = json!({"filePath": file, "oldString": format!("value {round}\n"), "newString": format!("value {}\n", round + 1)});
        for (tool, arguments) in [
            ("read", json!({"filePath": file})),
            ("edit", edit),
            ("read", json!({"filePath": "file-0.txt"})),
        ] {
            let call_start = Instant::now();
            let answer = client.call(tool, &arguments)?;
            if start.elapsed() > WARM_UP {
                latencies.add(call_start.elapsed());
            }
            check_answer(tool, &answer)?;
        }
    }
    results.lock().unwrap_or_else(PoisonError::into_inner).latencies.extend(latencies);
    Ok(())
}

fn check_answer(tool: &str, answer: &Value) -> Result<(), String> {
    if answer["isError"] == false { Ok(()) } else { Err(format!("{tool}: {answer}")) }
}

fn evaluate(
    mut results: ClientResults,
    memory: &[f64],
    duration: Duration,
) -> Result<String, String> {
    if let Some(first) = results.errors.first() {
        return Err(format!("{} clients failed; first error: {first}", results.errors.len()));
    }
    let half = memory.len() / 2;
    let max = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    let (first, second) = (max(&memory[..half]), max(&memory[half..]));
    let report = format!(
        "{} calls in {} s; {}; memory {first:.1}, then {second:.1} MiB",
        results.latencies.count(),
        duration.as_secs(),
        results.latencies.report(),
    );
    if results.latencies.quantile(0.99) > MAX_LATENCY || second > first + MAX_GROWTH {
        return Err(report);
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_calls_growing_memory_and_errors_fail() {
        let results = |milliseconds: u64| {
            let mut latencies = Latencies::default();
            (0..100).for_each(|_| latencies.add(Duration::from_millis(milliseconds)));
            ClientResults { latencies, errors: Vec::new() }
        };
        let duration = Duration::from_secs(1);
        assert!(evaluate(results(1), &[10.0, 12.0], duration).is_ok());
        assert!(evaluate(results(60), &[10.0, 12.0], duration).is_err());
        assert!(evaluate(results(1), &[10.0, 90.0], duration).is_err());
        let failed = ClientResults { errors: vec!["read: no".into()], ..results(1) };
        let error = evaluate(failed, &[], duration).unwrap_err();
        assert_eq!(error, "1 clients failed; first error: read: no");
    }
}
