//! Many clients of one `helve serve`, all at once: no call may fail, be slow, or leave memory behind.

use std::fs;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Ground;
use super::watch::{Times, resident};
use crate::web::{Client, Port};

/// Eight programs with eight calls each on their way.
const CLIENTS: usize = 8;
const CALLS_EACH: usize = 8;
/// Time before which memory and slowness say nothing yet.
const WARM_UP: Duration = Duration::from_secs(5);
/// What the slowest call of a hundred may take.
const BAR: Duration = Duration::from_millis(50);
/// How much more memory the second half may hold than the first.
const GROWTH: f64 = 8.0;

#[derive(Default)]
struct Seen {
    times: Times,
    faults: Vec<String>,
}

/// `count` is in seconds.
pub(super) fn run(ground: &Ground) -> Result<String, String> {
    let port = Port::open(ground.helve()?, Ipv4Addr::LOCALHOST)?;
    let start = Instant::now();
    let length = Duration::from_secs(u64::try_from(ground.count).unwrap_or(60)) + WARM_UP;
    let seen = Arc::new(Mutex::new(Seen::default()));
    let workspace = ground.helve()?.workspace.clone();
    let mut threads = Vec::new();
    let clients: Result<Vec<_>, _> = (0..CLIENTS).map(|_| Client::connect(&port)).collect();
    let clients = clients?;
    for line in 0..CLIENTS * CALLS_EACH {
        let number = u64::try_from(line).unwrap_or(0) + 1;
        let client = clients[line % CLIENTS].beside(&port, number)?;
        let file = format!("file-{line}.txt");
        fs::write(workspace.join(&file), "first\nvalue 0\nlast\n")
            .map_err(|error| format!("{file}: {error}"))?;
        let seen = seen.clone();
        threads.push(thread::spawn(move || {
            let outcome = call_on(client, &file, start, length, &seen);
            if let Err(fault) = outcome {
                seen.lock().unwrap_or_else(PoisonError::into_inner).faults.push(fault);
            }
        }));
    }
    let mut memory = Vec::new();
    while start.elapsed() < length {
        thread::sleep(Duration::from_millis(500));
        if start.elapsed() > WARM_UP {
            memory.push(resident(port.id())?);
        }
    }
    for thread in threads {
        thread.join().map_err(|_| "a client panicked")?;
    }
    let seen = std::mem::take(&mut *seen.lock().unwrap_or_else(PoisonError::into_inner));
    judged(seen, &memory, length - WARM_UP)
}

/// Reads and edits a file of its own in turn, and now and then one that all share.
fn call_on(
    mut client: Client,
    file: &str,
    start: Instant,
    length: Duration,
    seen: &Mutex<Seen>,
) -> Result<(), String> {
    let mut times = Times::default();
    for round in 0_u64.. {
        if start.elapsed() > length {
            break;
        }
        let edit = json!({"filePath": file, "oldString": format!("value {round}\n"), "newString": format!("value {}\n", round + 1)});
        for (tool, arguments) in [
            ("read", json!({"filePath": file})),
            ("edit", edit),
            ("read", json!({"filePath": "file-0.txt"})),
        ] {
            let began = Instant::now();
            let answer = client.call(tool, &arguments)?;
            if start.elapsed() > WARM_UP {
                times.add(began.elapsed());
            }
            good(tool, &answer)?;
        }
    }
    seen.lock().unwrap_or_else(PoisonError::into_inner).times.extend(times);
    Ok(())
}

fn good(tool: &str, answer: &Value) -> Result<(), String> {
    match answer["isError"] == false {
        true => Ok(()),
        false => Err(format!("{tool}: {answer}")),
    }
}

fn judged(mut seen: Seen, memory: &[f64], length: Duration) -> Result<String, String> {
    if let Some(fault) = seen.faults.first() {
        return Err(format!("{} clients failed, the first: {fault}", seen.faults.len()));
    }
    let half = memory.len() / 2;
    let most = |part: &[f64]| part.iter().copied().fold(0.0, f64::max);
    let (first, second) = (most(&memory[..half]), most(&memory[half..]));
    let said = format!(
        "{} calls in {} s; {}; memory {first:.1} then {second:.1} MiB",
        seen.times.count(),
        length.as_secs(),
        seen.times.said(),
    );
    if seen.times.at(0.99) > BAR || second > first + GROWTH {
        return Err(said);
    }
    Ok(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_calls_growing_memory_and_faults_are_told() {
        let times = |milliseconds: u64| {
            let mut times = Times::default();
            (0..100).for_each(|_| times.add(Duration::from_millis(milliseconds)));
            Seen { times, faults: Vec::new() }
        };
        let length = Duration::from_secs(1);
        assert!(judged(times(1), &[10.0, 12.0], length).is_ok());
        assert!(judged(times(60), &[10.0, 12.0], length).is_err());
        assert!(judged(times(1), &[10.0, 90.0], length).is_err());
        let failed = Seen { faults: vec!["read: no".into()], ..times(1) };
        let told = judged(failed, &[], length).unwrap_err();
        assert_eq!(told, "1 clients failed, the first: read: no");
    }
}
