//! Benchmarks of `helve run` with a model that answers at once: what an agent's user waits for besides the model.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::Measurement;
use super::fixture::Fixture;
use super::measure::median;
use crate::helve::CALL_LIMIT;
use crate::process::{self, peak_memory};

/// Number of measured calls in a run.
const CALLS: usize = 200;
/// Number of calls before them that are not counted.
const WARM_UP_CALLS: usize = 5;
/// Steps of a long session.
const LONG_STEPS: usize = 1_000;
/// How many times the start is measured.
const STARTS: usize = 20;
/// Characters of text in each reply of a session with a large transcript: a megabyte in total.
const LARGE_TEXT: usize = 5_000;

/// Measures the time from the start of the process to its first request.
pub(super) fn first_request(fixture: &mut Fixture) -> Result<Measurement, String> {
    let mut times = Vec::new();
    for number in 0..STARTS {
        let run = Session::new(format!("start-{number}"), 0).run(fixture)?;
        times.push(run.first_request);
    }
    Ok(Measurement { ours: median(times), baseline: None, rounds: STARTS })
}

/// Measures the time from the end of a reply that calls `read` to the request with the result.
pub(super) fn step(fixture: &mut Fixture) -> Result<Measurement, String> {
    let run = Session::new("steps".into(), CALLS + WARM_UP_CALLS).run(fixture)?;
    let times = run.steps[WARM_UP_CALLS..].to_vec();
    Ok(Measurement { ours: median(times), baseline: None, rounds: CALLS })
}

/// Like `step`, at the end of a session with a megabyte of transcript.
pub(super) fn large_step(fixture: &mut Fixture) -> Result<Measurement, String> {
    let session = Session { text: LARGE_TEXT, ..Session::new("large".into(), CALLS) };
    let run = session.run(fixture)?;
    let last = run.steps[CALLS - CALLS / 10..].to_vec();
    Ok(Measurement { ours: median(last), baseline: None, rounds: CALLS / 10 })
}

/// The last steps of a long session compared with the first ones. Each request contains everything before it, so steps
/// get slower. If they get much slower, something scans the whole session several times per step.
pub(super) fn long_session(fixture: &mut Fixture) -> Result<Measurement, String> {
    let run = Session::new("long".into(), LONG_STEPS).run(fixture)?;
    let tenth = LONG_STEPS / 10;
    let ours = median(run.steps[LONG_STEPS - tenth..].to_vec());
    let first = median(run.steps[tenth..2 * tenth].to_vec());
    let baseline = super::Baseline { command: "steps 100 to 200", value: first };
    Ok(Measurement { ours, baseline: Some(baseline), rounds: tenth })
}

/// The peak memory of a long session.
pub(super) fn memory(fixture: &mut Fixture) -> Result<Measurement, String> {
    let run = Session::new("memory".into(), LONG_STEPS).run(fixture)?;
    Ok(Measurement { ours: run.peak_memory, baseline: None, rounds: 1 })
}

/// A session to be measured.
struct Session {
    id: String,
    /// Calls of `read`, one per step.
    calls: usize,
    /// Characters of text in each reply.
    text: usize,
}

/// What a session took.
struct Measured {
    first_request: Duration,
    steps: Vec<Duration>,
    /// In MiB.
    peak_memory: f64,
}

impl Session {
    fn new(id: String, calls: usize) -> Self {
        Self { id, calls, text: 0 }
    }

    fn run(&self, fixture: &mut Fixture) -> Result<Measured, String> {
        let path = fixture.small_file();
        let model = FakeModel::start(self.calls, self.text, json!({"filePath": path}))?;
        let mut command = fixture.helve.run_command(&format!("bench-{}", self.id));
        command.args(["--base-url", &model.url, "--model", "m", "go"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let start = Instant::now();
        let mut child = command.spawn().map_err(|error| format!("helve: {error}"))?;
        let measured = self.watch(&mut child, &model, start);
        if measured.is_err() {
            process::kill(&mut child);
        }
        measured
    }

    fn watch(
        &self,
        child: &mut Child,
        model: &FakeModel,
        start: Instant,
    ) -> Result<Measured, String> {
        let next = || {
            let received = model.received.recv_timeout(CALL_LIMIT);
            received.map_err(|_| "helve did not send the next request".to_string())
        };
        let first_request = next()?.at.duration_since(start);
        let mut steps = Vec::with_capacity(self.calls);
        let mut answered = model.answer()?;
        let mut peak = 0.0;
        for number in 1..=self.calls {
            let request = next()?;
            steps.push(request.at.duration_since(answered));
            if !request.has_result {
                return Err(format!("request {number} has no result of `read`"));
            }
            if number == self.calls {
                peak = peak_memory(child.id())?;
            }
            answered = model.answer()?;
        }
        match process::wait(child, CALL_LIMIT)? {
            Some(status) if status.success() => {}
            status => return Err(format!("helve run ended with {status:?}")),
        }
        Ok(Measured { first_request, steps, peak_memory: peak })
    }
}

/// A model that calls `read` a given number of times, then answers. It waits for [`FakeModel::answer`] before each
/// reply, so that nothing but the client runs while time is measured.
struct FakeModel {
    url: String,
    received: Receiver<ReceivedRequest>,
    go: Sender<()>,
    sent: Receiver<Instant>,
}

struct ReceivedRequest {
    at: Instant,
    /// Whether the last message is what `read` returned.
    has_result: bool,
}

impl FakeModel {
    fn start(calls: usize, text: usize, arguments: Value) -> Result<FakeModel, String> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let (received_sender, received) = mpsc::channel();
        let (go, may_answer) = mpsc::channel();
        let (sent_sender, sent) = mpsc::channel();
        let script = Arc::new(Mutex::new(FakeScript {
            step: 0,
            calls,
            text,
            arguments,
            received: received_sender,
            may_answer,
            sent: sent_sender,
        }));
        thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                let script = script.clone();
                // An error ends only this connection.
                thread::spawn(move || serve(&connection, &script).ok());
            }
        });
        Ok(FakeModel { url: format!("http://{address}"), received, go, sent })
    }

    /// Lets the model send its reply. Returns the time at which the last byte was sent.
    fn answer(&self) -> Result<Instant, String> {
        let ended = || "the fake model has ended".to_string();
        self.go.send(()).map_err(|_| ended())?;
        self.sent.recv_timeout(CALL_LIMIT).map_err(|_| ended())
    }
}

/// What the model does, shared by its connections.
struct FakeScript {
    /// The number of replies so far.
    step: usize,
    calls: usize,
    text: usize,
    arguments: Value,
    received: Sender<ReceivedRequest>,
    may_answer: Receiver<()>,
    sent: Sender<Instant>,
}

fn serve(connection: &TcpStream, script: &Mutex<FakeScript>) -> std::io::Result<()> {
    connection.set_nodelay(true)?;
    let mut reader = BufReader::new(connection);
    while let Some((path, at, body)) = read_request(&mut reader)? {
        if !path.ends_with("/chat/completions") {
            // A large context window, so that nothing is summarized.
            let models = r#"{"data":[{"id":"m","max_model_len":100000000}]}"#;
            respond(connection, "application/json", models)?;
            continue;
        }
        let mut script = script.lock();
        let has_result = ends_with_result(&body);
        let is_over = script.received.send(ReceivedRequest { at, has_result }).is_err();
        if is_over || script.may_answer.recv().is_err() {
            return Ok(());
        }
        respond(connection, "text/event-stream", &script.reply(script.step))?;
        script.step += 1;
        // Nobody listens any more if the benchmark has ended.
        script.sent.send(Instant::now()).ok();
    }
    Ok(())
}

impl FakeScript {
    fn reply(&self, step: usize) -> String {
        let text = "x".repeat(self.text);
        let delta = match step < self.calls {
            // Different arguments in each step, or the calls would count as a loop.
            true => {
                let mut arguments = self.arguments.clone();
                arguments["limit"] = json!(100 + step);
                let function = json!({"name": "read", "arguments": arguments.to_string()});
                let id = format!("call-{step}");
                json!({"content": text, "tool_calls": [{"index": 0, "id": id, "type": "function", "function": function}]})
            }
            false => json!({"content": "done"}),
        };
        let chunk = json!({"choices": [{"index": 0, "delta": delta, "finish_reason": "stop"}]});
        format!("data: {chunk}\n\ndata: [DONE]\n\n")
    }
}

/// Whether the last message of a request is a result of `read`. The body is not parsed, because that would take too
/// long.
fn ends_with_result(body: &[u8]) -> bool {
    let tail = String::from_utf8_lossy(&body[body.len().saturating_sub(8_000)..]).into_owned();
    tail.contains("line 50 of the small file")
}

pub(super) fn respond(mut connection: &TcpStream, kind: &str, body: &str) -> std::io::Result<()> {
    let length = body.len();
    let head =
        format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n");
    connection.write_all(format!("{head}{body}").as_bytes())?;
    connection.flush()
}

/// Reads a request: its path, when its head arrived, and its body. Returns `None` if the client closed the connection.
pub(super) fn read_request(
    reader: &mut BufReader<&TcpStream>,
) -> std::io::Result<Option<(String, Instant, Vec<u8>)>> {
    let mut first = String::new();
    if reader.read_line(&mut first)? == 0 {
        return Ok(None);
    }
    let path = first.split_whitespace().nth(1).unwrap_or_default().to_string();
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let at = Instant::now();
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some((path, at, body)))
}
