//! Runs the calls of a reply, and reports what happens to each while it runs.

use std::collections::{HashMap, HashSet};
use std::pin::pin;
use std::time::Duration;

use helve_core::event::{CallOutcome, Event, EventDelivery, EventKind};
use helve_core::output::ErrorKind;
use helve_core::store::StoreError;
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{Turn, call_result, tool_call};
use crate::event::AgentEvent;
use crate::item::{CallBlock, Item};

/// The metadata in which a tool reports what it changed.
const DIFF: &str = "diff";
/// The metadata in which a tool names a process that still runs.
const PROCESS: &str = "process";

/// The title and the metadata of a call, or why it failed.
type ShownOutcome<'a> = Result<(&'a str, &'a Map<String, Value>), (ErrorKind, String)>;

/// The calls that run now.
struct Watched<'a> {
    calls: HashMap<&'a str, &'a CallBlock>,
    started: HashMap<&'a str, Instant>,
    ended: HashSet<&'a str>,
}

impl Turn<'_> {
    /// Runs calls, and stores each result as soon as its call has ended. Returns the errors of the calls that failed.
    pub(super) async fn call_and_watch(
        &mut self,
        calls: &[CallBlock],
    ) -> Result<Vec<ErrorKind>, StoreError> {
        let mut watched = Watched {
            calls: calls.iter().map(|call| (call.id.as_str(), call)).collect(),
            started: HashMap::new(),
            ended: HashSet::new(),
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
        let (mut errors, mut is_running) = (Vec::new(), true);
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
                    None => return Ok(errors),
                },
                () = &mut running, if is_running => {
                    is_running = false;
                    continue;
                }
            };
            let Some(call) = calls.get(position) else { continue };
            errors.extend(result.outcome.as_ref().err().map(|error| error.kind));
            if watched.ended.insert(&call.id) {
                let outcome = match &result.outcome {
                    Ok(output) => Ok((output.title.as_str(), &output.metadata)),
                    Err(error) => Err((error.kind, error.full_message())),
                };
                (self.emit)(result_event(call, watched.took(&call.id), outcome));
            }
            self.transcript.append(vec![Item::Result(call_result(call, result.outcome))]).await?;
        }
    }

    /// Reports an event of one of the calls, or of a call nested in one of them.
    fn report(&self, event: &Event, watched: &mut Watched<'_>) {
        if event.session != self.session.id {
            return;
        }
        let Some((id, call)) = watched.calls.get_key_value(&*event.root) else { return };
        let (id, call) = (*id, *call);
        let is_outermost = event.call == event.root;
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
                (self.emit)(result_event(call, watched.took(id), outcome));
            }
            EventKind::Started { .. }
            | EventKind::Running { .. }
            | EventKind::Edited { .. }
            | EventKind::Answered { .. }
            | EventKind::Finished(_) => {}
        }
    }
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
