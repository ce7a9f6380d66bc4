//! Settings for custom tools, plugins and command hooks: `plugin`, `programs`, `hooks` and `javascript`.

use std::time::Duration;

use helve_core::Source;
use serde_json::Value;

use super::config_file::{ConfigFile, ExpandMode};
use super::explain::{SettingLine, SettingState};
use super::tree::{ConfigNode, ConfigValue};
use super::{ConfigLayer, Trust, WithSource, keys, messages};

/// Maximum number of plugins.
const MAX_PLUGINS: usize = 100;
/// Maximum values of `javascript.timeout` and `javascript.hook_timeout`, in milliseconds.
const MAX_TIMEOUT: u64 = 24 * 60 * 60 * 1_000;
const MAX_HOOK_TIMEOUT: u64 = 60 * 1_000;

/// Settings for custom tools and plugins.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScriptSection {
    /// In order. Those of an untrusted project are included, because a person decides whether to trust them.
    pub plugins: Vec<PluginConfig>,
    /// The program that runs tools and plugins: `bun`, `node` or a path.
    pub runtime: Option<WithSource<String>>,
    /// Milliseconds that a tool may block the process.
    pub timeout: Option<WithSource<u64>>,
    /// Milliseconds that a hook of a plugin may take.
    pub hook_timeout: Option<WithSource<u64>>,
    /// Programs that are tools.
    pub programs: Vec<ProgramConfig>,
    /// Commands that are run before and after calls.
    pub hooks: Vec<HookConfig>,
}

/// An entry of `programs`.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramConfig {
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<WithSource<String>>,
    pub source: Source,
    pub layer: ConfigLayer,
}

/// A command of `hooks`.
#[derive(Clone, Debug, PartialEq)]
pub struct HookConfig {
    /// `PreToolUse` or `PostToolUse`.
    pub event: String,
    pub matcher: String,
    pub command: WithSource<String>,
    pub timeout: Option<Duration>,
    pub layer: ConfigLayer,
}

/// Events for which commands are run.
pub(super) const HOOK_EVENTS: &[&str] = &["PreToolUse", "PostToolUse"];
/// Maximum number of commands of `hooks`, and of `programs`.
const MAX_COMMANDS: usize = 100;
/// Maximum `timeout` of a hook in seconds.
const MAX_HOOK_SECONDS: u64 = 600;

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
                    [spec, options] => (spec, options.to_json()),
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

    /// Reads `programs`: a name and a command each.
    pub(super) fn read_programs(&mut self, file: &mut ConfigFile<'_>, node: &ConfigNode) {
        for entry in file.map("programs", node).unwrap_or_default().iter().take(MAX_COMMANDS) {
            let name = messages::key_path(&["programs", &entry.key]);
            let Some(command) = file.texts(&name, &entry.value, ExpandMode::Lenient) else {
                continue;
            };
            if command.is_empty() {
                file.wrong_type::<()>(
                    &name,
                    &entry.value,
                    "a list of the program and its arguments",
                );
                continue;
            }
            let (source, layer) = (file.source(entry.at), file.layer);
            self.programs.retain(|program| program.name != entry.key);
            self.programs.push(ProgramConfig { name: entry.key.clone(), command, source, layer });
        }
    }

    /// Reads `hooks` in the form of Claude Code: events, each with a list of matchers and their commands. Returns the
    /// events for which no command is run.
    pub(super) fn read_hooks(
        &mut self,
        file: &mut ConfigFile<'_>,
        node: &ConfigNode,
    ) -> Vec<WithSource<String>> {
        let mut unused = Vec::new();
        for event in file.map("hooks", node).unwrap_or_default() {
            if !HOOK_EVENTS.contains(&event.key.as_str()) {
                let source = file.source(event.at);
                unused.push(WithSource::new(format!("hooks.{}", event.key), source));
                continue;
            }
            let name = messages::key_path(&["hooks", &event.key]);
            let ConfigValue::List(groups) = &event.value.data else {
                file.wrong_type::<()>(&name, &event.value, "a list");
                continue;
            };
            for (index, group) in groups.iter().enumerate() {
                self.read_hook_group(file, (&event.key, &format!("{name}[{index}]")), group);
            }
        }
        unused
    }

    fn read_hook_group(
        &mut self,
        file: &mut ConfigFile<'_>,
        (event, name): (&str, &str),
        group: &ConfigNode,
    ) {
        let Some(fields) = file.map(name, group) else { return };
        let field = |key: &str| fields.iter().find(|field| field.key == key).map(|it| &it.value);
        let matcher = match field("matcher") {
            Some(node) => {
                let matcher = file.text(&format!("{name}.matcher"), node, ExpandMode::Verbatim);
                matcher.map(|it| it.value).unwrap_or_default()
            }
            None => String::new(),
        };
        let Some(hooks) = field("hooks") else {
            return file.error(group.at, || messages::lacks(name, "hooks"));
        };
        let name = format!("{name}.hooks");
        let ConfigValue::List(commands) = &hooks.data else {
            file.wrong_type::<()>(&name, hooks, "a list of objects with \"type\" and \"command\"");
            return;
        };
        for (index, node) in commands.iter().enumerate() {
            let name = format!("{name}[{index}]");
            let Some(fields) = file.map(&name, node) else { continue };
            let field = |key: &str| fields.iter().find(|it| it.key == key).map(|it| &it.value);
            let Some(kind) = field("type") else {
                file.error(node.at, || messages::lacks(&name, "type"));
                continue;
            };
            if !matches!(&kind.data, ConfigValue::Text(text) if text == "command") {
                file.wrong_type::<()>(&format!("{name}.type"), kind, "\"command\"");
                continue;
            }
            let Some(command) = field("command") else {
                file.error(node.at, || messages::lacks(&name, "command"));
                continue;
            };
            let command = file.text(&format!("{name}.command"), command, ExpandMode::Verbatim);
            let seconds = field("timeout")
                .and_then(|node| file.positive(&format!("{name}.timeout"), node, MAX_HOOK_SECONDS));
            if let Some(command) = command.filter(|_| self.hooks.len() < MAX_COMMANDS) {
                self.hooks.push(HookConfig {
                    event: event.to_owned(),
                    matcher: matcher.clone(),
                    command,
                    timeout: seconds.map(|it| Duration::from_secs(it.value)),
                    layer: file.layer,
                });
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
                "timeout" => {
                    let time = file.positive("javascript.timeout", &field.value, MAX_TIMEOUT);
                    self.timeout = time.or(self.timeout.take());
                }
                "hook_timeout" => {
                    let name = "javascript.hook_timeout";
                    let time = file.positive(name, &field.value, MAX_HOOK_TIMEOUT);
                    self.hook_timeout = time.or(self.hook_timeout.take());
                }
                other => file.warn(field.at, || {
                    messages::unknown_key(other, keys::nearest(other, keys::JAVASCRIPT))
                }),
            }
        }
    }

    /// Returns the settings. Those of an untrusted project have no effect.
    pub(super) fn lines(&self, trust: Trust) -> Vec<SettingLine> {
        let state = |layer: ConfigLayer| match (layer, trust) {
            (ConfigLayer::Project, Trust::Untrusted) => SettingState::NeedsTrust,
            (ConfigLayer::User, _) | (ConfigLayer::Project, Trust::Trusted) => SettingState::Active,
        };
        let runtime = self.runtime.iter().map(|runtime| {
            SettingLine::new(&["javascript", "runtime"], runtime.as_written(), &runtime.source)
        });
        let times = [("timeout", &self.timeout), ("hook_timeout", &self.hook_timeout)];
        let times = times.into_iter().filter_map(|(name, time)| {
            let time = time.as_ref()?;
            Some(SettingLine::new(&["javascript", name], time.value.to_string(), &time.source))
        });
        let plugins = self.plugins.iter().map(|plugin| {
            let line = SettingLine::new(&["plugin"], plugin.spec.as_written(), &plugin.spec.source);
            SettingLine { state: state(plugin.layer), ..line }
        });
        let programs = self.programs.iter().map(|program| {
            let command: Vec<_> = program.command.iter().map(WithSource::as_written).collect();
            let key = ["programs", &program.name];
            let line = SettingLine::new(&key, command.join(" "), &program.source);
            SettingLine { state: state(program.layer), ..line }
        });
        let hooks = self.hooks.iter().map(|hook| {
            let key = ["hooks", &hook.event, &hook.matcher];
            let key = if hook.matcher.is_empty() { &key[..2] } else { &key[..] };
            let line = SettingLine::new(key, hook.command.as_written(), &hook.command.source);
            SettingLine { state: state(hook.layer), ..line }
        });
        runtime.chain(times).chain(plugins).chain(programs).chain(hooks).collect()
    }
}
