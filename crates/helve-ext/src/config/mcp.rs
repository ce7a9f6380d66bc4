//! Reads the configuration of MCP servers. Starts none.

use std::time::Duration;

use helve_core::Source;

use super::config_file::{Authority, ConfigFile, ExpandMode};
use super::explain::{SettingLine, SettingState};
use super::tree::{ConfigEntry, ConfigNode, ConfigValue};
use super::{ConfigLayer, WithSource, keys, messages};

/// A configured MCP server.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerConfig {
    pub name: String,
    pub transport: ServerTransport,
    pub enabled: WithSource<bool>,
    /// Time limit for connecting and for calls.
    pub timeout: Option<WithSource<Duration>>,
    pub layer: ConfigLayer,
    pub source: Source,
    /// A server that needs trust must not be started or connected to. Its references, such as
    /// `{env:NAME}`, are not expanded.
    pub state: SettingState,
}

/// How a server is reached.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerTransport {
    Local {
        /// The program and its arguments. Never empty.
        command: Vec<WithSource<String>>,
        environment: Vec<(String, WithSource<String>)>,
        /// Relative to the root.
        cwd: Option<WithSource<String>>,
    },
    Remote {
        url: WithSource<String>,
        headers: Vec<(String, WithSource<String>)>,
    },
}

/// Maximum number of servers.
const MAX_SERVERS: usize = 200;
/// Maximum timeout in milliseconds: a day.
const MAX_TIMEOUT: u64 = 24 * 60 * 60 * 1_000;

/// Reads an `mcp` section. A server of a later file replaces one of the same name, so that another program or host does
/// not inherit variables or headers. A server that is restated with the same URL keeps its headers and time limit.
/// `{"enabled": …}` alone switches an existing server on or off.
pub(super) fn read_section(
    file: &mut ConfigFile<'_>,
    node: &ConfigNode,
    servers: &mut Vec<ServerConfig>,
    needs_trust: &mut Vec<SettingLine>,
) {
    let Some(entries) = file.map("mcp", node) else { return };
    for entry in entries {
        let problems_before = file.problem_count();
        let read = read_server(file, entry);
        if is_disabled(entry) {
            // A server that is not started needs no variables and may be unfinished.
            file.forget_problems_after(problems_before);
        }
        let Some(read) = read else { continue };
        let is_full = servers.len() >= MAX_SERVERS;
        match (read, servers.iter_mut().find(|server| server.name == entry.key)) {
            // An untrusted project cannot change the user's servers.
            (_, Some(server))
                if server.layer == ConfigLayer::User
                    && file.authority == Authority::RestrictOnly =>
            {
                needs_trust.push(SettingLine::needing_trust(file, &["mcp"], entry));
            }
            (ServerEntry::SetEnabled(enabled), Some(server)) => server.enabled = enabled,
            (ServerEntry::SetEnabled(_), None) => {
                file.warn(entry.at, || messages::no_such_server(&entry.key))
            }
            (ServerEntry::Definition(mut new), Some(server)) => {
                keep_settings(server, &mut new, &entry.value);
                *server = *new;
            }
            (ServerEntry::Definition(_), None) if is_full => {
                file.error(entry.at, || messages::too_many_servers(MAX_SERVERS))
            }
            (ServerEntry::Definition(new), None) => servers.push(*new),
        }
    }
}

/// Whether an entry says `"enabled": false`.
fn is_disabled(entry: &ConfigEntry) -> bool {
    let ConfigValue::Map(fields) = &entry.value.data else { return false };
    let enabled = fields.iter().rev().find(|field| field.key == "enabled");
    enabled.is_some_and(|field| field.value.data == ConfigValue::Bool(false))
}

/// Keeps the headers and the time limit of an earlier definition with the same URL, if the new one leaves them out.
fn keep_settings(old: &mut ServerConfig, new: &mut ServerConfig, written: &ConfigNode) {
    let is_written = |key: &str| match &written.data {
        ConfigValue::Map(fields) => fields.iter().any(|field| field.key == key),
        _ => false,
    };
    if let ServerTransport::Remote { url: old_url, headers: old_headers } = &mut old.transport
        && let ServerTransport::Remote { url, headers } = &mut new.transport
        && old_url.value == url.value
    {
        if !is_written("headers") {
            *headers = std::mem::take(old_headers);
        }
        if !is_written("timeout") {
            new.timeout = old.timeout.take();
        }
    }
}

enum ServerEntry {
    SetEnabled(WithSource<bool>),
    Definition(Box<ServerConfig>),
}

/// Reads one server. Returns `None` if it contains any mistake.
fn read_server(file: &mut ConfigFile<'_>, entry: &ConfigEntry) -> Option<ServerEntry> {
    let path = messages::key_path(&["mcp", &entry.key]);
    let fields = file.map(&path, &entry.value)?;
    // The last of several equal keys counts, as in any other object.
    let field =
        |key: &str| fields.iter().rev().find(|field| field.key == key).map(|field| &field.value);
    for field in fields {
        if !keys::SERVER.contains(&field.key.as_str()) {
            let nearest = keys::nearest(&field.key, keys::SERVER);
            file.warn(field.at, || messages::unknown_key(&field.key, nearest));
        }
    }
    let (expansion, state) = match file.authority {
        Authority::Full => (ExpandMode::Lenient, SettingState::Active),
        Authority::RestrictOnly => (ExpandMode::Verbatim, SettingState::NeedsTrust),
    };
    let field_name = |key: &str| format!("{path}.{key}");
    let enabled = match field("enabled") {
        Some(node) => Some(file.flag(&field_name("enabled"), node)?),
        None => None,
    };
    let kind = match (field("type"), &enabled) {
        (Some(node), _) => file.text(&field_name("type"), node, ExpandMode::Verbatim)?,
        (None, Some(enabled)) if fields.len() == 1 => {
            return Some(ServerEntry::SetEnabled(enabled.clone()));
        }
        (None, _) => {
            let likely_type = if field("url").is_some() { "remote" } else { "local" };
            file.error(entry.at, || messages::server_without_type(&entry.key, likely_type));
            return None;
        }
    };
    let timeout = match field("timeout") {
        Some(node) => Some(file.positive(&field_name("timeout"), node, MAX_TIMEOUT)?),
        None => None,
    };
    let transport = match kind.value.as_str() {
        "local" => read_local(file, entry, &field, expansion)?,
        "remote" => read_remote(file, entry, &field, expansion)?,
        other => {
            let at = field("type").map_or(entry.at, |node| node.at);
            file.error(at, || messages::unknown_server_type(other));
            return None;
        }
    };
    Some(ServerEntry::Definition(Box::new(ServerConfig {
        name: entry.key.clone(),
        transport,
        enabled: enabled.unwrap_or_else(|| WithSource::new(true, file.source(entry.at))),
        timeout: timeout
            .map(|given| WithSource::new(Duration::from_millis(given.value), given.source)),
        layer: file.layer,
        source: file.source(entry.at),
        state,
    })))
}

fn read_local<'n>(
    file: &mut ConfigFile<'_>,
    entry: &ConfigEntry,
    field: &impl Fn(&str) -> Option<&'n ConfigNode>,
    expansion: ExpandMode,
) -> Option<ServerTransport> {
    let field_name = |key: &str| messages::key_path(&["mcp", &entry.key, key]);
    let Some(node) = field("command") else {
        file.error(entry.at, || messages::server_lacks(&entry.key, "command"));
        return None;
    };
    if let ConfigValue::Text(line) = &node.data {
        file.error(node.at, || messages::command_is_a_string(line));
        return None;
    }
    let command = file.texts(&field_name("command"), node, expansion)?;
    if command.first().is_none_or(|program| program.value.is_empty()) {
        file.error(node.at, || messages::empty_command(&entry.key));
        return None;
    }
    let environment = match field("environment") {
        Some(node) => file.named_texts(&field_name("environment"), node, expansion)?,
        None => Vec::new(),
    };
    let cwd = match field("cwd") {
        Some(node) => Some(file.text(&field_name("cwd"), node, expansion)?),
        None => None,
    };
    Some(ServerTransport::Local { command, environment, cwd })
}

fn read_remote<'n>(
    file: &mut ConfigFile<'_>,
    entry: &ConfigEntry,
    field: &impl Fn(&str) -> Option<&'n ConfigNode>,
    expansion: ExpandMode,
) -> Option<ServerTransport> {
    let field_name = |key: &str| messages::key_path(&["mcp", &entry.key, key]);
    let Some(node) = field("url") else {
        file.error(entry.at, || messages::server_lacks(&entry.key, "url"));
        return None;
    };
    let url = file.text(&field_name("url"), node, expansion)?;
    let is_web = ["http://", "https://"].iter().any(|scheme| url.value.starts_with(scheme));
    if !is_web && expansion != ExpandMode::Verbatim {
        file.error(node.at, || messages::not_a_web_url(url.as_written()));
        return None;
    }
    let headers = match field("headers") {
        Some(node) => file.named_texts(&field_name("headers"), node, expansion)?,
        None => Vec::new(),
    };
    Some(ServerTransport::Remote { url, headers })
}
