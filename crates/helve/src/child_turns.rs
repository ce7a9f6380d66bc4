//! Finds the turns of sub-agents that belong to a turn of another agent, so that undo and redo include them.

use std::collections::{BTreeMap, BTreeSet};

use helve_agent::history::{self, TranscriptCall};
use helve_agent::item::{CallBlock, Entry, Item};
use helve_core::store::StoreError;
use serde_json::{Value, json};

use crate::toolbox::Toolbox;

/// Maximum number of sub-agents, direct and nested, that one undo or redo includes.
pub(crate) const MAX_CHILDREN: usize = 256;

/// The turns of one sub-agent that are undone or redone together.
pub(crate) struct ChildTurns {
    pub(crate) session: String,
    /// The number of turns, counted back from the last one.
    turns: usize,
}

/// The stored record of a turn that a sub-agent began: its session, and the position of the last item in its transcript
/// before the turn.
type BegunTurn = (String, u64);

/// Those calls in some transcript entries that started sub-agents.
#[derive(Debug, Default, PartialEq)]
struct StartingCalls {
    /// The sub-agents that the results of these calls name, with the number of turns of each.
    reported: BTreeMap<String, usize>,
    /// The ids of those calls whose result names no sub-agent, or that have no result because the program ended.
    unreported: BTreeSet<String>,
}

/// Finds the calls that started sub-agents in these entries of a session.
fn starting_calls<'a>(session: &str, entries: impl Iterator<Item = &'a Entry>) -> StartingCalls {
    let mut calls = StartingCalls::default();
    for entry in entries {
        match &entry.item {
            Item::Assistant(message) => {
                let starting = message.calls().filter(|call| starts_tasks(call));
                calls.unreported.extend(starting.map(|call| call.id.clone()));
            }
            Item::Result(result) if calls.unreported.contains(&result.call) => {
                for task in helve_tools::reported_tasks(&result.text()) {
                    if is_child_of(session, task) {
                        *calls.reported.entry(task.into()).or_default() += 1;
                        calls.unreported.remove(&result.call);
                    }
                }
            }
            _ => {}
        }
    }
    calls
}

/// The name under which the [`BegunTurn`]s that a call started are stored in its session.
fn begun_turns_slot(call: &str) -> String {
    format!("tasks of {call}")
}

/// Counts the prompts after a position in a sub-agent's transcript. Undone ones are left out.
fn prompts_after(entries: &[Entry], after: u64) -> usize {
    let shown = history::shown(entries).into_iter().filter(|entry| entry.seq > after);
    shown.filter(|entry| matches!(entry.item, Item::User { .. })).count()
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

/// Whether `session` was opened by `parent` itself, not by one of its sub-agents.
fn is_child_of(parent: &str, session: &str) -> bool {
    let rest = session.strip_prefix(parent).and_then(|rest| rest.strip_prefix('/'));
    rest.is_some_and(|rest| !rest.is_empty() && !rest.contains('/'))
}

/// What an undo reverts in one sub-agent.
pub(crate) struct ChildUndo {
    pub(crate) session: String,
    /// The position in its transcript of the first item that is undone.
    pub(crate) from: u64,
    /// The calls whose file changes are reverted.
    pub(crate) calls: Vec<TranscriptCall>,
}

impl Toolbox {
    /// Records in the parent's session that this sub-agent begins a turn, so that an undo finds the turn even if the
    /// program ends before the result of the parent's call is stored. `after` is the last position in the sub-agent's
    /// transcript.
    pub(crate) async fn record_child_turn(&self, after: u64) -> Result<(), StoreError> {
        let Some(parent) = &self.session().parent else { return Ok(()) };
        let (session, slot) = (&*parent.session.id, begun_turns_slot(&parent.call.root_call));
        let turn: BegunTurn = (self.session_id().into(), after);
        loop {
            let (version, stored) = match self.store.get(session, &slot).await? {
                Some((version, value)) => (version, serde_json::from_value(value)),
                None => (0, Ok(Vec::new())),
            };
            let mut turns: Vec<BegunTurn> = stored.unwrap_or_default();
            turns.push(turn.clone());
            // Fails if the slot was changed in the meantime, for another sub-agent of the same call.
            if self.store.put(session, &slot, version, json!(turns)).await? {
                return Ok(());
            }
        }
    }

    /// Finds the sub-agents that were started by calls in these entries of a session.
    pub(crate) async fn started_children<'a>(
        &self,
        session: &str,
        entries: impl Iterator<Item = &'a Entry>,
    ) -> Result<Vec<ChildTurns>, StoreError> {
        let StartingCalls { reported: mut turns, unreported } = starting_calls(session, entries);
        for call in unreported {
            let Some((_, slot)) = self.store.get(session, &begun_turns_slot(&call)).await? else {
                continue;
            };
            let begun: Vec<BegunTurn> = serde_json::from_value(slot).unwrap_or_default();
            for (child, after) in begun {
                let prompts = prompts_after(&self.transcript(&child).await?, after);
                if is_child_of(session, &child) {
                    let count = turns.entry(child).or_default();
                    *count = (*count).max(prompts);
                }
            }
        }
        let child = |(session, turns)| ChildTurns { session, turns };
        Ok(turns.into_iter().map(child).collect())
    }

    /// Plans the undo of turns of sub-agents, and of the sub-agents that these turns started.
    pub(crate) async fn plan_child_undos(
        &self,
        mut pending: Vec<ChildTurns>,
    ) -> Result<Vec<ChildUndo>, StoreError> {
        let mut undos: Vec<ChildUndo> = Vec::new();
        while let Some(ChildTurns { session, turns }) = pending.pop() {
            let entries = self.transcript(&session).await?;
            // A sub-agent that was aborted before it could run has no transcript.
            let Some(plan) = history::plan_undo_of(&entries, turns) else { continue };
            let shown = history::shown(&entries);
            let undone = shown.into_iter().filter(|entry| entry.seq > plan.from);
            pending.extend(self.started_children(&session, undone).await?);
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
