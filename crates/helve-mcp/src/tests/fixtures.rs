//! Test fixtures: a session in memory, a few tools, and a simple dialect.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use helve_core::dialect::{BadPath, CommitFailure, HookFault};
use helve_core::event::Progress;
use helve_core::foreign::AmbiguousName;
use helve_core::machine::MachineError;
use helve_core::validate::{ArgumentProblem, UnknownParameter};
use helve_core::workspace::Extensions;
use helve_core::{
    AnyTool, Ask, BadInput, BoxFuture, Caller, Content, Dialect, Engine, ErrorKind, Gate, Host,
    Layer, OutputCut, Part, Pattern, Policy, Refusal, Registry, Session, Tool, ToolContext,
    ToolError, ToolOutput, ToolProperties, ToolSet, Verdict, Words, Workspace,
};
use helve_testkit::{MemoryJournal, MemoryMachine, MemoryOutputs, MemoryStore};
use helve_text::cut::{Keep, Limits};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{McpConfig, MetadataMode, PromptPiece, Prompts, SessionRequest};

/// What tools report to the test besides their results.
pub(crate) type Log = Arc<Mutex<Vec<String>>>;

pub(crate) struct Fixture {
    pub(crate) registry: Arc<Registry>,
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) log: Log,
    workspace: Arc<Workspace>,
    machine: Arc<MemoryMachine>,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let machine = Arc::new(MemoryMachine::default());
        let journal = Arc::new(MemoryJournal::default());
        let extensions = Extensions::default();
        let host = Host::new(machine.clone(), Vec::new(), None);
        let workspace = Workspace::new("/w".into(), host, journal, extensions, None);
        let (registry, log): (Arc<Registry>, _) = (Arc::default(), Log::default());
        registry.register(Layer::Builtin, Arc::new(Echo)).permanent();
        registry.register(Layer::Builtin, Arc::new(Show)).permanent();
        registry.register(Layer::Builtin, Arc::new(Work)).permanent();
        registry.register(Layer::Builtin, Arc::new(Wait(log.clone()))).permanent();
        registry.register(Layer::Runtime, Arc::new(Touch)).permanent();
        registry.register(Layer::Runtime, Arc::new(Flood)).permanent();
        Fixture { registry, store: Arc::default(), log, workspace, machine }
    }

    /// Returns a tool to register and drop during a test.
    pub(crate) fn temporary_tool(&self) -> Arc<dyn AnyTool> {
        Arc::new(Wink)
    }

    pub(crate) fn config(&self) -> McpConfig {
        let (workspace, store, log) =
            (self.workspace.clone(), self.store.clone(), self.log.clone());
        let outputs = Arc::new(MemoryOutputs::on(self.machine.clone()));
        let open = move |SessionRequest { client, agent, person }: SessionRequest| {
            let agent = agent.map_or_else(String::new, |agent| format!(" as {agent}"));
            log.lock().push(format!("opened for {} {}{agent}", client.name, client.version));
            let gate = Gate::new(Policy::default(), person, store.clone(), "s", "/w".into());
            Some(Arc::new(Session {
                id: "s".into(),
                caller: Caller { client: client.name, ..Caller::default() },
                workspace: workspace.clone(),
                gate,
                dialect: &PLAIN,
                limits: PLAIN.limits,
                switches: Vec::new(),
                store: store.clone(),
                outputs: outputs.clone(),
                seen_files: Default::default(),
                parent: None,
            }))
        };
        McpConfig {
            engine: Engine::new(self.store.clone()),
            registry: self.registry.clone(),
            open_session: Box::new(open),
            name: "helve".into(),
            version: "1.2.3".into(),
            instructions: Some("Be kind.".into()),
            prompts: Arc::new(TestPrompts),
            metadata: MetadataMode::Hidden,
        }
    }
}

#[derive(Deserialize, JsonSchema)]
struct EchoArgs {
    /// What to say
    text: String,
}

struct Echo;

impl Tool for Echo {
    type Args = EchoArgs;
    const NAME: &'static str = "echo";
    const ABOUT: &'static str = "Says it again";

    async fn run(&self, args: EchoArgs, _ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        match args.text.as_str() {
            "" => Err(ToolError::new(ErrorKind::Failed, "There is nothing to say.")
                .hint("Say something.")),
            "panic" => panic!("as asked"),
            _ => Ok(ToolOutput::text("echo", args.text)),
        }
    }
}

#[derive(Deserialize, JsonSchema)]
struct ShowArgs {}

struct Show;

impl Tool for Show {
    type Args = ShowArgs;
    const NAME: &'static str = "show_all";
    const ABOUT: &'static str = "One of each kind";
    const PROPERTIES: ToolProperties =
        ToolProperties { open_world: true, ..ToolProperties::READ_ONLY };

    async fn run(&self, _args: ShowArgs, _ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let media = |mime: &str| Content::Media {
            mime: mime.into(),
            data: Bytes::from_static(b"\0\xff\x10"),
        };
        let link = Content::Link { uri: "file:///w/a".into(), name: "a".into() };
        let mut output = ToolOutput::text("show", "all of it").keep(Keep::All);
        let attachments = [media("image/png"), media("audio/wav"), media("application/pdf"), link];
        output.content.extend(attachments);
        Ok(output)
    }
}

#[derive(Deserialize, JsonSchema)]
struct TouchArgs {
    /// How many times to ask
    times: u32,
}

/// Asks for permission and does nothing.
struct Touch;

impl Tool for Touch {
    type Args = TouchArgs;
    const NAME: &'static str = "touch";
    const ABOUT: &'static str = "Asks first";
    const PROPERTIES: ToolProperties = ToolProperties::MUTATES;

    async fn run(&self, args: TouchArgs, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        for time in 1..=args.times {
            let part = Part::new("edit", format!("a{time}")).remember_as(Pattern::any());
            let ask = Ask { parts: vec![part], ..Ask::default() }.preview("-a\n+\u{202e}b\n");
            ctx.ask(ask).await?;
            ctx.progress(Progress::text(format!("touched {time}")));
        }
        Ok(ToolOutput::text("touch", "touched").with_metadata("times", args.times))
    }
}

/// Returns more than is shown.
struct Flood;

impl Tool for Flood {
    type Args = ShowArgs;
    const NAME: &'static str = "flood";
    const ABOUT: &'static str = "Too much";

    async fn run(&self, _args: ShowArgs, _ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text("flood", "line\n".repeat(3000)))
    }
}

struct Wink;

impl Tool for Wink {
    type Args = ShowArgs;
    const NAME: &'static str = "wink";
    const ABOUT: &'static str = "Comes and goes";

    async fn run(&self, _args: ShowArgs, _ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text("wink", "winked"))
    }
}

#[derive(Deserialize, JsonSchema)]
struct WorkArgs {
    steps: u64,
}

struct Work;

impl Tool for Work {
    type Args = WorkArgs;
    const NAME: &'static str = "work";
    const ABOUT: &'static str = "Takes a second a step";
    const PROPERTIES: ToolProperties = ToolProperties::MUTATES;

    async fn run(&self, args: WorkArgs, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        for step in 1..=args.steps {
            ctx.progress(Progress::text("replaced at once"));
            ctx.progress(Progress {
                units_done: (step > 1).then_some((step * 10, Some(args.steps * 10))),
                ..Progress::text(format!("step {step}"))
            });
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        Ok(ToolOutput::text("work", "done"))
    }
}

#[derive(Deserialize, JsonSchema)]
struct WaitArgs {
    /// Ignore that the call was cancelled
    #[serde(default)]
    ignore_cancel: bool,
}

/// Waits until the call is cancelled; for ever with `ignore_cancel`.
struct Wait(Log);

struct LogOnDrop<'a>(&'a Log, &'a str);

impl Drop for LogOnDrop<'_> {
    fn drop(&mut self) {
        self.0.lock().push(self.1.into());
    }
}

impl Tool for Wait {
    type Args = WaitArgs;
    const NAME: &'static str = "wait";
    const ABOUT: &'static str = "Waits for ever";

    async fn run(&self, args: WaitArgs, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        self.0.lock().push("waiting".into());
        let _log_on_drop = LogOnDrop(&self.0, "stopped waiting");
        if args.ignore_cancel {
            std::future::pending::<()>().await;
        }
        ctx.cancel.cancelled().await;
        self.0.lock().push("saw the cancellation".into());
        Err(ctx.words().aborted())
    }
}

static PLAIN: Dialect =
    Dialect { name: "plain", limits: Limits { lines: 2000, bytes: 50 << 10 }, words: &PlainWords };

struct PlainWords;

impl Words for PlainWords {
    fn cut_output(&self, cut: &OutputCut<'_>) -> String {
        format!("{} lines", cut.pieces.head.lines().count())
    }

    fn bad_input(&self, tool: &str, bad: &BadInput) -> String {
        format!("{tool}: {bad:?}")
    }

    fn invalid(&self, tool: &str, problems: &[ArgumentProblem]) -> String {
        let paths: Vec<&str> = problems.iter().map(|problem| problem.path.as_str()).collect();
        format!("{tool}: invalid: {paths:?}")
    }

    fn unknown_parameters(&self, tool: &str, extra: &[UnknownParameter]) -> String {
        let paths: Vec<&str> = extra.iter().map(|extra| extra.path.as_str()).collect();
        format!("{tool}: ignored {paths:?}")
    }

    fn refused_parameters(
        &self,
        tool: &str,
        extra: &[UnknownParameter],
        _known: &[&str],
    ) -> ToolError {
        ToolError::new(ErrorKind::InvalidArgs, self.unknown_parameters(tool, extra))
    }

    fn ambiguous_name(&self, tool: &str, ambiguous: &AmbiguousName) -> ToolError {
        ToolError::new(ErrorKind::InvalidArgs, format!("{tool}: {ambiguous:?}"))
    }

    fn unknown_tool(&self, tool: &str, near: &[&str], all: &[&str]) -> String {
        format!("no tool {tool}; near: {near:?}; all: {all:?}")
    }

    fn reason(&self, _part: &Part, _verdict: &Verdict) -> String {
        "no rule allows it".into()
    }

    fn refused(&self, refusal: &Refusal) -> ToolError {
        let text = match refusal {
            Refusal::Unanswered(pending) => {
                let listed = pending
                    .parts
                    .iter()
                    .map(|(part, _)| format!("{} {}", part.permission, part.subject()));
                format!(
                    "nobody answered the question about {}",
                    listed.collect::<Vec<_>>().join(", ")
                )
            }
            Refusal::Declined(_) => "the client declined".into(),
            Refusal::Forbidden(_) | Refusal::Rejected { .. } | Refusal::ExplainOnly => {
                format!("{refusal:?}")
            }
        };
        ToolError::new(ErrorKind::Denied, text)
    }

    fn machine_error(&self, _shown: &str, error: &MachineError) -> ToolError {
        failed(&error.to_string())
    }

    fn bad_path(&self, _given: &str, why: &BadPath) -> ToolError {
        failed(&format!("{why:?}"))
    }

    fn commit_failed(&self, display_path: &str, _why: &CommitFailure) -> ToolError {
        failed(display_path)
    }

    fn no_preview(&self, tool: &str) -> ToolError {
        ToolError::new(ErrorKind::InvalidArgs, format!("no preview of {tool}"))
    }
    fn aborted(&self) -> ToolError {
        ToolError::new(ErrorKind::Cancelled, "aborted")
    }

    fn panicked(&self, tool: &str) -> ToolError {
        failed(&format!("{tool} panicked"))
    }

    fn too_deep(&self, _max: u8) -> ToolError {
        failed("too deep")
    }

    fn hook_failed(&self, hook: &str, _why: &HookFault) -> ToolError {
        failed(hook)
    }

    fn not_granted(&self) -> ToolError {
        failed("not granted")
    }

    fn denied_tool(&self, tool: &str) -> ToolError {
        failed(&format!("{tool} is denied"))
    }

    fn store_failed(&self, why: &str) -> ToolError {
        failed(why)
    }

    fn server_error(&self, server: &str, error: &helve_core::ServerError) -> ToolError {
        failed(&format!("{server}: {error}"))
    }
}

fn failed(text: &str) -> ToolError {
    ToolError::new(ErrorKind::Failed, text)
}

/// One prompt, which repeats its arguments.
struct TestPrompts;

impl Prompts for TestPrompts {
    fn list(&self) -> Vec<(String, String)> {
        vec![("echo".into(), "Repeats its arguments".into())]
    }

    fn fill<'a>(
        &'a self,
        _session: &'a Arc<Session>,
        _tools: &'a ToolSet,
        name: &'a str,
        arguments: &'a str,
    ) -> BoxFuture<'a, Option<Result<Vec<PromptPiece>, String>>> {
        Box::pin(async move {
            match (name, arguments) {
                ("echo", "fail") => Some(Err("it failed".into())),
                ("echo", text) => Some(Ok(vec![PromptPiece::Text(text.into())])),
                _ => None,
            }
        })
    }
}
