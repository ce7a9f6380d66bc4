//! Where each program stores its MCP servers, and in which format.

use std::path::PathBuf;

use anyhow::{Context, bail};
use serde_json::{Value, json};

use super::{HelveEntry, file, json as json_file, toml};
use crate::args::InstallClient;

/// The configuration file of a program.
pub(super) struct ConfigTarget {
    pub(super) client: InstallClient,
    pub(super) path: PathBuf,
}

impl ConfigTarget {
    pub(super) fn find(client: InstallClient) -> anyhow::Result<Self> {
        let home = std::env::home_dir().context("the home folder is unknown; set HOME")?;
        let folder = |variable: &str| std::env::var_os(variable).map(PathBuf::from);
        let user_config = || folder("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
        let path = match client {
            InstallClient::Cursor => home.join(".cursor/mcp.json"),
            InstallClient::Vscode if cfg!(target_os = "macos") => {
                home.join("Library/Application Support/Code/User/mcp.json")
            }
            InstallClient::Vscode => user_config().join("Code/User/mcp.json"),
            InstallClient::Zed => user_config().join("zed/settings.json"),
            InstallClient::GeminiCli => home.join(".gemini/settings.json"),
            InstallClient::ClaudeCode => {
                folder("CLAUDE_CONFIG_DIR").unwrap_or(home.clone()).join(".claude.json")
            }
            InstallClient::Codex => {
                folder("CODEX_HOME").unwrap_or_else(|| home.join(".codex")).join("config.toml")
            }
            InstallClient::Opencode => {
                let folder = user_config().join("opencode");
                let names = ["opencode.jsonc", "opencode.json", "config.json"];
                let found = names
                    .map(|name| folder.join(name))
                    .into_iter()
                    .find(|path| file::resolve(path).is_some());
                found.unwrap_or_else(|| folder.join("opencode.json"))
            }
        };
        Ok(Self { client, path })
    }

    /// Returns the text with the entry, or `None` if the entry is already there.
    pub(super) fn add_entry(
        &self,
        text: Option<&str>,
        entry: &HelveEntry,
    ) -> anyhow::Result<Option<String>> {
        let text = text.unwrap_or_default();
        let Some(section) = json_section(self.client) else { return toml::add_entry(text, entry) };
        let value = entry_json(self.client, entry);
        match json_file::get(text, &[section, &entry.name])? {
            Some(existing) if existing == value => Ok(None),
            Some(existing) if !entry_starts_helve(&existing) => bail!(
                "{section}.{} is another server ({existing}); remove it, or choose another name with --name",
                entry.name
            ),
            Some(_) => {
                let text = json_file::unset(text, &[section, &entry.name])?;
                json_file::set(&text, &[section, &entry.name], &value).map(Some)
            }
            None => json_file::set(text, &[section, &entry.name], &value).map(Some),
        }
    }

    /// Returns the text without the entry, or `None` if it is not there.
    pub(super) fn remove_entry(
        &self,
        text: Option<&str>,
        name: &str,
    ) -> anyhow::Result<Option<String>> {
        let Some(text) = text else { return Ok(None) };
        let Some(section) = json_section(self.client) else {
            return toml::remove_entry(text, name);
        };
        match json_file::get(text, &[section, name])? {
            None => Ok(None),
            Some(existing) if !entry_starts_helve(&existing) => {
                bail!("{section}.{name} is another server ({existing}), so it is not removed")
            }
            Some(_) => json_file::unset(text, &[section, name]).map(Some),
        }
    }
}

/// Returns a file that contains only the entry.
pub(super) fn fragment(client: InstallClient, entry: &HelveEntry) -> String {
    match json_section(client) {
        Some(section) => {
            let config = json!({section: {entry.name.as_str(): entry_json(client, entry)}});
            format!("{config:#}\n")
        }
        None => toml::fragment(entry),
    }
}

/// Returns the key of the object that holds the servers, for JSON files.
fn json_section(client: InstallClient) -> Option<&'static str> {
    match client {
        InstallClient::ClaudeCode | InstallClient::Cursor | InstallClient::GeminiCli => {
            Some("mcpServers")
        }
        InstallClient::Vscode => Some("servers"),
        InstallClient::Zed => Some("context_servers"),
        InstallClient::Codex => None,
        InstallClient::Opencode => Some("mcp"),
    }
}

fn entry_json(client: InstallClient, entry: &HelveEntry) -> Value {
    match client {
        InstallClient::Cursor | InstallClient::Zed | InstallClient::GeminiCli => {
            json!({"command": entry.program, "args": entry.args})
        }
        InstallClient::ClaudeCode | InstallClient::Codex | InstallClient::Vscode => {
            json!({"type": "stdio", "command": entry.program, "args": entry.args})
        }
        InstallClient::Opencode => {
            let mut command = vec![entry.program.clone()];
            command.extend(entry.args.iter().cloned());
            json!({"type": "local", "command": command, "enabled": true})
        }
    }
}

/// Whether a program shows the questions of MCP servers to its user. Where it does not, Helve refuses what it would ask
/// about.
pub(super) fn shows_questions(client: InstallClient) -> bool {
    match client {
        InstallClient::Opencode | InstallClient::Zed | InstallClient::GeminiCli => false,
        InstallClient::ClaudeCode
        | InstallClient::Codex
        | InstallClient::Cursor
        | InstallClient::Vscode => true,
    }
}

/// Whether an entry of a JSON file starts Helve.
fn entry_starts_helve(entry: &Value) -> bool {
    let mut command = Vec::new();
    for key in ["command", "args"] {
        match &entry[key] {
            Value::String(word) => command.push(word.as_str()),
            Value::Array(items) => command.extend(items.iter().filter_map(Value::as_str)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {}
        }
    }
    starts_helve(&command)
}

pub(super) fn starts_helve(command: &[&str]) -> bool {
    let program = command.first().and_then(|program| program.rsplit('/').next());
    program == Some("helve") && command.contains(&"mcp")
}
