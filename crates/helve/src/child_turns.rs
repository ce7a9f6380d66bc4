//! Finds the turns of sub-agents that belong to a turn of another agent, so that undo and redo include them.

use std::collections::BTreeMap;

use helve_agent::history::{self, MadeCall};
use helve_agent::item::{CallBlock, Entry, Item};
use helve_core::store::StoreError;
use serde_json::Value;

use crate::toolbox::Toolbox;

/// How many sub-agents of one turn are looked at, with those that they started.
pub(crate) const MAX_CHILDREN: usize = 256;

/// The turns of one sub-agent that are undone or redone together.
pub(crate) struct ChildTurns {
    pub(crate) session: String,
    /// How many prompts it got.
    turns: usize,
}

/// Finds the sub-agents that were started by calls in these entries of a session.
pub(crate) fn started_children<'a>(
    session: &str,
    entries: impl Iterator<Item = &'a Entry>,
) -> Vec<ChildTurns> {
    let mut starting: Vec<&str> = Vec::new();
    let mut children: BTreeMap<String, usize> = BTreeMap::new();
    for entry in entries {
        match &entry.item {
            Item::Assistant(message) => {
                starting
                    .extend(message.calls().filter(|it| starts_tasks(it)).map(|it| it.id.as_str()));
            }
            Item::Result(result) if starting.contains(&result.call.as_str()) => {
                for task in helve_tools::reported_tasks(&result.text()) {
                    if is_child_of(session, task) {
                        *children.entry(task.into()).or_default() += 1;
                    }
                }
            }
            _ => {}
        }
    }
    let child = |(session, turns)| ChildTurns { session, turns };
    children.into_iter().map(child).collect()
}

/// Whether a call starts or continues sub-agents: directly, or as part of a batch.
fn starts_tasks(call: &CallBlock) -> bool {
    let Ok(arguments) = serde_json::from_str::<Value>(&call.arguments) else { return false };
    let is_start = |arguments: &Value| matches!(arguments["action"].as_str(), None | Some("start"));
    match call.name.to_lowercase().as_str() {
        "task" => is_start(&arguments),
        "batch" => arguments["tool_calls"].as_array().into_iter().flatten().any(|nested| {
            nested["tool"].as_str().is_some_and(|tool| tool.eq_ignore_ascii_case("task"))
                && is_start(&nested["parameters"])
        }),
        _ => false,
    }
}

/// Whether a session was opened by this one, not by one of its sub-agents.
fn is_child_of(parent: &str, session: &str) -> bool {
    let rest = session.strip_prefix(parent).and_then(|rest| rest.strip_prefix('/'));
    rest.is_some_and(|rest| !rest.is_empty() && !rest.contains('/'))
}

/// A sub-agent's part of an undo.
pub(crate) struct ChildUndo {
    pub(crate) session: String,
    /// The position in its transcript from which on everything is undone.
    pub(crate) from: u64,
    pub(crate) calls: Vec<MadeCall>,
}

impl Toolbox {
    /// Plans to undo turns of sub-agents, and of those that they started.
    pub(crate) async fn plan_child_undos(
        &self,
        mut pending: Vec<ChildTurns>,
    ) -> Result<Vec<ChildUndo>, StoreError> {
        let mut undos: Vec<ChildUndo> = Vec::new();
        while let Some(ChildTurns { session, turns }) = pending.pop() {
            let entries = self.transcript(&session).await?;
            // A sub-agent that was aborted in line has no transcript.
            let Some(plan) = history::plan_undo_of(&entries, turns) else { continue };
            let shown = history::shown(&entries);
            let undone = shown.into_iter().filter(|entry| entry.seq > plan.from);
            pending.extend(started_children(&session, undone));
            undos.push(ChildUndo { session, from: plan.from, calls: plan.calls });
            if undos.len() == MAX_CHILDREN {
                break;
            }
        }
        Ok(undos)
    }
}

#[cfg(test)]
mod tests {
    use helve_agent::item::CallForm;

    use super::*;

    #[test]
    fn calls_that_start_sub_agents_are_recognised() {
        for (name, arguments, expected) in [
            ("task", r#"{"prompt": "x"}"#, true),
            ("Task", r#"{"action": "start"}"#, true),
            ("task", r#"{"action": "wait"}"#, false),
            ("batch", r#"{"tool_calls": [{"tool": "task", "parameters": {"prompt": "x"}}]}"#, true),
            ("batch", r#"{"tool_calls": [{"tool": "read", "parameters": {}}]}"#, false),
            ("task", "broken", false),
        ] {
            let (id, form) = (String::new(), CallForm::Json);
            let call = CallBlock { id, name: name.into(), arguments: arguments.into(), form };
            assert_eq!(starts_tasks(&call), expected, "{name} {arguments}");
        }
        assert!(is_child_of("main", "main/a"));
        assert!(!is_child_of("main", "main/a/b") && !is_child_of("main", "other/a"));
    }
}
