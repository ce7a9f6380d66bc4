//! Runs an agent: a model that works with the tools of a toolbox.

use std::pin::pin;
use std::sync::Arc;

use helve_agent::event::{AgentEvent, TurnEnd};
use helve_agent::failure::Failure;
use helve_agent::http::ModelClient;
use helve_agent::inbox::Inbox;
use helve_agent::item::{Entry, Item, MessagePart, NoteKind};
use helve_agent::model::{ActiveModel, fixed_tokens, tool_definitions};
use helve_agent::reply::Usage;
use helve_agent::request::ToolDefinition;
use helve_agent::turn::{Compaction, TreeBudget, Turn, TurnLimits, context_limit};
use helve_agent::words;
use helve_core::store::StoreError;
use helve_core::transcript::{TokenCounts, TotalsOf};
use helve_core::{Input, Origin, ToolCall, ToolSet};
use helve_ext::config;
use serde_json::json;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::environment;
use crate::error::BuildError;
use crate::stored::{SessionError, StoredSession, TurnRedone, TurnUndone};
use crate::title::{self, TitleTask};
use crate::toolbox::Toolbox;
use crate::tree::AgentTree;

/// Maximum number of handovers in one turn. In a handover, another agent takes over the conversation.
const MAX_HANDOVERS: u32 = 20;

/// Why an agent cannot run.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error("the session cannot be loaded: {0}")]
    Store(#[from] StoreError),
    #[error("{0}")]
    Client(#[from] Failure),
    #[error("{0}")]
    Agent(#[from] BuildError),
}

/// A model at work in a session of a toolbox. It is the only writer of the session.
pub struct AgentSession<'t> {
    stored: StoredSession<'t>,
    /// The toolbox of the current agent, if a person or a handover has switched to another agent.
    switched_toolbox: Option<Toolbox>,
    model: ActiveModel,
    client: ModelClient,
    /// The system prompt.
    system: Vec<String>,
    /// The model that writes summaries, if one other than `model` is configured.
    summarizer: Option<ActiveModel>,
    /// Messages that reach the model while a turn runs.
    pub inbox: Arc<Inbox>,
    role: AgentRole,
}

/// Whether an agent is the main one or a sub-agent.
enum AgentRole {
    /// The main agent. Dropping it aborts its sub-agents.
    Main { _children: ChildrenGuard },
    /// A sub-agent, which shares the budget of the main agent.
    Child { title: String, budget: Arc<TreeBudget> },
}

/// Aborts all sub-agents of the main agent when it is dropped.
struct ChildrenGuard(Arc<AgentTree>);

impl Drop for ChildrenGuard {
    fn drop(&mut self) {
        self.0.abort_all();
    }
}

/// How a turn ended, and what it used.
#[derive(Clone, Debug)]
pub struct TurnReport {
    pub end: TurnEnd,
    pub usage: Usage,
    /// In dollars; `None` if the price is not known.
    pub cost: Option<f64>,
    /// The text of the model's last message.
    pub text: String,
}

/// The limits of a turn, and the form of its answer.
#[derive(Clone, Debug)]
pub struct TurnOptions {
    pub limits: TurnLimits,
    pub compaction: Compaction,
    /// A JSON schema that the answer must conform to.
    pub output_schema: Option<Box<RawValue>>,
}

impl Default for TurnOptions {
    /// No limits, and an answer in any form.
    fn default() -> Self {
        let limits = TurnLimits::default();
        Self { limits, compaction: Compaction::Automatic, output_schema: None }
    }
}

/// What a turn begins with.
#[derive(Clone, Debug)]
pub enum TurnInput {
    /// A message for the model.
    Message(Vec<MessagePart>),
    /// A task for a sub-agent. The model gets the sub-agent's report as its message.
    Task {
        agent: String,
        /// A short title that people see.
        description: String,
        prompt: String,
    },
}

impl From<Vec<MessagePart>> for TurnInput {
    fn from(message: Vec<MessagePart>) -> Self {
        TurnInput::Message(message)
    }
}

/// How full the context window is, and what the session has used so far.
#[derive(Clone, Debug, PartialEq)]
pub struct ContextReport {
    /// Size of the next request in tokens, partly estimated.
    pub tokens: u64,
    /// The size of the model's context window.
    pub window: u64,
    /// Above this number of tokens, older parts of the conversation are left out or summarized.
    pub limit: u64,
    /// Tokens of all requests of the session.
    pub used: TokenCounts,
    pub requests: u64,
    /// In dollars; `None` if the price of a request is not known.
    pub cost: Option<f64>,
}

impl Toolbox {
    /// Returns an agent that continues this toolbox's session, or begins it if it is new.
    pub async fn agent(&self, model: ActiveModel) -> Result<AgentSession<'_>, AgentError> {
        self.offer_tasks();
        self.open_agent(model, AgentRole::Main { _children: ChildrenGuard(self.tree()) }).await
    }

    /// Returns a sub-agent, which shares the budget of its main agent.
    pub(crate) async fn child_agent(
        &self,
        model: ActiveModel,
        title: String,
        budget: Arc<TreeBudget>,
    ) -> Result<AgentSession<'_>, AgentError> {
        self.open_agent(model, AgentRole::Child { title, budget }).await
    }

    /// Opens the session for writing, and prepares an agent for it.
    async fn open_agent(
        &self,
        model: ActiveModel,
        role: AgentRole,
    ) -> Result<AgentSession<'_>, AgentError> {
        Ok(AgentSession {
            role,
            stored: self.stored_session().await?,
            switched_toolbox: None,
            model,
            client: ModelClient::new()?,
            system: self.system_prompt(),
            summarizer: self.summary_model().and_then(Result::ok),
            inbox: Arc::new(Inbox::load(self.session_id().into(), self.transcripts()).await?),
        })
    }

    /// The configuration of this toolbox's agent.
    pub(crate) fn agent_config(&self) -> Option<&config::Agent> {
        self.config.agents.iter().find(|agent| agent.name == self.caller.agent)
    }

    /// The id of this toolbox's session.
    pub fn session_id(&self) -> &str {
        &self.id
    }

    /// The name of this toolbox's agent.
    pub fn agent_name(&self) -> &str {
        &self.caller.agent
    }
}

impl AgentSession<'_> {
    /// Runs one turn: the model gets a message and works, calling tools, until it answers or something stops it.
    pub async fn run(
        &mut self,
        input: impl Into<TurnInput>,
        options: &TurnOptions,
        emit: &(dyn Fn(AgentEvent) + Send + Sync),
        cancel: CancellationToken,
    ) -> Result<TurnReport, AgentError> {
        let input = input.into();
        self.toolbox().load_scripts().await;
        let is_new = self.entries().is_empty();
        let title = self.begin(&input).await?;
        if is_new {
            self.toolbox().tell_plugins("session.created", json!({})).await;
        }
        self.toolbox().tell_plugins("session.status", json!({"status": {"type": "busy"}})).await;
        self.probe_server().await;
        for interrupted in self.stored.answer_interrupted_calls().await? {
            emit(AgentEvent::Notice(interrupted));
        }
        let tree = self.toolbox().tree();
        tree.set_model(self.toolbox().session_id(), Some(self.model.clone()));
        let report = match &self.role {
            AgentRole::Child { budget, .. } => {
                let budget = budget.clone();
                self.run_with_handovers(input, options, &budget, emit, cancel).await
            }
            AgentRole::Main { .. } => self.run_main_turn(input, options, emit, cancel, &tree).await,
        };
        tree.set_model(self.toolbox().session_id(), None);
        if let Ok(TurnReport { end: TurnEnd::Failed(why), .. }) = &report {
            let error = json!({"name": "UnknownError", "data": {"message": why}});
            self.toolbox().tell_plugins("session.error", json!({"error": error})).await;
        }
        self.toolbox().tell_plugins("session.status", json!({"status": {"type": "idle"}})).await;
        self.toolbox().tell_plugins("session.idle", json!({})).await;
        if let Some(title) = title {
            title.finish().await;
        }
        report
    }

    /// Runs a turn of the main agent, and emits the events of its sub-agents too. The report includes what they used.
    async fn run_main_turn(
        &mut self,
        input: TurnInput,
        options: &TurnOptions,
        emit: &(dyn Fn(AgentEvent) + Send + Sync),
        cancel: CancellationToken,
        tree: &AgentTree,
    ) -> Result<TurnReport, AgentError> {
        let budget = Arc::new(TreeBudget::new(limits(self.toolbox(), options.limits)));
        let mut events = tree.begin_turn(budget.clone());
        let report = {
            let mut running = pin!(self.run_with_handovers(input, options, &budget, emit, cancel));
            loop {
                tokio::select! {
                    biased;
                    Some(event) = events.recv() => emit(event),
                    report = &mut running => break report,
                }
            }
        };
        tree.end_turn();
        while let Ok(event) = events.try_recv() {
            emit(event);
        }
        let report = report?;
        if report.end == TurnEnd::Aborted {
            tree.abort_all();
        }
        let spent = budget.spent();
        let cost = report.cost.filter(|_| !spent.is_cost_incomplete).map(|_| spent.cost);
        Ok(TurnReport { usage: spent.usage, cost, ..report })
    }

    /// Runs a turn. After a handover, runs a turn of the next agent too, and so on.
    async fn run_with_handovers(
        &mut self,
        input: TurnInput,
        options: &TurnOptions,
        budget: &TreeBudget,
        emit: &(dyn Fn(AgentEvent) + Send + Sync),
        cancel: CancellationToken,
    ) -> Result<TurnReport, AgentError> {
        let (mut usage, mut cost) = (Usage::default(), Some(0.0));
        let mut handovers_left = MAX_HANDOVERS;
        let mut prompt = match input {
            TurnInput::Message(message) => message,
            TurnInput::Task { agent, description, prompt } => {
                match self.run_task(&agent, &description, &prompt, emit, &cancel).await {
                    Ok(report) => report,
                    Err(end) => {
                        let text = String::new();
                        return Ok(TurnReport { end, usage, cost, text });
                    }
                }
            }
        };
        loop {
            let tools = self.toolbox().tools();
            let definitions = tool_definitions(&tools);
            let notes = self.toolbox().notes.clone();
            let watch = |event: AgentEvent| {
                notes.observe(&event);
                emit(event);
            };
            let cancel = cancel.clone();
            let turn = self.prepare_turn((tools, &definitions), options, budget, &watch, cancel);
            let outcome = turn.run(prompt).await;
            usage = usage.plus(&outcome.usage);
            cost = cost.zip(outcome.cost).map(|(sum, cost)| sum + cost);
            match outcome.handover.filter(|_| handovers_left > 0) {
                None => {
                    let text = last_text(self.entries());
                    return Ok(TurnReport { end: outcome.end, usage, cost, text });
                }
                Some(handover) => {
                    handovers_left -= 1;
                    self.set_agent(&handover.agent).await?;
                    emit(AgentEvent::Notice(format!(
                        "The agent \"{}\" takes over.",
                        handover.agent
                    )));
                    prompt = vec![MessagePart::Text(handover.message)];
                }
            }
        }
    }

    /// Runs a sub-agent on a task that a person asked for. Returns a message for the model with the sub-agent's report.
    async fn run_task(
        &self,
        agent: &str,
        description: &str,
        prompt: &str,
        emit: &(dyn Fn(AgentEvent) + Send + Sync),
        cancel: &CancellationToken,
    ) -> Result<Vec<MessagePart>, TurnEnd> {
        let arguments =
            json!({"description": description, "prompt": prompt, "subagent_type": agent});
        emit(AgentEvent::Notice(format!("The agent \"{agent}\" is working on: {description}")));
        let input = Input::Json(arguments);
        // The person asked for the task, so they are not asked for permission. A rule that denies it still applies.
        let call = ToolCall { origin: Origin::Person, ..ToolCall::new("task", input) };
        let toolbox = self.toolbox();
        let (session, tools) = (toolbox.session(), toolbox.tools());
        let result = toolbox.engine.call(session, &tools, call, cancel.clone()).await;
        if cancel.is_cancelled() {
            return Err(TurnEnd::Aborted);
        }
        match result.outcome {
            Ok(output) => {
                let text = words::task_report(description, agent, &output.joined_text());
                Ok(vec![MessagePart::Text(text)])
            }
            Err(error) => Err(TurnEnd::Failed(error.full_message())),
        }
    }

    /// Replaces the older part of the conversation with a summary that the model writes.
    pub async fn compact(
        &mut self,
        emit: &(dyn Fn(AgentEvent) + Send + Sync),
        cancel: CancellationToken,
    ) -> Result<TurnEnd, AgentError> {
        let options = TurnOptions::default();
        let budget = TreeBudget::new(TurnLimits::default());
        let tools = self.toolbox().tools();
        let turn = self.prepare_turn((tools, &[]), &options, &budget, emit, cancel);
        Ok(turn.compact_now().await?)
    }

    /// Undoes the user's last message, everything that followed it, and the file changes that calls made since.
    pub async fn undo(&mut self) -> Result<TurnUndone, SessionError> {
        self.stored.undo().await
    }

    /// Redoes what was undone last.
    pub async fn redo(&mut self) -> Result<TurnRedone, SessionError> {
        self.stored.redo().await
    }

    /// Copies the session. Returns the id of the copy, which [`Toolbox::with_session`] opens.
    pub async fn fork(&self) -> Result<String, SessionError> {
        self.toolbox().fork_session(self.toolbox().session_id()).await
    }

    /// Returns how full the context window is, and what the session has used so far.
    pub async fn context(&self) -> Result<ContextReport, AgentError> {
        let toolbox = self.toolbox();
        let fixed = fixed_tokens(&self.system, &tool_definitions(&toolbox.tools()));
        let of = TotalsOf::Session(toolbox.session_id());
        let totals = toolbox.transcripts.totals(of).await?;
        let is_priced = totals.iter().all(|total| total.unpriced == 0);
        Ok(ContextReport {
            tokens: self.stored.transcript.context_tokens(fixed),
            window: self.model.window,
            limit: context_limit(&self.model, reserved(toolbox)),
            used: totals.iter().fold(TokenCounts::default(), |sum, total| sum.plus(&total.tokens)),
            requests: totals.iter().map(|total| total.requests).sum(),
            cost: is_priced.then(|| totals.iter().map(|total| total.cost).sum()),
        })
    }

    /// Uses another model from now on.
    pub fn set_model(&mut self, model: ActiveModel) {
        self.model = model;
        self.stored.transcript.forget_reported_tokens();
    }

    pub fn model(&self) -> &ActiveModel {
        &self.model
    }

    /// Switches to another agent: its prompt, tools and rules. The model stays the same.
    pub async fn set_agent(&mut self, name: &str) -> Result<(), AgentError> {
        let switched_toolbox = self.toolbox().with_agent(name)?;
        if !self.entries().is_empty() {
            let from = &self.toolbox().caller.agent;
            let text = words::agent_switched(from, &switched_toolbox.caller.agent);
            let note = Item::Note { note: NoteKind::AgentSwitched, text };
            self.stored.transcript.append(vec![note]).await?;
        }
        self.system = switched_toolbox.system_prompt();
        self.switched_toolbox = Some(switched_toolbox);
        self.stored.transcript.forget_reported_tokens();
        Ok(())
    }

    /// Returns the toolbox of the current agent.
    pub fn toolbox(&self) -> &Toolbox {
        self.switched_toolbox.as_ref().unwrap_or(self.stored.toolbox)
    }

    /// Returns the transcript: all messages, calls and results so far.
    pub fn entries(&self) -> &[Entry] {
        self.stored.transcript.entries()
    }

    /// Prepares a turn of the current agent.
    fn prepare_turn<'a>(
        &'a mut self,
        (tools, definitions): (ToolSet, &'a [ToolDefinition]),
        options: &'a TurnOptions,
        budget: &'a TreeBudget,
        emit: &'a (dyn Fn(AgentEvent) + Send + Sync),
        cancel: CancellationToken,
    ) -> Turn<'a> {
        let toolbox = self.switched_toolbox.as_ref().unwrap_or(self.stored.toolbox);
        Turn {
            engine: &toolbox.engine,
            session: toolbox.session(),
            tools,
            definitions,
            model: &mut self.model,
            client: &self.client,
            fixed_tokens: fixed_tokens(&self.system, definitions),
            system: &self.system,
            hooks: &toolbox.chat_hooks,
            transcript: &mut self.stored.transcript,
            limits: limits(toolbox, options.limits),
            budget,
            inbox: &self.inbox,
            compaction: compaction(toolbox, options.compaction),
            reserved: reserved(toolbox),
            summarizer: self.summarizer.as_ref(),
            session_state: toolbox,
            output_schema: options.output_schema.as_deref(),
            emit,
            cancel,
        }
    }

    /// Registers a new session, and begins its transcript with a note about the environment. For a main agent's
    /// session, a small model, if one is configured, starts to write a title. Does nothing if the session is not new.
    async fn begin(&mut self, input: &TurnInput) -> Result<Option<TitleTask>, StoreError> {
        if !self.entries().is_empty() {
            return Ok(None);
        }
        let task_message: Vec<MessagePart>;
        let prompt = match input {
            TurnInput::Message(message) => message,
            TurnInput::Task { prompt, .. } => {
                task_message = vec![MessagePart::Text(prompt.clone())];
                &task_message
            }
        };
        let toolbox = self.stored.toolbox;
        let (id, root) = (toolbox.session_id(), toolbox.root());
        let title = match &self.role {
            AgentRole::Main { .. } => title::first_line(prompt),
            AgentRole::Child { title, .. } => title.clone(),
        };
        let parent = toolbox.session().parent.as_ref().map(|parent| &*parent.session.id);
        toolbox.transcripts.register(id, root, &title, parent).await?;
        let note =
            Item::Note { note: NoteKind::Environment, text: environment::describe(toolbox).await };
        self.stored.transcript.append(vec![note]).await?;
        let small_model = toolbox.small_model().filter(|_| parent.is_none()).and_then(Result::ok);
        Ok(small_model.map(|model| TitleTask::start(toolbox, &self.client, model, prompt)))
    }

    /// Asks a local model server for the size of its context window, and how it treats prompts that are too long. Does
    /// so only once, and only if the size is not known.
    async fn probe_server(&mut self) {
        if !std::mem::take(&mut self.model.is_window_assumed) {
            return;
        }
        let server = self.client.probe(&self.model.endpoint, &self.model.reference.name).await;
        self.model.settings.quirks.cuts_prompts = server.cuts_prompts;
        if let Some(window) = server.window {
            self.model.window = window;
        }
    }
}

/// Returns `requested`, or `Off` if the configuration turns automatic compaction off.
fn compaction(toolbox: &Toolbox, requested: Compaction) -> Compaction {
    match &toolbox.config.models.compaction.auto {
        Some(auto) if !auto.value => Compaction::Off,
        Some(_) | None => requested,
    }
}

/// Returns the number of tokens of the context window that the configuration keeps free.
fn reserved(toolbox: &Toolbox) -> u64 {
    toolbox.config.models.compaction.reserved.as_ref().map_or(0, |tokens| tokens.value)
}

/// Returns the requested limits. If they do not limit the steps, the `steps` of the agent's configuration apply.
fn limits(toolbox: &Toolbox, requested: TurnLimits) -> TurnLimits {
    let steps = toolbox.agent_config().and_then(|agent| agent.steps.as_ref());
    let steps = steps.map(|steps| u32::try_from(steps.value).unwrap_or(u32::MAX));
    TurnLimits { steps: requested.steps.or(steps), ..requested }
}

/// Returns the text of the model's last message.
fn last_text(entries: &[Entry]) -> String {
    let last = entries.iter().rev().find_map(|entry| match &entry.item {
        Item::Assistant(message) => Some(message.text()),
        _ => None,
    });
    last.unwrap_or_default()
}
