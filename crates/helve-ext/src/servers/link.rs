//! One server's life: started when it is wanted, watched, started again after a rest, left alone if that does not help.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use helve_core::ServerTrouble;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::connect::{self, Connection};
use super::definition::Definition;
use super::live::Live;
use super::secret::Secrets;
use crate::config::{Server, State};

/// How long a server may take to start, unless its configuration says otherwise.
pub(super) const START: Duration = Duration::from_secs(30);
/// Failures in a row before a server is left alone.
const MOST_TRIES: u32 = 5;
/// The rest before the second try; each further one is twice as long.
const FIRST_REST: Duration = Duration::from_millis(500);
/// A server that ran this long is not one that fails to start.
const STEADY: Duration = Duration::from_secs(30);
/// A server that was left alone is tried again when it is wanted after this.
const LEFT_ALONE: Duration = Duration::from_secs(60);
/// Changes of the list of tools are followed at most this often.
const LIST_REST: Duration = Duration::from_secs(1);

/// One configured server.
pub(super) struct Link {
    pub(super) server: Server,
    pub(super) root: PathBuf,
    pub(super) secrets: Secrets,
    pub(super) stop: CancellationToken,
    stage: watch::Sender<Stage>,
    running: Mutex<Option<JoinHandle<()>>>,
    again: Notify,
    known: Mutex<Arc<[Definition]>>,
    /// Told whenever the tools of this server may be others.
    news: Arc<Notify>,
}

#[derive(Clone)]
pub(super) enum Stage {
    Idle,
    Starting,
    Ready(Arc<Live>),
    Down(Down),
}

#[derive(Clone)]
pub(super) struct Down {
    pub(super) trouble: ServerTrouble,
    tries: u32,
    since: Instant,
    /// Whether it is going to be started again by itself.
    resting: bool,
}

impl Link {
    pub(super) fn new(
        server: Server,
        root: PathBuf,
        news: Arc<Notify>,
        stop: CancellationToken,
    ) -> Arc<Self> {
        let secrets = Secrets::of(&server);
        let stage = watch::Sender::new(Stage::Idle);
        let (running, again, known) = (Mutex::default(), Notify::new(), Mutex::new(Arc::default()));
        Arc::new(Self { server, root, secrets, stop, stage, running, again, known, news })
    }

    pub(super) fn name(&self) -> &str {
        &self.server.name
    }

    pub(super) fn stage(&self) -> Stage {
        self.stage.borrow().clone()
    }

    pub(super) fn live(&self) -> Option<Arc<Live>> {
        match self.stage() {
            Stage::Ready(live) => Some(live),
            Stage::Idle | Stage::Starting | Stage::Down(_) => None,
        }
    }

    /// Whether it may be started at all.
    pub(super) fn allowed(&self) -> Result<(), ServerTrouble> {
        match (*self.server.enabled, self.server.state) {
            (_, State::WaitsForTrust) => Err(ServerTrouble::Untrusted),
            (false, State::InForce) => Err(ServerTrouble::Off),
            (true, State::InForce) => Ok(()),
        }
    }

    /// Starts it, unless it runs or is starting. Returns at once.
    pub(super) fn want(self: &Arc<Self>) {
        if self.allowed().is_err() || self.stop.is_cancelled() {
            return;
        }
        let mut running = self.running.lock();
        if running.is_none() {
            self.stage.send_replace(Stage::Starting);
            *running = Some(tokio::spawn(self.clone().run()));
            return;
        }
        if let Stage::Down(down) = &*self.stage.borrow()
            && !down.resting
            && down.since.elapsed() >= LEFT_ALONE
        {
            self.again.notify_one();
        }
    }

    /// Waits until it is ready, or has failed once more.
    pub(super) async fn ready(self: &Arc<Self>) -> Result<Arc<Live>, ServerTrouble> {
        self.allowed()?;
        let failed = match self.stage() {
            Stage::Down(down) if down.resting || down.since.elapsed() >= LEFT_ALONE => down.tries,
            Stage::Down(down) => return Err(down.trouble),
            Stage::Idle | Stage::Starting | Stage::Ready(_) => 0,
        };
        self.want();
        let mut stage = self.stage.subscribe();
        let settled = stage.wait_for(|stage| match stage {
            Stage::Idle | Stage::Starting => false,
            Stage::Ready(_) => true,
            Stage::Down(down) => down.tries != failed,
        });
        match settled.await.as_deref() {
            Ok(Stage::Ready(live)) => Ok(live.clone()),
            Ok(Stage::Down(down)) => Err(down.trouble.clone()),
            Ok(Stage::Idle | Stage::Starting) | Err(_) => {
                Err(ServerTrouble::Ended { why: String::new() })
            }
        }
    }

    /// Why it went down, known shortly after it did.
    pub(super) async fn down(&self) -> Option<ServerTrouble> {
        let mut stage = self.stage.subscribe();
        let down = stage.wait_for(|stage| matches!(stage, Stage::Down(_)));
        match timeout(Duration::from_secs(3), down).await.ok()?.as_deref() {
            Ok(Stage::Down(down)) => Some(down.trouble.clone()),
            Ok(Stage::Idle | Stage::Starting | Stage::Ready(_)) | Err(_) => None,
        }
    }

    /// The tools it offers, or offered when it was last up.
    pub(super) fn known(&self) -> Arc<[Definition]> {
        match self.live() {
            Some(live) => {
                let tools = live.tools();
                *self.known.lock() = tools.clone();
                tools
            }
            None => self.known.lock().clone(),
        }
    }

    /// Waits until it no longer says that it is starting.
    pub(super) async fn settled(&self) {
        let mut stage = self.stage.subscribe();
        // The sender lives as long as `self`.
        stage.wait_for(|stage| !matches!(stage, Stage::Starting)).await.ok();
    }

    pub(super) fn start_limit(&self) -> Duration {
        self.server.timeout.as_ref().map_or(START, |given| given.value.max(Duration::from_secs(1)))
    }

    /// Ends the server and waits for that.
    pub(super) async fn close(&self) {
        let running = self.running.lock().take();
        if let Some(running) = running {
            running.await.ok();
        }
    }

    async fn run(self: Arc<Self>) {
        let mut tries = 0;
        while !self.stop.is_cancelled() {
            self.stage.send_replace(Stage::Starting);
            let began = Instant::now();
            let trouble = match connect::open(&self).await {
                Ok(connection) => self.attend(connection).await,
                Err(trouble) => trouble,
            };
            tries = if began.elapsed() >= STEADY { 1 } else { tries + 1 };
            let resting = tries < MOST_TRIES && can_pass(&trouble);
            let trouble = match trouble {
                trouble if tries < MOST_TRIES => trouble,
                last => ServerTrouble::GaveUp { tries, last: Box::new(last) },
            };
            let down = Down { trouble, tries, since: Instant::now(), resting };
            self.stage.send_replace(Stage::Down(down));
            self.news.notify_one();
            let rest = async {
                if resting {
                    tokio::time::sleep(FIRST_REST * 2_u32.saturating_pow(tries - 1)).await;
                } else {
                    self.again.notified().await;
                }
            };
            tokio::select! {
                () = rest => {}
                () = self.stop.cancelled() => {}
            }
            if !resting {
                tries = 0;
            }
        }
    }

    /// Follows a connection to its end.
    async fn attend(&self, connection: Connection) -> ServerTrouble {
        let Connection { live, service, ends } = connection;
        self.stage.send_replace(Stage::Ready(live.clone()));
        self.news.notify_one();
        let closing = service.cancellation_token();
        let over = service.waiting();
        tokio::pin!(over);
        loop {
            tokio::select! {
                _ = &mut over => break,
                () = self.stop.cancelled() => {
                    live.hang_up();
                    closing.cancel();
                    // A server that does not let go is ended below.
                    timeout(Duration::from_secs(1), &mut over).await.ok();
                    break;
                }
                () = live.visit.changed.notified() => {
                    if live.list_again(self).await.is_ok() {
                        self.news.notify_one();
                    }
                    // However often it says so.
                    tokio::time::sleep(LIST_REST).await;
                }
            }
        }
        ends.trouble(self).await
    }
}

/// Whether trying again may help.
fn can_pass(trouble: &ServerTrouble) -> bool {
    match trouble {
        ServerTrouble::NotStarted(_)
        | ServerTrouble::NeedsLogin { .. }
        | ServerTrouble::Off
        | ServerTrouble::Untrusted
        | ServerTrouble::Unknown { .. }
        | ServerTrouble::GaveUp { .. } => false,
        ServerTrouble::Unreachable(_)
        | ServerTrouble::NoAnswer { .. }
        | ServerTrouble::Ended { .. }
        | ServerTrouble::TooLarge { .. }
        | ServerTrouble::Answered { .. }
        | ServerTrouble::Nonsense
        | ServerTrouble::Changed { .. }
        | ServerTrouble::NoResources { .. } => true,
    }
}
