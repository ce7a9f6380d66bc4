//! Commands that run before and after calls, in Claude Code's hook format.
//!
//! A command gets JSON about the call on standard input. If it exits with code 2, the call is refused, and its standard
//! error is the reason. If it exits with code 0, it may print JSON with a decision. As in Claude Code, other exit codes
//! change nothing.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use helve_core::{
    Action, Ask, BoxFuture, CallRef, Content, Hook, Input, ToolCall, ToolOutput, ToolResult,
};
use helve_text::wildcard;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::found::{FoundHook, HookEvent, ScriptOwner};
use crate::program::{ProgramOutput, ProgramRun};
use crate::script::ScriptHost;
use crate::sources::ScriptSources;

/// Time limit of a command whose configuration sets none.
const DEFAULT_TIME: Duration = Duration::from_secs(60);
/// Maximum time limit that the configuration can set.
const MAX_TIME: Duration = Duration::from_secs(600);
/// Maximum length of a reason or feedback in characters.
const MAX_TEXT: usize = 8_000;
/// Maximum number of calls in [`CommandHooks::calls_to_approve`].
const MAX_CALLS: usize = 1_000;

/// Pairs of a tool's id and Claude Code's name for that tool.
const CLAUDE_NAMES: &[(&str, &str)] = &[
    ("bash", "Bash"),
    ("edit", "Edit"),
    ("glob", "Glob"),
    ("grep", "Grep"),
    ("list", "LS"),
    ("multiedit", "MultiEdit"),
    ("read", "Read"),
    ("skill", "Skill"),
    ("task", "Task"),
    ("todowrite", "TodoWrite"),
    ("webfetch", "WebFetch"),
    ("websearch", "WebSearch"),
    ("write", "Write"),
];

/// All command hooks of a workspace.
pub(crate) struct CommandHooks {
    hooks: Vec<FoundHook>,
    host: Arc<ScriptHost>,
    /// Ids of calls that a hook wants a person to approve.
    calls_to_approve: Mutex<HashSet<String>>,
}

/// The JSON that a command may print.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct HookAnswer {
    /// `approve` or `block`.
    decision: Option<String>,
    reason: Option<String>,
    /// `false` refuses the call.
    #[serde(rename = "continue")]
    continues: Option<bool>,
    stop_reason: Option<String>,
    hook_specific_output: SpecificAnswer,
}

/// The member `hookSpecificOutput` of [`HookAnswer`].
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SpecificAnswer {
    /// `allow`, `deny` or `ask`.
    permission_decision: Option<String>,
    permission_decision_reason: Option<String>,
    /// Arguments that replace those of the call.
    updated_input: Option<Map<String, Value>>,
    /// Text for the model, after a call.
    additional_context: Option<String>,
}

impl CommandHooks {
    /// Returns `None` if there are no hooks.
    pub(crate) fn new(hooks: Vec<FoundHook>, host: Arc<ScriptHost>) -> Option<Arc<Self>> {
        let calls_to_approve = Mutex::default();
        (!hooks.is_empty()).then(|| Arc::new(Self { hooks, host, calls_to_approve }))
    }

    /// Returns the hooks for an event of a tool, in order.
    fn matching(&self, event: HookEvent, tool: &str) -> impl Iterator<Item = &FoundHook> {
        let hooks = self.hooks.iter().filter(move |hook| hook.entry.event == event);
        hooks.filter(move |hook| matches(&hook.entry.matcher, tool))
    }

    /// Runs the command of a hook. Fails if the command cannot be run, or if a file of the project changed since it was
    /// trusted.
    async fn run(&self, hook: &FoundHook, input: Value) -> Result<ProgramOutput, String> {
        let entry = &hook.entry;
        let name = || format!("the hook `{}`", entry.command);
        if entry.owner == ScriptOwner::Project {
            let (file, files) = (entry.file.clone(), hook.files.clone());
            let reading =
                tokio::task::spawn_blocking(move || ScriptSources::read_all(&file, &files));
            let read = reading.await.unwrap_or_else(|_| Err("cannot be read".into()));
            let trusted = hook.sources.as_ref().map(ScriptSources::hash);
            if read.as_ref().map(ScriptSources::hash).ok() != trusted.ok() {
                return Err(format!(
                    "a file of {} changed since it was trusted; run `helve trust` to use it again",
                    name()
                ));
            }
        }
        let settings = &self.host.runtime.settings;
        let root = settings.root.clone();
        let run = ProgramRun {
            command: ["/bin/sh", "-c", &entry.command].map(Into::into).into(),
            input: input.to_string().into_bytes(),
            variables: vec![
                ("CLAUDE_PROJECT_DIR".into(), root.clone().into()),
                ("HELVE_DIRECTORY".into(), root.into()),
            ],
            limit: time_limit(hook),
            about: entry.command.clone(),
        };
        let output = settings.run_program(run).await;
        output.map_err(|error| format!("{} failed: {error}", name()))
    }

    /// Returns the JSON that a command gets on standard input.
    fn input(&self, event: &str, call_ref: &CallRef, call: &ToolCall) -> Value {
        let arguments = match &call.input {
            Input::Json(Value::Object(arguments)) => arguments.clone(),
            Input::Json(_) | Input::Raw(_) | Input::Text(_) => Map::new(),
        };
        let arguments = match claude_name(&call.name) {
            Some(_) => {
                arguments.into_iter().map(|(key, value)| (snake_case(&key), value)).collect()
            }
            None => arguments,
        };
        json!({
            "session_id": &*call_ref.session,
            "transcript_path": "",
            "cwd": self.host.runtime.settings.root,
            "permission_mode": "default",
            "hook_event_name": event,
            "tool_name": claude_name(&call.name).unwrap_or(&call.name),
            "tool_input": arguments,
            "tool_use_id": &*call_ref.id,
        })
    }

    fn require_ask(&self, call: &str) {
        let mut calls = self.calls_to_approve.lock();
        if calls.len() >= MAX_CALLS {
            calls.clear();
        }
        calls.insert(call.to_owned());
    }
}

impl Hook for CommandHooks {
    fn name(&self) -> &str {
        "a hook"
    }

    fn time_limit(&self) -> Option<Duration> {
        let total: Duration = self.hooks.iter().map(time_limit).sum();
        Some(total + Duration::from_secs(5))
    }

    fn before<'a>(
        &'a self,
        call_ref: &'a CallRef,
        call: &'a mut ToolCall,
    ) -> BoxFuture<'a, Result<(), Arc<str>>> {
        Box::pin(async move {
            for hook in self.matching(HookEvent::PreToolUse, &call.name.clone()) {
                let input = self.input("PreToolUse", call_ref, call);
                let printed = self.run(hook, input).await.map_err(Arc::from)?;
                match decision_of(&printed) {
                    HookDecision::Refuse(why) => return Err(why.into()),
                    HookDecision::Ask => self.require_ask(&call_ref.id),
                    HookDecision::Nothing => {}
                }
                if let Some(updated) = answer(&printed).hook_specific_output.updated_input {
                    rewrite(call, updated);
                }
            }
            Ok(())
        })
    }

    fn judge<'a>(
        &'a self,
        call_ref: &'a CallRef,
        _ask: &'a Ask,
    ) -> BoxFuture<'a, (Action, Option<Arc<str>>)> {
        let must_ask = self.calls_to_approve.lock().contains(&*call_ref.id);
        let action = if must_ask { Action::Ask } else { Action::Allow };
        Box::pin(async move { (action, None) })
    }

    fn after<'a>(
        &'a self,
        call_ref: &'a CallRef,
        call: &'a ToolCall,
        result: &'a mut ToolResult,
    ) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            self.calls_to_approve.lock().remove(&*call_ref.id);
            let Ok(output) = &mut result.outcome else { return };
            for hook in self.matching(HookEvent::PostToolUse, &call.name) {
                let mut input = self.input("PostToolUse", call_ref, call);
                input["tool_response"] =
                    json!({"title": output.title, "output": output.joined_text()});
                let text = match self.run(hook, input).await {
                    Ok(printed) => feedback(&printed),
                    Err(why) => Some(why),
                };
                if let Some(text) = text {
                    append(output, &text);
                }
            }
        })
    }
}

fn time_limit(hook: &FoundHook) -> Duration {
    hook.entry.timeout.unwrap_or(DEFAULT_TIME).min(MAX_TIME)
}

/// What a command decided about a call.
enum HookDecision {
    Nothing,
    Ask,
    Refuse(String),
}

/// Returns what a command decided, from its exit code and the JSON that it printed.
fn decision_of(output: &ProgramOutput) -> HookDecision {
    let reason = |text: Option<String>| {
        let text = text.filter(|text| !text.trim().is_empty());
        cut(&text.unwrap_or_else(|| "it gave no reason".into()))
    };
    if output.code == Some(2) {
        return HookDecision::Refuse(reason(Some(output.stderr.trim().to_owned())));
    }
    let answer = answer(output);
    let specific = answer.hook_specific_output;
    match (specific.permission_decision.as_deref(), answer.decision.as_deref()) {
        (Some("deny"), _) => HookDecision::Refuse(reason(specific.permission_decision_reason)),
        (_, Some("block")) => HookDecision::Refuse(reason(answer.reason)),
        (_, _) if answer.continues == Some(false) => {
            HookDecision::Refuse(reason(answer.stop_reason))
        }
        (Some("ask"), _) => HookDecision::Ask,
        // Permission is judged afterwards, so a command cannot allow anything.
        (_, _) => HookDecision::Nothing,
    }
}

/// Returns the text that a command adds to the result of a call, for the model.
fn feedback(output: &ProgramOutput) -> Option<String> {
    if output.code == Some(2) {
        return Some(cut(output.stderr.trim()));
    }
    let answer = answer(output);
    let reason = answer.reason.filter(|_| answer.decision.as_deref() == Some("block"));
    let texts = [reason, answer.hook_specific_output.additional_context];
    let texts: Vec<String> = texts.into_iter().flatten().collect();
    (!texts.is_empty()).then(|| cut(&texts.join("\n")))
}

/// Parses the JSON that a command printed. Other output, and output of a command that failed, is ignored.
fn answer(output: &ProgramOutput) -> HookAnswer {
    match output.code {
        Some(0) => serde_json::from_str(output.stdout.trim()).unwrap_or_default(),
        _ => HookAnswer::default(),
    }
}

fn append(output: &mut ToolOutput, text: &str) {
    output.content.push(Content::Text(format!("\n[hook] {text}")));
}

fn cut(text: &str) -> String {
    text.chars().take(MAX_TEXT).collect()
}

/// Replaces the arguments of a call with those that a command printed, renamed to the tool's own parameter names.
fn rewrite(call: &mut ToolCall, updated: Map<String, Value>) {
    let Input::Json(Value::Object(arguments)) = &mut call.input else { return };
    if claude_name(&call.name).is_none() {
        *arguments = updated;
        return;
    }
    let names: Vec<String> = arguments.keys().cloned().collect();
    let parameter_name = |key: &str| names.iter().find(|name| snake_case(name) == key).cloned();
    *arguments = updated
        .into_iter()
        .map(|(key, value)| (parameter_name(&key).unwrap_or_else(|| camel_case(&key)), value))
        .collect();
}

fn claude_name(tool: &str) -> Option<&'static str> {
    CLAUDE_NAMES.iter().find(|(id, _)| *id == tool).map(|(_, name)| *name)
}

/// Whether the matcher of a hook, such as `Edit|Write`, names a tool: by its id, or by Claude Code's name for it. A
/// matcher that is not understood matches every tool, because running a hook too often is better than skipping it.
fn matches(matcher: &str, tool: &str) -> bool {
    let matcher = matcher.trim().trim_start_matches('^').trim_end_matches('$');
    let matcher = matcher.strip_prefix('(').and_then(|it| it.strip_suffix(')')).unwrap_or(matcher);
    if matcher.is_empty() || matcher == "*" {
        return true;
    }
    let mut names = vec![tool];
    names.extend(claude_name(tool));
    if tool == "apply_patch" {
        names.extend(["Edit", "Write", "MultiEdit"]);
    }
    matcher.split('|').map(str::trim).any(|name| {
        let pattern = name.replace(".*", "*");
        let is_understood = |c: char| c.is_alphanumeric() || "_-*.:/ ".contains(c);
        !pattern.chars().all(is_understood)
            || names.iter().any(|it| wildcard::matches(&pattern, it))
    })
}

/// `filePath` → `file_path`.
fn snake_case(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.push(c.to_ascii_lowercase());
    }
    text
}

/// `file_path` → `filePath`.
fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let mut text = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        text.extend(letters.next().map(|c| c.to_ascii_uppercase()));
        text.push_str(letters.as_str());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matchers_name_tools() {
        let check = |matcher: &str, tool: &str, expected: bool| {
            assert_eq!(matches(matcher, tool), expected, "{matcher} {tool}");
        };
        check("", "bash", true);
        check("*", "bash", true);
        check("Bash", "bash", true);
        check("bash", "bash", true);
        check("Edit|Write", "write", true);
        check("Edit|Write", "read", false);
        check("^(Edit|MultiEdit)$", "multiedit", true);
        check("Edit|Write", "apply_patch", true);
        check("Read", "apply_patch", false);
        check("mcp__.*", "mcp__files__read", true);
        check("Notebook.*", "bash", false);
        check("B[a-z]+", "bash", true);
        check("greet", "greet", true);
    }

    #[test]
    fn names_of_arguments_are_converted() {
        for (camel, snake) in
            [("filePath", "file_path"), ("command", "command"), ("replaceAll", "replace_all")]
        {
            assert_eq!(snake_case(camel), snake);
            assert_eq!(camel_case(snake), camel);
        }
    }
}
