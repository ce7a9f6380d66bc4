//! Scripted exchanges: lines in, lines out.

mod asking;
mod exchanges;
pub(crate) mod fixtures;
mod hostile;

use std::borrow::Cow;
use std::time::Duration;

use expect_test::Expect;
use helve_core::{Layer, Store};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{ServeError, serve};
use fixtures::Fixture;

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":"hi","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"tester","version":"1.0"}}}
+ {"jsonrpc":"2.0","method":"notifications/initialized"}
"#;

/// Runs a script on an initialized connection and compares what happened:
/// - the lines sent back,
/// - on one line, the log of the tools (`opened for tester 1.0`),
/// - the calls in the store,
/// - how serving ended, and how long after the end of the input.
///
/// The clock is paused and advances only when everything waits.
///
/// A line is sent as it is and its answer awaited; with the prefix `+ ` it is only sent. Other commands: `? N`
/// awaits N lines; `register` and `drop` change the registry; `stop` cancels the server's token; `long N` sends a
/// line of N bytes; `endless` sends a line without end; `deep N` sends a call whose arguments nest N levels deep;
/// `wait N` lets N seconds pass. `STATE` in a line stands for the `requestState` of the last question.
fn check(script: &str, expected: Expect) {
    check_bytes(&lines(script), expected);
}

fn check_bytes(script: &[&[u8]], expected: Expect) {
    let output = run(&[&lines(INITIALIZE), script].concat());
    let (_initialize_result, rest) = output.split_once('\n').unwrap();
    expected.assert_eq(rest);
}

/// Like `check`, on a connection that is not initialized.
fn check_fresh(script: &str, expected: Expect) {
    expected.assert_eq(&run(&lines(script)));
}

fn lines(script: &str) -> Vec<&[u8]> {
    script.lines().map(|line| line.trim_start().as_bytes()).collect()
}

fn run(script: &[&[u8]]) -> String {
    with_paused_clock(play(script))
}

fn with_paused_clock<T>(work: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().start_paused(true).build().unwrap().block_on(work)
}

struct Client {
    output: WriteHalf<DuplexStream>,
    input: BufReader<ReadHalf<DuplexStream>>,
    received: String,
    state: String,
}

impl Client {
    async fn send(&mut self, line: &[u8]) {
        self.output.write_all(line).await.unwrap();
        self.output.write_all(b"\n").await.unwrap();
    }

    /// Records the next line. Returns `None` at the end of the output.
    async fn receive(&mut self) -> Option<Value> {
        let mut line = String::new();
        let reading = self.input.read_line(&mut line);
        let Ok(read) = tokio::time::timeout(Duration::from_secs(100), reading).await else {
            panic!("no answer came; so far:\n{}", self.received);
        };
        if read.unwrap() == 0 {
            return None;
        }
        let value: Value = serde_json::from_str(&line).unwrap();
        if let Some(state) = value["result"]["requestState"].as_str() {
            self.state = state.into();
            line = line.replace(state, "STATE");
        }
        self.received.push_str(&without_call_ids(&line));
        Some(value)
    }

    async fn request(&mut self, line: &[u8]) {
        self.send(line).await;
        let sent: Option<Value> = serde_json::from_slice(line).ok();
        while let Some(answer) = self.receive().await {
            let is_other_id =
                |id: &Value| sent.as_ref().is_some_and(|sent| sent.get("id") != Some(id));
            if answer.get("method").is_none() && !answer.get("id").is_some_and(is_other_id) {
                break;
            }
        }
    }
}

fn connect(
    fixture: &Fixture,
    stop: &CancellationToken,
) -> (Client, JoinHandle<Result<(), ServeError>>) {
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let (input, output) = tokio::io::split(theirs);
    let serving = tokio::spawn(serve(fixture.config(), input, output, stop.clone()));
    let (from, to) = tokio::io::split(ours);
    let from = BufReader::new(from);
    (Client { output: to, input: from, received: String::new(), state: String::new() }, serving)
}

/// Sends lines without reading until the server accepts no more, then reads an answer to each. Returns how many bytes
/// the server accepted before the client read anything.
fn accepted_without_reading(text: &str) -> usize {
    with_paused_clock(async {
        let fixture = Fixture::new();
        let (mut client, _serving) = connect(&fixture, &CancellationToken::new());
        for line in lines(INITIALIZE) {
            match line.strip_prefix(b"+ ") {
                Some(line) => client.send(line).await,
                None => client.request(line).await,
            }
        }
        let mut accepted = 0;
        let write_timeout = Duration::from_secs(10);
        while accepted < text.len() {
            let writing = client.output.write(&text.as_bytes()[accepted..]);
            let Ok(count) = tokio::time::timeout(write_timeout, writing).await else { break };
            accepted += count.unwrap();
        }
        let Client { output: mut to, input: mut from, .. } = client;
        let rest = to.write_all(&text.as_bytes()[accepted..]);
        let reading = async {
            for _ in text.lines() {
                assert!(from.read_line(&mut String::new()).await.unwrap() > 0);
            }
        };
        tokio::join!(rest, reading).0.unwrap();
        accepted
    })
}

async fn play(script: &[&[u8]]) -> String {
    let fixture = Fixture::new();
    let stop = CancellationToken::new();
    let (mut client, serving) = connect(&fixture, &stop);
    let mut registered = Vec::new();
    for line in script {
        let line = with_state(line, &client.state);
        let line = &&*line;
        let text = String::from_utf8_lossy(line);
        let (command, rest) = text.split_once(' ').unwrap_or((&text, ""));
        match command {
            "" => {}
            "+" => client.send(&line[2..]).await,
            "?" => {
                for _ in 0..rest.parse().unwrap() {
                    client.receive().await;
                }
            }
            "register" => {
                registered.push(fixture.registry.register(Layer::Runtime, fixture.temporary_tool()))
            }
            "drop" => registered.clear(),
            "stop" => stop.cancel(),
            "wait" => tokio::time::sleep(Duration::from_secs(rest.parse().unwrap())).await,
            "endless" => while client.output.write_all(&[b'x'; 1 << 20]).await.is_ok() {},
            "long" => client.request(&vec![b'x'; rest.parse().unwrap()]).await,
            "deep" => {
                let levels: usize = rest.parse().unwrap();
                let (open, close) = ("[".repeat(levels), "]".repeat(levels));
                let call = format!(
                    r#"{{"jsonrpc":"2.0","id":"deep","method":"tools/call","params":{{"name":"echo","arguments":{{"text":{open}{close}}}}}}}"#
                );
                client.request(call.as_bytes()).await;
            }
            _ => client.request(line).await,
        }
    }
    let closed = Instant::now();
    // The server may have closed the connection already.
    client.output.shutdown().await.ok();
    while client.receive().await.is_some() {}
    let served = serving.await.unwrap();
    let mut seen = client.received;
    seen.push_str(&format!("{}\n", fixture.log.lock().join("; ")));
    for call in fixture.store.calls(None, 100).await.unwrap().iter().rev() {
        seen.push_str(&format!("{} {:?}; ", call.tool, call.status));
    }
    let took = closed.elapsed().as_millis();
    seen.push_str(&format!("{served:?} {took} ms after the input ended\n"));
    seen
}

fn with_state<'a>(line: &'a [u8], state: &str) -> Cow<'a, [u8]> {
    match std::str::from_utf8(line) {
        Ok(text) if text.contains("STATE") => text.replace("STATE", state).into_bytes().into(),
        Ok(_) | Err(_) => line.into(),
    }
}

fn without_call_ids(line: &str) -> String {
    match line.split_once("call_") {
        Some((before, after)) => format!("{before}CALL{}", &after[32..]),
        None => line.into(),
    }
}
