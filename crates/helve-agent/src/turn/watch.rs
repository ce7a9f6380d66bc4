//! Runs the calls of a reply, and reports what happens to each while it runs.

use std::collections::{HashMap, HashSet};
use std::pin::pin;
use std::time::Duration;

use helve_core::event::{CallOutcome, Event, EventDelivery, EventKind};
use helve_core::output::{ErrorKind, Handover};
use helve_core::store::StoreError;
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{Turn, call_result, tool_call};
use crate::event::{AgentEvent, TodoEntry};
use crate::item::{CallBlock, Item};

/// The metadata key under which a tool reports what it changed.
const DIFF: &str = "diff";
/// The metadata key under which a tool names a process that still runs.
const PROCESS: &str = "process";

/// The tool that writes the to-do list, and the metadata key under which it reports the list.
const TODO_TOOL: &str = "todowrite";
const TODOS: &str = "todos";

/// How the calls of a reply ended.
#[derive(Default)]
pub(super) struct CallsOutcome {
    /// The errors of failed calls, including calls nested in a call that succeeded, such as a batch.
    pub(super) errors: Vec<ErrorKind>,
    /// The agent that takes over.
    pub(super) handover: Option<Handover>,
}

/// The title and the metadata of a call, or why it failed.
type ShownOutcome<'a> = Result<(&'a str, &'a Map<String, Value>), (ErrorKind, String)>;

/// The calls of one reply: when each started, and which have ended.
struct Watched<'a> {
    calls: HashMap<&'a str, &'a CallBlock>,
    started: HashMap<&'a str, Instant>,
    ended: HashSet<&'a str>,
    /// The errors of nested calls, such as those of a batch. The batch itself does not fail.
    nested_errors: Vec<ErrorKind>,
}

impl Turn<'_> {
    /// Runs calls, and stores each result as soon as its call has ended.
    pub(super) async fn call_and_watch(
        &mut self,
        calls: &[CallBlock],
    ) -> Result<CallsOutcome, StoreError> {
        let mut watched = Watched {
            calls: calls.iter().map(|call| (call.id.as_str(), call)).collect(),
            started: HashMap::new(),
            ended: HashSet::new(),
            nested_errors: Vec::new(),
        };
        for call in calls {
            (self.emit)(AgentEvent::Call {
                id: call.id.clone(),
                name: call.name.clone(),
                arguments: call.arguments.clone(),
            });
        }
        let mut events = self.engine.recorder.events.subscribe();
        let tool_calls = calls.iter().map(tool_call).collect();
        let (engine, session, tools) = (self.engine, self.session, self.tools.clone());
        let cancel = self.cancel.child_token();
        let (sender, mut results) = mpsc::unbounded_channel();
        let mut running = pin!(engine.call_each(session, &tools, tool_calls, cancel, sender));
        let (mut outcome, mut is_running) = (CallsOutcome::default(), true);
        loop {
            let (position, result) = tokio::select! {
                biased;
                delivery = events.next() => {
                    match delivery {
                        Some(EventDelivery::Event(event)) => self.report(&event, &mut watched),
                        // What was missed is reported with the result.
                        Some(EventDelivery::Missed(_)) | None => {}
                    }
                    continue;
                }
                result = results.recv() => match result {
                    Some(result) => result,
                    None => {
                        outcome.errors.append(&mut watched.nested_errors);
                        return Ok(outcome);
                    }
                },
                () = &mut running, if is_running => {
                    is_running = false;
                    continue;
                }
            };
            let Some(call) = calls.get(position) else { continue };
            outcome.errors.extend(result.outcome.as_ref().err().map(|error| error.kind));
            let handover = result.outcome.as_ref().ok().and_then(|output| output.handover.clone());
            outcome.handover = handover.or(outcome.handover);
            if watched.ended.insert(&call.id) {
                let shown = match &result.outcome {
                    Ok(output) => Ok((output.title.as_str(), &output.metadata)),
                    Err(error) => Err((error.kind, error.full_message())),
                };
                self.report_result(call, watched.took(&call.id), shown);
            }
            self.transcript.append(vec![Item::Result(call_result(call, result.outcome))]).await?;
        }
    }

    fn report_result(&self, call: &CallBlock, took: Duration, outcome: ShownOutcome<'_>) {
        let todos = todos(call, &outcome);
        (self.emit)(result_event(call, took, outcome));
        if let Some(todos) = todos {
            (self.emit)(AgentEvent::Todos(todos));
        }
    }

    /// Reports an event of one of the calls, or of a call nested in one of them.
    fn report(&self, event: &Event, watched: &mut Watched<'_>) {
        if event.session != self.session.id {
            return;
        }
        // In a sub-agent's session the root call is a call of the parent, so the call's own id is looked up first.
        let direct = watched.calls.get_key_value(&*event.call);
        let is_outermost = direct.is_some();
        let found = direct.or_else(|| watched.calls.get_key_value(&*event.root_call));
        let Some((id, call)) = found.map(|(id, call)| (*id, *call)) else { return };
        match &event.kind {
            EventKind::Started { .. } if is_outermost => {
                watched.started.insert(id, Instant::now());
            }
            EventKind::Progress(progress) => {
                if let Some(text) = &progress.text {
                    (self.emit)(AgentEvent::Progress { id: id.into(), text: text.clone() });
                }
            }
            EventKind::Asked { summary } => {
                (self.emit)(AgentEvent::Asked { id: id.into(), question: summary.clone() });
            }
            EventKind::Finished(outcome) if is_outermost => {
                if !watched.ended.insert(id) {
                    return;
                }
                let outcome = match outcome {
                    CallOutcome::Completed { title, metadata, .. } => {
                        Ok((title.as_str(), metadata))
                    }
                    CallOutcome::Failed { kind, error } => Err((*kind, error.clone())),
                };
                self.report_result(call, watched.took(id), outcome);
            }
            EventKind::Finished(CallOutcome::Failed { kind, .. }) => {
                watched.nested_errors.push(*kind);
            }
            EventKind::Started { .. }
            | EventKind::Running { .. }
            | EventKind::Edited { .. }
            | EventKind::Answered { .. }
            | EventKind::Finished(_) => {}
        }
    }
}

/// The to-do list that a call wrote.
fn todos(call: &CallBlock, outcome: &ShownOutcome<'_>) -> Option<Vec<TodoEntry>> {
    let (_, metadata) = outcome.as_ref().ok().filter(|_| call.name == TODO_TOOL)?;
    let entry = |todo: &Value| {
        let text = |key: &str| todo.get(key)?.as_str().map(String::from);
        Some(TodoEntry { content: text("content")?, status: text("status")? })
    };
    Some(metadata.get(TODOS)?.as_array()?.iter().filter_map(entry).collect())
}

fn result_event(call: &CallBlock, took: Duration, outcome: ShownOutcome<'_>) -> AgentEvent {
    let text_of = |key: &str| {
        let value = outcome.as_ref().ok()?.1.get(key)?.as_str()?;
        Some(value.to_string()).filter(|value| !value.is_empty())
    };
    AgentEvent::Result {
        id: call.id.clone(),
        name: call.name.clone(),
        title: outcome.as_ref().map_or("", |(title, _)| title).to_string(),
        took,
        diff: text_of(DIFF),
        process: text_of(PROCESS),
        error: outcome.err(),
    }
}

impl Watched<'_> {
    fn took(&self, id: &str) -> Duration {
        self.started.get(id).map_or(Duration::ZERO, Instant::elapsed)
    }
}
