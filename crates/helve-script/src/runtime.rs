//! The helper process that runs tools and plugins: bun or node. There is one per workspace, started on first use.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use helve_core::process::{
    ConnectedProcess, Lifetime, OutputPolicy, ProcessId, ProcessInfo, Processes, Spawn, Stdin,
};
use helve_text::line_buffer::{LineBuffer, LineStatus};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};

use crate::cache::ScriptCache;
use crate::disk;
use crate::settings::{RuntimeChoice, RuntimeInfo, RuntimeSettings};
use crate::wire::{Incoming, MAX_MESSAGE, RequestError, ThrownError};

/// How long the process may take to start.
const START_TIME: Duration = Duration::from_secs(20);
/// How long the process may take to answer a ping before it counts as stuck.
const PING_TIME: Duration = Duration::from_secs(1);
/// If nothing arrives for this long while a request waits, the process gets a ping.
const PING_AFTER: Duration = Duration::from_secs(2);
/// A process that has not read a request and sends nothing for this long is ended.
const UNREAD_TIME: Duration = Duration::from_secs(4);
/// Delay before the next start if two processes in a row ended soon after their start. Each further such process
/// doubles the delay, up to [`MAX_DELAY`].
const FIRST_DELAY: Duration = Duration::from_millis(200);
const MAX_DELAY: Duration = Duration::from_secs(10);
/// A process that lived this long counts as healthy.
const HEALTHY_TIME: Duration = Duration::from_secs(30);
/// Oldest supported major version of node.
const MIN_NODE: u64 = 20;
/// Maximum number of unread messages of one request. Further messages are dropped.
const REQUEST_MESSAGES: usize = 1_000;

/// Starts the helper process and sends it requests.
pub(crate) struct ScriptRuntime {
    pub(crate) settings: RuntimeSettings,
    cache: ScriptCache,
    state: tokio::sync::Mutex<RuntimeState>,
    next_id: AtomicU64,
    next_generation: AtomicU64,
}

#[derive(Default)]
struct RuntimeState {
    /// The process that was started last. It may have ended.
    process: Option<Arc<HelperProcess>>,
    /// How many processes in a row ended soon after they were started.
    failures: u32,
    last_start: Option<Instant>,
}

/// A running helper process.
pub(crate) struct HelperProcess {
    /// Sequence number of the process. It shows whether a plugin was loaded into this process or into an earlier one.
    pub(crate) generation: u64,
    pub(crate) info: RuntimeInfo,
    id: ProcessId,
    processes: Arc<dyn Processes>,
    /// See [`ScriptLimits::blocking_time`](crate::ScriptLimits::blocking_time).
    max_blocking_time: Duration,
    /// Lines to be written to the process.
    input: mpsc::Sender<String>,
    state: Arc<HelperState>,
}

/// A request that has no answer yet.
struct PendingRequest {
    sender: mpsc::Sender<Incoming>,
    /// Whether the process has read the request.
    has_begun: bool,
}

/// What is known about a helper process, and the requests that wait for its answer. The task that reads its messages
/// updates it.
#[derive(Default)]
struct HelperState {
    requests: Mutex<HashMap<u64, PendingRequest>>,
    /// When the last message arrived.
    last_message: Mutex<Option<Instant>>,
    /// Where the requests that plugins send outside of any call go.
    unattached: Mutex<Option<mpsc::Sender<Incoming>>>,
    /// Whether the process has answered a request. If so, the next process is started without delay.
    has_answered: AtomicBool,
    /// Why the process ended; `None` while it runs.
    ended: Mutex<Option<String>>,
    /// Where the name and version of the runtime go once the process has started.
    hello: Mutex<Option<oneshot::Sender<(String, String)>>>,
}

impl ScriptRuntime {
    pub(crate) fn new(settings: RuntimeSettings, cache: ScriptCache) -> Self {
        Self {
            settings,
            cache,
            state: tokio::sync::Mutex::default(),
            next_id: AtomicU64::new(1),
            next_generation: AtomicU64::new(1),
        }
    }

    /// Returns the running process, or starts one.
    pub(crate) async fn get_or_start(&self) -> Result<Arc<HelperProcess>, RequestError> {
        let mut state = self.state.lock().await;
        if let Some(process) = &state.process {
            if !process.has_ended() {
                return Ok(process.clone());
            }
            let has_answered = process.state.has_answered.load(Ordering::Relaxed);
            let was_healthy = has_answered
                || state.last_start.is_some_and(|start| start.elapsed() > HEALTHY_TIME);
            state.failures = if was_healthy { 0 } else { state.failures + 1 };
            state.process = None;
        }
        if state.failures > 1 {
            let delay = FIRST_DELAY * 2_u32.saturating_pow(state.failures.min(10) - 2);
            tokio::time::sleep(delay.min(MAX_DELAY)).await;
        }
        state.last_start = Some(Instant::now());
        let started = self.start().await;
        match started {
            Ok(process) => {
                state.process = Some(process.clone());
                Ok(process)
            }
            Err(why) => {
                state.failures += 1;
                Err(RequestError::Process(why))
            }
        }
    }

    /// Returns the program that would be used, without starting it.
    pub(crate) fn find_program(&self) -> Result<PathBuf, String> {
        let names: Vec<&str> = match &self.settings.choice {
            RuntimeChoice::Automatic => vec!["bun", "node"],
            RuntimeChoice::Program(name) => vec![name.as_str()],
        };
        let path = self.settings.environment.iter().find(|(name, _)| name == "PATH");
        let folders: Vec<PathBuf> =
            path.map(|(_, path)| std::env::split_paths(path).collect()).unwrap_or_default();
        for name in &names {
            let candidates: Vec<PathBuf> = match name.contains('/') {
                true => vec![self.settings.root.join(name)],
                false => folders.iter().map(|folder| folder.join(name)).collect(),
            };
            if let Some(found) = candidates.into_iter().find(|path| disk::is_program(path)) {
                return Ok(found);
            }
        }
        Err(match &self.settings.choice {
            RuntimeChoice::Automatic => {
                format!(
                    "tools in TypeScript or JavaScript need bun, or node {MIN_NODE} or later; neither is in PATH"
                )
            }
            RuntimeChoice::Program(name) => {
                format!("\"javascript.runtime\" is {name:?}, which was not found")
            }
        })
    }

    /// Starts bun or node, and waits until the process has sent its first message.
    async fn start(&self) -> Result<Arc<HelperProcess>, String> {
        let processes =
            self.settings.processes.clone().ok_or("programs cannot be run here".to_owned())?;
        let program = self.find_program()?;
        let host_script = self.cache.unpack();
        let host_script =
            host_script.map_err(|error| format!("the cache folder cannot be written: {error}"))?;
        if self.settings.sandbox.is_some() {
            let created = disk::create_folder(&self.settings.scratch);
            created.map_err(|error| {
                format!("the folder for temporary files cannot be created: {error}")
            })?;
        }
        let connected = processes.connect(self.spawn_request(&program, &host_script)).await;
        let connected = connected.map_err(|error| format!("{}: {error}", program.display()))?;
        let state: Arc<HelperState> = Arc::default();
        let (hello_sender, hello) = oneshot::channel();
        *state.hello.lock() = Some(hello_sender);
        let ConnectedProcess { id, stdin, stdout } = connected;
        let (input, lines) = mpsc::channel(64);
        tokio::spawn(write_lines(stdin, lines));
        tokio::spawn(read_lines(stdout, state.clone(), processes.clone(), id.clone()));
        let info = timeout(START_TIME, hello).await;
        let (name, version) = match info {
            Ok(Ok(info)) => info,
            Ok(Err(_)) | Err(_) => {
                let why = describe_exit(&*processes, &id).await;
                processes.end(&id).await.ok();
                return Err(format!("{} did not start: {why}", program.display()));
            }
        };
        let major = version.split('.').next().and_then(|it| it.parse::<u64>().ok());
        if name == "node" && major.is_none_or(|major| major < MIN_NODE) {
            processes.end(&id).await.ok();
            return Err(format!(
                "{} is node {version}; tools need bun, or node {MIN_NODE} or later",
                program.display()
            ));
        }
        let generation = self.next_generation.fetch_add(1, Ordering::Relaxed);
        let info = RuntimeInfo { program, name, version };
        let max_blocking_time = self.settings.limits.blocking_time;
        Ok(Arc::new(HelperProcess {
            generation,
            info,
            id,
            processes,
            max_blocking_time,
            input,
            state,
        }))
    }

    fn spawn_request(&self, program: &std::path::Path, host_script: &std::path::Path) -> Spawn {
        // Messages use descriptors 3 and 4, because tools and the programs they start use 0 and 1.
        let script = "exec \"$@\" 3>&1 4<&0 1>&2 0</dev/null";
        let mut command: Vec<OsString> = ["/bin/sh", "-c", script, "sh"].map(Into::into).into();
        command.push(program.into());
        let is_node = program.file_name().is_some_and(|name| name == "node");
        if is_node {
            command.push("--max-old-space-size=2048".into());
            command.push("--no-warnings".into());
        }
        command.push(host_script.into());
        Spawn {
            argv: command,
            folder: self.settings.root.clone(),
            environment: self.host_environment(),
            stdin: Stdin::Pipe,
            sandbox: self.settings.sandbox.clone(),
            output: OutputPolicy {
                head: 16 << 10,
                tail: 64 << 10,
                spool: None,
                secrets: self.settings.secrets.clone(),
            },
            lifetime: Lifetime::Helve,
            about: ProcessInfo {
                command: format!("{} host.mjs", program.display()),
                description: "runs custom tools and plugins".into(),
                call: String::new(),
                session: String::new(),
                root: self.settings.root.clone(),
            },
        }
    }

    /// Returns the variables of the helper process. Without a sandbox, they name a cache folder in which newer versions
    /// of node store compiled modules, which makes starting faster.
    fn host_environment(&self) -> Vec<(OsString, OsString)> {
        let mut environment = self.settings.environment();
        if self.settings.sandbox.is_none() {
            environment.retain(|(name, _)| name != "NODE_COMPILE_CACHE");
            environment.push(("NODE_COMPILE_CACHE".into(), self.cache.compiled().into()));
        }
        environment
    }

    /// Returns an unused id for a request.
    pub(crate) fn new_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Sends a request and returns its answer. Progress messages before the answer are discarded.
    pub(crate) async fn ask(
        &self,
        process: &HelperProcess,
        request: Value,
        limit: Duration,
    ) -> Result<Value, RequestError> {
        let mut exchange = process.begin(self.new_id(), request).await?;
        match timeout(limit, exchange.answer()).await {
            Ok(answer) => answer,
            Err(_) => {
                process.end_if_stuck(self.new_id()).await;
                Err(RequestError::TimedOut(limit))
            }
        }
    }

    /// Returns the running process, if any. Does not start one.
    pub(crate) async fn running(&self) -> Option<Arc<HelperProcess>> {
        self.state.lock().await.process.clone().filter(|process| !process.has_ended())
    }

    /// Ends the process in the background. Outside of a tokio runtime it does nothing, and the keeper ends the process
    /// when Helve ends.
    pub(crate) fn close_in_background(&self) {
        let process = self.state.try_lock().ok().and_then(|mut state| state.process.take());
        let runtime = tokio::runtime::Handle::try_current();
        if let (Some(process), Ok(runtime)) = (process, runtime) {
            runtime.spawn(async move { process.end().await });
        }
    }

    /// Ends the process.
    pub(crate) async fn close(&self) {
        if let Some(process) = self.state.lock().await.process.take() {
            process.end().await;
        }
    }
}

/// A request in progress.
pub(crate) struct Exchange<'a> {
    pub(crate) id: u64,
    process: &'a HelperProcess,
    messages: mpsc::Receiver<Incoming>,
    start: Instant,
    /// Whether the process has read the request.
    has_begun: bool,
}

impl Exchange<'_> {
    /// Returns the next message about this request. Ends the process if it no longer responds.
    pub(crate) async fn next(&mut self) -> Result<Incoming, RequestError> {
        loop {
            match timeout(PING_AFTER, self.messages.recv()).await {
                Ok(Some(message)) if message.begun => self.has_begun = true,
                Ok(Some(message)) => return Ok(message),
                Ok(None) if self.has_begun => {
                    return Err(RequestError::Process(self.process.end_reason()));
                }
                Ok(None) => return Err(RequestError::NotBegun(self.process.end_reason())),
                Err(_) => self.process.check_responsiveness(self.start).await,
            }
        }
    }

    /// Waits for the answer.
    async fn answer(&mut self) -> Result<Value, RequestError> {
        loop {
            let message = self.next().await?;
            if let Some(error) = message.error {
                return Err(RequestError::Thrown(error));
            }
            if let Some(value) = message.ok {
                return Ok(value);
            }
        }
    }
}

impl Drop for Exchange<'_> {
    fn drop(&mut self) {
        self.process.state.requests.lock().remove(&self.id);
    }
}

impl HelperProcess {
    /// Sends a request.
    pub(crate) async fn begin(
        &self,
        id: u64,
        mut request: Value,
    ) -> Result<Exchange<'_>, RequestError> {
        request["id"] = id.into();
        let (sender, messages) = mpsc::channel(REQUEST_MESSAGES);
        let pending = PendingRequest { sender, has_begun: false };
        self.state.requests.lock().insert(id, pending);
        let start = Instant::now();
        let exchange = Exchange { id, process: self, messages, start, has_begun: false };
        if self.has_ended() {
            return Err(RequestError::NotBegun(self.end_reason()));
        }
        self.send(&request).await;
        Ok(exchange)
    }

    /// Sends a message that has no answer.
    pub(crate) async fn send(&self, message: &Value) {
        // Fails only if the process has ended, which the task that reads its output notices.
        self.input.send(format!("{message}\n")).await.ok();
    }

    /// Returns a receiver of the requests that plugins send outside of any call; `None` if it was taken already.
    pub(crate) fn take_unattached(&self) -> Option<mpsc::Receiver<Incoming>> {
        let mut unattached = self.state.unattached.lock();
        if unattached.is_some() {
            return None;
        }
        let (sender, requests) = mpsc::channel(REQUEST_MESSAGES);
        *unattached = Some(sender);
        Some(requests)
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.state.ended.lock().is_some()
    }

    fn end_reason(&self) -> String {
        let reason = self.state.ended.lock().clone();
        reason.unwrap_or_else(|| "the helper process does not answer".into())
    }

    /// Ends the process unless it answers a ping, because an endless loop in one call blocks all others. `id` is a new
    /// request id for the ping.
    pub(crate) async fn end_if_stuck(&self, id: u64) {
        let ping = async {
            let mut exchange = self.begin(id, json!({"op": "ping"})).await.ok()?;
            exchange.answer().await.ok()
        };
        if timeout(PING_TIME, ping).await.ok().flatten().is_none() {
            self.state.set_ended("the helper process was ended because it no longer answered");
            self.end().await;
        }
    }

    /// Sends a ping if the process has been silent for a while, and ends the process if it has been silent for too
    /// long. Silence is counted from the last message or from `start`, whichever is later.
    async fn check_responsiveness(&self, start: Instant) {
        let last = self.state.last_message.lock().map_or(start, |last| last.max(start));
        let silence = last.elapsed();
        let is_running = self.state.requests.lock().values().any(|it| it.has_begun);
        let limit = if is_running { self.max_blocking_time } else { UNREAD_TIME };
        if silence >= limit {
            let hint = match is_running {
                true => " (the limit is the setting \"javascript.timeout\")",
                false => "",
            };
            self.state.set_ended(&format!(
                "the helper process was ended because it did not respond for {} s; a tool or plugin may be blocking it or may have broken it{hint}",
                silence.as_secs()
            ));
            self.end().await;
        } else if silence >= PING_AFTER {
            // Any message shows that the process works, so nobody waits for this answer. If the queue is full, the
            // process is not reading, and a ping would be useless.
            self.input.try_send("{\"op\":\"ping\"}\n".to_owned()).ok();
        }
    }

    pub(crate) async fn end(&self) {
        self.processes.end(&self.id).await.ok();
    }
}

impl HelperState {
    /// Records why the process ended, and fails all pending requests.
    fn set_ended(&self, why: &str) {
        self.ended.lock().get_or_insert_with(|| why.to_owned());
        self.requests.lock().clear();
        self.unattached.lock().take();
        self.hello.lock().take();
    }
}

async fn write_lines(
    mut stdin: Box<dyn AsyncWrite + Send + Unpin>,
    mut lines: mpsc::Receiver<String>,
) {
    while let Some(line) = lines.recv().await {
        if stdin.write_all(line.as_bytes()).await.is_err() || stdin.flush().await.is_err() {
            return;
        }
    }
}

/// Reads messages until the process ends, and passes each to the request that it belongs to.
async fn read_lines(
    stdout: Box<dyn AsyncRead + Send + Unpin>,
    state: Arc<HelperState>,
    processes: Arc<dyn Processes>,
    id: ProcessId,
) {
    let mut reader = BufReader::with_capacity(64 << 10, stdout);
    let mut buffer = LineBuffer::new(MAX_MESSAGE);
    let mut fatal: Option<ThrownError> = None;
    loop {
        let bytes = match reader.fill_buf().await {
            Ok([]) | Err(_) => break,
            Ok(bytes) => bytes,
        };
        let (used, status) = buffer.push(bytes);
        reader.consume(used);
        let message = match status {
            // Invalid lines are ignored. They come from a tool that writes to descriptor 3 directly.
            LineStatus::Complete(line) => serde_json::from_slice::<Incoming>(&line).ok(),
            LineStatus::Incomplete => None,
            LineStatus::TooLong => {
                state.set_ended("the helper process sent a message that is too long");
                processes.end(&id).await.ok();
                return;
            }
        };
        let Some(mut message) = message else { continue };
        if let Some(error) = message.fatal.take() {
            fatal = Some(error);
        } else {
            state.dispatch(message);
        }
    }
    let why = match fatal {
        Some(error) => {
            format!("the helper process ended because of an uncaught error: {}", error.message)
        }
        None => format!("the helper process ended: {}", describe_exit(&*processes, &id).await),
    };
    state.set_ended(&why);
    processes.end(&id).await.ok();
}

impl HelperState {
    /// Passes a message to the request that it belongs to.
    fn dispatch(&self, message: Incoming) {
        *self.last_message.lock() = Some(Instant::now());
        if message.hello.is_some() {
            let (name, version) =
                (message.runtime.unwrap_or_default(), message.version.unwrap_or_default());
            if let Some(hello) = self.hello.lock().take() {
                hello.send((name, version)).ok();
            }
            return;
        }
        if message.ok.is_some() {
            self.has_answered.store(true, Ordering::Relaxed);
        }
        let sender = match message.id {
            Some(id) => self.requests.lock().get_mut(&id).map(|request| {
                request.has_begun |= message.begun;
                request.sender.clone()
            }),
            None => self.unattached.lock().clone(),
        };
        // If a tool reports faster than we read, reports are dropped. One slot is kept free for the answer.
        if let Some(sender) = sender
            && (message.ok.is_some() || message.error.is_some() || sender.capacity() > 1)
        {
            sender.try_send(message).ok();
        }
    }
}

/// Describes how a process ended, with its last lines of output.
async fn describe_exit(processes: &dyn Processes, id: &ProcessId) -> String {
    use helve_core::process::{Excerpt, ProcessState, WaitCondition, WatchRequest};
    let request = WatchRequest {
        from: 0,
        max_bytes: 2_000,
        excerpt: Excerpt::Newest,
        until: WaitCondition::Ended,
        timeout: Duration::from_millis(500),
    };
    let Ok(watched) = processes.watch(id, request).await else {
        return "its output is lost".into();
    };
    let state = match watched.process.state {
        ProcessState::Running => "it did not answer".to_owned(),
        ProcessState::Exited(code) => format!("exit code {code}"),
        ProcessState::Killed(signal) => format!("signal {signal}"),
        ProcessState::Lost => "its exit code is unknown".to_owned(),
    };
    let text = String::from_utf8_lossy(&watched.text);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    if text.contains("heap out of memory") {
        return format!("{state}: it used too much memory");
    }
    match &lines[lines.len().saturating_sub(5)..] {
        [] => state,
        last => format!("{state}; last output:\n{}", last.join("\n")),
    }
}
