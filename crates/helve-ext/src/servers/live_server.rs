//! A connected server: its tools, and requests to it.

use std::sync::Arc;
use std::time::Duration;

use helve_core::ServerError;
use helve_core::server::ServerStep;
use parking_lot::Mutex;
use rmcp::model::{ErrorData, PaginatedRequestParams, ServerPeerInfo};
use rmcp::service::{Peer, ServiceError};
use rmcp::{RoleClient, model::Tool};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::connect::shorten_and_escape;
use super::definition::{self, MAX_TOOLS, ToolDefinition};
use super::events::ServerEvents;
use super::managed::ManagedServer;
use crate::config::ServerTransport;

/// Maximum number of pages read per list.
const MAX_PAGES: usize = 100;

pub(super) struct LiveServer {
    pub(super) peer: Peer<RoleClient>,
    pub(super) events: Arc<ServerEvents>,
    pub(super) closed: CancellationToken,
    tools: Mutex<Arc<[ToolDefinition]>>,
    notes: Mutex<Vec<String>>,
    /// A note about lines of output that were not messages.
    skipped_lines_note: Option<String>,
}

impl LiveServer {
    pub(super) fn new(
        peer: Peer<RoleClient>,
        events: Arc<ServerEvents>,
        skipped_lines_note: Option<String>,
    ) -> Self {
        let (tools, notes) = (Mutex::new(Arc::default()), Mutex::default());
        Self { peer, events, closed: CancellationToken::new(), tools, notes, skipped_lines_note }
    }

    pub(super) fn tools(&self) -> Arc<[ToolDefinition]> {
        self.tools.lock().clone()
    }

    /// Returns notes about anything unusual.
    pub(super) fn notes(&self) -> Vec<String> {
        self.notes.lock().iter().chain(&self.skipped_lines_note).cloned().collect()
    }

    pub(super) fn info(&self) -> Option<Arc<ServerPeerInfo>> {
        self.peer.peer_info()
    }

    pub(super) fn has_resources(&self) -> bool {
        self.info().is_some_and(|info| info.capabilities.resources.is_some())
    }

    /// Ends all calls that wait for the server.
    pub(super) fn close(&self) {
        self.closed.cancel();
    }

    /// Reads the list of tools again.
    pub(super) async fn refresh_tools(&self, managed: &ManagedServer) -> Result<(), ServerError> {
        let has_tools = self.info().is_some_and(|info| info.capabilities.tools.is_some());
        let tools = if has_tools { self.list(managed).await? } else { Vec::new() };
        let (tools, notes) =
            definition::read_definitions(managed.name(), &identity(managed), tools);
        *self.tools.lock() = tools.into();
        *self.notes.lock() = notes;
        Ok(())
    }

    async fn list(&self, managed: &ManagedServer) -> Result<Vec<Tool>, ServerError> {
        let (mut tools, mut cursor) = (Vec::new(), None);
        for _ in 0..MAX_PAGES {
            let page = PaginatedRequestParams::default().with_cursor(cursor);
            let page =
                with_timeout(managed, ServerStep::List, self.peer.list_tools(Some(page))).await?;
            tools.extend(page.tools);
            cursor = page.next_cursor;
            if cursor.is_none() || tools.len() > MAX_TOOLS {
                break;
            }
        }
        Ok(tools)
    }
}

/// Waits for an answer within the time limit.
pub(super) async fn with_timeout<T>(
    managed: &ManagedServer,
    step: ServerStep,
    request: impl Future<Output = Result<T, ServiceError>>,
) -> Result<T, ServerError> {
    // The limit for starting applies to these requests too. Calls have a limit of their own.
    let limit = managed.start_limit();
    match timeout(limit, request).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(to_server_error(managed, error, step, limit)),
        Err(_) => Err(ServerError::NoAnswer { step, after: limit }),
    }
}

pub(super) fn to_server_error(
    managed: &ManagedServer,
    error: ServiceError,
    step: ServerStep,
    limit: Duration,
) -> ServerError {
    match error {
        ServiceError::McpError(error) => error_reply(managed, &error),
        ServiceError::TransportSend(error) => ServerError::Unreachable(
            managed.secrets.hide(&shorten_and_escape(&error.error.to_string())),
        ),
        ServiceError::TransportClosed | ServiceError::Cancelled { .. } => {
            ServerError::Ended { why: String::new() }
        }
        ServiceError::Timeout { .. } => ServerError::NoAnswer { step, after: limit },
        _ => ServerError::InvalidReply,
    }
}

fn error_reply(managed: &ManagedServer, error: &ErrorData) -> ServerError {
    let message = managed.secrets.hide(&shorten_and_escape(&error.message));
    ServerError::ErrorReply { code: error.code.0.into(), message }
}

/// Returns a string that identifies the program or URL behind a server's name. An approval of a tool does not carry over
/// to another program of the same name.
fn identity(managed: &ManagedServer) -> String {
    match &managed.config.transport {
        ServerTransport::Local { command, environment, cwd } => {
            let values = command.iter().map(|given| given.value.as_str());
            let variables = environment.iter().flat_map(|(name, given)| [name, &given.value]);
            let cwd = cwd.iter().map(|given| given.value.as_str());
            let parts: Vec<&str> = values
                .chain(["\0"])
                .chain(variables.map(String::as_str))
                .chain(["\0"])
                .chain(cwd)
                .collect();
            parts.join("\0")
        }
        // Headers hold tokens that are renewed. The URL identifies the server.
        ServerTransport::Remote { url, .. } => url.value.clone(),
    }
}
