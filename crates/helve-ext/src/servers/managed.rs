//! The life cycle of one server: start on demand, supervision, restarts with backoff, and giving up.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use helve_core::ServerError;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::connect::{self, Connection};
use super::definition::ToolDefinition;
use super::live_server::LiveServer;
use super::secret::Secrets;
use crate::config::{ServerConfig, SettingState};

/// Default limit on the time that a server takes to start.
pub(super) const DEFAULT_START_TIMEOUT: Duration = Duration::from_secs(30);
/// Number of consecutive failures after which the server is no longer restarted automatically.
const MAX_TRIES: u32 = 5;
/// Delay before the second try. Each further delay is twice as long.
const FIRST_BACKOFF: Duration = Duration::from_millis(500);
/// A server that ran this long counts as started successfully.
const STABLE_TIME: Duration = Duration::from_secs(30);
/// After [`MAX_TRIES`] failures, a call may restart the server only after this time.
const RESTART_PAUSE: Duration = Duration::from_secs(60);
/// Minimum time between two refreshes of the tool list.
const LIST_INTERVAL: Duration = Duration::from_secs(1);

/// One configured server.
pub(super) struct ManagedServer {
    pub(super) config: ServerConfig,
    pub(super) root: PathBuf,
    pub(super) secrets: Secrets,
    pub(super) stop: CancellationToken,
    state: watch::Sender<RunState>,
    task: Mutex<Option<JoinHandle<()>>>,
    retry: Notify,
    /// The tools listed last, kept while the server is down.
    last_tools: Mutex<Arc<[ToolDefinition]>>,
    /// Notified whenever the tools of this server may have changed.
    changed: Arc<Notify>,
}

#[derive(Clone)]
pub(super) enum RunState {
    Idle,
    Starting,
    Ready(Arc<LiveServer>),
    Down(Failure),
}

#[derive(Clone)]
pub(super) struct Failure {
    pub(super) error: ServerError,
    tries: u32,
    since: Instant,
    /// Whether the server will be restarted automatically.
    will_retry: bool,
}

impl ManagedServer {
    pub(super) fn new(
        config: ServerConfig,
        root: PathBuf,
        changed: Arc<Notify>,
        stop: CancellationToken,
    ) -> Arc<Self> {
        let secrets = Secrets::of(&config);
        let state = watch::Sender::new(RunState::Idle);
        let (task, retry, last_tools) =
            (Mutex::default(), Notify::new(), Mutex::new(Arc::default()));
        Arc::new(Self { config, root, secrets, stop, state, task, retry, last_tools, changed })
    }

    pub(super) fn name(&self) -> &str {
        &self.config.name
    }

    pub(super) fn state(&self) -> RunState {
        self.state.borrow().clone()
    }

    pub(super) fn live(&self) -> Option<Arc<LiveServer>> {
        match self.state() {
            RunState::Ready(live) => Some(live),
            RunState::Idle | RunState::Starting | RunState::Down(_) => None,
        }
    }

    /// Checks whether the server may be started at all.
    pub(super) fn check_allowed(&self) -> Result<(), ServerError> {
        match (*self.config.enabled, self.config.state) {
            (_, SettingState::NeedsTrust) => Err(ServerError::Untrusted),
            (false, SettingState::Active) => Err(ServerError::Off),
            (true, SettingState::Active) => Ok(()),
        }
    }

    /// Starts the server unless it is running or starting. Returns at once.
    pub(super) fn start(self: &Arc<Self>) {
        if self.check_allowed().is_err() || self.stop.is_cancelled() {
            return;
        }
        let mut task = self.task.lock();
        if task.is_none() {
            self.state.send_replace(RunState::Starting);
            *task = Some(tokio::spawn(self.clone().run()));
            return;
        }
        if let RunState::Down(failure) = &*self.state.borrow()
            && !failure.will_retry
            && failure.since.elapsed() >= RESTART_PAUSE
        {
            self.retry.notify_one();
        }
    }

    /// Starts the server if necessary, and waits until it is ready or another try has failed.
    pub(super) async fn ready(self: &Arc<Self>) -> Result<Arc<LiveServer>, ServerError> {
        self.check_allowed()?;
        let failed_tries = match self.state() {
            RunState::Down(failure)
                if failure.will_retry || failure.since.elapsed() >= RESTART_PAUSE =>
            {
                failure.tries
            }
            RunState::Down(failure) => return Err(failure.error),
            RunState::Idle | RunState::Starting | RunState::Ready(_) => 0,
        };
        self.start();
        let mut state = self.state.subscribe();
        let settled = state.wait_for(|state| match state {
            RunState::Idle | RunState::Starting => false,
            RunState::Ready(_) => true,
            RunState::Down(failure) => failure.tries != failed_tries,
        });
        match settled.await.as_deref() {
            Ok(RunState::Ready(live)) => Ok(live.clone()),
            Ok(RunState::Down(failure)) => Err(failure.error.clone()),
            Ok(RunState::Idle | RunState::Starting) | Err(_) => {
                Err(ServerError::Ended { why: String::new() })
            }
        }
    }

    /// Returns why the server went down. Waits a little if the connection was lost but the reason is not known yet.
    pub(super) async fn failure(&self) -> Option<ServerError> {
        let mut state = self.state.subscribe();
        let down = state.wait_for(|state| matches!(state, RunState::Down(_)));
        match timeout(Duration::from_secs(3), down).await.ok()?.as_deref() {
            Ok(RunState::Down(failure)) => Some(failure.error.clone()),
            Ok(RunState::Idle | RunState::Starting | RunState::Ready(_)) | Err(_) => None,
        }
    }

    /// Returns the tools that the server offers, or offered when it was last running.
    pub(super) fn definitions(&self) -> Arc<[ToolDefinition]> {
        match self.live() {
            Some(live) => {
                let tools = live.tools();
                *self.last_tools.lock() = tools.clone();
                tools
            }
            None => self.last_tools.lock().clone(),
        }
    }

    /// Waits while the server is starting. Returns at once if it is not.
    pub(super) async fn wait_until_started(&self) {
        let mut state = self.state.subscribe();
        // The sender lives as long as `self`.
        state.wait_for(|state| !matches!(state, RunState::Starting)).await.ok();
    }

    pub(super) fn start_limit(&self) -> Duration {
        let configured = self.config.timeout.as_ref();
        configured.map_or(DEFAULT_START_TIMEOUT, |limit| limit.value.max(Duration::from_secs(1)))
    }

    /// Waits until the server has ended, after `stop` was cancelled.
    pub(super) async fn close(&self) {
        let task = self.task.lock().take();
        if let Some(task) = task {
            task.await.ok();
        }
    }

    async fn run(self: Arc<Self>) {
        let mut tries = 0;
        while !self.stop.is_cancelled() {
            self.state.send_replace(RunState::Starting);
            let started = Instant::now();
            let error = match connect::open(&self).await {
                Ok(connection) => self.supervise(connection).await,
                Err(error) => error,
            };
            tries = if started.elapsed() >= STABLE_TIME { 1 } else { tries + 1 };
            let will_retry = tries < MAX_TRIES && is_transient(&error);
            let error = match error {
                error if tries < MAX_TRIES => error,
                last => ServerError::RestartLimitReached { tries, last: Box::new(last) },
            };
            let failure = Failure { error, tries, since: Instant::now(), will_retry };
            self.state.send_replace(RunState::Down(failure));
            self.changed.notify_one();
            let wait = async {
                if will_retry {
                    tokio::time::sleep(FIRST_BACKOFF * 2_u32.saturating_pow(tries - 1)).await;
                } else {
                    self.retry.notified().await;
                }
            };
            tokio::select! {
                () = wait => {}
                () = self.stop.cancelled() => {}
            }
            if !will_retry {
                tries = 0;
            }
        }
    }

    /// Handles a connection until it ends, and returns why it did.
    async fn supervise(&self, connection: Connection) -> ServerError {
        let Connection { live, service, endpoint } = connection;
        self.state.send_replace(RunState::Ready(live.clone()));
        self.changed.notify_one();
        let closing = service.cancellation_token();
        let ended = service.waiting();
        tokio::pin!(ended);
        loop {
            tokio::select! {
                _ = &mut ended => break,
                () = self.stop.cancelled() => {
                    live.close();
                    closing.cancel();
                    // `finish` below kills a server that does not end in time.
                    timeout(Duration::from_secs(1), &mut ended).await.ok();
                    break;
                }
                () = live.events.tools_changed.notified() => {
                    if live.refresh_tools(self).await.is_ok() {
                        self.changed.notify_one();
                    }
                    // Limits how often the list is read, however often the server announces changes.
                    tokio::time::sleep(LIST_INTERVAL).await;
                }
            }
        }
        endpoint.finish(self).await
    }
}

/// Whether starting the server again may help.
fn is_transient(error: &ServerError) -> bool {
    match error {
        ServerError::NotStarted(_)
        | ServerError::NeedsLogin { .. }
        | ServerError::Off
        | ServerError::Untrusted
        | ServerError::Unknown { .. }
        | ServerError::RestartLimitReached { .. } => false,
        ServerError::Unreachable(_)
        | ServerError::NoAnswer { .. }
        | ServerError::Ended { .. }
        | ServerError::TooLarge { .. }
        | ServerError::ErrorReply { .. }
        | ServerError::InvalidReply
        | ServerError::Changed { .. }
        | ServerError::WrongResult { .. }
        | ServerError::NoResources { .. } => true,
    }
}
