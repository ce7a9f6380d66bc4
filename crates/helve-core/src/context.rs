//! The context that a tool gets for one call. The engine builds it, and drops it with the call.

use std::sync::Arc;
use std::time::Duration;

use helve_policy::{Action, Ask, Part, Refusal, Rule, Verdict};
use helve_text::cut::Limits;
use tokio_util::sync::CancellationToken;

use crate::BoxFuture;
use crate::agents::{Agents, ChildError, ChildReport, ChildSpec};
use crate::call::{CallRef, Origin, ToolCall, ToolResult};
use crate::change::{FileToChange, LoadPermit};
use crate::dialect::{HookFault, Words};
use crate::event::{EventKind, Progress};
use crate::files::Files;
use crate::gate::Grant;
use crate::hook;
use crate::input::Input;
use crate::journal::MAX_INLINE_BYTES;
use crate::output::{ErrorKind, Saved, ToolError};
use crate::programs::Programs;
use crate::question::{Answer, Question};
use crate::recorder::Recorder;
use crate::resolved::Resolved;
use crate::session::{ChildSession, ParentCall, Session, Slot};

/// How long an aborted call waits for the report of its sub-agent. It must be shorter than the grace period that the
/// engine gives the call.
const ABORT_TIME: Duration = Duration::from_millis(1500);

/// How long a hook may take to judge an ask, unless it has a limit of its own.
const HOOK_TIME: Duration = Duration::from_secs(10);

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
    /// See [`ToolContext::call_nested`].
    fn call(&self, call: ToolCall, cancel: CancellationToken) -> BoxFuture<'static, ToolResult>;

    /// See [`ToolContext::call_all_nested`].
    fn call_all(
        &self,
        calls: Vec<ToolCall>,
        cancel: CancellationToken,
    ) -> BoxFuture<'_, Vec<ToolResult>>;
}

/// Lets the hooks judge an ask, then asks the gate of the session. Fails if the call is cancelled first.
pub(crate) async fn ask_gate<'call>(
    session: &Session,
    call: &'call CallRef,
    recorder: &Recorder,
    cancel: &CancellationToken,
    mut ask: Ask,
    preview: impl Future<Output = String>,
) -> Result<Grant<'call>, ToolError> {
    let words = session.dialect.words;
    for hook in session.workspace.hooks() {
        let limit = hook.time_limit().unwrap_or(HOOK_TIME);
        let (action, why) = hook::run_judge(hook.judge(call, &ask), limit).await;
        match action {
            Action::Allow => {}
            Action::Ask => ask.required_by = Some(hook.name().into()),
            Action::Deny => {
                let fault = HookFault::Refused(why.unwrap_or_default());
                return Err(words.hook_failed(hook.name(), &fault));
            }
        }
    }
    let explain = |part: &Part, verdict: &Verdict| words.reason(part, verdict);
    let asking = session.gate.ask(ask, preview, call, explain, |kind| recorder.emit(call, kind));
    let refusal = tokio::select! {
        answer = asking => match answer {
            Ok(grant) => return Ok(grant),
            Err(refusal) => refusal,
        },
        // Dropping the future withdraws the question.
        () = cancel.cancelled() => return Err(words.aborted()),
    };
    Err(match refusal {
        Refusal::ExplainOnly => ToolError::new(ErrorKind::ExplainOnly, ""),
        refusal => words.refused(&refusal),
    })
}

impl ToolContext {
    /// Asks once for everything that the call needs. The returned grant covers exactly that.
    pub async fn ask(&self, mut ask: Ask) -> Result<Grant<'_>, ToolError> {
        let preview = std::mem::take(&mut ask.preview);
        self.ask_with_preview(ask, std::future::ready(preview)).await
    }

    /// Like [`ToolContext::ask`]. The preview is awaited only if a person has to be asked.
    pub async fn ask_with_preview(
        &self,
        ask: Ask,
        preview: impl Future<Output = String>,
    ) -> Result<Grant<'_>, ToolError> {
        ask_gate(&self.session, &self.call, &self.recorder, &self.cancel, ask, preview).await
    }

    /// Gets permission to open files that the call is about to change. Must be called before any of them is opened.
    ///
    /// If they may be read without asking, the change is asked about later, when its diff is known. Otherwise reading
    /// and changing are asked about now, and `preview` shows what the call requests. In that case the answer does not
    /// depend on what the files contain.
    pub async fn permit_change(
        &self,
        tool: &'static str,
        files: &[FileToChange<'_>],
        preview: impl FnOnce() -> String,
    ) -> Result<LoadPermit<'_>, ToolError> {
        let (mut ask, mut reading) = (Ask::default(), Vec::new());
        let mut must_ask_now = self.session.gate.is_explaining();
        // A hook may want a person to see a change that the rules allow.
        let mut is_change_allowed = self.session.workspace.hooks().is_empty();
        let mut permit = LoadPermit::default();
        for file in files {
            let request = file.path.edit_request(tool);
            let edit_action = self.strictest_action(&request.parts).await;
            ask = ask.add_request(request);
            let read_parts = file.path.read_request().parts;
            let read_action = self.strictest_action(&read_parts).await;
            must_ask_now |= edit_action == Action::Deny;
            is_change_allowed &= edit_action == Action::Allow;
            if file.may_be_new
                && file.path.kind().is_none()
                && edit_action == Action::Allow
                && read_action == Action::Ask
            {
                permit.add_new_file(file.path);
                continue;
            }
            must_ask_now |= read_action != Action::Allow;
            permit.add_readable(file.path);
            for part in read_parts {
                if read_action != Action::Allow
                    && self.session.gate.judge(&part).await.action != Action::Allow
                {
                    reading.push(part);
                }
            }
        }
        if must_ask_now {
            for part in reading {
                if !ask.parts.contains(&part) {
                    ask.parts.push(part);
                }
            }
            permit.grant = Some(self.ask(ask.preview(preview())).await?);
        }
        permit.is_change_allowed = is_change_allowed && !must_ask_now;
        Ok(permit)
    }

    /// Gets permission to open files that a preview compares. Must be called before any of them is opened.
    pub async fn permit_preview(
        &self,
        files: &[FileToChange<'_>],
    ) -> Result<LoadPermit<'_>, ToolError> {
        let mut permit = LoadPermit::default();
        let mut ask = Ask::default();
        for file in files {
            permit.add_readable(file.path);
            ask = ask.add_request(file.path.read_request());
        }
        self.ask(ask).await?;
        Ok(permit)
    }

    /// Gets permission to open files for comparing them. Must be called before any of them is opened.
    pub async fn permit_comparison(&self, paths: &[Resolved]) -> Result<LoadPermit<'_>, ToolError> {
        let mut permit = LoadPermit::default();
        let mut ask = Ask::default();
        for path in paths {
            permit.add_readable(path);
            ask = ask.add_request(path.read_request());
        }
        self.ask(ask).await?;
        Ok(permit)
    }

    /// Judges parts, and returns the strictest of the verdicts.
    async fn strictest_action(&self, parts: &[Part]) -> Action {
        let mut strictest = Action::Allow;
        for part in parts {
            strictest = strictest.max(self.session.gate.judge(part).await.action);
        }
        strictest
    }

    /// Runs `work` on a thread for blocking work. The work starts at once, even before the returned future is awaited.
    pub fn compute<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> BoxFuture<'static, Result<T, ToolError>> {
        let (words, tool) = (self.words(), self.call.tool.clone());
        let task = tokio::task::spawn_blocking(work);
        Box::pin(async move { task.await.map_err(|_panicked| words.panicked(&tool)) })
    }

    /// Like [`ToolContext::compute`], for work on this many bytes. Work on a small text is done at once, because waking
    /// a thread would take longer.
    pub fn compute_on<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> BoxFuture<'static, Result<T, ToolError>> {
        match bytes <= MAX_INLINE_BYTES {
            true => Box::pin(std::future::ready(Ok(work()))),
            false => self.compute(work),
        }
    }

    /// Reports progress to watchers. Never waits.
    pub fn progress(&self, progress: Progress) {
        self.emit(EventKind::Progress(progress));
    }

    /// Saves a text in full, because the answer shows only a part of it. `None` if it cannot be saved.
    pub async fn save_output(&self, text: &str) -> Option<Saved> {
        self.session.outputs.save(&self.session.id, text).await.ok()
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
        let parent = ParentCall { call: self.call.clone(), session: self.session.clone() };
        let switches = self.session.switches.clone();
        let child = ChildSession { id: None, agent: agent.into(), rules: vec![rules], switches };
        Session::child(parent, child)
    }

    /// The sub-agents of this call's session.
    pub fn tasks<'a>(&'a self, agents: &'a dyn Agents) -> Tasks<'a> {
        Tasks { agents, ctx: self }
    }

    /// Whether somebody answers questions of the model.
    pub fn takes_questions(&self) -> bool {
        self.session.gate.takes_questions()
    }

    /// Asks the person a question of the model; `None` if they do not answer.
    pub async fn question(&self, question: Question) -> Result<Option<Answer>, ToolError> {
        let emit = |kind| self.recorder.emit(&self.call, kind);
        tokio::select! {
            answer = self.session.gate.question(question, &self.call, emit) => Ok(answer),
            // Dropping the future withdraws the question.
            () = self.cancel.cancelled() => Err(self.words().aborted()),
        }
    }

    /// Runs another tool as part of this call, in the same session and one level deeper.
    pub async fn call_nested(&self, name: &str, input: Input) -> ToolResult {
        self.nested.call(self.nested_call(name, input), self.cancel.child_token()).await
    }

    /// Runs several tools as part of this call, in order. Adjacent calls of tools that allow it run in parallel.
    pub async fn call_all_nested(&self, calls: Vec<(String, Input)>) -> Vec<ToolResult> {
        let calls = calls.into_iter().map(|(name, input)| self.nested_call(&name, input));
        self.nested.call_all(calls.collect(), self.cancel.child_token()).await
    }

    fn nested_call(&self, name: &str, input: Input) -> ToolCall {
        ToolCall {
            origin: Origin::Nested { parent: self.call.id.to_string() },
            mode: self.call.mode,
            answers: self.call.answers.clone(),
            ..ToolCall::new(name, input)
        }
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
        self.0.dialect.words.store_failed(&err.to_string())
    }
}

/// The sub-agents of one call's session.
pub struct Tasks<'a> {
    agents: &'a dyn Agents,
    ctx: &'a ToolContext,
}

impl Tasks<'_> {
    /// Starts a sub-agent. A background sub-agent continues after the call, even if the call is cancelled.
    pub async fn start(&self, spec: ChildSpec) -> Result<String, ChildError> {
        let cancel = match spec.in_background {
            true => CancellationToken::new(),
            false => self.ctx.cancel.child_token(),
        };
        let (call, session) = (self.ctx.call.clone(), self.ctx.session.clone());
        self.agents.start(ParentCall { call, session }, spec, cancel).await
    }

    /// Waits until a task has ended, for at most `timeout`. If the call is aborted, its sub-agent is aborted too; then
    /// waits only a moment, for the complete report.
    pub async fn wait(&self, task: &str, timeout: Duration) -> Result<ChildReport, ChildError> {
        let session = &self.ctx.session;
        tokio::select! {
            report = self.agents.wait(session, task, timeout) => report,
            () = self.ctx.cancel.cancelled() => self.agents.wait(session, task, ABORT_TIME).await,
        }
    }

    pub async fn list(&self) -> Vec<ChildReport> {
        self.agents.tasks(&self.ctx.session).await
    }

    pub fn abort(&self, task: &str) -> Result<(), ChildError> {
        self.agents.abort(&self.ctx.session, task)
    }
}
