//! The session of a client, and what the server keeps for it.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use helve_core::{Registry, Saved, Session, ToolSet};
use parking_lot::Mutex;
use rmcp::model::Implementation;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::asks::ClientPerson;
use crate::{ClientInfo, McpConfig, SessionRequest};

/// Maximum length of a client's name and version in characters.
const MAX_CLIENT_INFO: usize = 256;
/// Maximum number of saved outputs listed. Older ones can still be read.
const MAX_LISTED: usize = 100;

/// An identified client and its session.
pub(crate) struct ClientSession {
    pub(crate) session: Arc<Session>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) person: ClientPerson,
    /// Cancels all calls of the session. A call does not depend on its request, which may end while the call waits for
    /// a person.
    pub(crate) cancel_calls: CancellationToken,
    _cancel_on_drop: DropGuard,
    /// Receives the version of the registry whenever it changes. `None` once the task that
    /// reports changes to the client has taken the receiver.
    pub(crate) changes: Mutex<Option<watch::Receiver<u64>>>,
    cached_tools: Mutex<Option<CachedTools>>,
    saved: Mutex<VecDeque<Saved>>,
}

/// The tools at some version of the registry.
struct CachedTools {
    version: u64,
    tools: ToolSet,
}

impl ClientSession {
    /// Opens a session. Returns `None` if there is no such agent.
    pub(crate) fn open(
        config: &McpConfig,
        client: ClientInfo,
        agent: Option<String>,
        cancel_calls: CancellationToken,
    ) -> Option<Self> {
        let person = ClientPerson::default();
        let request = SessionRequest { client, agent, person: Arc::new(person.clone()) };
        let session = (config.open_session)(request)?;
        let _cancel_on_drop = cancel_calls.clone().drop_guard();
        let changes = Mutex::new(Some(config.registry.watch_changes()));
        let (cached_tools, saved) = Default::default();
        let registry = config.registry.clone();
        Some(Self {
            session,
            registry,
            person,
            cancel_calls,
            _cancel_on_drop,
            changes,
            cached_tools,
            saved,
        })
    }

    /// Returns the current tools. The set is rebuilt only when the registry has changed.
    pub(crate) fn tools(&self) -> ToolSet {
        let version = *self.registry.watch_changes().borrow();
        let mut cached = self.cached_tools.lock();
        match &*cached {
            Some(cached) if cached.version == version => cached.tools.clone(),
            Some(_) | None => {
                let tools = self.registry.offer_to(&self.session);
                *cached = Some(CachedTools { version, tools: tools.clone() });
                tools
            }
        }
    }

    pub(crate) fn record_saved(&self, saved: &Saved) {
        let mut outputs = self.saved.lock();
        outputs.truncate(MAX_LISTED - 1);
        outputs.push_front(saved.clone());
    }

    /// Returns the saved outputs, newest first.
    pub(crate) fn saved(&self) -> Vec<Saved> {
        self.saved.lock().iter().cloned().collect()
    }
}

/// Truncates the name and version that a client reports.
pub(crate) fn client_info(reported: Option<Implementation>) -> ClientInfo {
    reported.map_or_else(ClientInfo::default, |reported| ClientInfo {
        name: reported.name.chars().take(MAX_CLIENT_INFO).collect(),
        version: reported.version.chars().take(MAX_CLIENT_INFO).collect(),
    })
}

/// Sessions of clients that identify themselves with every request and hold no connection.
#[derive(Default)]
pub(crate) struct StatelessClients(Mutex<HashMap<StatelessKey, (Instant, Arc<ClientSession>)>>);

/// Requests with the same client and agent share a session.
type StatelessKey = (ClientInfo, Option<String>);

/// Maximum number of stateless clients. Another one replaces the one idle longest.
const MAX_STATELESS: usize = 64;
/// How long an idle stateless client is remembered.
const IDLE_TIME: Duration = Duration::from_secs(3600);

impl StatelessClients {
    pub(crate) fn get_or_open(
        &self,
        key: StatelessKey,
        open: impl FnOnce(StatelessKey) -> Option<ClientSession>,
    ) -> Option<Arc<ClientSession>> {
        let mut clients = self.0.lock();
        clients.retain(|_, (last_used, _)| last_used.elapsed() < IDLE_TIME);
        if let Some((last_used, session)) = clients.get_mut(&key) {
            *last_used = Instant::now();
            return Some(session.clone());
        }
        if clients.len() >= MAX_STATELESS
            && let Some(oldest) = clients
                .iter()
                .min_by_key(|(_, (last_used, _))| *last_used)
                .map(|(key, _)| key.clone())
        {
            clients.remove(&oldest);
        }
        let session = Arc::new(open(key.clone())?);
        clients.insert(key, (Instant::now(), session.clone()));
        Some(session)
    }
}
