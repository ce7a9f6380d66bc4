//! The events of a run as JSON, one object per line.

use std::time::{SystemTime, UNIX_EPOCH};

use helve::agent_loop::event::{AgentEvent, BudgetKind, TodoEntry, TurnEnd};
use helve::agent_loop::model::ActiveModel;
use helve::agent_loop::reply::Usage;
use helve::{ChildReport, ChildState, Toolbox, TurnReport};
use serde_json::{Value, json};

use crate::output;

/// Prints events as JSON.
pub(super) struct JsonEvents {
    /// Whether text is printed while it arrives.
    pub(super) stream: bool,
    pub(super) session: String,
}

impl JsonEvents {
    fn print(&self, kind: &str, fields: Value) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut object = json!({
            "v": 1, "type": kind, "at": now.as_millis() as u64, "session": self.session,
        });
        if let (Some(object), Value::Object(fields)) = (object.as_object_mut(), fields) {
            object.extend(fields);
        }
        // A reader that has gone away does not stop the turn.
        output::print_json(&object).ok();
    }

    pub(super) fn begin(&self, toolbox: &Toolbox, model: &ActiveModel) {
        let root = toolbox.root().display().to_string();
        self.print("session", json!({"root": root, "model": model.reference.name}));
        self.print("turn_start", json!({}));
    }

    pub(super) fn event(&self, event: &AgentEvent) {
        if let Some((kind, fields)) = self.fields(event) {
            self.print(kind, fields);
        }
    }

    /// The type and the fields of an event; `None` if it is not printed.
    fn fields(&self, event: &AgentEvent) -> Option<(&'static str, Value)> {
        Some(match event {
            AgentEvent::Request { step, attempt } => {
                ("request", json!({"step": step, "attempt": attempt}))
            }
            AgentEvent::Text(text) if self.stream => ("text", json!({"text": text})),
            AgentEvent::Reasoning(text) if self.stream => ("reasoning", json!({"text": text})),
            AgentEvent::Text(_) | AgentEvent::Reasoning(_) => return None,
            AgentEvent::Retry { attempt, wait, reason } => {
                let wait = wait.as_millis() as u64;
                ("retry", json!({"attempt": attempt, "waitMs": wait, "reason": reason}))
            }
            AgentEvent::Call { id, name, arguments } => {
                ("call", json!({"id": id, "name": name, "arguments": arguments}))
            }
            AgentEvent::Progress { id, text } => ("progress", json!({"id": id, "text": text})),
            AgentEvent::Asked { id, question } => ("ask", json!({"id": id, "question": question})),
            AgentEvent::Result { id, name, title, error, took, diff, process } => {
                let error = error.as_ref().map(|(kind, text)| json!({"kind": kind, "text": text}));
                let fields = json!({
                    "id": id, "name": name, "title": title, "error": error,
                    "ms": took.as_millis() as u64, "diff": diff, "process": process,
                });
                ("result", fields)
            }
            AgentEvent::Usage { tokens, is_estimated, cost } => {
                let mut fields = usage(tokens);
                fields["estimated"] = json!(is_estimated);
                fields["cost"] = json!(cost);
                ("usage", fields)
            }
            AgentEvent::Notice(text) => ("notice", json!({"text": text})),
            AgentEvent::Todos(todos) => {
                let entry =
                    |todo: &TodoEntry| json!({"content": todo.content, "status": todo.status});
                ("todos", json!({"todos": todos.iter().map(entry).collect::<Vec<_>>()}))
            }
            AgentEvent::Child { task, agent, event } => {
                let (kind, mut fields) = self.fields(event)?;
                fields["type"] = json!(kind);
                ("child", json!({"task": task, "agent": agent, "event": fields}))
            }
            AgentEvent::ChildEnded(report) => {
                let event = child_end(report);
                ("child", json!({"task": report.task, "agent": report.agent, "event": event}))
            }
        })
    }

    pub(super) fn end(&self, report: &TurnReport) {
        let (reason, explanation) = describe(&report.end);
        self.print(
            "turn_end",
            json!({
                "reason": reason,
                "error": explanation,
                "usage": usage(&report.usage),
                "cost": report.cost,
                "text": report.text,
            }),
        );
    }
}

/// The end of a sub-agent's turn.
fn child_end(report: &ChildReport) -> Value {
    let (reason, error) = match &report.state {
        ChildState::Queued => ("queued", None),
        ChildState::Running => ("running", None),
        ChildState::Completed => ("answered", None),
        ChildState::Incomplete(why) => ("incomplete", Some(why)),
        ChildState::Failed(why) => ("failed", Some(why)),
        ChildState::Aborted => ("aborted", None),
    };
    json!({
        "type": "turn_end", "reason": reason, "error": error, "text": report.text,
        "files": report.files, "steps": report.steps, "calls": report.calls,
        "tokens": report.tokens, "cost": report.cost, "ms": report.elapsed.as_millis() as u64,
    })
}

fn usage(usage: &Usage) -> Value {
    json!({
        "input": usage.input,
        "cacheRead": usage.cache_read,
        "cacheWrite": usage.cache_write,
        "output": usage.output,
        "reasoning": usage.reasoning,
        "total": usage.total(),
    })
}

/// A word for programs and, unless the turn succeeded, a sentence for people.
pub(super) fn describe(end: &TurnEnd) -> (&'static str, Option<String>) {
    let sentence = |text: &str| Some(text.to_string());
    match end {
        TurnEnd::Answered => ("answered", None),
        TurnEnd::Failed(message) => ("failed", Some(message.clone())),
        TurnEnd::NotAllowed => (
            "not_allowed",
            sentence(
                "a call was refused, so the work may be incomplete; allow it with a rule, --allow or --yes",
            ),
        ),
        TurnEnd::OverBudget(BudgetKind::Steps) => {
            ("steps", sentence("the limit of steps is reached; raise it with --max-steps"))
        }
        TurnEnd::OverBudget(BudgetKind::Tokens) => {
            ("tokens", sentence("the limit of tokens is reached; raise it with --max-tokens"))
        }
        TurnEnd::OverBudget(BudgetKind::Cost) => {
            ("cost", sentence("the limit of costs is reached; raise it with --max-cost"))
        }
        TurnEnd::OverBudget(BudgetKind::Time) => {
            ("time", sentence("the time limit is reached; raise it with --timeout"))
        }
        TurnEnd::OverBudget(BudgetKind::OutputLength) => {
            ("length", sentence("the model's replies were cut at the output limit"))
        }
        TurnEnd::Refused => ("refused", sentence("the model refused to answer")),
        TurnEnd::NoAnswer => ("no_answer", sentence("the model gave an empty answer")),
        TurnEnd::Loop => ("loop", sentence("the model made the same call again and again")),
        TurnEnd::Aborted => ("aborted", sentence("aborted")),
    }
}
