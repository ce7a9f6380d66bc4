//! Implements the engine's hook interface for plugins.

use std::sync::Arc;
use std::time::Duration;

use helve_core::hook::PlannedCommand;
use helve_core::{Action, Ask, BoxFuture, CallRef, Content, Hook, Input, ToolCall, ToolResult};
use helve_text::visible;
use serde_json::{Map, Value, json};

use crate::found::ScriptOwner;
use crate::script::Script;
use crate::scripts::{ScriptEntry, Scripts, ScriptsInner};
use crate::wire::RequestError;

/// Time that the engine allows beyond the limit of a hook, for starting the helper process or for detecting and ending
/// a stuck one.
const EXTRA_TIME: Duration = Duration::from_secs(3);

/// Runs the hooks of all plugins, in order.
pub(crate) struct PluginHooks(pub(crate) Arc<ScriptsInner>);

impl Hook for PluginHooks {
    fn name(&self) -> &str {
        "plugins"
    }

    fn time_limit(&self) -> Option<Duration> {
        Some(self.0.host.runtime.settings.limits.hook_time + EXTRA_TIME)
    }

    fn before<'a>(
        &'a self,
        call_ref: &'a CallRef,
        call: &'a mut ToolCall,
    ) -> BoxFuture<'a, Result<(), Arc<str>>> {
        Box::pin(async move {
            for script in self.0.plugins_with_hook("tool.execute.before").await {
                let Input::Json(args) = &call.input else { return Ok(()) };
                let input = call_input(call_ref, &call.name);
                let output =
                    self.0.run_hook(&script, "tool.execute.before", input, json!({"args": args}));
                let mut output = output.await.map_err(Arc::from)?;
                if let Some(args @ Value::Object(_)) = output.get_mut("args").map(Value::take) {
                    call.input = Input::Json(args);
                }
            }
            Ok(())
        })
    }

    fn judge<'a>(
        &'a self,
        call_ref: &'a CallRef,
        ask: &'a Ask,
    ) -> BoxFuture<'a, (Action, Option<Arc<str>>)> {
        Box::pin(async move {
            let mut strictest = (Action::Allow, None);
            for script in self.0.plugins_with_hook("permission.ask").await {
                let subjects: Vec<String> =
                    ask.parts.iter().map(|part| part.subject().to_string()).collect();
                let permission = ask.parts.first().map(|part| part.permission.to_string());
                let input = json!({
                    "type": permission,
                    "pattern": subjects,
                    "sessionID": &*call_ref.session,
                    "callID": &*call_ref.id,
                    "title": subjects.join(", "),
                    "metadata": {},
                });
                // `allow` here means that the rules decide.
                let output = json!({"status": "allow"});
                let decision = match self.0.run_hook(&script, "permission.ask", input, output).await
                {
                    Ok(output) => match output.get("status").and_then(Value::as_str) {
                        Some("deny") => (Action::Deny, Some("a plugin denies it".into())),
                        Some("ask") => (Action::Ask, None),
                        _ => (Action::Allow, None),
                    },
                    Err(why) => (Action::Ask, Some(why.into())),
                };
                if decision.0 > strictest.0 {
                    strictest = decision;
                }
            }
            strictest
        })
    }

    fn before_spawn<'a>(
        &'a self,
        call_ref: &'a CallRef,
        planned: &'a mut PlannedCommand,
    ) -> BoxFuture<'a, Result<(), Arc<str>>> {
        Box::pin(async move {
            for script in self.0.plugins_with_hook("shell.env").await {
                let input = json!({
                    "cwd": self.0.host.runtime.settings.root.join(&planned.folder),
                    "sessionID": &*call_ref.session,
                    "callID": &*call_ref.id,
                });
                let output = self.0.run_hook(&script, "shell.env", input, json!({"env": {}}));
                let output = output.await.map_err(Arc::from)?;
                let variables = output.get("env").and_then(Value::as_object);
                for (name, value) in variables.into_iter().flatten() {
                    if let Some(value) = value.as_str() {
                        planned.environment.push((name.into(), value.into()));
                    }
                }
            }
            Ok(())
        })
    }

    fn after<'a>(
        &'a self,
        call_ref: &'a CallRef,
        call: &'a ToolCall,
        result: &'a mut ToolResult,
    ) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            for script in self.0.plugins_with_hook("tool.execute.after").await {
                let Ok(output) = &mut result.outcome else { return };
                let mut input = call_input(call_ref, &call.name);
                if let Input::Json(args) = &call.input {
                    input["args"] = args.clone();
                }
                let old_text = output.joined_text();
                let old_output = json!({
                    "title": output.title,
                    "output": old_text,
                    "metadata": output.metadata,
                });
                // If a hook fails, the result stays unchanged.
                let Ok(changed) =
                    self.0.run_hook(&script, "tool.execute.after", input, old_output).await
                else {
                    continue;
                };
                if let Some(title) = changed.get("title").and_then(Value::as_str) {
                    output.title = title.into();
                }
                if let Some(metadata) = changed.get("metadata").and_then(Value::as_object) {
                    output.metadata = metadata.clone();
                }
                if let Some(text) = changed.get("output").and_then(Value::as_str)
                    && text != old_text
                {
                    output.content.retain(|content| !matches!(content, Content::Text(_)));
                    output.content.insert(0, Content::Text(text.into()));
                }
            }
        })
    }
}

impl Scripts {
    /// Returns the hooks for the engine: one that runs all plugins, and one that runs all command hooks.
    pub fn hooks(&self) -> Vec<Arc<dyn Hook>> {
        let has_plugins = self.inner.has_plugins();
        let plugin_hook =
            has_plugins.then(|| Arc::new(PluginHooks(self.inner.clone())) as Arc<dyn Hook>);
        let commands = self.inner.command_hooks.clone().map(|hooks| hooks as Arc<dyn Hook>);
        plugin_hook.into_iter().chain(commands).collect()
    }

    /// Runs the hook `name` of every plugin that has it. Each plugin gets the output of the previous one. Stops at the
    /// first failure.
    pub async fn run_hooks(
        &self,
        name: &str,
        input: &Value,
        mut output: Value,
    ) -> Result<Value, String> {
        for script in self.inner.plugins_with_hook(name).await {
            output = self.inner.run_hook(&script, name, input.clone(), output).await?;
        }
        Ok(output)
    }

    /// Whether a loaded plugin has a hook. Plugins that are not loaded yet do not count.
    pub fn has_hook(&self, name: &str) -> bool {
        self.inner.entries.iter().any(|entry| {
            let state = entry.state.lock();
            let hooks = state.listing.iter().flat_map(|listing| &listing.hooks);
            entry.script.is_plugin() && hooks.into_iter().any(|hook| hook == name)
        })
    }

    /// Whether a plugin has a hook, or may have it because it was never loaded.
    pub fn may_have_hook(&self, name: &str) -> bool {
        let is_unknown = |entry: &ScriptEntry| entry.state.lock().listing.is_none();
        let mut plugins = self.inner.entries.iter().filter(|entry| entry.script.is_plugin());
        plugins.any(is_unknown) || self.has_hook(name)
    }

    /// Lets the plugins of one owner change the configuration. A plugin that fails changes nothing.
    pub async fn change_config(&self, owner: ScriptOwner, mut config: Value) -> Value {
        for script in self.inner.plugins_with_hook("config").await {
            if script.owner == owner {
                let changed =
                    self.inner.run_hook(&script, "config", config.clone(), Value::Null).await;
                config = changed.ok().filter(Value::is_object).unwrap_or(config);
            }
        }
        config
    }

    /// Lets the plugins rewrite the description of a tool. Returns `None` if the description is unchanged. Errors are
    /// ignored.
    pub async fn rewrite_description(
        &self,
        id: &str,
        description: &str,
        schema: &Value,
    ) -> Option<String> {
        let output = json!({"description": description, "parameters": schema});
        let output =
            self.run_hooks("tool.definition", &json!({"toolID": id}), output).await.ok()?;
        let changed = output.get("description")?.as_str()?;
        (changed != description)
            .then(|| visible::strip_invisible(changed).chars().take(20_000).collect())
    }

    /// Sends an event to the plugins. Their errors are ignored.
    pub async fn send_event(&self, event: &Value) {
        for script in self.inner.plugins_with_hook("event").await {
            let input = json!({"event": event});
            self.inner.run_hook(&script, "event", input, Value::Null).await.ok();
        }
    }
}

fn call_input(call_ref: &CallRef, tool: &str) -> Value {
    json!({"tool": tool, "sessionID": &*call_ref.session, "callID": &*call_ref.id})
}

impl ScriptsInner {
    /// Returns the plugins that have a hook, in order. Loads plugins first if their hooks are not known.
    pub(crate) async fn plugins_with_hook(&self, name: &str) -> Vec<Arc<Script>> {
        if !self.has_plugins() {
            return Vec::new();
        }
        self.load().await;
        let has_hook = |hooks: &[String]| hooks.iter().any(|it| it == name);
        let entries = self.entries.iter().filter(|entry| {
            let state = entry.state.lock();
            entry.script.is_plugin()
                && state.listing.as_ref().is_some_and(|listing| has_hook(&listing.hooks))
        });
        entries.map(|entry| entry.script.clone()).collect()
    }

    /// Runs a hook of one plugin with the sources that were trusted, and returns the changed output. An error says why
    /// the hook refused or failed.
    pub(crate) async fn run_hook(
        &self,
        script: &Arc<Script>,
        name: &str,
        input: Value,
        output: Value,
    ) -> Result<Value, String> {
        let failed = |error: RequestError| match error {
            RequestError::Thrown(thrown) => self.host.redact(&thrown.message),
            other => {
                let file = self.host.display_path(script.path.clone());
                format!("the hook {name} of {} failed: {other}", file.display())
            }
        };
        let mut request = Map::new();
        request.insert("op".into(), "hook".into());
        request.insert("plugin".into(), script.key().into());
        request.insert("name".into(), name.into());
        request.insert("input".into(), input);
        if !output.is_null() {
            request.insert("output".into(), output);
        }
        let request = Value::Object(request);
        let mut answer = self.send_hook(script, request.clone()).await;
        if matches!(answer, Err(RequestError::NotBegun(_))) {
            // The process had ended before it read the request, so a new one is tried.
            answer = self.send_hook(script, request).await;
        }
        answer.map_err(failed)
    }

    /// Starts the helper process if necessary, and sends it the request to run a hook.
    async fn send_hook(&self, script: &Arc<Script>, request: Value) -> Result<Value, RequestError> {
        let (process, _) = self.host.prepare_trusted(script).await?;
        self.host.runtime.ask(&process, request, self.host.runtime.settings.limits.hook_time).await
    }
}
