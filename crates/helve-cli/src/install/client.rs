//! Where each program keeps its servers, and how it writes one down.

use std::path::PathBuf;

use anyhow::{Context, bail};
use serde_json::{Value, json};

use super::{Client, Entry, file, json as splice, toml};

/// A program's configuration file.
pub(super) struct Target {
    client: Client,
    pub(super) path: PathBuf,
}

impl Target {
    pub(super) fn find(client: Client) -> anyhow::Result<Self> {
        let home = std::env::home_dir().context("there is no home folder; set HOME")?;
        let folder = |variable: &str| std::env::var_os(variable).map(PathBuf::from);
        let path = match client {
            Client::ClaudeCode => folder("CLAUDE_CONFIG_DIR").unwrap_or(home).join(".claude.json"),
            Client::Codex => {
                folder("CODEX_HOME").unwrap_or_else(|| home.join(".codex")).join("config.toml")
            }
            Client::Opencode => {
                let config = folder("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
                let folder = config.join("opencode");
                let names = ["opencode.jsonc", "opencode.json", "config.json"];
                let found = names
                    .map(|name| folder.join(name))
                    .into_iter()
                    .find(|path| file::real(path).is_some());
                found.unwrap_or_else(|| folder.join("opencode.json"))
            }
        };
        Ok(Self { client, path })
    }

    /// The text with the entry in it; `None` if it is there as it should be.
    pub(super) fn with(&self, text: Option<&str>, entry: &Entry) -> anyhow::Result<Option<String>> {
        let text = text.unwrap_or_default();
        let Some(section) = section(self.client) else { return toml::with(text, entry) };
        let value = value(self.client, entry);
        match splice::get(text, &[section, &entry.name])? {
            Some(there) if there == value => Ok(None),
            Some(there) if !is_ours(&there) => bail!(
                "{section}.{} is another server ({there}); take it out yourself, or choose a name with --name",
                entry.name
            ),
            Some(_) => {
                let text = splice::without(text, section, &entry.name)?;
                splice::with(&text, section, &entry.name, &value).map(Some)
            }
            None => splice::with(text, section, &entry.name, &value).map(Some),
        }
    }

    /// The text without the entry; `None` if it is not there.
    pub(super) fn without(&self, text: Option<&str>, name: &str) -> anyhow::Result<Option<String>> {
        let Some(text) = text else { return Ok(None) };
        let Some(section) = section(self.client) else { return toml::without(text, name) };
        match splice::get(text, &[section, name])? {
            None => Ok(None),
            Some(there) if !is_ours(&there) => {
                bail!("{section}.{name} is another server ({there}); it is left alone")
            }
            Some(_) => splice::without(text, section, name).map(Some),
        }
    }
}

/// What would be written, alone.
pub(super) fn fragment(client: Client, entry: &Entry) -> String {
    match section(client) {
        Some(section) => {
            let whole = json!({section: {entry.name.as_str(): value(client, entry)}});
            format!("{whole:#}\n")
        }
        None => toml::fragment(entry),
    }
}

/// The object that holds the servers, in a JSON file.
fn section(client: Client) -> Option<&'static str> {
    match client {
        Client::ClaudeCode => Some("mcpServers"),
        Client::Codex => None,
        Client::Opencode => Some("mcp"),
    }
}

fn value(client: Client, entry: &Entry) -> Value {
    match client {
        Client::ClaudeCode | Client::Codex => {
            json!({"type": "stdio", "command": entry.program, "args": entry.args})
        }
        Client::Opencode => {
            let mut command = vec![entry.program.clone()];
            command.extend(entry.args.iter().cloned());
            json!({"type": "local", "command": command, "enabled": true})
        }
    }
}

/// Whether an entry starts Helve.
fn is_ours(there: &Value) -> bool {
    let mut words = Vec::new();
    for key in ["command", "args"] {
        match &there[key] {
            Value::String(word) => words.push(word.as_str()),
            Value::Array(several) => words.extend(several.iter().filter_map(Value::as_str)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {}
        }
    }
    starts_helve(&words)
}

pub(super) fn starts_helve(words: &[&str]) -> bool {
    let program = words.first().and_then(|program| program.rsplit('/').next());
    program == Some("helve") && words.contains(&"mcp")
}
