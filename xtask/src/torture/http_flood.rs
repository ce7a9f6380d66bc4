//! Everything that can be thrown at `helve serve` at once, while somebody with the token goes on working.

mod crowd;
mod large;
mod sockets;
mod streams;

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::Ground;
use super::watch::{Memory, Times, handles, handles_back_to};
use crate::web::{Client, Port};

/// What a call may take, whatever goes on.
const BAR: Duration = Duration::from_secs(1);
/// How much memory all of it may cost, in MiB.
const MOST_MEMORY: f64 = 128.0;
/// The handles that the server may have open at once: what most systems give.
const HANDLES: u64 = 1024;
/// Handles that a server opens by itself as it works.
const SLACK: usize = 16;
/// Between two calls of a client.
const PAUSE: Duration = Duration::from_millis(20);
/// How long the crowd presses at least.
const LEAST: Duration = Duration::from_secs(15);

/// What everybody knows.
struct Siege<'a> {
    port: &'a Port,
    /// A session that attackers who have the token may use.
    session: String,
    over: AtomicBool,
    connects: AtomicU64,
}

impl Siege<'_> {
    fn over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    fn connected(&self) {
        self.connects.fetch_add(1, Ordering::Relaxed);
    }
}

/// `count` is how many streams are asked for.
pub(super) fn run(ground: &Ground) -> Result<String, String> {
    let helve = ground.helve()?;
    std::fs::write(helve.workspace.join("file.txt"), "here\n").map_err(|err| err.to_string())?;
    sockets::limit_handles(HANDLES)?;
    let port = Port::open(helve, Ipv4Addr::LOCALHOST)?;
    sockets::limit_handles(2 * crowd::CROWD + 2000)?;
    let mut steady = Client::connect(&port)?;
    let fresh = Client::connect(&port)?;
    let attacker = Client::connect(&port)?;
    steady.call("read", &json!({"filePath": "file.txt"}))?;
    let (memory, base) = (Memory::of(port.id())?, handles(port.id())?);
    let session = attacker.session_id().to_owned();
    drop(attacker);
    let siege =
        Siege { port: &port, session, over: AtomicBool::new(false), connects: AtomicU64::new(0) };
    let start = Instant::now();
    let (calls, told) = thread::scope(|scope| {
        let steady = scope.spawn(|| call_steadily(&siege, steady));
        let fresh = scope.spawn(|| call_freshly(&siege, &fresh));
        let crowd: Vec<_> = (0..crowd::SIDES)
            .map(|side| {
                scope.spawn({
                    let siege = &siege;
                    move || crowd::press(siege, side)
                })
            })
            .collect();
        let large = scope.spawn(|| large::send_all(&siege));
        let streams = streams::ask(&siege, ground.count);
        let large = large.join().unwrap_or_else(|_| Err("a sender panicked".into()));
        thread::sleep(LEAST.saturating_sub(start.elapsed()));
        siege.over.store(true, Ordering::Relaxed);
        let mut most = 0;
        for side in crowd {
            most += side.join().unwrap_or(0);
        }
        let joined = |_| Err("a client panicked".to_owned());
        let calls = [steady, fresh].map(|it| it.join().unwrap_or_else(joined));
        let crowd = Ok(format!("{most} connections held by the crowd at once"));
        (calls, [streams, large, crowd])
    });
    let took = start.elapsed().as_secs_f64();
    let connects = siege.connects.load(Ordering::Relaxed);
    let mut said = Vec::from(told);
    said.push(Ok(format!("{connects} connections in {took:.0} s")));
    let names = ["on one connection", "each on a new one"];
    said.extend(names.iter().zip(calls).map(|(name, times)| judged(name, times?)));
    let left = handles_back_to(port.id(), base + SLACK, Duration::from_secs(60))?;
    let handles = format!("{base} handles before, {left} after");
    said.push(if left > base + SLACK { Err(handles) } else { Ok(handles) });
    said.push(memory.judged(MOST_MEMORY));
    let good = said.iter().all(Result::is_ok);
    let words: Vec<_> = said.into_iter().map(|part| part.unwrap_or_else(|why| why)).collect();
    if good { Ok(words.join("\n   ")) } else { Err(words.join("\n   ")) }
}

fn judged(name: &str, mut times: Times) -> Result<String, String> {
    let said = format!("{} calls meanwhile, {name}: {}", times.count(), times.said());
    if times.at(1.0) > BAR { Err(said) } else { Ok(said) }
}

fn call_steadily(siege: &Siege<'_>, mut client: Client) -> Result<Times, String> {
    let mut times = Times::default();
    while !siege.over() {
        let began = Instant::now();
        let answer = client.call("read", &json!({"filePath": "file.txt"}))?;
        times.add(began.elapsed());
        if answer["isError"] != false {
            return Err(format!("a call failed: {answer}"));
        }
        thread::sleep(PAUSE);
    }
    Ok(times)
}

/// Every call on a connection of its own, as programs do that keep none.
fn call_freshly(siege: &Siege<'_>, client: &Client) -> Result<Times, String> {
    let mut times = Times::default();
    for number in 1.. {
        if siege.over() {
            break;
        }
        let began = Instant::now();
        let mut client = client.beside(siege.port, number)?;
        let answer = client.call("read", &json!({"filePath": "file.txt"}));
        times.add(began.elapsed());
        let answer = answer.map_err(|why| {
            format!(
                "a call on a new connection failed after {:?}, after {} that did not: {why}",
                began.elapsed(),
                times.count()
            )
        })?;
        if answer["isError"] != false {
            return Err(format!("a call failed: {answer}"));
        }
        thread::sleep(PAUSE);
    }
    Ok(times)
}
