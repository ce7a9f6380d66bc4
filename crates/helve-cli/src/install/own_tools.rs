//! Which file and shell tools a program has itself, and how its configuration switches them off. Does no I/O.

use std::path::PathBuf;

use anyhow::Context;
use serde_json::{Value, json};

use super::{json as json_file, toml};
use crate::args::InstallClient;

/// Tools of opencode that Helve has under the same name. `edit` also stands for its `apply_patch`.
const OPENCODE: [&str; 7] = ["bash", "edit", "glob", "grep", "list", "read", "write"];

/// Claude Code does not show a tool to the model if a rule denies it by its bare name.
const CLAUDE_CODE: [&str; 7] = ["Bash", "Edit", "Glob", "Grep", "NotebookEdit", "Read", "Write"];

/// Without `glob`: some versions would then also hide Helve's tool of that name.
const GEMINI_CLI: [&str; 10] = [
    "grep_search",
    "list_background_processes",
    "list_directory",
    "read_background_output",
    "read_file",
    "read_many_files",
    "replace",
    "run_shell_command",
    "search_file_content",
    "write_file",
];

const ZED: [&str; 11] = [
    "copy_path",
    "create_directory",
    "delete_path",
    "edit_file",
    "find_path",
    "grep",
    "list_directory",
    "move_path",
    "read_file",
    "terminal",
    "write_file",
];

/// One change to a program's settings.
#[derive(Clone, Debug)]
pub(super) enum Setting {
    /// The key at this path gets this value.
    Value { path: Vec<String>, value: Value },
    /// The list at this path contains these texts.
    Items { path: Vec<String>, items: Vec<String> },
    /// The first key is false and the second one true: Helve's tool instead of the program's own. If the first one is
    /// already false, nothing changes: the user wants neither.
    Instead { own: Vec<String>, helve: Vec<String> },
}

/// What a change to the settings replaced, so that it can be undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Replaced {
    /// The key at this path had this value, or did not exist.
    Value { path: Vec<String>, set: Value, before: Option<Value> },
    /// The list at this path got these texts.
    Items { path: Vec<String>, items: Vec<String> },
}

/// The settings that switch a program's own tools off, and what they cannot do.
pub(super) struct OwnTools {
    /// File that holds the settings, if it is not the file with the server entry.
    pub(super) file: Option<PathBuf>,
    pub(super) settings: Vec<Setting>,
    /// What stays on.
    pub(super) note: Option<&'static str>,
}

/// Returns how to switch the program's own tools off. The error says why that is impossible.
pub(super) fn of(
    client: InstallClient,
    server: &str,
) -> anyhow::Result<Result<OwnTools, &'static str>> {
    let texts = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
    let in_entry_file = |settings, note| Ok(Ok(OwnTools { file: None, settings, note }));
    match client {
        InstallClient::ClaudeCode => {
            let folder = match std::env::var_os("CLAUDE_CONFIG_DIR") {
                Some(folder) => PathBuf::from(folder),
                None => {
                    let home = std::env::home_dir();
                    home.context("the home folder is unknown; set HOME")?.join(".claude")
                }
            };
            let items =
                |list: &str, items| Setting::Items { path: texts(&["permissions", list]), items };
            // Without the allow, Claude Code asks about every tool of a server before Helve does.
            let allow = items("allow", vec![format!("mcp__{server}")]);
            let deny = items("deny", texts(&CLAUDE_CODE));
            let file = Some(folder.join("settings.json"));
            Ok(Ok(OwnTools { file, settings: vec![allow, deny], note: None }))
        }
        InstallClient::Codex => in_entry_file(
            // `view_image` reads images, as Helve's `read` does.
            vec![
                flag(&["features", "shell_tool"], false),
                flag(&["features", "view_image"], false),
            ],
            Some("Codex has no setting that switches off its apply_patch tool; it stays."),
        ),
        InstallClient::Opencode => {
            // Helve reads this file too. The second key of a pair says that its own tool is still on.
            let pairs = OPENCODE.iter().map(|tool| Setting::Instead {
                own: texts(&["tools", tool]),
                helve: texts(&["tools", &format!("{server}_{tool}")]),
            });
            in_entry_file(pairs.collect(), None)
        }
        InstallClient::GeminiCli => in_entry_file(
            vec![Setting::Items { path: texts(&["tools", "exclude"]), items: texts(&GEMINI_CLI) }],
            Some("Its glob tool stays, because some versions would hide Helve's glob with it."),
        ),
        InstallClient::Zed => {
            let profile = ["agent", "profiles", "write"];
            let mut settings: Vec<_> = ZED
                .iter()
                .map(|tool| flag(&[&profile[..], &["tools", tool]].concat(), false))
                .collect();
            // Zed requires the name in every profile of the settings.
            let name = texts(&[&profile[..], &["name"]].concat());
            settings.push(Setting::Value { path: name, value: json!("Write") });
            in_entry_file(
                settings,
                Some("This covers Zed's profile `write`, which is its default."),
            )
        }
        InstallClient::Cursor => Ok(Err(
            "Cursor has no setting that hides its own tools; switch them off in a custom mode, in its chat window",
        )),
        InstallClient::Vscode => Ok(Err(
            "VS Code has no setting that hides its own tools; switch them off under Configure Tools, in its chat window",
        )),
    }
}

fn flag(path: &[&str], value: bool) -> Setting {
    Setting::Value { path: path.iter().map(ToString::to_string).collect(), value: value.into() }
}

/// Returns the text with the settings, and what they replaced. What was already so counts as the user's own setting.
pub(super) fn switch_off(
    client: InstallClient,
    text: &str,
    settings: &[Setting],
) -> anyhow::Result<(String, Vec<Replaced>)> {
    let (mut text, mut replaced) = (text.to_owned(), Vec::new());
    let format = Format::of(client);
    // Entries are inserted first in their object, so the last one is inserted first.
    for setting in settings.iter().rev() {
        match setting {
            Setting::Value { path, value } => {
                let before = format.get(&text, path)?;
                if before.as_ref() != Some(value) {
                    text = format.set(&text, path, value)?;
                    replaced.push(Replaced::Value {
                        path: path.clone(),
                        set: value.clone(),
                        before,
                    });
                }
            }
            Setting::Instead { own, .. } if format.get(&text, own)? == Some(json!(false)) => {}
            Setting::Instead { own, helve } => {
                for (path, set) in [(helve, json!(true)), (own, json!(false))] {
                    let before = format.get(&text, path)?;
                    text = format.set(&text, path, &set)?;
                    replaced.push(Replaced::Value { path: path.clone(), set, before });
                }
            }
            Setting::Items { path, items } => {
                let present = format.get(&text, path)?.unwrap_or(Value::Null);
                let is_new = |item: &&String| {
                    !present.as_array().is_some_and(|list| list.contains(&json!(item)))
                };
                let items: Vec<String> = items.iter().filter(is_new).cloned().collect();
                if !items.is_empty() {
                    text = json_file::add_items(&text, &words(path), &words(&items))?;
                    replaced.push(Replaced::Items { path: path.clone(), items });
                }
            }
        }
    }
    Ok((text, replaced))
}

/// Returns the text without what `switch_off` did. What was changed since stays.
pub(super) fn switch_on(
    client: InstallClient,
    text: &str,
    replaced: &[Replaced],
) -> anyhow::Result<String> {
    let mut text = text.to_owned();
    let format = Format::of(client);
    for change in replaced.iter().rev() {
        text = match change {
            Replaced::Value { path, set, .. } if format.get(&text, path)?.as_ref() != Some(set) => {
                text
            }
            Replaced::Value { path, before: Some(before), .. } => {
                format.set(&text, path, before)?
            }
            Replaced::Value { path, before: None, .. } => format.unset(&text, path)?,
            Replaced::Items { path, items } => {
                json_file::remove_items(&text, &words(path), &words(items))?
            }
        };
    }
    Ok(text)
}

impl Replaced {
    pub(super) fn to_json(&self) -> Value {
        match self {
            Self::Value { path, set, before } => {
                json!({"path": path, "set": set, "before": before})
            }
            Self::Items { path, items } => json!({"path": path, "items": items}),
        }
    }

    pub(super) fn from_json(value: &Value) -> Option<Self> {
        let texts = |value: &Value| {
            let list = value.as_array()?.iter();
            list.map(|text| text.as_str().map(str::to_owned)).collect::<Option<Vec<String>>>()
        };
        let path = texts(&value["path"])?;
        if let Some(items) = texts(&value["items"]) {
            return Some(Self::Items { path, items });
        }
        let before = Some(value["before"].clone()).filter(|before| !before.is_null());
        Some(Self::Value { path, set: value["set"].clone(), before })
    }
}

/// The syntax of a settings file.
#[derive(Clone, Copy)]
enum Format {
    Json,
    Toml,
}

impl Format {
    fn of(client: InstallClient) -> Self {
        match client {
            InstallClient::Codex => Self::Toml,
            InstallClient::ClaudeCode
            | InstallClient::Opencode
            | InstallClient::Cursor
            | InstallClient::Vscode
            | InstallClient::Zed
            | InstallClient::GeminiCli => Self::Json,
        }
    }

    fn get(self, text: &str, path: &[String]) -> anyhow::Result<Option<Value>> {
        match self {
            Self::Json => json_file::get(text, &words(path)),
            Self::Toml => toml::get_flag(text, &words(path)),
        }
    }

    fn set(self, text: &str, path: &[String], value: &Value) -> anyhow::Result<String> {
        match self {
            Self::Json => json_file::set(text, &words(path), value),
            Self::Toml => toml::set_flag(text, &words(path), value == &Value::Bool(true)),
        }
    }

    fn unset(self, text: &str, path: &[String]) -> anyhow::Result<String> {
        match self {
            Self::Json => json_file::unset(text, &words(path)),
            Self::Toml => toml::unset(text, &words(path)),
        }
    }
}

fn words(texts: &[String]) -> Vec<&str> {
    texts.iter().map(String::as_str).collect()
}
