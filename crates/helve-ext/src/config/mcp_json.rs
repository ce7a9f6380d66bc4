//! Converts `.mcp.json`, a file shared by several agents, into an `mcp` section.
//!
//! Claude Code, Cline and Roo name the servers `mcpServers`, VS Code names them `servers`. Keys that mean something
//! only to one of these programs are ignored.

use super::config_file::ConfigFile;
use super::messages;
use super::tree::{ConfigEntry, ConfigNode, ConfigValue, Position};

/// Returns the servers as entries of an `mcp` section.
pub(super) fn to_mcp_section(
    file: &mut ConfigFile<'_>,
    entries: &[ConfigEntry],
) -> Option<ConfigNode> {
    let named = |key: &str| entries.iter().rev().find(|entry| entry.key == key);
    let servers = named("mcpServers").or_else(|| named("servers"))?;
    let servers_by_name = file.map(&servers.key, &servers.value)?;
    let converted = servers_by_name.iter().filter_map(|entry| {
        let value = convert_server(file, &servers.key, entry)?;
        Some(ConfigEntry { key: entry.key.clone(), at: entry.at, value })
    });
    let entries = converted.collect();
    Some(ConfigNode { at: servers.value.at, data: ConfigValue::Map(entries) })
}

fn convert_server(
    file: &mut ConfigFile<'_>,
    section: &str,
    entry: &ConfigEntry,
) -> Option<ConfigNode> {
    let fields = file.map(&messages::key_path(&[section, &entry.key]), &entry.value)?;
    if let Some(input) = fields.iter().find_map(|field| prompted_value(&field.value)) {
        file.error(entry.at, || messages::server_prompts_for_value(&entry.key, &input));
        return None;
    }
    let field = |key: &str| fields.iter().rev().find(|field| field.key == key);
    let kind = match field("type").map(|field| &field.value.data) {
        Some(ConfigValue::Text(kind)) => kind.as_str(),
        Some(_) | None if field("url").is_some() => "http",
        Some(_) | None => "stdio",
    };
    let kind = match kind {
        "stdio" | "local" => "local",
        "http" | "streamable-http" | "streamableHttp" | "remote" => "remote",
        other => {
            file.error(entry.at, || messages::unknown_mcp_json_type(other));
            return None;
        }
    };
    let mut converted = vec![text_entry(entry.at, "type", kind)];
    let mut copy = |from: &str, to: &str| {
        converted.extend(field(from).map(|field| ConfigEntry {
            key: to.into(),
            at: field.at,
            value: rewrite_node(file, &field.value),
        }));
    };
    copy("url", "url");
    copy("headers", "headers");
    copy("env", "environment");
    copy("cwd", "cwd");
    if let Some(timeout) = field("timeout") {
        converted.push(ConfigEntry { value: in_milliseconds(&timeout.value), ..timeout.clone() });
    }
    if let Some(disabled) = field("disabled") {
        let data = match disabled.value.data {
            ConfigValue::Bool(disabled) => ConfigValue::Bool(!disabled),
            ref other => other.clone(),
        };
        let value = ConfigNode { at: disabled.value.at, data };
        converted.push(ConfigEntry { key: "enabled".into(), at: disabled.at, value });
    }
    if kind == "local" {
        converted.extend(join_command(file, field("command"), field("args")));
    }
    Some(ConfigNode { at: entry.value.at, data: ConfigValue::Map(converted) })
}

/// Joins the program and its arguments into one list. Returns `None` if they are invalid, which drops the server.
fn join_command(
    file: &mut ConfigFile<'_>,
    program: Option<&ConfigEntry>,
    args: Option<&ConfigEntry>,
) -> Option<ConfigEntry> {
    let program = program?;
    let mut list = vec![rewrite_node(file, &program.value)];
    if let Some(args) = args {
        match rewrite_node(file, &args.value).data {
            ConfigValue::List(args) => list.extend(args),
            _ => return file.wrong_type("args", &args.value, "a list of strings"),
        }
    }
    let value = ConfigNode { at: program.value.at, data: ConfigValue::List(list) };
    Some(ConfigEntry { key: "command".into(), at: program.at, value })
}

fn text_entry(at: Position, key: &str, text: &str) -> ConfigEntry {
    ConfigEntry {
        key: key.into(),
        at,
        value: ConfigNode { at, data: ConfigValue::Text(text.into()) },
    }
}

/// Returns the name of an `${input:NAME}` in a value, for which VS Code prompts.
fn prompted_value(node: &ConfigNode) -> Option<String> {
    match &node.data {
        ConfigValue::Text(text) => {
            let (_, after) = text.split_once("${input:")?;
            after.split_once('}').map(|(name, _)| name.to_owned())
        }
        ConfigValue::List(items) => items.iter().find_map(prompted_value),
        ConfigValue::Map(entries) => entries.iter().find_map(|it| prompted_value(&it.value)),
        ConfigValue::Null | ConfigValue::Bool(_) | ConfigValue::Number(_) => None,
    }
}

/// Cline and Roo write seconds, up to an hour; the others write milliseconds.
fn in_milliseconds(node: &ConfigNode) -> ConfigNode {
    const MOST_SECONDS: u64 = 3_600;
    let data = match &node.data {
        ConfigValue::Number(text) => match text.parse::<u64>() {
            Ok(seconds) if seconds <= MOST_SECONDS => {
                ConfigValue::Number((seconds * 1_000).to_string())
            }
            _ => node.data.clone(),
        },
        other => other.clone(),
    };
    ConfigNode { at: node.at, data }
}

/// Rewrites `${NAME}`, `${env:NAME}` and `${NAME:-default}` as `{env:NAME}` in every text.
fn rewrite_node(file: &ConfigFile<'_>, node: &ConfigNode) -> ConfigNode {
    let data = match &node.data {
        ConfigValue::Text(text) => ConfigValue::Text(rewrite_dollars(file, text)),
        ConfigValue::List(list) => {
            ConfigValue::List(list.iter().map(|item| rewrite_node(file, item)).collect())
        }
        ConfigValue::Map(entries) => {
            let rewritten = entries.iter().map(|entry| ConfigEntry {
                key: entry.key.clone(),
                at: entry.at,
                value: rewrite_node(file, &entry.value),
            });
            ConfigValue::Map(rewritten.collect())
        }
        ConfigValue::Null => ConfigValue::Null,
        ConfigValue::Bool(flag) => ConfigValue::Bool(*flag),
        ConfigValue::Number(number) => ConfigValue::Number(number.clone()),
    };
    ConfigNode { at: node.at, data }
}

fn rewrite_dollars(file: &ConfigFile<'_>, text: &str) -> String {
    let mut rewritten = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((inside, after)) = after.split_once('}') else { break };
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        rewritten.push_str(before);
        let name = name.strip_prefix("env:").unwrap_or(name);
        match default {
            None if name == "workspaceFolder" => {
                let folder = file.path.parent().and_then(|folder| folder.to_str());
                rewritten.push_str(folder.unwrap_or_default());
            }
            Some(default) if file.context.host.variable(name).is_none() => {
                rewritten.push_str(default);
            }
            Some(_) | None => rewritten.push_str(&format!("{{env:{name}}}")),
        }
        rest = after;
    }
    rewritten + rest
}
