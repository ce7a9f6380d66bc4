//! Runs the hook `config`, with which plugins add agents, commands and skill folders, and choose the default agent and
//! the models.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use helve_core::BoxFuture;
use helve_ext::config::{Agent, AgentMode, CommandTemplate, Config, PluginSettings, WithSource};
use helve_script::{ClientRequestHandler, ScriptOwner, Scripts};
use serde_json::{Map, Value, json};

/// Maximum size in bytes of the changes by the user's plugins, and of those by the project's. Larger ones are ignored.
const MAX_BYTES: usize = 1 << 20;
/// Settings with a text value that plugins may change, besides agents, commands and skills.
const TEXT_SETTINGS: [&str; 3] = ["default_agent", "model", "small_model"];

type Fields = Map<String, Value>;

/// Runs the hook `config` of all plugins. Returns what they changed; `None` if they changed nothing.
pub(crate) async fn plugin_settings(
    scripts: &Scripts,
    config: &Config,
    root: &Path,
) -> Option<PluginSettings> {
    if !scripts.may_have_hook("config") {
        return None;
    }
    let (root, model) = (root.to_path_buf(), text(&config.models.model).map(String::from));
    scripts.set_client_handler(Arc::new(StartupRequestHandler { root, model }));
    let original = config_for_plugins(config);
    let by_user = scripts.change_config(ScriptOwner::User, original.clone()).await;
    let by_project = scripts.change_config(ScriptOwner::Project, by_user.clone()).await;
    let text = |changes: Map<String, Value>| {
        let text = Value::Object(changes).to_string();
        (text != "{}" && text.len() <= MAX_BYTES).then_some(text)
    };
    let mut project = changes(&by_user, &by_project);
    // Otherwise a project could add folders with skills that nobody has trusted.
    project.remove("skills");
    let settings =
        PluginSettings { user: text(changes(&original, &by_user)), project: text(project) };
    (settings != PluginSettings::default()).then_some(settings)
}

/// Answers the requests of plugins before the toolbox exists, when there are no sessions yet.
struct StartupRequestHandler {
    root: PathBuf,
    model: Option<String>,
}

impl ClientRequestHandler for StartupRequestHandler {
    fn answer<'a>(&'a self, params: &'a Value) -> BoxFuture<'a, Result<Value, String>> {
        let method = params.get("method").and_then(Value::as_str).unwrap_or_default();
        let answer = match method {
            "app.log" | "tui.showToast" => Ok(Value::Bool(true)),
            "path.get" => Ok(json!({"directory": self.root, "worktree": self.root})),
            "project.current" => Ok(json!({"id": "helve", "worktree": self.root})),
            "config.get" => Ok(json!({"model": self.model})),
            "session.list" => Ok(json!([])),
            _ => Err(format!("client.{method} is not available while Helve starts")),
        };
        Box::pin(async { answer })
    }
}

/// Returns the configuration that plugins get. Sections that they may not change are empty.
fn config_for_plugins(config: &Config) -> Value {
    let agents = config.agents.iter().map(|it| (it.name.clone(), agent(it)));
    let commands = config.commands.iter().map(|it| (it.name.clone(), command(it)));
    json!({
        "agent": agents.collect::<Map<_, _>>(),
        "command": commands.collect::<Map<_, _>>(),
        "default_agent": text(&config.default_agent),
        "model": text(&config.models.model),
        "small_model": text(&config.models.small_model),
        "skills": {"paths": []},
        "instructions": [], "permission": {}, "mcp": {}, "plugin": [], "provider": {},
    })
}

fn text(value: &Option<WithSource<String>>) -> Option<&str> {
    value.as_ref().map(|value| value.value.as_str())
}

fn agent(agent: &Agent) -> Value {
    let mode = match *agent.mode {
        AgentMode::Primary => "primary",
        AgentMode::Subagent => "subagent",
        AgentMode::All => "all",
    };
    json!({
        "description": text(&agent.description),
        "mode": mode,
        "model": text(&agent.model),
        "prompt": text(&agent.prompt),
        "permission": {},
    })
}

fn command(command: &CommandTemplate) -> Value {
    json!({
        "template": command.template.value,
        "description": text(&command.description),
        "agent": text(&command.agent),
        "model": text(&command.model),
    })
}

/// Returns the settings that differ, among those that plugins may change.
fn changes(before: &Value, after: &Value) -> Map<String, Value> {
    let mut changes = Map::new();
    for name in TEXT_SETTINGS {
        if after[name] != before[name] && after[name].is_string() {
            changes.insert(name.into(), after[name].clone());
        }
    }
    let agents = changed_entries(&before["agent"], &after["agent"], changed_agent);
    let commands = changed_entries(&before["command"], &after["command"], changed_command);
    for (name, entries) in [("agent", agents), ("command", commands)] {
        if !entries.is_empty() {
            changes.insert(name.into(), entries.into());
        }
    }
    let paths = after.pointer("/skills/paths").and_then(Value::as_array);
    let paths: Vec<Value> =
        paths.into_iter().flatten().filter(|it| it.is_string()).cloned().collect();
    if !paths.is_empty() && after["skills"] != before["skills"] {
        changes.insert("skills".into(), json!({"paths": paths}));
    }
    changes
}

/// Returns the entries that are new or differ, each reduced by `change` to the fields that plugins may set.
fn changed_entries(
    before: &Value,
    after: &Value,
    change: fn(Option<&Value>, &Fields) -> Fields,
) -> Map<String, Value> {
    let mut entries = Map::new();
    for (name, entry) in after.as_object().into_iter().flatten() {
        let old = before.get(name);
        if let Some(fields) = entry.as_object().filter(|_| old != Some(entry)) {
            let changed = change(old, fields);
            if !changed.is_empty() {
                entries.insert(name.clone(), changed.into());
            }
        }
    }
    entries
}

fn changed_command(_old: Option<&Value>, fields: &Map<String, Value>) -> Map<String, Value> {
    fields
        .iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect()
}

/// Returns the changed fields of an agent. The rules of an existing agent cannot be changed. Those of a new agent can
/// only forbid or ask, not allow.
fn changed_agent(old: Option<&Value>, fields: &Map<String, Value>) -> Map<String, Value> {
    let mut changed = Map::new();
    for (name, value) in fields {
        let value = match (name.as_str(), old) {
            ("permission" | "tools", Some(_)) => None,
            ("permission" | "tools", None) => without_allows(value),
            (_, Some(old)) if old.get(name) == Some(value) => None,
            (_, Some(_) | None) => Some(value.clone()).filter(|value| !value.is_null()),
        };
        changed.extend(value.map(|value| (name.clone(), value)));
    }
    changed
}

/// Returns rules or tool switches without those that allow something; `None` if nothing is left.
fn without_allows(rules: &Value) -> Option<Value> {
    match rules {
        Value::String(action) => (action == "deny" || action == "ask").then(|| rules.clone()),
        Value::Bool(is_on) => (!is_on).then(|| rules.clone()),
        Value::Object(entries) => {
            let kept = entries
                .iter()
                .filter_map(|(name, rule)| Some((name.clone(), without_allows(rule)?)));
            let kept: Map<String, Value> = kept.collect();
            (!kept.is_empty()).then(|| kept.into())
        }
        Value::Null | Value::Number(_) | Value::Array(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(before: Value, after: Value, expected: Value) {
        assert_eq!(Value::Object(changes(&before, &after)), expected);
    }

    #[test]
    fn only_some_settings_can_be_changed() {
        let before =
            json!({"default_agent": null, "agent": {}, "permission": {}, "skills": {"paths": []}});
        check(before.clone(), before.clone(), json!({}));
        let after = json!({
            "default_agent": "mine", "model": "a/b", "permission": {"bash": "allow"}, "mcp": {"x": {}},
            "plugin": ["evil"], "provider": {"x": {}}, "skills": {"paths": ["/s", 7]},
            "command": {"c": {"template": "T", "agent": null}, "broken": 7},
        });
        check(
            before,
            after,
            json!({
                "default_agent": "mine", "model": "a/b", "skills": {"paths": ["/s"]},
                "command": {"c": {"template": "T"}},
            }),
        );
    }

    #[test]
    fn agents_of_plugins_can_only_forbid() {
        let before = json!({"agent": {"build": {"prompt": null, "permission": {}}}});
        let rules = json!({"*": "deny", "bash": {"*": "ask", "git *": "allow"}, "edit": "allow"});
        let after = json!({"agent": {
            "build": {"prompt": "P", "permission": {"bash": "allow"}, "tools": {"bash": true}},
            "mine": {"mode": "primary", "permission": rules, "tools": {"read": true, "bash": false}},
            "open": {"mode": "all", "permission": "allow"},
        }});
        let expected = json!({"agent": {
            "build": {"prompt": "P"},
            "mine": {
                "mode": "primary", "permission": {"*": "deny", "bash": {"*": "ask"}},
                "tools": {"bash": false},
            },
            "open": {"mode": "all"},
        }});
        check(before, after, expected);
    }
}
