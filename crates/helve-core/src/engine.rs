//! Runs a call from start to finish. There is one engine per process, and it holds no session.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::join_all;
use helve_policy::{Action, Part};
use helve_text::cut::cut;
use helve_text::visible;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::BoxFuture;
use crate::call::{CallRef, MAX_DEPTH, Origin, ToolCall, ToolResult};
use crate::context::{Memory, NestedCalls, ToolContext};
use crate::dialect::OutputCut;
use crate::event::{CallOutcome, EventKind};
use crate::files::Files;
use crate::hook;
use crate::input::{self, Input};
use crate::output::{Content, ErrorKind, ToolError, ToolOutput};
use crate::programs::Programs;
use crate::recorder::Recorder;
use crate::registry::ToolSet;
use crate::schema::restore_arguments;
use crate::session::Session;
use crate::spec::{InputSpec, ToolSpec};
use crate::store::Store;
use crate::tool::AnyTool;
use crate::validate::{UnknownParameter, validate};

/// The tool that handles calls to unknown names.
const INVALID: &str = "invalid";

/// Runs calls.
pub struct Engine {
    pub recorder: Recorder,
    pub timeouts: EngineTimeouts,
}

/// How long the engine waits for tools and hooks.
#[derive(Clone, Copy, Debug)]
pub struct EngineTimeouts {
    /// For a cancelled tool to return, before it is dropped.
    pub grace: Duration,
    /// For each hook.
    pub hook: Duration,
}

impl Default for EngineTimeouts {
    fn default() -> Self {
        Self { grace: Duration::from_secs(2), hook: Duration::from_secs(10) }
    }
}

impl Engine {
    pub fn new(store: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self { recorder: Recorder::new(store), timeouts: EngineTimeouts::default() })
    }

    /// Waits until the history is on disk.
    pub async fn flush(&self) {
        self.recorder.flush().await;
    }

    /// Runs one call. The future owns everything it needs, so a door may spawn, park or drop it.
    pub fn call(
        self: &Arc<Self>,
        session: &Arc<Session>,
        tools: &ToolSet,
        call: ToolCall,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, ToolResult> {
        let above = session.parent.as_ref().map(|above| &above.call);
        self.call_at(above, session, tools, call, cancel)
    }

    /// Runs the calls of one message. Adjacent calls that may run in parallel do; the others run one by one.
    pub async fn call_all(
        self: &Arc<Self>,
        session: &Arc<Session>,
        tools: &ToolSet,
        calls: Vec<ToolCall>,
        cancel: CancellationToken,
    ) -> Vec<ToolResult> {
        let (mut results, mut together) = (Vec::new(), Vec::new());
        for call in calls {
            let parallel = tools.traits(&call.name).is_none_or(|traits| traits.parallel);
            let running = self.call(session, tools, call, cancel.child_token());
            if parallel {
                together.push(running);
                continue;
            }
            results.extend(join_all(together.drain(..)).await);
            results.push(running.await);
        }
        results.extend(join_all(together).await);
        results
    }

    /// `above` is the call that this one is part of. Never waits for other calls: `call_all` does the ordering.
    fn call_at(
        self: &Arc<Self>,
        above: Option<&Arc<CallRef>>,
        session: &Arc<Session>,
        tools: &ToolSet,
        mut call: ToolCall,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, ToolResult> {
        let id: Arc<str> = call.id.as_str().into();
        let (depth, root) =
            above.map_or((0, id.clone()), |above| (above.depth + 1, above.root.clone()));
        let call_ref = Arc::new(CallRef {
            id,
            root,
            session: session.id.clone(),
            agent: session.caller.agent.clone(),
            tool: call.name.clone(),
            origin: call.origin.clone(),
            depth,
            answers: std::mem::take(&mut call.answers),
        });
        let recorder = match session.gate.is_explaining() {
            true => Recorder::off_the_record(),
            false => self.recorder.clone(),
        };
        let running = RunningCall {
            engine: self.clone(),
            recorder,
            session: session.clone(),
            tools: tools.clone(),
            call_ref,
            cancel,
        };
        Box::pin(running.run(call))
    }
}

/// One call in progress.
#[derive(Clone)]
struct RunningCall {
    engine: Arc<Engine>,
    recorder: Recorder,
    session: Arc<Session>,
    tools: ToolSet,
    call_ref: Arc<CallRef>,
    cancel: CancellationToken,
}

impl RunningCall {
    async fn run(self, mut call: ToolCall) -> ToolResult {
        let parent = match &call.origin {
            Origin::Model | Origin::Person => None,
            Origin::Inside { parent } => Some(parent.clone()),
        };
        self.emit(EventKind::Started { tool: call.name.clone(), parent });
        let outcome = self.attempt(&mut call).await;
        let mut result = ToolResult { call: call.id.clone(), outcome };
        self.after(&call, &mut result).await;
        if let Ok(output) = &mut result.outcome {
            self.limit_output(output).await;
        }
        self.emit(EventKind::Finished(event_outcome(&result)));
        result
    }

    async fn attempt(&self, call: &mut ToolCall) -> Result<ToolOutput, ToolError> {
        let words = self.session.dialect.words;
        if self.call_ref.depth > MAX_DEPTH {
            return Err(words.too_deep(MAX_DEPTH));
        }
        self.parse(call)?;
        self.before(call).await?;
        let Some((spec, tool)) = self.tools.find(&call.name) else {
            return self.call_invalid(call).await;
        };
        let extras = self.decode(spec, tool, call)?;
        self.emit(EventKind::Running { input: Arc::new(event_input(&call.input)) });
        let mut output = self.run_guarded(&spec.name, tool, call.input.clone()).await?;
        if !extras.is_empty() {
            output.content.push(Content::Text(words.unknown_parameters(&spec.name, &extras)));
        }
        Ok(output)
    }

    /// Parses wire text within the limits, or ends the call.
    fn parse(&self, call: &mut ToolCall) -> Result<(), ToolError> {
        let checked = match &call.input {
            Input::Raw(text) => input::parse(text).map(Some),
            Input::Json(value) => input::check(value).map(|()| None),
            Input::Text(text) if text.len() > input::MAX_BYTES => {
                Err(input::BadInput::TooLarge { bytes: text.len(), limit: input::MAX_BYTES })
            }
            Input::Text(_) => Ok(None),
        };
        match checked {
            Ok(None) => Ok(()),
            Ok(Some(value)) => {
                call.input = Input::Json(value);
                Ok(())
            }
            Err(bad) => {
                call.input = Input::Json(Value::Null);
                let words = self.session.dialect.words.bad_input(&call.name, &bad);
                Err(ToolError::new(ErrorKind::InvalidArgs, words))
            }
        }
    }

    async fn before(&self, call: &mut ToolCall) -> Result<(), ToolError> {
        for hook in self.session.workspace.hooks() {
            let running = hook.before(&self.call_ref, call);
            let words = self.session.dialect.words;
            let outcome = tokio::select! {
                biased;
                outcome = hook::guarded(running, self.engine.timeouts.hook) => outcome,
                // No effect has happened yet.
                () = self.cancel.cancelled() => return Err(words.aborted()),
            };
            outcome.map_err(|fault| words.hook_failed(hook.name(), &fault))?;
        }
        Ok(())
    }

    async fn after(&self, call: &ToolCall, result: &mut ToolResult) {
        for hook in self.session.workspace.hooks() {
            let mut changed = result.clone();
            let running =
                AssertUnwindSafe(hook.after(&self.call_ref, call, &mut changed)).catch_unwind();
            let running = tokio::time::timeout(self.engine.timeouts.hook, running);
            let event_outcome = tokio::select! {
                biased;
                event_outcome = running => event_outcome,
                () = self.grace_over() => {
                    result.outcome = Err(self.session.dialect.words.aborted());
                    return;
                }
            };
            // A failing hook may have changed the result halfway, so its changes are discarded.
            if let Ok(Ok(())) = event_outcome {
                *result = changed;
            }
        }
    }

    /// Resolves when the call was cancelled and its grace period is over.
    async fn grace_over(&self) {
        self.cancel.cancelled().await;
        tokio::time::sleep(self.engine.timeouts.grace).await;
    }

    /// Turns a call with an unknown name into a call of `invalid`, which suggests near names.
    async fn call_invalid(&self, call: &ToolCall) -> Result<ToolOutput, ToolError> {
        let near = self.tools.nearest(&call.name);
        let error = self.session.dialect.words.unknown_tool(&call.name, &near, &self.tools.names());
        let Some((spec, tool)) = self.tools.find(INVALID) else {
            return Err(ToolError::new(ErrorKind::UnknownTool, error));
        };
        let input = Input::Json(json!({"tool": call.name, "error": error}));
        let outcome = self.run_guarded(&spec.name, tool, input).await;
        outcome.map_err(|err| ToolError { kind: ErrorKind::UnknownTool, ..err })
    }

    fn decode(
        &self,
        spec: &ToolSpec,
        tool: &Arc<dyn AnyTool>,
        call: &mut ToolCall,
    ) -> Result<Vec<UnknownParameter>, ToolError> {
        call.input = restore_arguments(
            &spec.input,
            std::mem::replace(&mut call.input, Input::Text(String::new())),
        );
        let (InputSpec::Json(schema), Input::Json(args)) = (&spec.input, &mut call.input) else {
            return Ok(Vec::new());
        };
        let findings = validate(schema, args);
        if findings.problems.is_empty() {
            return Ok(findings.extras);
        }
        let words = tool
            .invalid(&findings.problems)
            .unwrap_or_else(|| self.session.dialect.words.invalid(&spec.name, &findings.problems));
        Err(ToolError::new(ErrorKind::InvalidArgs, words))
    }

    /// A panic ends only this call. A cancelled call gets a grace period.
    async fn run_guarded(
        &self,
        name: &str,
        tool: &Arc<dyn AnyTool>,
        input: Input,
    ) -> Result<ToolOutput, ToolError> {
        let words = self.session.dialect.words;
        if self.cancel.is_cancelled() {
            return Err(words.aborted());
        }
        let (session, call) = (&self.session, &self.call_ref);
        let recorder = &self.recorder;
        let ctx = ToolContext {
            call: call.clone(),
            files: Files {
                session: session.clone(),
                call: call.clone(),
                recorder: recorder.clone(),
                unasked: Mutex::default(),
            },
            programs: Programs {
                session: session.clone(),
                call: call.clone(),
                hook_timeout: self.engine.timeouts.hook,
            },
            memory: Memory(session.clone()),
            cancel: self.cancel.clone(),
            session: session.clone(),
            recorder: recorder.clone(),
            nested: Box::new(self.clone()),
        };
        let running = AssertUnwindSafe(tool.call(input, &ctx)).catch_unwind();
        let outcome = tokio::select! {
            outcome = running => outcome.unwrap_or_else(|_panic| Err(words.panicked(name))),
            () = self.grace_over() => Err(words.aborted()),
        };
        match outcome {
            // A tool that failed on a file nobody was asked about must not quote it.
            Err(err) if !ctx.files.unasked.lock().is_empty() => Err(match err.kind {
                ErrorKind::Denied | ErrorKind::Explained | ErrorKind::Cancelled => err,
                ErrorKind::UnknownTool
                | ErrorKind::InvalidArgs
                | ErrorKind::NotFound
                | ErrorKind::Stale
                | ErrorKind::TimedOut
                | ErrorKind::Failed => words.unasked(),
            }),
            outcome => outcome,
        }
    }

    /// Cuts the text to the session's limits, saves the full text, and adds a notice.
    async fn limit_output(&self, output: &mut ToolOutput) {
        for content in &mut output.content {
            if let Content::Text(text) = content
                && let std::borrow::Cow::Owned(plain) = visible::strip(text)
            {
                *text = plain;
            }
        }
        let text = output.joined();
        let Some(pieces) = cut(&text, output.keep, self.session.limits) else {
            output.metadata.entry("truncated").or_insert(Value::Bool(false));
            return;
        };
        if output.saved.is_none() {
            output.saved = self.session.outputs.save(&self.session.id, &text).await.ok();
        }
        let may_delegate = self.session.gate.judge(&Part::new("task", "*")).await.action
            != Action::Deny
            && self.tools.find("task").is_some();
        let notice = self.session.dialect.words.notice(&OutputCut {
            pieces,
            saved: output.saved.as_ref(),
            may_delegate,
        });
        output.content.retain(|content| !matches!(content, Content::Text(_)));
        output.content.insert(0, Content::Text(notice));
        output.metadata.insert("truncated".into(), true.into());
        output.metadata.insert("outputBytes".into(), text.len().into());
        if let Some(saved) = &output.saved {
            let path = saved.path.display().to_string();
            output.metadata.insert("outputPath".into(), path.into());
        }
    }

    fn emit(&self, what: EventKind) {
        self.recorder.emit(&self.call_ref, what);
    }
}

impl NestedCalls for RunningCall {
    fn call(&self, call: ToolCall, cancel: CancellationToken) -> BoxFuture<'static, ToolResult> {
        self.engine.call_at(Some(&self.call_ref), &self.session, &self.tools, call, cancel)
    }
}

/// The arguments as events carry them.
fn event_input(input: &Input) -> Value {
    match input {
        Input::Json(value) => value.clone(),
        Input::Text(text) | Input::Raw(text) => Value::String(text.clone()),
    }
}

fn event_outcome(result: &ToolResult) -> CallOutcome {
    match &result.outcome {
        Ok(output) => CallOutcome::Completed {
            title: output.title.clone(),
            metadata: output.metadata.clone(),
            output: output.joined(),
        },
        Err(err) => CallOutcome::Failed { kind: err.kind, error: err.full_message() },
    }
}
