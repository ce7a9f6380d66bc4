//! MCP servers as they are written down. Nothing is started here.

use std::time::Duration;

use helve_core::permission::Source;

use super::explain::{Listed, State};
use super::page::{Page, Reading, Standing};
use super::tree::{Entry, Node, What};
use super::{Given, Layer, keys, words};

/// A server that someone wants to use.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    pub name: String,
    pub transport: Transport,
    pub enabled: Given<bool>,
    /// For connecting and for calls.
    pub timeout: Option<Given<Duration>>,
    pub layer: Layer,
    pub source: Source,
    /// One that waits must neither be started nor connected to; its references are not put in.
    pub state: State,
}

/// How a server is reached.
#[derive(Clone, Debug, PartialEq)]
pub enum Transport {
    Local {
        /// The program and its arguments; never empty.
        command: Vec<Given<String>>,
        environment: Vec<(String, Given<String>)>,
        /// Relative to the root.
        cwd: Option<Given<String>>,
    },
    Remote {
        url: Given<String>,
        headers: Vec<(String, Given<String>)>,
    },
}

/// The most servers in all.
const MOST: usize = 200;
/// The longest timeout, in milliseconds: a day.
const LONGEST: u64 = 24 * 60 * 60 * 1_000;

/// An `mcp` section. A server of a later file replaces one of the same name as a whole, so that no header or variable of
/// the one ends up with the other; `{"enabled": …}` alone switches the one that is there.
pub(super) fn section(
    page: &mut Page<'_>,
    node: &Node,
    servers: &mut Vec<Server>,
    waiting: &mut Vec<Listed>,
) {
    let Some(entries) = page.map("mcp", node) else { return };
    for entry in entries {
        let Some(wanted) = server(page, entry) else { continue };
        let full = servers.len() >= MOST;
        match (wanted, servers.iter_mut().find(|server| server.name == entry.key)) {
            // A project that nobody trusts leaves the user's servers alone.
            (_, Some(server))
                if server.layer == Layer::User && page.standing == Standing::Narrows =>
            {
                waiting.push(Listed::waiting(page, &["mcp"], entry));
            }
            (Wanted::Switched(enabled), Some(server)) => server.enabled = enabled,
            (Wanted::Switched(_), None) => {
                page.warn(entry.at, || words::no_such_server(&entry.key))
            }
            (Wanted::Whole(new), Some(server)) => *server = *new,
            (Wanted::Whole(_), None) if full => {
                page.error(entry.at, || words::too_many_servers(MOST))
            }
            (Wanted::Whole(new), None) => servers.push(*new),
        }
    }
}

enum Wanted {
    Switched(Given<bool>),
    Whole(Box<Server>),
}

/// Half a server is no server: whatever is wrong in it drops it.
fn server(page: &mut Page<'_>, entry: &Entry) -> Option<Wanted> {
    let path = words::key_path(&["mcp", &entry.key]);
    let fields = page.map(&path, &entry.value)?;
    // The last of equal keys, as in any other object.
    let field = |key: &str| fields.iter().rev().find(|field| field.key == key).map(|it| &it.value);
    for field in fields {
        if !keys::SERVER.contains(&field.key.as_str()) {
            let meant = keys::nearest(&field.key, keys::SERVER);
            page.warn(field.at, || words::unknown_key(&field.key, meant));
        }
    }
    let (reading, state) = match page.standing {
        Standing::Full => (Reading::Usual, State::InForce),
        Standing::Narrows => (Reading::AsWritten, State::WaitsForTrust),
    };
    let named = |key: &str| format!("{path}.{key}");
    let enabled = match field("enabled") {
        Some(node) => Some(page.flag(&named("enabled"), node)?),
        None => None,
    };
    let kind = match (field("type"), &enabled) {
        (Some(node), _) => page.text(&named("type"), node, Reading::AsWritten)?,
        (None, Some(enabled)) if fields.len() == 1 => {
            return Some(Wanted::Switched(enabled.clone()));
        }
        (None, _) => {
            let meant = if field("url").is_some() { "remote" } else { "local" };
            page.error(entry.at, || words::server_without_type(&entry.key, meant));
            return None;
        }
    };
    let timeout = match field("timeout") {
        Some(node) => Some(page.count(&named("timeout"), node, LONGEST)?),
        None => None,
    };
    let transport = match kind.value.as_str() {
        "local" => local(page, entry, &field, reading)?,
        "remote" => remote(page, entry, &field, reading)?,
        other => {
            let at = field("type").map_or(entry.at, |node| node.at);
            page.error(at, || words::unknown_server_type(other));
            return None;
        }
    };
    Some(Wanted::Whole(Box::new(Server {
        name: entry.key.clone(),
        transport,
        enabled: enabled.unwrap_or_else(|| Given::new(true, page.source(entry.at))),
        timeout: timeout.map(|it| Given::new(Duration::from_millis(it.value), it.source)),
        layer: page.layer,
        source: page.source(entry.at),
        state,
    })))
}

fn local<'n>(
    page: &mut Page<'_>,
    entry: &Entry,
    field: &impl Fn(&str) -> Option<&'n Node>,
    reading: Reading,
) -> Option<Transport> {
    let named = |key: &str| words::key_path(&["mcp", &entry.key, key]);
    let Some(node) = field("command") else {
        page.error(entry.at, || words::server_lacks(&entry.key, "command"));
        return None;
    };
    if let What::Text(line) = &node.what {
        page.error(node.at, || words::command_is_a_line(line));
        return None;
    }
    let command = page.texts(&named("command"), node, reading)?;
    if command.first().is_none_or(|program| program.value.is_empty()) {
        page.error(node.at, || words::empty_command(&entry.key));
        return None;
    }
    let environment = match field("environment") {
        Some(node) => page.named_texts(&named("environment"), node, reading)?,
        None => Vec::new(),
    };
    let cwd = match field("cwd") {
        Some(node) => Some(page.text(&named("cwd"), node, reading)?),
        None => None,
    };
    Some(Transport::Local { command, environment, cwd })
}

fn remote<'n>(
    page: &mut Page<'_>,
    entry: &Entry,
    field: &impl Fn(&str) -> Option<&'n Node>,
    reading: Reading,
) -> Option<Transport> {
    let named = |key: &str| words::key_path(&["mcp", &entry.key, key]);
    let Some(node) = field("url") else {
        page.error(entry.at, || words::server_lacks(&entry.key, "url"));
        return None;
    };
    let url = page.text(&named("url"), node, reading)?;
    let is_web = ["http://", "https://"].iter().any(|scheme| url.value.starts_with(scheme));
    if !is_web && reading != Reading::AsWritten {
        page.error(node.at, || words::not_a_web_address(url.shown()));
        return None;
    }
    let headers = match field("headers") {
        Some(node) => page.named_texts(&named("headers"), node, reading)?,
        None => Vec::new(),
    };
    Some(Transport::Remote { url, headers })
}
