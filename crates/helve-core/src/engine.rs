//! Runs a call from start to finish. There is one engine per process, and it holds no session.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::join_all;
use helve_policy::{Action, Ask, AskKey, Part, Reply};
use helve_text::cut::cut;
use helve_text::visible;
use serde_json::{Value, json};
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio_util::sync::CancellationToken;

use crate::BoxFuture;
use crate::call::{CallMode, CallRef, MAX_DEPTH, Origin, ToolCall, ToolResult};
use crate::context::{Memory, NestedCalls, ToolContext, ask_gate};
use crate::dialect::OutputCut;
use crate::event::{CallOutcome, EventKind};
use crate::files::Files;
use crate::foreign::{self, UnknownPolicy};
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
use crate::validate::{Findings, UnknownParameter, validate};

/// The tool that answers calls of unknown tools.
const INVALID: &str = "invalid";

/// Runs calls.
pub struct Engine {
    pub recorder: Recorder,
    pub timeouts: EngineTimeouts,
}

/// How long the engine waits for tools and hooks.
#[derive(Clone, Copy, Debug)]
pub struct EngineTimeouts {
    /// How long a cancelled tool may take to return before it is dropped.
    pub grace: Duration,
    /// How long each hook may take.
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

    /// Runs one call. The future owns everything it needs, so it can be spawned or dropped at any time.
    pub fn call(
        self: &Arc<Self>,
        session: &Arc<Session>,
        tools: &ToolSet,
        call: ToolCall,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, ToolResult> {
        let parent = session.parent.as_ref().map(|parent| &parent.call);
        self.call_with_parent(parent, session, tools, call, cancel)
    }

    /// Runs the calls of one message, in order. Adjacent calls of tools that allow it run in parallel.
    pub async fn call_all(
        self: &Arc<Self>,
        session: &Arc<Session>,
        tools: &ToolSet,
        calls: Vec<ToolCall>,
        cancel: CancellationToken,
    ) -> Vec<ToolResult> {
        let run = |call| self.call(session, tools, call, cancel.child_token());
        run_in_order(tools, calls, run).await
    }

    /// Like [`Engine::call_all`], but sends each result as soon as its call has ended, with the position of the call.
    pub async fn call_each(
        self: &Arc<Self>,
        session: &Arc<Session>,
        tools: &ToolSet,
        calls: Vec<ToolCall>,
        cancel: CancellationToken,
        results: UnboundedSender<(usize, ToolResult)>,
    ) {
        let run = |call| self.call(session, tools, call, cancel.child_token());
        run_and_send_results(tools, calls, run, results).await;
    }

    /// Asks for a permission that a call needs besides those of its tool, such as the permission to repeat the same
    /// call.
    pub async fn confirm(
        &self,
        session: &Session,
        call: &ToolCall,
        mut ask: Ask,
        cancel: &CancellationToken,
    ) -> Result<(), ToolError> {
        let parent = session.parent.as_ref().map(|parent| &*parent.call);
        let call_ref = call_ref(parent, session, call, HashMap::new());
        let preview = std::future::ready(std::mem::take(&mut ask.preview));
        ask_gate(session, &call_ref, &self.recorder, cancel, ask, preview).await.map(|_grant| ())
    }

    /// Runs a call as part of `parent`, if there is one. Does not wait for other calls; [`Engine::call_all`] decides
    /// which calls run one after another.
    fn call_with_parent(
        self: &Arc<Self>,
        parent: Option<&Arc<CallRef>>,
        session: &Arc<Session>,
        tools: &ToolSet,
        mut call: ToolCall,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, ToolResult> {
        let answers = std::mem::take(&mut call.answers);
        let call_ref = Arc::new(call_ref(parent.map(|parent| &**parent), session, &call, answers));
        let recorder = match session.gate.is_explaining() {
            true => Recorder::without_store(),
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

/// Identifies a call: nested one level deeper than its parent, if it has one.
fn call_ref(
    parent: Option<&CallRef>,
    session: &Session,
    call: &ToolCall,
    answers: HashMap<AskKey, Reply>,
) -> CallRef {
    let id: Arc<str> = call.id.as_str().into();
    let (depth, root_call) =
        parent.map_or((0, id.clone()), |parent| (parent.depth + 1, parent.root_call.clone()));
    CallRef {
        id,
        root_call,
        session: session.id.clone(),
        agent: session.caller.agent.clone(),
        tool: call.name.clone(),
        origin: call.origin.clone(),
        mode: call.mode,
        depth,
        answers,
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
    /// Runs the call, with its events, the `after` hooks and the limits on output.
    async fn run(self, mut call: ToolCall) -> ToolResult {
        let parent = match &call.origin {
            Origin::Model | Origin::Person => None,
            Origin::Nested { parent } => Some(parent.clone()),
        };
        self.emit(EventKind::Started { tool: call.name.clone(), parent });
        let outcome = self.attempt(&mut call).await;
        let mut result = ToolResult { call: call.id.clone(), outcome };
        self.run_after_hooks(&call, &mut result).await;
        if let Ok(output) = &mut result.outcome {
            self.limit_output(output).await;
        }
        self.emit(EventKind::Finished(event_outcome(&result)));
        result
    }

    /// Runs a call up to its outcome, before the `after` hooks and the limits on output.
    async fn attempt(&self, call: &mut ToolCall) -> Result<ToolOutput, ToolError> {
        let words = self.session.dialect.words;
        if self.call_ref.depth > MAX_DEPTH {
            return Err(words.too_deep(MAX_DEPTH));
        }
        self.parse(call)?;
        // Hooks see the tool's own parameters, so that one that looks at `filePath` is not evaded by `file_path`.
        self.convert_foreign_arguments(call)?;
        self.run_before_hooks(call).await?;
        self.convert_foreign_arguments(call)?;
        let Some((spec, tool)) = self.tools.find(&call.name) else {
            return self.call_invalid(call).await;
        };
        if call.mode == CallMode::Preview && !spec.properties.previews {
            return Err(words.no_preview(&spec.name));
        }
        let unknown = self.decode(spec, tool, call)?;
        self.emit(EventKind::Running { input: Arc::new(event_input(&call.input)) });
        let mut output = self.run_guarded(&spec.name, tool, call.input.clone()).await?;
        if !unknown.is_empty() {
            output.content.push(Content::Text(words.unknown_parameters(&spec.name, &unknown)));
        }
        Ok(output)
    }

    /// Parses the arguments and checks them against the limits.
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
                let message = self.session.dialect.words.bad_input(&call.name, &bad);
                Err(ToolError::new(ErrorKind::InvalidArgs, message))
            }
        }
    }

    /// Converts arguments that are written for another agent's tool, for example by renaming `file_path` to `filePath`.
    fn convert_foreign_arguments(&self, call: &mut ToolCall) -> Result<(), ToolError> {
        let Some((spec, tool)) = self.tools.find(&call.name) else { return Ok(()) };
        let (InputSpec::Json(schema), Input::Json(Value::Object(args))) =
            (&spec.input, &mut call.input)
        else {
            return Ok(());
        };
        let foreign = tool.foreign();
        let full_schema = foreign.full_schema(schema);
        let schema = full_schema.as_ref().unwrap_or(schema);
        if let Err(ambiguous) = foreign::rename(schema, foreign.aliases, args) {
            return Err(self.session.dialect.words.ambiguous_name(&spec.name, &ambiguous));
        }
        (foreign.convert)(args).map_err(|text| ToolError::new(ErrorKind::InvalidArgs, text))
    }

    /// Lets the hooks rewrite or refuse the call.
    async fn run_before_hooks(&self, call: &mut ToolCall) -> Result<(), ToolError> {
        for hook in self.session.workspace.hooks() {
            let running = hook.before(&self.call_ref, call);
            let words = self.session.dialect.words;
            let outcome = tokio::select! {
                biased;
                outcome = hook::run_hook(running, self.hook_time(&**hook)) => outcome,
                // There is no grace period, because the call has had no effect yet.
                () = self.cancel.cancelled() => return Err(words.aborted()),
            };
            outcome.map_err(|fault| words.hook_failed(hook.name(), &fault))?;
        }
        Ok(())
    }

    fn hook_time(&self, hook: &dyn hook::Hook) -> Duration {
        hook.time_limit().unwrap_or(self.engine.timeouts.hook)
    }

    /// Lets the hooks change the result.
    async fn run_after_hooks(&self, call: &ToolCall, result: &mut ToolResult) {
        for hook in self.session.workspace.hooks() {
            let mut changed = result.clone();
            let running =
                AssertUnwindSafe(hook.after(&self.call_ref, call, &mut changed)).catch_unwind();
            let running = tokio::time::timeout(self.hook_time(&**hook), running);
            let finished = tokio::select! {
                biased;
                finished = running => finished,
                () = self.grace_period_ended() => {
                    result.outcome = Err(self.session.dialect.words.aborted());
                    return;
                }
            };
            // A failing hook may have changed the result halfway, so its changes are discarded.
            if let Ok(Ok(())) = finished {
                *result = changed;
            }
        }
    }

    /// Resolves when the call has been cancelled and its grace period has ended.
    async fn grace_period_ended(&self) {
        self.cancel.cancelled().await;
        tokio::time::sleep(self.engine.timeouts.grace).await;
    }

    /// Answers a call of an unknown tool by calling [`INVALID`] with a message that suggests similar names.
    async fn call_invalid(&self, call: &ToolCall) -> Result<ToolOutput, ToolError> {
        if self.tools.is_denied(&call.name) {
            return Err(self.session.dialect.words.denied_tool(&call.name));
        }
        let near = self.tools.nearest(&call.name);
        let error = self.session.dialect.words.unknown_tool(&call.name, &near, &self.tools.names());
        let Some((spec, tool)) = self.tools.find(INVALID) else {
            return Err(ToolError::new(ErrorKind::UnknownTool, error));
        };
        let input = Input::Json(json!({"tool": call.name, "error": error}));
        let outcome = self.run_guarded(&spec.name, tool, input).await;
        outcome.map_err(|err| ToolError { kind: ErrorKind::UnknownTool, ..err })
    }

    /// Validates the arguments and corrects what is unambiguous. Returns the parameters that the tool does not have.
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
        let foreign = tool.foreign();
        let full_schema = foreign.full_schema(schema);
        let Findings { problems, mut unknown } =
            validate(full_schema.as_ref().unwrap_or(schema), args);
        let words = self.session.dialect.words;
        if !problems.is_empty() {
            let message =
                tool.invalid(&problems).unwrap_or_else(|| words.invalid(&spec.name, &problems));
            return Err(ToolError::new(ErrorKind::InvalidArgs, message));
        }
        unknown.retain(|unknown| !foreign.may_ignore(unknown));
        if foreign.unknown == UnknownPolicy::Report || unknown.is_empty() {
            return Ok(unknown);
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        let accepted: Vec<&str> =
            properties.into_iter().flat_map(|map| map.keys()).map(|name| &**name).collect();
        Err(words.refused_parameters(&spec.name, &unknown, &accepted))
    }

    /// Runs a tool. A panic ends only this call; a cancelled call gets a grace period.
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
        tokio::select! {
            outcome = running => outcome.unwrap_or_else(|_panic| Err(words.panicked(name))),
            () = self.grace_period_ended() => Err(words.aborted()),
        }
    }

    /// Removes control sequences and cuts the text to the session's limits. The full text is saved, and a notice is
    /// added.
    async fn limit_output(&self, output: &mut ToolOutput) {
        for content in &mut output.content {
            if let Content::Text(text) = content
                && let std::borrow::Cow::Owned(plain) = visible::strip_invisible(text)
            {
                *text = plain;
            }
        }
        let text = output.joined_text();
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
        let shortened = self.session.dialect.words.cut_output(&OutputCut {
            pieces,
            saved: output.saved.as_ref(),
            may_delegate,
        });
        output.content.retain(|content| !matches!(content, Content::Text(_)));
        output.content.insert(0, Content::Text(shortened));
        output.metadata.insert("truncated".into(), true.into());
        output.metadata.insert("outputBytes".into(), text.len().into());
        if let Some(saved) = &output.saved {
            let path = saved.path.display().to_string();
            output.metadata.insert("outputPath".into(), path.into());
        }
    }

    fn emit(&self, kind: EventKind) {
        self.recorder.emit(&self.call_ref, kind);
    }
}

impl NestedCalls for RunningCall {
    fn call(&self, call: ToolCall, cancel: CancellationToken) -> BoxFuture<'static, ToolResult> {
        self.engine.call_with_parent(Some(&self.call_ref), &self.session, &self.tools, call, cancel)
    }

    fn call_all(
        &self,
        calls: Vec<ToolCall>,
        cancel: CancellationToken,
    ) -> BoxFuture<'_, Vec<ToolResult>> {
        let run = move |call| NestedCalls::call(self, call, cancel.child_token());
        Box::pin(run_in_order(&self.tools, calls, run))
    }
}

/// Runs calls in order and returns their results in the same order. See [`run_and_send_results`].
async fn run_in_order(
    tools: &ToolSet,
    calls: Vec<ToolCall>,
    run: impl Fn(ToolCall) -> BoxFuture<'static, ToolResult>,
) -> Vec<ToolResult> {
    let (sender, mut receiver) = mpsc::unbounded_channel();
    run_and_send_results(tools, calls, run, sender).await;
    let mut results = Vec::new();
    while let Some(result) = receiver.recv().await {
        results.push(result);
    }
    results.sort_by_key(|(position, _)| *position);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Runs calls in order. Adjacent calls of tools that allow it run in parallel. Sends each result as soon as its call
/// has ended, with the position of the call.
async fn run_and_send_results(
    tools: &ToolSet,
    calls: Vec<ToolCall>,
    run: impl Fn(ToolCall) -> BoxFuture<'static, ToolResult>,
    results: UnboundedSender<(usize, ToolResult)>,
) {
    let mut parallel_calls = Vec::new();
    for (position, call) in calls.into_iter().enumerate() {
        let is_parallel = tools.properties(&call.name).is_none_or(|properties| properties.parallel);
        let running = run(call);
        let results = results.clone();
        let running = async move {
            // Sending fails if nobody waits for the results any more.
            results.send((position, running.await)).ok();
        };
        if is_parallel {
            parallel_calls.push(running);
            continue;
        }
        join_all(parallel_calls.drain(..)).await;
        running.await;
    }
    join_all(parallel_calls).await;
}

/// Returns the arguments in the form that events use.
fn event_input(input: &Input) -> Value {
    match input {
        Input::Json(value) => value.clone(),
        Input::Text(text) | Input::Raw(text) => Value::String(text.clone()),
    }
}

/// Returns the result in the form that events use.
fn event_outcome(result: &ToolResult) -> CallOutcome {
    match &result.outcome {
        Ok(output) => CallOutcome::Completed {
            title: output.title.clone(),
            metadata: output.metadata.clone(),
            output: output.joined_text(),
        },
        Err(err) => CallOutcome::Failed { kind: err.kind, error: err.full_message() },
    }
}
