//! Kills `helve run` at random moments of runs with many steps, some of which start sub-agents. Every request after
//! that must be valid, no command may run twice, and no file may be half written.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{Context, Progress, random_duration};
use crate::helve::{CALL_LIMIT, Helve};
use crate::process;

/// Steps of a run.
const STEPS: usize = 30;
/// Sub-agents that are started at a time.
const CHILDREN: usize = 3;
/// How the prompts of sub-agents begin.
const CHILD: &str = "sub-agent ";
/// Lines of a file that a step writes. All of them are the same, so that a half-written file shows.
const LINES: usize = 2_000;
/// Maximum number of processes for one session.
const MAX_RESUMES: usize = 200;

pub(super) fn run(context: &Context<'_>) -> Result<String, String> {
    let helve = context.helve()?;
    let server = ModelServer::start()?;
    let mut rng = context.rng(0);
    let progress = Progress::new(context.count);
    let (mut killed, mut sessions) = (0, 0);
    let mut window = Duration::from_millis(600);
    while killed < context.count {
        sessions += 1;
        let session = format!("agent-{sessions}");
        let log = format!("log-{sessions}.txt");
        server.state.lock().log = log.clone();
        for resume in 0.. {
            if resume > MAX_RESUMES {
                return Err(format!("{session} did not end after {MAX_RESUMES} processes"));
            }
            let delay = random_duration(&mut rng, window);
            let has_finished = attempt(helve, &server.url, &session, delay)?;
            check_files(helve, &log)?;
            if let Some(problem) = server.state.lock().problem.take() {
                return Err(format!("{session}: {problem}"));
            }
            if has_finished {
                // The run finished before the kill: choose a shorter time next, so that kills hit all moments of a run.
                window = window * 19 / 20;
                break;
            }
            killed += 1;
            progress.step();
            window = (window * 21 / 20).min(CALL_LIMIT);
        }
    }
    let state = server.state.lock();
    Ok(format!(
        "{killed} killed in {sessions} sessions, {} requests valid, {} calls reported as interrupted, {} with the files they changed",
        state.requests,
        state.interrupted.len(),
        state.with_files.len()
    ))
}

/// Runs a session until it answers or the delay is over. Returns whether it answered.
fn attempt(helve: &Helve, url: &str, session: &str, delay: Duration) -> Result<bool, String> {
    let mut command = helve.run_command(session);
    command.args(["--base-url", url, "--model", "m", "go on"]);
    let notes = helve.workspace.with_file_name("notes");
    let file = fs::File::create(&notes).map_err(|error| format!("{}: {error}", notes.display()))?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
    let mut child = command.spawn().map_err(|error| format!("helve: {error}"))?;
    match process::wait(&mut child, delay)? {
        None => Ok(false),
        Some(status) if status.success() => Ok(true),
        Some(status) => {
            let notes = fs::read_to_string(&notes).unwrap_or_default();
            Err(format!("{session} was not killed and failed: {status}\n{notes}"))
        }
    }
}

/// No command ran twice, and every file is whole.
fn check_files(helve: &Helve, log: &str) -> Result<(), String> {
    let lines = fs::read_to_string(helve.workspace.join(log)).unwrap_or_default();
    let mut seen = BTreeSet::new();
    if let Some(twice) = lines.lines().find(|line| !seen.insert(*line)) {
        return Err(format!("{twice} ran twice: {lines}"));
    }
    let files = fs::read_dir(&helve.workspace).map_err(|error| error.to_string())?;
    for path in files.filter_map(Result::ok).map(|file| file.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.starts_with("file-") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap_or_default();
        let distinct: BTreeSet<&str> = text.lines().collect();
        if !text.is_empty() && (distinct.len() != 1 || text.lines().count() != LINES) {
            return Err(format!("{name} is half written"));
        }
    }
    Ok(())
}

/// A model that makes the next call, which follows from the number of results in the request.
struct ModelServer {
    url: String,
    state: Arc<Mutex<ServerState>>,
}

#[derive(Default)]
struct ServerState {
    log: String,
    requests: usize,
    /// Ids of the calls that were reported as interrupted.
    interrupted: BTreeSet<String>,
    /// Those of them whose report names files that they had changed or were changing.
    with_files: BTreeSet<String>,
    problem: Option<String>,
}

impl ModelServer {
    fn start() -> Result<ModelServer, String> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let state: Arc<Mutex<ServerState>> = Arc::default();
        let shared = state.clone();
        thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                let state = shared.clone();
                // A client that was killed ends only its own connection.
                thread::spawn(move || serve(&connection, &state).ok());
            }
        });
        Ok(ModelServer { url: format!("http://{address}"), state })
    }
}

fn serve(connection: &TcpStream, state: &Mutex<ServerState>) -> std::io::Result<()> {
    let (path, body) = read_request(connection)?;
    let mut out = connection;
    if !path.ends_with("/chat/completions") {
        // A large context window, so that nothing is summarized.
        let models = r#"{"data":[{"id":"m","max_model_len":10000000}]}"#;
        return write!(
            out,
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{models}",
            models.len()
        );
    }
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let delta = {
        let mut state = state.lock();
        match state.check(&request) {
            Ok(results) => match task_of(&request) {
                Some(task) => state.next_of_child(&task, results),
                None => state.next(results),
            },
            Err(problem) => {
                state.problem = Some(problem);
                json!({"content": "stop"})
            }
        }
    };
    let chunk = json!({"choices": [{"index": 0, "delta": delta, "finish_reason": "stop"}]});
    let answer = format!("data: {chunk}\n\ndata: [DONE]\n\n");
    write!(
        out,
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{answer}",
        answer.len()
    )?;
    out.flush()
}

impl ServerState {
    /// Checks that every call has exactly one result, in order. Returns the number of results.
    fn check(&mut self, request: &Value) -> Result<usize, String> {
        self.requests += 1;
        let mut open: Vec<&str> = Vec::new();
        let mut results = 0;
        for message in request["messages"].as_array().into_iter().flatten() {
            if message["role"] == "tool" {
                let id = message["tool_call_id"].as_str().unwrap_or_default();
                if open.is_empty() || open.remove(0) != id {
                    return Err(format!("the result of {id} has no call: {request}"));
                }
                results += 1;
                let text = message["content"].as_str().unwrap_or_default();
                if text.starts_with("interrupted:") {
                    let key = format!("{}/{id}", self.log);
                    if text.contains("; it ") {
                        self.with_files.insert(key.clone());
                    }
                    self.interrupted.insert(key);
                }
                continue;
            }
            if let [id, ..] = open[..] {
                return Err(format!("the call {id} has no result: {request}"));
            }
            let calls = message["tool_calls"].as_array().into_iter().flatten();
            open.extend(calls.filter_map(|call| call["id"].as_str()));
        }
        match open[..] {
            [] => Ok(results),
            [id, ..] => Err(format!("the call {id} has no result: {request}")),
        }
    }

    /// A sub-agent writes a file and runs a command, then reports.
    fn next_of_child(&self, task: &str, results: usize) -> Value {
        let (name, arguments) = match results {
            0 => {
                let file = format!("file-of-{}-{task}.txt", self.log);
                let content = format!("task {task}\n").repeat(LINES);
                ("write", json!({"filePath": file, "content": content}))
            }
            1 => {
                let command = format!("echo task {task} >> {}", self.log);
                ("bash", json!({"command": command, "description": "writes to the log"}))
            }
            _ => return json!({"content": "reported"}),
        };
        json!({"tool_calls": [{"index": 0, "id": format!("call-{results}"), "type": "function",
            "function": {"name": name, "arguments": arguments.to_string()}}]})
    }

    fn next(&self, results: usize) -> Value {
        if results >= STEPS {
            return json!({"content": "done"});
        }
        let tasks = |numbers: std::ops::Range<usize>| -> Value {
            let call = |number: usize| {
                let prompt = format!("{CHILD}{results}-{number}.");
                let arguments =
                    json!({"description": "work", "prompt": prompt, "subagent_type": "general"});
                let id = format!("task-{results}-{number}");
                json!({"index": number, "id": id, "type": "function",
                    "function": {"name": "task", "arguments": arguments.to_string()}})
            };
            json!({"tool_calls": numbers.map(call).collect::<Vec<_>>()})
        };
        if results % 10 == 5 {
            return tasks(0..CHILDREN);
        }
        let (name, arguments) = match results % 3 {
            0 => {
                let content = format!("step {results}\n").repeat(LINES);
                let file = format!("file-{}.txt", results % 9 / 3);
                ("write", json!({"filePath": file, "content": content}))
            }
            1 => {
                let command = format!("echo step {results} >> {}", self.log);
                ("bash", json!({"command": command, "description": "writes to the log"}))
            }
            _ => ("read", json!({"filePath": format!("file-{}.txt", results % 9 / 3)})),
        };
        json!({"tool_calls": [{"index": 0, "id": format!("call-{results}"), "type": "function",
            "function": {"name": name, "arguments": arguments.to_string()}}]})
    }
}

/// The task of a request, if it comes from a sub-agent.
fn task_of(request: &Value) -> Option<String> {
    let messages = request["messages"].as_array()?;
    let mut of_user = messages.iter().filter(|message| message["role"] == "user");
    let text = of_user.next()?["content"].to_string();
    let (_, task) = text.split_once(CHILD)?;
    Some(task.split('.').next()?.to_string())
}

/// The path and the body of a request.
fn read_request(connection: &TcpStream) -> std::io::Result<(String, Vec<u8>)> {
    let mut reader = BufReader::new(connection);
    let mut first = String::new();
    reader.read_line(&mut first)?;
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
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok((path, body))
}
