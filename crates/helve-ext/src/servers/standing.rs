//! A server as a person is shown it. No secret is in it.

use std::sync::Arc;

use helve_core::ServerTrouble;

use super::Inner;
use super::connect::short;
use super::link::{Link, Stage};
use super::secret;
use crate::config::{Layer, Transport};

/// How a server stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    pub name: String,
    /// `local` or `remote`.
    pub kind: &'static str,
    /// The command or the address, without what is secret in it.
    pub reached_by: String,
    pub layer: Layer,
    pub status: Status,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Status {
    /// It is started when it is needed.
    NotStarted,
    Starting,
    Ready {
        /// What the server calls itself, with its version.
        calls_itself: String,
        /// The revision of the protocol that is spoken.
        protocol: String,
        tools: Vec<ToolFound>,
        holds_resources: bool,
        /// What was odd: names that were taken, tools left out, lines passed over.
        notes: Vec<String>,
    },
    Down(ServerTrouble),
}

/// A tool of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolFound {
    /// As it is called here.
    pub name: String,
    /// As the server calls it.
    pub tool: String,
}

impl Inner {
    pub(super) fn standing(&self, link: &Arc<Link>) -> Standing {
        let server = &link.server;
        let kind = match &server.transport {
            Transport::Local { .. } => "local",
            Transport::Remote { .. } => "remote",
        };
        let status = match (link.allowed(), link.stage()) {
            (Err(trouble), _) => Status::Down(trouble),
            (Ok(()), Stage::Idle) => Status::NotStarted,
            (Ok(()), Stage::Starting) => Status::Starting,
            (Ok(()), Stage::Down(down)) => Status::Down(down.trouble),
            (Ok(()), Stage::Ready(live)) => {
                let about = live.about();
                let itself = about.as_ref().and_then(|about| about.server_info.as_ref());
                let itself = itself.map(|it| short(&format!("{} {}", it.name, it.version)));
                let offered = self.offered.lock();
                let found = live.tools();
                let tools = found.iter().filter_map(|definition| {
                    let named =
                        offered.tools.iter().find(|(_, (hash, _))| *hash == definition.hash);
                    let (name, tool) = (named?.0.clone(), short(&definition.tool));
                    Some(ToolFound { name, tool })
                });
                let mut notes = live.notes();
                notes.extend(offered.notes.get(link.name()).into_iter().flatten().cloned());
                Status::Ready {
                    calls_itself: itself.unwrap_or_default(),
                    protocol: about.map(|it| it.protocol_version.to_string()).unwrap_or_default(),
                    tools: tools.collect(),
                    holds_resources: live.holds_resources(),
                    notes: notes.iter().map(|note| link.secrets.hide(note)).collect(),
                }
            }
        };
        let reached_by = link.secrets.hide(&secret::shown(server));
        Standing { name: server.name.clone(), kind, reached_by, layer: server.layer, status }
    }
}
