//! Builds a session on an in-memory machine, with the tools, rules, hooks and person that a test needs.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use helve_core::builtin::{ConfiguredRules, policy};
use helve_core::engine::EngineTimeouts;
use helve_core::{
    Action, AfterWrite, AnyTool, Ask, Caller, Engine, Event, Extensions, Gate, Hook, Host, Layer,
    Nobody, Person, Policy, Recorder, Registry, Rule, Session, Source, Tool, ToolCall, ToolContext,
    ToolError, ToolOutput, ToolProperties, ToolResult, Web, Workspace,
};
use helve_testkit::{MemoryJournal, MemoryMachine, MemoryOutputs, MemoryStore};
use helve_tools::opencode::{DIALECT, tools};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// A session and everything around it.
pub(crate) struct Stage {
    pub(crate) machine: Arc<MemoryMachine>,
    pub(crate) engine: Arc<Engine>,
    pub(crate) session: Arc<Session>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) store: Arc<MemoryStore>,
}

/// Builds a [`Stage`]. The fields may be set directly.
pub(crate) struct StageBuilder {
    pub(crate) machine: Arc<MemoryMachine>,
    pub(crate) rules: ConfiguredRules,
    pub(crate) hooks: Vec<Arc<dyn Hook>>,
    pub(crate) after_write: Vec<Arc<dyn AfterWrite>>,
    pub(crate) person: Arc<dyn Person>,
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) tools: Vec<Arc<dyn AnyTool>>,
    pub(crate) timeouts: EngineTimeouts,
    pub(crate) web: Option<Arc<dyn Web>>,
}

impl Default for StageBuilder {
    fn default() -> Self {
        let (hooks, tools) = (Vec::new(), Vec::new());
        let (rules, store) = (ConfiguredRules::default(), Arc::default());
        let (machine, person, after_write) = (Arc::default(), Arc::new(Nobody), Vec::new());
        let short = Duration::from_millis(50);
        let timeouts = EngineTimeouts { grace: short, hook: short };
        Self { machine, rules, hooks, after_write, person, store, tools, timeouts, web: None }
    }
}

impl StageBuilder {
    pub(crate) fn tool(mut self, tool: impl AnyTool + 'static) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    pub(crate) fn hook(mut self, hook: impl Hook + 'static) -> Self {
        self.hooks.push(Arc::new(hook));
        self
    }

    pub(crate) fn policy(&self) -> Policy {
        policy(self.rules.clone(), &[Path::new("/data")])
    }

    pub(crate) fn build(self) -> Stage {
        let store = self.store.clone();
        let gate = Gate::new(self.policy(), self.person.clone(), store, "s", "/w".into());
        self.build_with_gate(gate)
    }

    pub(crate) fn build_with_gate(self, gate: Gate) -> Stage {
        let machine = self.machine;
        machine.write("/w/a.txt", "hello\n");
        machine.write("/w/secret.txt", "s3cret\n");
        let workspace = Workspace::new(
            "/w".into(),
            Host::new(machine.clone(), Vec::new(), None),
            Arc::new(MemoryJournal::default()),
            Extensions { hooks: self.hooks, after_write: self.after_write, web: self.web },
            None,
        );
        let registry: Arc<Registry> = Arc::default();
        for tool in tools(Arc::new(helve_core::NoMedia)).into_iter().chain(self.tools) {
            registry.register(Layer::Builtin, tool).permanent();
        }
        let session = Arc::new(Session {
            id: "s".into(),
            caller: Caller::default(),
            workspace,
            gate,
            dialect: &DIALECT,
            limits: DIALECT.limits,
            switches: Vec::new(),
            store: self.store.clone(),
            outputs: Arc::new(MemoryOutputs::on(machine.clone())),
            seen_files: Default::default(),
            parent: None,
        });
        let recorder = Recorder::new(self.store.clone());
        let engine = Engine { recorder, timeouts: self.timeouts };
        Stage { engine: Arc::new(engine), session, registry, store: self.store, machine }
    }
}

impl Stage {
    pub(crate) async fn call(&self, tool: &str, input: Value) -> ToolResult {
        self.call_cancellable(tool, input, CancellationToken::new()).await
    }

    /// Calls a tool; `cancel` ends the call.
    pub(crate) async fn call_cancellable(
        &self,
        tool: &str,
        input: Value,
        cancel: CancellationToken,
    ) -> ToolResult {
        let call = ToolCall::new(tool, input);
        self.engine.call(&self.session, &self.registry.offer_to(&self.session), call, cancel).await
    }

    /// Reads a file and returns the [`outcome_text`].
    pub(crate) async fn read(&self, path: &str) -> String {
        outcome_text(&self.call("read", serde_json::json!({"filePath": path})).await)
    }
}

/// Returns "ok" and the second line of the output, which is the first line of content, or the kind of error and the
/// first line of its message.
pub(crate) fn outcome_text(result: &ToolResult) -> String {
    match &result.outcome {
        Ok(output) => format!("ok: {}", output.joined_text().lines().nth(1).unwrap_or_default()),
        Err(err) => format!("{:?}: {}", err.kind, err.message.lines().next().unwrap_or_default()),
    }
}

pub(crate) fn rule(permission: &str, pattern: &str, action: Action) -> Rule {
    Rule::new(permission, pattern, action, Source::Program)
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
pub(crate) struct NoArgs {}

/// A tool that runs a closure.
pub(crate) struct ClosureTool<F>(&'static str, F);

/// Makes a tool from a closure. The bounds tell the compiler that the closure accepts a context of any lifetime.
pub(crate) fn tool_from_fn<F>(name: &'static str, body: F) -> ClosureTool<F>
where
    F: for<'a> Fn(&'a ToolContext) -> helve_core::BoxFuture<'a, Result<ToolOutput, ToolError>>,
{
    ClosureTool(name, body)
}

impl<F> AnyTool for ClosureTool<F>
where
    F: for<'a> Fn(&'a ToolContext) -> helve_core::BoxFuture<'a, Result<ToolOutput, ToolError>>
        + Send
        + Sync
        + 'static,
{
    fn spec(&self, caller: &Caller) -> helve_core::ToolSpec {
        let mut spec = AnyTool::spec(&PlainTool, caller);
        spec.name = self.0.into();
        spec.group = self.0.into();
        spec
    }

    fn invalid(&self, _problems: &[helve_core::validate::ArgumentProblem]) -> Option<String> {
        None
    }

    fn call<'a>(
        &'a self,
        _input: helve_core::Input,
        ctx: &'a ToolContext,
    ) -> helve_core::BoxFuture<'a, Result<ToolOutput, ToolError>> {
        (self.1)(ctx)
    }
}

/// A tool without arguments that only asks for permission to be used.
pub(crate) struct PlainTool;

impl Tool for PlainTool {
    type Args = NoArgs;
    const NAME: &'static str = "plain";
    const ABOUT: &'static str = "Does nothing.";
    const PROPERTIES: ToolProperties = ToolProperties::READ_ONLY;

    async fn run(&self, _args: NoArgs, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        ctx.ask(Ask::to_use(Self::NAME)).await?;
        Ok(ToolOutput::text("plain", "\ndone"))
    }
}

/// Receives events until there are `count` of them.
pub(crate) async fn receive(events: &mut helve_core::Subscription, count: usize) -> Vec<Event> {
    let mut received = Vec::new();
    while received.len() < count {
        match events.next().await {
            Some(helve_core::event::EventDelivery::Event(event)) => received.push(event),
            Some(helve_core::event::EventDelivery::Missed(_)) => {}
            None => break,
        }
    }
    received
}
