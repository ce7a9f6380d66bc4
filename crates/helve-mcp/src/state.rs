//! State that all connections of a server share: client sessions, running calls, and calls that wait for a person's
//! answer between two requests (parked calls).

use std::sync::Arc;

use http::request::Parts;
use rmcp::model::Extensions;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::client_session::{ClientSession, StatelessClients};
use crate::parked::ParkedCalls;
use crate::{ClientInfo, FLUSH_TIME, McpConfig, SHUTDOWN_TIME};

/// State that all connections of a server share.
pub(crate) struct ServerState {
    pub(crate) config: McpConfig,
    pub(crate) stop: CancellationToken,
    /// Running calls, so that shutdown can wait for them.
    pub(crate) running: TaskTracker,
    pub(crate) parked: ParkedCalls,
    stateless: StatelessClients,
}

impl ServerState {
    /// Cancelling `stop` ends every call.
    pub(crate) fn new(config: McpConfig, stop: CancellationToken) -> Arc<Self> {
        let (running, stateless, parked) = Default::default();
        Arc::new(Self { config, stop, running, stateless, parked })
    }

    /// Cancels every call, waits for the calls to end within a limit, and flushes the store.
    pub(crate) async fn shutdown(&self) {
        self.stop.cancel();
        self.running.close();
        // Calls that do not end in time end with the process.
        timeout(SHUTDOWN_TIME, self.running.wait()).await.ok();
        timeout(FLUSH_TIME, self.config.engine.flush()).await.ok();
    }

    /// Returns the session for the first request of a connection. Returns `None` if the agent in the URL does
    /// not exist.
    pub(crate) fn session_for(
        &self,
        client: ClientInfo,
        extensions: &Extensions,
    ) -> Option<Arc<ClientSession>> {
        let http = extensions.get::<Parts>().map(|parts| &parts.extensions);
        let agent =
            http.and_then(|http| http.get::<AgentInUrl>()).and_then(|agent| agent.0.clone());
        let session_end = extensions.get::<SessionEnd>().map(|end| end.0.child_token());
        let is_stateless = http.is_some() && session_end.is_none();
        let cancel_calls = session_end.unwrap_or_else(|| self.stop.child_token());
        let open = |(client, agent)| ClientSession::open(&self.config, client, agent, cancel_calls);
        if is_stateless {
            self.stateless.get_or_open((client, agent), open)
        } else {
            open((client, agent)).map(Arc::new)
        }
    }
}

/// Attached to requests of an HTTP session; cancelled when the session ends.
#[derive(Clone)]
pub(crate) struct SessionEnd(pub(crate) CancellationToken);

/// Attached to HTTP requests: the agent named in the URL.
#[derive(Clone)]
pub(crate) struct AgentInUrl(pub(crate) Option<String>);
