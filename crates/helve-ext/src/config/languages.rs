//! Settings for language servers and formatters: `lsp` and `formatter`.

use serde_json::Value;

use super::config_file::{ConfigFile, ExpandMode};
use super::explain::SettingLine;
use super::tree::{ConfigEntry, ConfigNode, ConfigValue};
use super::{WithSource, keys, messages};

/// Maximum number of entries of each section.
const MAX_ENTRIES: usize = 200;

/// Settings for language servers and formatters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LanguageSection {
    pub lsp: ToolchainSection,
    pub formatter: ToolchainSection,
}

/// `lsp` or `formatter`: a switch for all, or entries by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolchainSection {
    /// The value of the whole section, if it is `true` or `false`. An object counts as `true`.
    pub switch: Option<WithSource<bool>>,
    /// Each name once, in the order of their first mention.
    pub entries: Vec<ToolchainEntry>,
}

/// A language server or a formatter. Fields that are not given keep their built-in values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolchainEntry {
    pub name: String,
    pub disabled: Option<WithSource<bool>>,
    pub command: Vec<WithSource<String>>,
    pub extensions: Vec<WithSource<String>>,
    pub environment: Vec<(String, WithSource<String>)>,
    /// `initializationOptions` of a language server.
    pub initialization: Option<WithSource<Value>>,
}

impl LanguageSection {
    pub(super) fn read(&mut self, file: &mut ConfigFile<'_>, key: &str, node: &ConfigNode) {
        let section = if key == "lsp" { &mut self.lsp } else { &mut self.formatter };
        section.read(file, key, node);
    }

    pub(super) fn lines(&self) -> Vec<SettingLine> {
        let mut lines = self.lsp.lines("lsp");
        lines.extend(self.formatter.lines("formatter"));
        lines
    }
}

impl ToolchainSection {
    fn read(&mut self, file: &mut ConfigFile<'_>, section: &str, node: &ConfigNode) {
        if let ConfigValue::Bool(_) = node.data {
            self.switch = file.flag(section, node);
            return;
        }
        let ConfigValue::Map(_) = node.data else {
            file.wrong_type::<()>(section, node, "true, false or an object");
            return;
        };
        self.switch = Some(WithSource::new(true, file.source(node.at)));
        for entry in file.map(section, node).unwrap_or_default() {
            let Some(read) = read_entry(file, section, entry) else { continue };
            let is_full = self.entries.len() >= MAX_ENTRIES;
            match self.entries.iter_mut().find(|known| known.name == read.name) {
                Some(known) => known.merge(read),
                None if is_full => {}
                None => self.entries.push(read),
            }
        }
    }

    fn lines(&self, section: &str) -> Vec<SettingLine> {
        let mut lines = Vec::new();
        if let Some(switch) = &self.switch {
            lines.push(SettingLine::new(&[section], switch.value.to_string(), &switch.source));
        }
        for entry in &self.entries {
            let mut add = |key: &str, value: String, source| {
                lines.push(SettingLine::new(&[section, &entry.name, key], value, source));
            };
            let joined = |texts: &[WithSource<String>]| {
                texts.iter().map(WithSource::as_written).collect::<Vec<_>>().join(" ")
            };
            if let Some(disabled) = &entry.disabled {
                add("disabled", disabled.value.to_string(), &disabled.source);
            }
            if let Some(first) = entry.command.first() {
                add("command", joined(&entry.command), &first.source);
            }
            if let Some(first) = entry.extensions.first() {
                add("extensions", joined(&entry.extensions), &first.source);
            }
            for (_, value) in entry.environment.iter().take(1) {
                // Variables often hold tokens.
                add("environment", messages::HIDDEN.into(), &value.source);
            }
            if let Some(initialization) = &entry.initialization {
                add("initialization", initialization.value.to_string(), &initialization.source);
            }
        }
        lines
    }
}

impl ToolchainEntry {
    /// Takes over the fields of a later file.
    fn merge(&mut self, later: ToolchainEntry) {
        self.disabled = later.disabled.or(self.disabled.take());
        if !later.command.is_empty() {
            self.command = later.command;
        }
        if !later.extensions.is_empty() {
            self.extensions = later.extensions;
        }
        self.environment.retain(|(name, _)| !later.environment.iter().any(|(it, _)| it == name));
        self.environment.extend(later.environment);
        self.initialization = later.initialization.or(self.initialization.take());
    }
}

/// Reads one entry. Returns `None` if it contains a mistake.
fn read_entry(
    file: &mut ConfigFile<'_>,
    section: &str,
    entry: &ConfigEntry,
) -> Option<ToolchainEntry> {
    let path = messages::key_path(&[section, &entry.key]);
    let mut read = ToolchainEntry { name: entry.key.clone(), ..ToolchainEntry::default() };
    for field in file.map(&path, &entry.value)? {
        let (name, node) = (format!("{path}.{}", field.key), &field.value);
        match (section, field.key.as_str()) {
            (_, "disabled") => read.disabled = Some(file.flag(&name, node)?),
            (_, "command") => {
                if let ConfigValue::Text(line) = &node.data {
                    file.error(node.at, || messages::command_is_a_string(line));
                    return None;
                }
                read.command = file.texts(&name, node, ExpandMode::Lenient)?;
            }
            (_, "extensions") => read.extensions = file.texts(&name, node, ExpandMode::Lenient)?,
            ("lsp", "env") | ("formatter", "environment") => {
                read.environment = file.named_texts(&name, node, ExpandMode::Lenient)?;
            }
            ("lsp", "initialization") => {
                let source = file.source(node.at);
                read.initialization = Some(WithSource::new(node.to_json(), source));
            }
            (_, other) => {
                let known = if section == "lsp" { keys::LSP } else { keys::FORMATTER };
                file.warn(field.at, || messages::unknown_key(other, keys::nearest(other, known)));
            }
        }
    }
    Some(read)
}
