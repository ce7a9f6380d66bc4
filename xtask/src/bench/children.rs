//! Benchmarks of sub-agents: 16 of them in one turn, four of which run at a time.

use std::io::BufReader;
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::agent::{read_request, respond};
use super::fixture::Fixture;
use super::measure::median;
use super::{Baseline, Measurement};
use crate::helve::CALL_LIMIT;
use crate::process::{self, peak_memory};

const CHILDREN: usize = 16;
/// How many run at a time.
const RUNNING: usize = 4;
/// Calls of `read` by each sub-agent.
const CALLS: usize = 10;
/// How long the model thinks about each reply of a sub-agent.
const THINKING: Duration = Duration::from_millis(20);
/// The main agent's prompt, by which its requests are recognised.
const PROMPT: &str = "start the sub-agents";
const ROUNDS: usize = 3;

/// The time of 16 sub-agents compared with four times that of four.
pub(super) fn time(fixture: &mut Fixture) -> Result<Measurement, String> {
    let (mut ours, mut four) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let few = run(fixture, &format!("few-{round}"), RUNNING)?;
        four.push(few.took * u32::try_from(CHILDREN / RUNNING).unwrap_or(1));
        ours.push(run(fixture, &format!("many-{round}"), CHILDREN)?.took);
    }
    let baseline = Baseline { command: "4 × the time of 4", value: median(four) };
    Ok(Measurement { ours: median(ours), baseline: Some(baseline), rounds: ROUNDS })
}

/// The peak memory that each of 16 sub-agents adds.
pub(super) fn memory(fixture: &mut Fixture) -> Result<Measurement, String> {
    let one = run(fixture, "memory-one", 1)?.peak_memory;
    let all = run(fixture, "memory-all", CHILDREN)?.peak_memory;
    let ours = (all - one).max(0.0) / (CHILDREN - 1) as f64;
    Ok(Measurement { ours, baseline: None, rounds: 1 })
}

struct Measured {
    took: Duration,
    /// In MiB.
    peak_memory: f64,
}

/// Runs a turn with this many sub-agents.
fn run(fixture: &mut Fixture, id: &str, children: usize) -> Result<Measured, String> {
    let path = fixture.small_file();
    let (ended, last_request) = mpsc::channel();
    let model = Model { children, arguments: json!({"filePath": path}), ended };
    let url = model.start()?;
    let mut command = fixture.helve.run_command(&format!("bench-children-{id}"));
    command.args(["--base-url", &url, "--model", "m", PROMPT]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    let mut child = command.spawn().map_err(|error| format!("helve: {error}"))?;
    // The request with the results of all sub-agents is answered once the memory is known.
    let results = last_request.recv_timeout(CALL_LIMIT);
    let took = start.elapsed();
    let peak_memory = peak_memory(child.id());
    let (Ok((results, may_end)), Ok(peak_memory)) = (results, peak_memory) else {
        process::kill(&mut child);
        return Err("helve did not send the results of the sub-agents".into());
    };
    if results != children {
        process::kill(&mut child);
        return Err(format!("{results} of {children} sub-agents reported"));
    }
    may_end.send(()).map_err(|_| "the fake model has ended".to_string())?;
    match process::wait(&mut child, CALL_LIMIT)? {
        Some(status) if status.success() => Ok(Measured { took, peak_memory }),
        status => Err(format!("helve run ended with {status:?}")),
    }
}

/// A model that starts sub-agents, each of which calls `read` some times.
#[derive(Clone)]
struct Model {
    children: usize,
    arguments: Value,
    /// Receives the number of reports in the last request, and what lets the model answer it.
    ended: Sender<(usize, Sender<()>)>,
}

impl Model {
    fn start(self) -> Result<String, String> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                let model = self.clone();
                // An error ends only this connection.
                thread::spawn(move || model.serve(&connection).ok());
            }
        });
        Ok(format!("http://{address}"))
    }

    fn serve(&self, connection: &TcpStream) -> std::io::Result<()> {
        connection.set_nodelay(true)?;
        let mut reader = BufReader::new(connection);
        while let Some((path, _, body)) = read_request(&mut reader)? {
            if !path.ends_with("/chat/completions") {
                let models = r#"{"data":[{"id":"m","max_model_len":100000000}]}"#;
                respond(connection, "application/json", models)?;
                continue;
            }
            let delta = self.reply(&String::from_utf8_lossy(&body));
            let chunk = json!({"choices": [{"index": 0, "delta": delta, "finish_reason": "stop"}]});
            let events = format!("data: {chunk}\n\ndata: [DONE]\n\n");
            respond(connection, "text/event-stream", &events)?;
        }
        Ok(())
    }

    fn reply(&self, body: &str) -> Value {
        let results = body.matches(r#""role":"tool""#).count();
        if !body.contains(PROMPT) {
            thread::sleep(THINKING);
            if results == CALLS {
                return json!({"content": "read everything"});
            }
            let mut arguments = self.arguments.clone();
            arguments["limit"] = json!(100 + results);
            return json!({"tool_calls": [call(0, "read", &arguments)]});
        }
        if results == 0 {
            let task = |number| {
                let prompt = format!("part {number}");
                json!({"description": prompt, "prompt": prompt, "subagent_type": "explore"})
            };
            let calls = (0..self.children).map(|number| call(number, "task", &task(number)));
            return json!({"tool_calls": calls.collect::<Vec<_>>()});
        }
        let reports = body.matches("read everything").count();
        let (may_end, ended) = mpsc::channel();
        // If the benchmark is over, the answer does not matter.
        if self.ended.send((reports, may_end)).is_ok() {
            ended.recv().ok();
        }
        json!({"content": "done"})
    }
}

fn call(number: usize, name: &str, arguments: &Value) -> Value {
    let function = json!({"name": name, "arguments": arguments.to_string()});
    json!({"index": number, "id": format!("call-{number}"), "type": "function", "function": function})
}
