//! A server that answers: what it offers, and how it is asked.

use std::sync::Arc;
use std::time::Duration;

use helve_core::ServerTrouble;
use helve_core::server::Step;
use parking_lot::Mutex;
use rmcp::model::{ErrorData, PaginatedRequestParams, ServerPeerInfo};
use rmcp::service::{Peer, ServiceError};
use rmcp::{RoleClient, model::Tool};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::connect::short;
use super::definition::{self, Definition, MOST_TOOLS};
use super::link::Link;
use super::visit::Visit;
use crate::config::Transport;

/// Pages of a list that are read.
const MOST_PAGES: usize = 100;

pub(super) struct Live {
    pub(super) peer: Peer<RoleClient>,
    pub(super) visit: Arc<Visit>,
    pub(super) hung_up: CancellationToken,
    tools: Mutex<Arc<[Definition]>>,
    notes: Mutex<Vec<String>>,
    noise: Option<String>,
}

impl Live {
    pub(super) fn new(peer: Peer<RoleClient>, visit: Arc<Visit>, noise: Option<String>) -> Self {
        let (tools, notes) = (Mutex::new(Arc::default()), Mutex::default());
        Self { peer, visit, hung_up: CancellationToken::new(), tools, notes, noise }
    }

    pub(super) fn tools(&self) -> Arc<[Definition]> {
        self.tools.lock().clone()
    }

    /// What was odd.
    pub(super) fn notes(&self) -> Vec<String> {
        self.notes.lock().iter().chain(&self.noise).cloned().collect()
    }

    pub(super) fn about(&self) -> Option<Arc<ServerPeerInfo>> {
        self.peer.peer_info()
    }

    pub(super) fn holds_resources(&self) -> bool {
        self.about().is_some_and(|about| about.capabilities.resources.is_some())
    }

    /// Tells everyone who waits that it is over.
    pub(super) fn hang_up(&self) {
        self.hung_up.cancel();
    }

    /// Reads the list of tools anew.
    pub(super) async fn list_again(&self, link: &Link) -> Result<(), ServerTrouble> {
        let has_tools = self.about().is_some_and(|about| about.capabilities.tools.is_some());
        let tools = if has_tools { self.list(link).await? } else { Vec::new() };
        let (tools, notes) = definition::read(link.name(), &identity(link), tools);
        *self.tools.lock() = tools.into();
        *self.notes.lock() = notes;
        Ok(())
    }

    async fn list(&self, link: &Link) -> Result<Vec<Tool>, ServerTrouble> {
        let (mut tools, mut cursor) = (Vec::new(), None);
        for _ in 0..MOST_PAGES {
            let page = PaginatedRequestParams::default().with_cursor(cursor);
            let page = within(link, Step::List, self.peer.list_tools(Some(page))).await?;
            tools.extend(page.tools);
            cursor = page.next_cursor;
            if cursor.is_none() || tools.len() > MOST_TOOLS {
                break;
            }
        }
        Ok(tools)
    }
}

/// An answer in its time, or why there is none.
pub(super) async fn within<T>(
    link: &Link,
    step: Step,
    asking: impl Future<Output = Result<T, ServiceError>>,
) -> Result<T, ServerTrouble> {
    let after = link.start_limit();
    match timeout(after, asking).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(trouble(link, error, step, after)),
        Err(_) => Err(ServerTrouble::NoAnswer { step, after }),
    }
}

pub(super) fn trouble(
    link: &Link,
    error: ServiceError,
    step: Step,
    after: Duration,
) -> ServerTrouble {
    match error {
        ServiceError::McpError(error) => answered(link, &error),
        ServiceError::TransportSend(error) => {
            ServerTrouble::Unreachable(link.secrets.hide(&short(&error.error.to_string())))
        }
        ServiceError::TransportClosed | ServiceError::Cancelled { .. } => {
            ServerTrouble::Ended { why: String::new() }
        }
        ServiceError::Timeout { .. } => ServerTrouble::NoAnswer { step, after },
        _ => ServerTrouble::Nonsense,
    }
}

fn answered(link: &Link, error: &ErrorData) -> ServerTrouble {
    let message = link.secrets.hide(&short(&error.message));
    ServerTrouble::Answered { code: error.code.0.into(), message }
}

/// What is behind a name: another program under the same name is another server.
fn identity(link: &Link) -> String {
    match &link.server.transport {
        Transport::Local { command, environment, cwd } => {
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
        // Headers hold tokens that are renewed; the address says who it is.
        Transport::Remote { url, .. } => url.value.clone(),
    }
}
