//! Finds the turns of sub-agents that belong to a turn of another agent, so that undo and redo include them.

use std::collections::{BTreeMap, BTreeSet};

use helve_agent::history::{self, MadeCall};
use helve_agent::item::{CallBlock, Entry, Item};
use helve_core::store::StoreError;
use serde_json::{Value, json};

use crate::toolbox::Toolbox;

/// How many sub-agents of one turn are looked at, with those that they started.
pub(crate) const MAX_CHILDREN: usize = 256;

/// The turns of one sub-agent that are undone or redone together.
pub(crate) struct ChildTurns {
    pub(crate) session: String,
    /// How many prompts it got.
    turns: usize,
}

/// A sub-agent's turn that was begun, as it is stored: its session, and the position of the last item that was in its
/// transcript before.
type BegunTurn = (String, u64);

/// The calls that start sub-agents, in some entries of a session.
#[derive(Debug, Default, PartialEq)]
struct StartingCalls {
    /// The sub-agents that the results name, with the number of their turns.
    reported: BTreeMap<String, usize>,
    /// The calls whose results name none, or that have none because the program ended.
    unreported: BTreeSet<String>,
}

fn starting_calls<'a>(session: &str, entries: impl Iterator<Item = &'a Entry>) -> StartingCalls {
    let mut found = StartingCalls::default();
    for entry in entries {
        match &entry.item {
            Item::Assistant(message) => {
                let starting = message.calls().filter(|call| starts_tasks(call));
                found.unreported.extend(starting.map(|call| call.id.clone()));
            }
            Item::Result(result) if found.unreported.contains(&result.call) => {
                for task in helve_tools::reported_tasks(&result.text()) {
                    if is_child_of(session, task) {
                        *found.reported.entry(task.into()).or_default() += 1;
                        found.unreported.remove(&result.call);
                    }
                }
            }
            _ => {}
        }
    }
    found
}

/// The slot of a session with the sub-agents that a call started.
fn begun_turns_slot(call: &str) -> String {
    format!("tasks of {call}")
}

/// Counts the prompts that a sub-agent got after a position in its transcript.
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
    /// Records that this sub-agent begins a turn, so that an undo finds it even if the program ends before the result of the
    /// call is stored. `after` is the last position in its transcript.
    pub(crate) async fn record_child_turn(&self, after: u64) -> Result<(), StoreError> {
        let Some(parent) = &self.session().parent else { return Ok(()) };
        let (session, slot) = (&*parent.session.id, begun_turns_slot(&parent.call.root));
        let turn: BegunTurn = (self.session_id().into(), after);
        loop {
            let (version, known) = match self.store.get(session, &slot).await? {
                Some((version, value)) => (version, serde_json::from_value(value)),
                None => (0, Ok(Vec::new())),
            };
            let mut turns: Vec<BegunTurn> = known.unwrap_or_default();
            turns.push(turn.clone());
            // Another sub-agent of the same call may have been recorded meanwhile.
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
                    let known = turns.entry(child).or_default();
                    *known = (*known).max(prompts);
                }
            }
        }
        let child = |(session, turns)| ChildTurns { session, turns };
        Ok(turns.into_iter().map(child).collect())
    }

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
