//! What a tool is given for one call. Built by the engine, dropped with the call.

use std::sync::Arc;

use helve_policy::{Ask, Refusal, Rule};
use helve_text::cut::Limits;
use tokio_util::sync::CancellationToken;

use crate::BoxFuture;
use crate::call::{CallRef, Origin, ToolCall, ToolResult};
use crate::dialect::Words;
use crate::event::{EventKind, Progress};
use crate::files::Files;
use crate::gate::Grant;
use crate::input::Input;
use crate::output::{ErrorKind, ToolError};
use crate::programs::Programs;
use crate::recorder::Recorder;
use crate::session::{Session, Slot};

/// Everything that a tool can use. The session itself is not accessible.
pub struct ToolContext {
    pub call: Arc<CallRef>,
    pub files: Files,
    pub programs: Programs,
    pub memory: Memory,
    /// Cancelled when the call should end. A tool that does not return is dropped after a grace period.
    pub cancel: CancellationToken,
    pub(crate) session: Arc<Session>,
    pub(crate) recorder: Recorder,
    pub(crate) nested: Box<dyn NestedCalls>,
}

/// Runs nested calls. Implemented by the engine.
pub(crate) trait NestedCalls: Send + Sync {
    fn call(&self, call: ToolCall, cancel: CancellationToken) -> BoxFuture<'static, ToolResult>;
}

impl ToolContext {
    /// Asks once for everything that the call needs. The returned grant covers exactly that. Adds the ask's parts
    /// for files that were already loaded.
    pub async fn ask(&self, ask: Ask) -> Result<Grant<'_>, ToolError> {
        let mut ask = ask;
        let loaded = self.files.parts_to_ask.lock().clone();
        ask.parts.extend(
            loaded.iter().filter(|part| !ask.parts.contains(part)).cloned().collect::<Vec<_>>(),
        );
        let asking = self.session.gate.ask(ask, &self.call, |kind| self.emit(kind));
        let refusal = tokio::select! {
            answer = asking => match answer {
                Ok(grant) => {
                    self.files.parts_to_ask.lock().retain(|part| !loaded.contains(part));
                    return Ok(grant);
                }
                Err(refusal) => refusal,
            },
            // Dropping the future withdraws the question.
            () = self.cancel.cancelled() => return Err(self.words().aborted()),
        };
        Err(match refusal {
            Refusal::ExplainOnly => ToolError::new(ErrorKind::ExplainOnly, ""),
            refusal => self.words().refused(&refusal),
        })
    }

    /// Runs work on a blocking thread, starting at once.
    pub fn compute<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> BoxFuture<'static, Result<T, ToolError>> {
        let (words, tool) = (self.words(), self.call.tool.clone());
        let task = tokio::task::spawn_blocking(work);
        Box::pin(async move { task.await.map_err(|_panicked| words.panicked(&tool)) })
    }

    /// Reports progress to watchers. Never waits.
    pub fn progress(&self, progress: Progress) {
        self.emit(EventKind::Progress(progress));
    }

    /// The limits on the text of an answer.
    pub fn limits(&self) -> Limits {
        self.session.limits
    }

    /// The wording of messages in the session's dialect.
    pub fn words(&self) -> &'static dyn Words {
        self.session.dialect.words
    }

    /// Opens a session for a sub-agent of this call.
    pub fn open_child_session(&self, agent: &str, rules: Vec<Rule>) -> Arc<Session> {
        self.session.child(&self.call, agent, rules)
    }

    /// Runs another tool as part of this call, in the same session and one level deeper.
    pub async fn call_nested(&self, name: &str, input: Input) -> ToolResult {
        let mut call = ToolCall::new(name, input);
        call.origin = Origin::Nested { parent: self.call.id.to_string() };
        call.answers.clone_from(&self.call.answers);
        self.nested.call(call, self.cancel.child_token()).await
    }

    fn emit(&self, kind: EventKind) {
        self.recorder.emit(&self.call, kind);
    }
}

/// What the session remembers: one value per [`Slot`] type.
pub struct Memory(pub(crate) Arc<Session>);

impl Memory {
    /// Returns what a slot holds, or the default.
    pub async fn recall<T: Slot>(&self) -> Result<T, ToolError> {
        self.0.recall().await.map_err(|err| self.memory_error(&err))
    }

    /// Changes a slot. If another process changes it at the same time, `change` runs again on the new value.
    pub async fn update<T: Slot, R>(
        &self,
        change: impl FnMut(&mut T) -> R,
    ) -> Result<R, ToolError> {
        self.0.update(change).await.map_err(|err| self.memory_error(&err))
    }

    fn memory_error(&self, err: &std::io::Error) -> ToolError {
        self.0.dialect.words.memory_failed(&err.to_string())
    }
}
