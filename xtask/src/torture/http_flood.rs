//! Several attacks on `helve serve` at once, while clients with the token continue to work.

mod oversized;
mod slow_connections;
mod sockets;
mod streams;

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Context;
use super::measurements::{Latencies, MemoryGrowth, count_handles, wait_for_handles};
use crate::web::{HttpClient, HttpServer};

/// Limit for every call of the working clients.
const MAX_LATENCY: Duration = Duration::from_secs(1);
/// Limit for the memory growth of the server, in MiB.
const MAX_MEMORY_GROWTH: f64 = 128.0;
/// The server's limit of open file handles, which is the default of most systems.
const SERVER_HANDLES: u64 = 1024;
/// File handles that the server may open for its own work.
const EXTRA_HANDLES: usize = 16;
/// Pause between two calls of a working client.
const CALL_PAUSE: Duration = Duration::from_millis(20);
/// Minimum duration of the attack.
const MIN_DURATION: Duration = Duration::from_secs(15);

/// The state that all threads of the attack share.
struct Attack<'a> {
    server: &'a HttpServer,
    /// A session that attackers with the token use.
    session: String,
    is_over: AtomicBool,
    connections: AtomicU64,
}

impl Attack<'_> {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    fn count_connection(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }
}

/// Runs the test. `count` of the context is the number of streams requested.
pub(super) fn run(context: &Context) -> Result<String, String> {
    let helve = context.helve()?;
    std::fs::write(helve.workspace.join("file.txt"), "here\n").map_err(|err| err.to_string())?;
    // The server inherits the first limit; the second one is for the clients in this process.
    sockets::limit_handles(SERVER_HANDLES)?;
    let server = HttpServer::start(helve, Ipv4Addr::LOCALHOST)?;
    sockets::limit_handles(2 * slow_connections::CONNECTIONS + 2000)?;
    let mut client = HttpClient::connect(&server)?;
    let reconnecting_client = HttpClient::connect(&server)?;
    let attacker = HttpClient::connect(&server)?;
    client.call("read", &json!({"filePath": "file.txt"}))?;
    let memory = MemoryGrowth::start(server.id())?;
    let handles_before = count_handles(server.id())?;
    let attack = Attack {
        server: &server,
        session: attacker.session_id().to_owned(),
        is_over: AtomicBool::new(false),
        connections: AtomicU64::new(0),
    };
    drop(attacker);
    let mut reports = attack_while_calling(&attack, context.count, client, &reconnecting_client);
    let handles =
        wait_for_handles(server.id(), handles_before + EXTRA_HANDLES, Duration::from_secs(60))?;
    let report = format!("{handles_before} file handles before, {handles} after");
    reports.push(if handles > handles_before + EXTRA_HANDLES { Err(report) } else { Ok(report) });
    reports.push(memory.check(MAX_MEMORY_GROWTH));
    let has_passed = reports.iter().all(Result::is_ok);
    let lines: Vec<_> = reports.into_iter().map(|part| part.unwrap_or_else(|why| why)).collect();
    if has_passed { Ok(lines.join("\n   ")) } else { Err(lines.join("\n   ")) }
}

/// Runs all attacks and, at the same time, two clients that make calls. Returns a report of each.
fn attack_while_calling(
    attack: &Attack<'_>,
    streams: usize,
    client: HttpClient,
    reconnecting_client: &HttpClient,
) -> Vec<Result<String, String>> {
    let start = Instant::now();
    let (latencies, mut reports) = thread::scope(|scope| {
        let client = scope.spawn(|| call_on_one_connection(attack, client));
        let reconnecting = scope.spawn(|| call_on_new_connections(attack, reconnecting_client));
        let slow: Vec<_> = (0..slow_connections::THREADS)
            .map(|number| scope.spawn(move || slow_connections::keep_open(attack, number)))
            .collect();
        let oversized = scope.spawn(|| oversized::send_all(attack));
        let streams = streams::request_all(attack, streams);
        let oversized = oversized.join().unwrap_or_else(|_| Err("a sender panicked".into()));
        thread::sleep(MIN_DURATION.saturating_sub(start.elapsed()));
        attack.is_over.store(true, Ordering::Relaxed);
        let open: usize = slow.into_iter().map(|thread| thread.join().unwrap_or(0)).sum();
        let panicked = |_| Err("a client panicked".to_owned());
        let latencies = [client, reconnecting].map(|it| it.join().unwrap_or_else(panicked));
        let slow = Ok(format!("{open} slow connections open at once"));
        (latencies, vec![streams, oversized, slow])
    });
    let took = start.elapsed().as_secs_f64();
    let connections = attack.connections.load(Ordering::Relaxed);
    reports.push(Ok(format!("{connections} connections in {took:.0} s")));
    for (name, latencies) in ["on one connection", "each on a new one"].iter().zip(latencies) {
        reports.push(latencies.and_then(|latencies| check_latencies(name, latencies)));
    }
    reports
}

fn check_latencies(name: &str, mut latencies: Latencies) -> Result<String, String> {
    let report =
        format!("{} calls during the attack, {name}: {}", latencies.count(), latencies.report());
    if latencies.quantile(1.0) > MAX_LATENCY { Err(report) } else { Ok(report) }
}

fn call_on_one_connection(
    attack: &Attack<'_>,
    mut client: HttpClient,
) -> Result<Latencies, String> {
    let mut latencies = Latencies::default();
    while !attack.is_over() {
        let start = Instant::now();
        let answer = client.call("read", &json!({"filePath": "file.txt"}))?;
        latencies.add(start.elapsed());
        check_answer(&answer)?;
        thread::sleep(CALL_PAUSE);
    }
    Ok(latencies)
}

fn call_on_new_connections(attack: &Attack<'_>, client: &HttpClient) -> Result<Latencies, String> {
    let mut latencies = Latencies::default();
    for number in 1.. {
        if attack.is_over() {
            break;
        }
        let start = Instant::now();
        let mut client = client.same_session(attack.server, number)?;
        let answer = client.call("read", &json!({"filePath": "file.txt"}));
        latencies.add(start.elapsed());
        let answer = answer.map_err(|why| {
            format!("call {number} on a new connection failed after {:?}: {why}", start.elapsed())
        })?;
        check_answer(&answer)?;
        thread::sleep(CALL_PAUSE);
    }
    Ok(latencies)
}

fn check_answer(answer: &Value) -> Result<(), String> {
    if answer["isError"] == false { Ok(()) } else { Err(format!("a call failed: {answer}")) }
}
