//! Commands: prompts with a name and placeholders for arguments, from JSON and Markdown.

use helve_core::Source;

use super::config_file::{Authority, ConfigFile, ExpandMode};
use super::explain::SettingLine;
use super::tree::{ConfigEntry, ConfigNode, ConfigValue, Position};
use super::yaml::{self, FrontMatter};
use super::{ConfigLayer, WithSource, keys, messages};

/// A command that a person can run by name.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandTemplate {
    pub name: String,
    pub template: WithSource<String>,
    pub description: Option<WithSource<String>>,
    pub agent: Option<WithSource<String>>,
    pub model: Option<WithSource<String>>,
    /// Whether a sub-agent runs the command; `None` if the agent's mode decides.
    pub subtask: Option<WithSource<bool>>,
    pub source: Source,
    pub layer: ConfigLayer,
}

/// Maximum number of commands.
const MAX_COMMANDS: usize = 500;
/// Maximum length of a name in bytes.
const MAX_NAME: usize = 200;

/// Reads a `command` section.
pub(super) fn read_section(
    file: &mut ConfigFile<'_>,
    (key, node): (&str, &ConfigNode),
    commands: &mut Vec<CommandTemplate>,
    needs_trust: &mut Vec<SettingLine>,
) {
    let Some(entries) = file.map(key, node) else { return };
    for entry in entries {
        let name = entry.key.as_str();
        let ConfigValue::Map(fields) = &entry.value.data else {
            file.wrong_type::<()>(&messages::key_path(&[key, name]), &entry.value, "an object");
            continue;
        };
        if file.authority == Authority::RestrictOnly {
            let lines = fields.iter();
            needs_trust
                .extend(lines.map(|field| SettingLine::needing_trust(file, &[key, name], field)));
            continue;
        }
        let command = read_fields(file, (key, name, entry.at), fields, None);
        add(file, entry.at, command, commands);
    }
}

/// Reads a Markdown file. Its body is the template. Without front matter, the whole text is.
pub(super) fn read_markdown(
    file: &mut ConfigFile<'_>,
    name: &str,
    text: &str,
    commands: &mut Vec<CommandTemplate>,
    needs_trust: &mut Vec<SettingLine>,
) {
    let markdown = yaml::parse(text);
    let empty = Vec::new();
    let (fields, body) = match &markdown.front_matter {
        FrontMatter::None => (&empty, markdown.body),
        FrontMatter::Fields(node) => match &node.data {
            ConfigValue::Map(fields) => (fields, markdown.body),
            other => return file.error(node.at, || messages::not_an_object(other)),
        },
        FrontMatter::Broken { at, why } => return file.error(*at, || why.clone()),
    };
    let at = Position::START;
    let template = WithSource::new(body.trim().to_string(), file.source(at));
    if file.authority == Authority::RestrictOnly {
        return needs_trust
            .push(SettingLine::text_needing_trust(&["command", name, "template"], &template));
    }
    let command = read_fields(file, ("command", name, at), fields, Some(template));
    add(file, at, command, commands);
}

fn read_fields(
    file: &mut ConfigFile<'_>,
    (section, name, at): (&str, &str, Position),
    fields: &[ConfigEntry],
    body: Option<WithSource<String>>,
) -> Option<CommandTemplate> {
    let is_markdown = body.is_some();
    let source = file.source(at);
    let empty = WithSource::new(String::new(), source.clone());
    let mut command = CommandTemplate {
        name: name.to_string(),
        template: body.unwrap_or(empty),
        description: None,
        agent: None,
        model: None,
        subtask: None,
        source,
        layer: file.layer,
    };
    for field in fields {
        let key = messages::key_path(&[section, name, &field.key]);
        let mut text = || file.text(&key, &field.value, ExpandMode::Lenient);
        match field.key.as_str() {
            "template" | "prompt" if !is_markdown => {
                command.template = text().unwrap_or(command.template);
            }
            "description" => command.description = text(),
            "agent" => command.agent = text(),
            "model" => command.model = text(),
            "subtask" => command.subtask = file.flag(&key, &field.value),
            "name" if is_markdown => {
                if let Some(name) = text().filter(|name| !name.trim().is_empty()) {
                    command.name = name.value.trim().to_string();
                }
            }
            other if is_markdown || keys::COMMAND.contains(&other) => {}
            other => {
                let nearest = keys::nearest(other, keys::COMMAND);
                file.warn(field.at, || messages::unknown_key(other, nearest));
            }
        }
    }
    if command.template.trim().is_empty() {
        file.error(at, || messages::command_without_template(name));
        return None;
    }
    Some(command)
}

/// Adds a command. It replaces an earlier one of the same name.
fn add(
    file: &mut ConfigFile<'_>,
    at: Position,
    command: Option<CommandTemplate>,
    commands: &mut Vec<CommandTemplate>,
) {
    let Some(command) = command else { return };
    let known = commands.iter().position(|known| known.name == command.name);
    if known.is_none() && commands.len() >= MAX_COMMANDS || command.name.len() > MAX_NAME {
        return file.error(at, || messages::command_limits(MAX_COMMANDS, MAX_NAME));
    }
    match known {
        Some(index) => commands[index] = command,
        None => commands.push(command),
    }
}
