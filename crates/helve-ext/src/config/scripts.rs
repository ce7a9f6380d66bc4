//! Settings for custom tools and plugins: `plugin` and `javascript`.

use serde_json::{Map, Value};

use super::config_file::{ConfigFile, ExpandMode};
use super::explain::SettingLine;
use super::tree::{ConfigNode, ConfigValue};
use super::{ConfigLayer, WithSource, keys, messages};

/// Maximum number of plugins.
const MAX_PLUGINS: usize = 100;
/// Maximum depth of a plugin's options.
const MAX_DEPTH: usize = 20;

/// Settings for custom tools and plugins.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScriptSection {
    /// In order. Those of an untrusted project are included, because a person decides whether to trust them.
    pub plugins: Vec<PluginConfig>,
    /// The program that runs tools and plugins: `bun`, `node` or a path.
    pub runtime: Option<WithSource<String>>,
}

/// An entry of `plugin`.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginConfig {
    /// A path, a file URL, or the name of an installed package.
    pub spec: WithSource<String>,
    pub options: Value,
    pub layer: ConfigLayer,
}

impl ScriptSection {
    /// Reads `plugin`: strings, or pairs of a string and options.
    pub(super) fn read_plugins(&mut self, file: &mut ConfigFile<'_>, node: &ConfigNode) {
        let ConfigValue::List(list) = &node.data else {
            file.wrong_type::<()>("plugin", node, "a list");
            return;
        };
        for (index, item) in list.iter().enumerate().take(MAX_PLUGINS) {
            let name = format!("plugin[{index}]");
            let (spec, options) = match &item.data {
                ConfigValue::List(pair) => match pair.as_slice() {
                    [spec, options] => (spec, to_json(options, 0)),
                    [spec] => (spec, Value::Null),
                    _ => {
                        file.wrong_type::<()>(&name, item, "a string, or a string and options");
                        continue;
                    }
                },
                _ => (item, Value::Null),
            };
            if let Some(spec) = file.text(&name, spec, ExpandMode::Lenient) {
                let layer = file.layer;
                self.plugins.push(PluginConfig { spec, options, layer });
            }
        }
    }

    /// Reads `javascript`.
    pub(super) fn read_javascript(&mut self, file: &mut ConfigFile<'_>, node: &ConfigNode) {
        for field in file.map("javascript", node).unwrap_or_default() {
            match field.key.as_str() {
                "runtime" => {
                    let runtime =
                        file.text("javascript.runtime", &field.value, ExpandMode::Lenient);
                    self.runtime = runtime.or(self.runtime.take());
                }
                other => file.warn(field.at, || {
                    messages::unknown_key(other, keys::nearest(other, keys::JAVASCRIPT))
                }),
            }
        }
    }

    pub(super) fn lines(&self) -> Vec<SettingLine> {
        let runtime = self.runtime.iter().map(|runtime| {
            SettingLine::new(&["javascript", "runtime"], runtime.as_written(), &runtime.source)
        });
        let plugins = self.plugins.iter().map(|plugin| {
            SettingLine::new(&["plugin"], plugin.spec.as_written(), &plugin.spec.source)
        });
        runtime.chain(plugins).collect()
    }
}

/// Converts a value to JSON. Values that are nested too deeply become `null`.
fn to_json(node: &ConfigNode, depth: usize) -> Value {
    if depth > MAX_DEPTH {
        return Value::Null;
    }
    match &node.data {
        ConfigValue::Null => Value::Null,
        ConfigValue::Bool(value) => Value::Bool(*value),
        ConfigValue::Number(text) => serde_json::from_str(text).unwrap_or(Value::Null),
        ConfigValue::Text(text) => Value::from(text.as_str()),
        ConfigValue::List(items) => items.iter().map(|item| to_json(item, depth + 1)).collect(),
        ConfigValue::Map(entries) => {
            let members =
                entries.iter().map(|entry| (entry.key.clone(), to_json(&entry.value, depth + 1)));
            Value::Object(Map::from_iter(members))
        }
    }
}
