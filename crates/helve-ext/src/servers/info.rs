//! The state of a server, as shown to people. Contains no secrets.

use std::sync::Arc;

use helve_core::ServerError;

use super::Inner;
use super::connect::shorten_and_escape;
use super::live_server::LiveServer;
use super::managed::{ManagedServer, RunState};
use super::secret;
use crate::config::{ConfigLayer, ServerTransport};

/// A server and its state.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerInfo {
    pub name: String,
    /// `local` or `remote`.
    pub kind: &'static str,
    /// The command or URL, without secrets.
    pub location: String,
    pub layer: ConfigLayer,
    pub status: ServerStatus,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ServerStatus {
    /// The server starts when it is needed.
    NotStarted,
    Starting,
    Ready {
        /// Name and version that the server reports.
        reported_name: String,
        /// The protocol revision in use.
        protocol: String,
        tools: Vec<ServerToolName>,
        has_resources: bool,
        /// Notes about anything unusual: names already taken, tools ignored, lines of output skipped.
        notes: Vec<String>,
    },
    Down(ServerError),
}

/// The names of a server's tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerToolName {
    /// Helve's name for the tool.
    pub name: String,
    /// The server's name for the tool.
    pub name_on_server: String,
}

impl Inner {
    pub(super) fn info(&self, managed: &Arc<ManagedServer>) -> ServerInfo {
        let server = &managed.config;
        let kind = match &server.transport {
            ServerTransport::Local { .. } => "local",
            ServerTransport::Remote { .. } => "remote",
        };
        let status = match (managed.check_allowed(), managed.state()) {
            (Err(error), _) => ServerStatus::Down(error),
            (Ok(()), RunState::Idle) => ServerStatus::NotStarted,
            (Ok(()), RunState::Starting) => ServerStatus::Starting,
            (Ok(()), RunState::Down(failure)) => ServerStatus::Down(failure.error),
            (Ok(()), RunState::Ready(live)) => self.ready_status(managed, &live),
        };
        let location = managed.secrets.hide(&secret::display_location(server));
        ServerInfo { name: server.name.clone(), kind, location, layer: server.layer, status }
    }

    fn ready_status(&self, managed: &Arc<ManagedServer>, live: &LiveServer) -> ServerStatus {
        let info = live.info();
        let reported = info.as_ref().and_then(|info| info.server_info.as_ref());
        let reported_name = reported
            .map(|server| shorten_and_escape(&format!("{} {}", server.name, server.version)));
        let registered = self.registered.lock();
        let definitions = live.tools();
        let tools = definitions.iter().filter_map(|definition| {
            let entry = registered.tools.iter().find(|(_, (hash, _))| *hash == definition.hash);
            let (name, name_on_server) = (entry?.0.clone(), shorten_and_escape(&definition.tool));
            Some(ServerToolName { name, name_on_server })
        });
        let mut notes = live.notes();
        notes.extend(registered.notes.get(managed.name()).into_iter().flatten().cloned());
        ServerStatus::Ready {
            reported_name: reported_name.unwrap_or_default(),
            protocol: info.map(|info| info.protocol_version.to_string()).unwrap_or_default(),
            tools: tools.collect(),
            has_resources: live.has_resources(),
            notes: notes.iter().map(|note| managed.secrets.hide(note)).collect(),
        }
    }
}
