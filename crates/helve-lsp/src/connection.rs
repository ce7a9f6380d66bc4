//! The connection to one server process: our requests and their answers, notifications, and the server's own requests.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures::StreamExt;
use helve_core::process::{ConnectedProcess, ProcessId, Processes};
use parking_lot::Mutex;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use tokio_util::codec::FramedRead;

use crate::frame::{self, FrameDecoder};
use crate::readiness::Readiness;
use crate::wire::{PublishParams, ResponseError, ServerDiagnostic, ServerMessage};
use helve_text::file_uri;

/// Maximum number of messages that are queued for writing.
const MAX_OUTGOING: usize = 64;
/// Maximum number of files whose diagnostics are kept.
const MAX_FILES: usize = 5_000;
/// Maximum number of methods that a server can register, and of settings that it can request at once.
const MAX_REMEMBERED: usize = 1_000;

/// Why a request has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RequestError {
    /// The server ended, for this reason.
    #[error("the server ended: {0}")]
    Ended(String),
    #[error("the server answered: {0}")]
    Response(#[from] ResponseError),
    #[error("the server's answer is invalid")]
    Invalid,
}

/// A running server process. Dropping it ends the process.
pub(crate) struct Connection {
    id: ProcessId,
    processes: Arc<dyn Processes>,
    outgoing: mpsc::Sender<Bytes>,
    next_id: AtomicU64,
    pub(crate) state: Arc<ConnectionState>,
}

type AnswerSender = oneshot::Sender<Result<Box<RawValue>, ResponseError>>;

/// What is known about the server from its messages so far.
pub(crate) struct ConnectionState {
    /// The requests that have no answer yet, by id.
    pending: Mutex<HashMap<u64, AnswerSender>>,
    /// Why the server ended; `None` while it runs.
    ended: Mutex<Option<String>>,
    reports: Mutex<ServerReports>,
    /// Incremented with every message that may change [`ServerReports`], and at the end of the server. Sequence numbers
    /// are values of this counter.
    changes: watch::Sender<u64>,
    /// Number of messages received.
    received: AtomicU64,
    /// The settings from which `workspace/configuration` is answered.
    settings: Value,
}

/// The diagnostics, registrations and progress that the server has sent.
#[derive(Default)]
struct ServerReports {
    published: HashMap<PathBuf, Arc<Published>>,
    /// Methods that the server registered after its start, with their options, by registration id.
    registered: HashMap<String, (String, Value)>,
    readiness: Readiness,
}

/// Diagnostics that a server published for a file.
#[derive(Debug, Default)]
pub(crate) struct Published {
    /// The version of the document, if the server named it.
    pub(crate) version: Option<i64>,
    /// Sequence number of the message; see [`ConnectionState::sequence`].
    pub(crate) sequence: u64,
    pub(crate) diagnostics: Vec<ServerDiagnostic>,
}

impl Connection {
    pub(crate) fn new(
        connected: ConnectedProcess,
        processes: Arc<dyn Processes>,
        settings: Value,
    ) -> Self {
        let ConnectedProcess { id, stdin, stdout } = connected;
        let state = Arc::new(ConnectionState {
            pending: Mutex::default(),
            ended: Mutex::default(),
            reports: Mutex::default(),
            changes: watch::Sender::new(0),
            received: AtomicU64::new(0),
            settings,
        });
        let (outgoing, messages) = mpsc::channel(MAX_OUTGOING);
        tokio::spawn(write_messages(stdin, messages));
        let replies = outgoing.downgrade();
        tokio::spawn(read_messages(stdout, state.clone(), replies, processes.clone(), id.clone()));
        Self { id, processes, outgoing, next_id: AtomicU64::new(1), state }
    }

    /// Sends a request and waits for its answer. If the future is dropped, the request is cancelled.
    pub(crate) async fn request(
        &self,
        method: &str,
        params: Value,
    ) -> Result<Box<RawValue>, RequestError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        self.state.pending.lock().insert(id, sender);
        let mut request = PendingRequest { id, connection: self, is_answered: false };
        if let Some(why) = self.state.end_reason() {
            return Err(RequestError::Ended(why));
        }
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        let answer = answer.await;
        request.is_answered = true;
        match answer {
            Ok(result) => Ok(result?),
            Err(_) => Err(RequestError::Ended(self.state.end_reason().unwrap_or_default())),
        }
    }

    pub(crate) async fn notify(&self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
    }

    async fn send(&self, message: &Value) {
        // Fails only if the process no longer reads its input. The task that reads its output then records its end.
        self.outgoing.send(frame::encode(message)).await.ok();
    }

    /// Ends the process, for the given reason.
    pub(crate) async fn end(&self, why: &str) {
        self.state.set_ended(why);
        self.processes.end(&self.id).await.ok();
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.state.set_ended("it is no longer used");
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (processes, id) = (self.processes.clone(), self.id.clone());
        runtime.spawn(async move { processes.end(&id).await.ok() });
    }
}

/// A request that waits for its answer. If it is dropped before that, the server is asked to cancel it.
struct PendingRequest<'a> {
    id: u64,
    connection: &'a Connection,
    is_answered: bool,
}

impl Drop for PendingRequest<'_> {
    fn drop(&mut self) {
        self.connection.state.pending.lock().remove(&self.id);
        if !self.is_answered {
            let params = json!({"id": self.id});
            let cancel = json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": params});
            self.connection.outgoing.try_send(frame::encode(&cancel)).ok();
        }
    }
}

impl ConnectionState {
    /// Returns why the server ended; `None` while it runs.
    pub(crate) fn end_reason(&self) -> Option<String> {
        self.ended.lock().clone()
    }

    fn set_ended(&self, why: &str) {
        self.ended.lock().get_or_insert_with(|| why.to_owned());
        self.pending.lock().clear();
        self.changes.send_modify(|count| *count += 1);
    }

    /// Returns the number of messages received so far.
    pub(crate) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Returns a receiver that is notified of every change.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Returns the sequence number of the last change.
    pub(crate) fn sequence(&self) -> u64 {
        *self.changes.borrow()
    }

    pub(crate) fn published(&self, path: &std::path::Path) -> Option<Arc<Published>> {
        self.reports.lock().published.get(path).cloned()
    }

    /// Returns the last published diagnostics of every file, including empty ones.
    pub(crate) fn all_published(&self) -> HashMap<PathBuf, Arc<Published>> {
        self.reports.lock().published.clone()
    }

    /// Returns the options of a method that the server registered after its start; `None` if it did not.
    pub(crate) fn registered(&self, method: &str) -> Option<Value> {
        let reports = self.reports.lock();
        let found = reports.registered.values().find(|(registered, _)| registered == method);
        found.map(|(_, options)| options.clone())
    }

    /// Records that the server will report its readiness with `experimental/serverStatus`.
    pub(crate) fn expect_readiness_report(&self) {
        self.reports.lock().readiness.expect_readiness_report();
    }

    /// Returns the number of times that the server went from busy to ready.
    pub(crate) fn finished_count(&self) -> u64 {
        self.reports.lock().readiness.finished_count()
    }

    /// Returns until when a busy server counts as busy if it reports no further progress; `None` if it is not busy.
    pub(crate) fn busy_until(&self) -> Option<Instant> {
        self.reports.lock().readiness.busy_until()
    }

    /// Stores what a notification of the server says.
    fn handle_notification(&self, method: &str, params: Option<Box<RawValue>>) {
        let Some(params) = params else { return };
        match method {
            "textDocument/publishDiagnostics" => {
                let Ok(params) = serde_json::from_str::<PublishParams>(params.get()) else {
                    return;
                };
                self.store_published(params);
            }
            "$/progress" => {
                let Ok(params) = serde_json::from_str::<Value>(params.get()) else { return };
                let token = params["token"].to_string();
                let kind = params["value"]["kind"].as_str().unwrap_or_default();
                self.reports.lock().readiness.set_progress(token, kind);
            }
            "experimental/serverStatus" => {
                let Ok(params) = serde_json::from_str::<Value>(params.get()) else { return };
                if let Some(is_quiescent) = params["quiescent"].as_bool() {
                    self.reports.lock().readiness.set_status(is_quiescent);
                }
            }
            _ => return,
        }
        self.changes.send_modify(|count| *count += 1);
    }

    /// Stores the diagnostics that the server published for a file.
    fn store_published(&self, params: PublishParams) {
        let Some(path) = file_uri::to_path(&params.uri) else { return };
        let sequence = self.sequence() + 1;
        let PublishParams { version, diagnostics, .. } = params;
        let published = &mut self.reports.lock().published;
        if published.len() >= MAX_FILES && !published.contains_key(&path) {
            published.retain(|_, published| !published.diagnostics.is_empty());
            if published.len() >= MAX_FILES {
                published.clear();
            }
        }
        let diagnostics = diagnostics.0;
        published.insert(path, Arc::new(Published { version, sequence, diagnostics }));
    }

    /// Returns the answer to a request that the server sent, or an error code with its message.
    fn answer(&self, method: &str, params: &Value) -> Result<Value, (i64, &'static str)> {
        match method {
            "workspace/configuration" => {
                let items = params["items"].as_array().map(Vec::as_slice).unwrap_or_default();
                let items = items.iter().take(MAX_REMEMBERED);
                Ok(items.map(|item| self.setting(item["section"].as_str())).collect())
            }
            "client/registerCapability" => {
                let reports = &mut *self.reports.lock();
                for item in params["registrations"].as_array().into_iter().flatten() {
                    let (Some(id), Some(method)) = (item["id"].as_str(), item["method"].as_str())
                    else {
                        continue;
                    };
                    if reports.registered.len() < MAX_REMEMBERED {
                        let entry = (method.to_owned(), item["registerOptions"].clone());
                        reports.registered.insert(id.to_owned(), entry);
                    }
                }
                Ok(Value::Null)
            }
            "client/unregisterCapability" => {
                // The protocol itself has this spelling mistake.
                let list = params["unregisterations"].as_array();
                let ids = list.into_iter().flatten().filter_map(|item| item["id"].as_str());
                let reports = &mut *self.reports.lock();
                ids.for_each(|id| {
                    reports.registered.remove(id);
                });
                Ok(Value::Null)
            }
            "workspace/applyEdit" => {
                let why = "files are changed by the user's own calls only";
                Ok(json!({"applied": false, "failureReason": why}))
            }
            "window/showDocument" => Ok(json!({"success": false})),
            "window/workDoneProgress/create"
            | "window/showMessageRequest"
            | "workspace/workspaceFolders"
            | "workspace/diagnostic/refresh"
            | "workspace/semanticTokens/refresh"
            | "workspace/inlayHint/refresh"
            | "workspace/codeLens/refresh" => Ok(Value::Null),
            _ => Err((-32601, "the method is not supported")),
        }
    }

    /// Returns the settings of a section such as `python.analysis`, or `null`. Without a section, returns all settings.
    fn setting(&self, section: Option<&str>) -> Value {
        let mut value = &self.settings;
        for key in section.into_iter().flat_map(|section| section.split('.')) {
            value = &value[key];
        }
        value.clone()
    }
}

async fn write_messages(
    mut stdin: Box<dyn AsyncWrite + Send + Unpin>,
    mut messages: mpsc::Receiver<Bytes>,
) {
    while let Some(message) = messages.recv().await {
        if stdin.write_all(&message).await.is_err() || stdin.flush().await.is_err() {
            return;
        }
    }
}

/// Reads and handles messages until the server ends.
async fn read_messages(
    stdout: Box<dyn AsyncRead + Send + Unpin>,
    state: Arc<ConnectionState>,
    replies: mpsc::WeakSender<Bytes>,
    processes: Arc<dyn Processes>,
    id: ProcessId,
) {
    let mut frames = FramedRead::new(stdout, FrameDecoder::default());
    let mut failure = None;
    while let Some(frame) = frames.next().await {
        let bytes = match frame {
            Ok(bytes) => bytes,
            Err(error) => {
                failure = Some(error.to_string());
                break;
            }
        };
        state.received.fetch_add(1, Ordering::Relaxed);
        match ServerMessage::parse(&bytes) {
            Some(ServerMessage::Response { id, result }) => {
                if let Some(sender) = state.pending.lock().remove(&id) {
                    sender.send(result).ok();
                }
            }
            Some(ServerMessage::Notification { method, params }) => {
                state.handle_notification(&method, params);
            }
            Some(ServerMessage::Request { id, method, params }) => {
                let mut reply = json!({"jsonrpc": "2.0", "id": id});
                match state.answer(&method, &params) {
                    Ok(result) => reply["result"] = result,
                    Err((code, message)) => {
                        reply["error"] = json!({"code": code, "message": message});
                    }
                }
                let Some(replies) = replies.upgrade() else { break };
                // If the queue is full, the answer is dropped: the server sends requests faster than it reads.
                replies.try_send(frame::encode(&reply)).ok();
                state.changes.send_modify(|count| *count += 1);
            }
            None => {}
        }
    }
    let why = match failure {
        Some(why) => why,
        None => describe_exit(&*processes, &id).await,
    };
    state.set_ended(&why);
    processes.end(&id).await.ok();
}

/// Describes how a process ended, with its last lines of output.
async fn describe_exit(processes: &dyn Processes, id: &ProcessId) -> String {
    use helve_core::process::{Excerpt, ProcessState, WaitCondition, WatchRequest};
    let request = WatchRequest {
        from: 0,
        max_bytes: 2_000,
        excerpt: Excerpt::Newest,
        until: WaitCondition::Ended,
        timeout: std::time::Duration::from_millis(500),
    };
    let Ok(watched) = processes.watch(id, request).await else {
        return "its exit code is unknown".into();
    };
    let state = match watched.process.state {
        ProcessState::Running => "it closed its output".to_owned(),
        ProcessState::Exited(code) => format!("exit code {code}"),
        ProcessState::Killed(signal) => format!("signal {signal}"),
        ProcessState::Lost => "its exit code is unknown".to_owned(),
    };
    let text = String::from_utf8_lossy(&watched.text);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    match &lines[lines.len().saturating_sub(3)..] {
        [] => state,
        last => format!("{state}; last output: {}", last.join(" / ")),
    }
}
