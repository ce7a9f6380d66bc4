//! A language server in this process, so that tests can use a paused clock.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use helve_core::BoxFuture;
use helve_core::process::{
    ConnectedProcess, Process, ProcessError, ProcessId, ProcessOutput, Processes, SandboxSupport,
    Signal, Spawn, SpawnError, WatchRequest, WatchResult,
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt, DuplexStream};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::codec::FramedRead;

use crate::frame::{self, FrameDecoder};

/// How the server reports that it is loading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoadingSignal {
    /// By `experimental/serverStatus`.
    Status,
    /// By `$/progress`.
    Progress,
    /// Not at all. Diagnostics are published when everything is loaded.
    None,
}

/// What the server does. Every `ERR` in a document is an error, once the server has loaded the project.
#[derive(Clone, Copy, Debug)]
pub(super) struct FakeBehaviour {
    /// How long it takes to answer `initialize`.
    pub(super) start: Duration,
    /// How long it loads the project after that.
    pub(super) load: Duration,
    pub(super) signal: LoadingSignal,
    /// Whether Helve asks the server for diagnostics (pull). Otherwise the server publishes them.
    pub(super) is_pulled: bool,
    /// How long it takes to answer when it is asked for diagnostics.
    pub(super) answer: Duration,
}

/// Starts fake servers instead of processes.
pub(super) struct FakeProcesses {
    behaviour: Arc<Mutex<FakeBehaviour>>,
    /// Number of servers that were started so far.
    pub(super) started: AtomicUsize,
    /// The servers that are running, by process id.
    running: Mutex<BTreeMap<String, tokio::task::AbortHandle>>,
    documents: SharedDocuments,
}

/// Version and text by URI.
type SharedDocuments = Arc<Mutex<BTreeMap<String, (i64, String)>>>;

impl FakeProcesses {
    pub(super) fn new(behaviour: FakeBehaviour) -> Arc<Self> {
        let behaviour = Arc::new(Mutex::new(behaviour));
        Arc::new(Self {
            behaviour,
            started: AtomicUsize::new(0),
            running: Mutex::default(),
            documents: Arc::default(),
        })
    }

    /// Returns the texts of the open documents, such as `a.fake=text`.
    pub(super) fn documents(&self) -> Vec<String> {
        let documents = self.documents.lock();
        let name = |uri: &str| uri.rsplit('/').next().unwrap_or_default().to_owned();
        documents.iter().map(|(uri, (_, text))| format!("{}={}", name(uri), text.trim())).collect()
    }

    /// Changes what the servers do, including those that are running.
    pub(super) fn set_behaviour(&self, behaviour: FakeBehaviour) {
        *self.behaviour.lock() = behaviour;
    }

    /// Number of servers that are running.
    pub(super) fn running(&self) -> usize {
        self.running.lock().len()
    }
}

impl Processes for FakeProcesses {
    fn spawn(&self, _request: Spawn) -> BoxFuture<'static, Result<ProcessId, SpawnError>> {
        Box::pin(async { Err(SpawnError::Other("only `connect` is supported".into())) })
    }

    fn connect(&self, _request: Spawn) -> BoxFuture<'static, Result<ConnectedProcess, SpawnError>> {
        let name = format!("fake-{}", self.started.fetch_add(1, Ordering::Relaxed));
        let (stdin, input) = tokio::io::duplex(1 << 16);
        let (output, stdout) = tokio::io::duplex(1 << 16);
        let server = FakeServer {
            behaviour: self.behaviour.clone(),
            ready_at: Instant::now(),
            output,
            documents: self.documents.clone(),
        };
        let task = tokio::spawn(server.run(input));
        self.running.lock().insert(name.clone(), task.abort_handle());
        let id = ProcessId(name);
        Box::pin(async {
            Ok(ConnectedProcess { id, stdin: Box::new(stdin), stdout: Box::new(stdout) })
        })
    }

    fn watch<'a>(
        &'a self,
        _id: &'a ProcessId,
        _request: WatchRequest,
    ) -> BoxFuture<'a, Result<WatchResult, ProcessError>> {
        Box::pin(async { Err(ProcessError::Unknown) })
    }

    fn output<'a>(
        &'a self,
        _id: &'a ProcessId,
    ) -> BoxFuture<'a, Result<ProcessOutput, ProcessError>> {
        Box::pin(async { Err(ProcessError::Unknown) })
    }

    fn type_in<'a>(
        &'a self,
        _id: &'a ProcessId,
        _bytes: Bytes,
    ) -> BoxFuture<'a, Result<(), ProcessError>> {
        Box::pin(async { Err(ProcessError::NoTerminal) })
    }

    fn signal<'a>(
        &'a self,
        _id: &'a ProcessId,
        _signal: Signal,
    ) -> BoxFuture<'a, Result<(), ProcessError>> {
        Box::pin(async { Err(ProcessError::Unknown) })
    }

    fn end<'a>(&'a self, id: &'a ProcessId) -> BoxFuture<'a, Result<usize, ProcessError>> {
        let task = self.running.lock().remove(&id.0);
        Box::pin(async move {
            task.ok_or(ProcessError::Unknown)?.abort();
            Ok(1)
        })
    }

    fn list(&self) -> BoxFuture<'_, Vec<Process>> {
        Box::pin(async { Vec::new() })
    }

    fn sandbox_support(&self) -> BoxFuture<'_, SandboxSupport> {
        Box::pin(async { SandboxSupport::default() })
    }
}

/// A fake server, which talks over in-memory pipes.
struct FakeServer {
    behaviour: Arc<Mutex<FakeBehaviour>>,
    /// When the project is loaded.
    ready_at: Instant,
    output: DuplexStream,
    documents: SharedDocuments,
}

impl FakeServer {
    fn behaviour(&self) -> FakeBehaviour {
        *self.behaviour.lock()
    }

    async fn run(mut self, input: DuplexStream) {
        let mut frames = FramedRead::new(input, FrameDecoder::default());
        let mut is_loading = false;
        loop {
            tokio::select! {
                frame = frames.next() => {
                    let Some(Ok(frame)) = frame else { return };
                    let message: Value = serde_json::from_slice(&frame).unwrap();
                    if message["method"] == "initialized" {
                        self.ready_at = Instant::now() + self.behaviour().load;
                        is_loading = true;
                        self.report_loading(true).await;
                    }
                    self.handle(&message).await;
                }
                () = sleep_until(self.ready_at), if is_loading => {
                    is_loading = false;
                    self.report_loading(false).await;
                    for uri in self.uris() {
                        self.publish(&uri).await;
                    }
                }
            }
        }
    }

    fn uris(&self) -> Vec<String> {
        self.documents.lock().keys().cloned().collect()
    }

    async fn handle(&mut self, message: &Value) {
        let params = &message["params"];
        let uri = params["textDocument"]["uri"].as_str().unwrap_or_default().to_owned();
        match message["method"].as_str().unwrap_or_default() {
            "initialize" => {
                sleep(self.behaviour().start).await;
                let mut capabilities = json!({"textDocumentSync": 1, "referencesProvider": true});
                if self.behaviour().is_pulled {
                    capabilities["diagnosticProvider"] = json!({});
                }
                self.answer(message, json!({"capabilities": capabilities})).await;
            }
            "textDocument/didOpen" => {
                let text = params["textDocument"]["text"].as_str().unwrap();
                self.documents.lock().insert(uri.clone(), (1, text.into()));
                self.publish(&uri).await;
            }
            "textDocument/didChange" => {
                let version = params["textDocument"]["version"].as_i64().unwrap();
                let text = params["contentChanges"][0]["text"].as_str().unwrap();
                self.documents.lock().insert(uri.clone(), (version, text.into()));
                self.publish(&uri).await;
            }
            "textDocument/didClose" => {
                self.documents.lock().remove(&uri);
            }
            "textDocument/diagnostic" => {
                sleep(self.behaviour().answer).await;
                let items = self.diagnostics(&uri);
                self.answer(message, json!({"kind": "full", "items": items})).await;
            }
            "textDocument/references" => {
                // While the project is still loading, the server knows only the open document.
                let count = if Instant::now() < self.ready_at { 1 } else { 3 };
                let at = json!({"line": 0, "character": 0});
                let place = json!({"uri": uri, "range": {"start": at, "end": at}});
                self.answer(message, vec![place; count].into()).await;
            }
            "shutdown" => self.answer(message, Value::Null).await,
            _ => {}
        }
    }

    /// Reports that loading begins or ends.
    async fn report_loading(&mut self, is_loading: bool) {
        let (method, params) = match self.behaviour().signal {
            LoadingSignal::Status => {
                ("experimental/serverStatus", json!({"health": "ok", "quiescent": !is_loading}))
            }
            LoadingSignal::Progress => {
                let kind = if is_loading { "begin" } else { "end" };
                ("$/progress", json!({"token": 1, "value": {"kind": kind}}))
            }
            LoadingSignal::None => return,
        };
        self.send(&json!({"method": method, "params": params})).await;
    }

    async fn publish(&mut self, uri: &str) {
        let is_loading = Instant::now() < self.ready_at;
        let is_silent = is_loading && self.behaviour().signal == LoadingSignal::None;
        if !self.behaviour().is_pulled && !is_silent {
            let version = self.documents.lock()[uri].0;
            let items = self.diagnostics(uri);
            let params = json!({"uri": uri, "version": version, "diagnostics": items});
            self.send(&json!({"method": "textDocument/publishDiagnostics", "params": params}))
                .await;
        }
    }

    /// Returns the errors of a document; none while the project is still loading.
    fn diagnostics(&self, uri: &str) -> Vec<Value> {
        let documents = self.documents.lock();
        let text = documents.get(uri).map_or("", |(_, text)| text.as_str());
        if Instant::now() < self.ready_at {
            return Vec::new();
        }
        let lines = (0..).zip(text.lines());
        let found = lines.filter_map(|(line, text)| Some((line, text.find("ERR")?, text)));
        let found = found.map(|(line, column, text): (u64, usize, &str)| {
            let at = json!({"line": line, "character": column});
            json!({"range": {"start": at, "end": at}, "severity": 1, "message": text})
        });
        found.collect()
    }

    async fn answer(&mut self, request: &Value, result: Value) {
        self.send(&json!({"id": request["id"], "result": result})).await;
    }

    async fn send(&mut self, message: &Value) {
        self.output.write_all(&frame::encode(message)).await.ok();
    }
}
