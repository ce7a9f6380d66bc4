//! One turn: from a person's message to the model's answer, with every call in between.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use helve_core::BoxFuture;
use helve_core::call::ToolCall;
use helve_core::engine::Engine;
use helve_core::input::Input;
use helve_core::output::{Content, ErrorKind, Handover, ToolError};
use helve_core::registry::ToolSet;
use helve_core::session::Session;
use helve_core::store::StoreError;
use helve_core::transcript::WaitingMessage;
use helve_core::{Ask, DOOM_LOOP, Part};
use serde_json::value::RawValue;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::answer;
use crate::calls::{RepeatDetector, ensure_unique_ids};
use crate::compose;
use crate::event::{AgentEvent, BudgetKind, TurnEnd};
use crate::hook::{ChatContext, ChatHook};
use crate::http::ModelClient;
use crate::inbox::Inbox;
use crate::item::StopReason;
use crate::item::{
    AssistantMessage, Block, CallBlock, CallForm, CallResult, Entry, Item, MessagePart, NoteKind,
};
use crate::model::ActiveModel;
use crate::prompt;
use crate::reply::{ModelReply, Usage};
use crate::request::ToolDefinition;
use crate::transcript::Transcript;
use crate::words;

mod exchange;
mod watch;

pub use crate::budget::{TreeBudget, TurnLimits};
pub use exchange::context_limit;
use watch::CallsOutcome;

/// Maximum number of paused replies that are continued in one turn.
const MAX_PAUSES: u32 = 5;
/// Maximum number of replies in a row that are cut in the middle of a call.
const MAX_CUT_CALLS: u32 = 3;

/// Everything that a turn needs.
pub struct Turn<'a> {
    pub engine: &'a Arc<Engine>,
    pub session: &'a Arc<Session>,
    pub tools: ToolSet,
    /// The definitions of the tools that are sent to the model, sorted by name.
    pub definitions: &'a [ToolDefinition],
    pub model: &'a mut ActiveModel,
    pub client: &'a ModelClient,
    pub system: &'a [String],
    /// Estimated tokens of the system prompt and the tools.
    pub fixed_tokens: u64,
    pub hooks: &'a [Arc<dyn ChatHook>],
    pub transcript: &'a mut Transcript,
    pub limits: TurnLimits,
    /// What this agent and its sub-agents may use together.
    pub budget: &'a TreeBudget,
    pub inbox: &'a Inbox,
    /// Whether the transcript may be shortened if it does not fit into the context window.
    pub compaction: Compaction,
    /// Minimum number of tokens of the context window that are kept free.
    pub reserved: u64,
    /// The model that writes summaries, if it is another one.
    pub summarizer: Option<&'a ActiveModel>,
    /// The state of the session besides its transcript: the to-do list, changed files, running programs.
    pub session_state: &'a dyn SessionState,
    /// JSON schema that the answer must match.
    pub output_schema: Option<&'a RawValue>,
    pub emit: &'a (dyn Fn(AgentEvent) + Send + Sync),
    pub cancel: CancellationToken,
}

/// Whether a transcript may be shortened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compaction {
    Automatic,
    Off,
}

/// The state of a session besides its transcript.
pub trait SessionState: Send + Sync {
    /// Called after the transcript was summarized. Returns a text for the model, which is appended to the summary.
    fn describe_after_summary(&self) -> BoxFuture<'_, String>;

    /// Facts about the environment, one `Name: value` per line. When one changes, the model gets a note.
    fn environment(&self) -> BoxFuture<'_, String>;

    /// Notes for the model, which it sees before its next reply. Each is returned once.
    fn new_notes(&self) -> BoxFuture<'_, Vec<(NoteKind, String)>>;
}

/// The progress of a turn.
struct Progress {
    step: u32,
    usage: Usage,
    started: Instant,
    waited: Duration,
    /// In dollars.
    cost: f64,
    /// The ids of all calls of the session.
    call_ids: BTreeSet<String>,
    /// The step before which the transcript was last shortened.
    last_compaction_step: Option<u32>,
    repeats: RepeatDetector,
    was_warned_of_loop: bool,
    cut_calls: u32,
    pauses: u32,
    was_asked_to_go_on: bool,
    was_asked_to_answer: bool,
    was_asked_to_correct: bool,
    /// Number of calls that a person refused, or that were refused because nobody could be asked.
    refused_calls: u32,
    handover: Option<Handover>,
}

/// How a turn ended, and the tokens that it used.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnOutcome {
    pub end: TurnEnd,
    pub usage: Usage,
    /// In dollars; `None` if the price is not known.
    pub cost: Option<f64>,
    /// The agent that takes over.
    pub handover: Option<Handover>,
}

/// What to do after a reply.
enum Next {
    Continue,
    End(TurnEnd),
}

impl Turn<'_> {
    /// Runs the turn. However it ends, the transcript contains everything that happened.
    pub async fn run(mut self, prompt: Vec<MessagePart>) -> TurnOutcome {
        let mut progress = self.progress();
        let has_cost_limit = self.limits.cost.is_some() || self.budget.limits.cost.is_some();
        if has_cost_limit && self.model.prices.is_none() {
            let message = format!(
                "the price of {} is not known, so the cost limit cannot be enforced; set its \"cost\" in the configuration",
                self.model.reference.name
            );
            return TurnOutcome {
                end: TurnEnd::Failed(message),
                usage: Usage::default(),
                cost: None,
                handover: None,
            };
        }
        let end = match self.steps_in_time(prompt, &mut progress).await {
            Ok(end) => end,
            Err(err) => TurnEnd::Failed(format!("the session cannot be stored: {err}")),
        };
        let cost = self.model.prices.map(|_| progress.cost);
        TurnOutcome { end, usage: progress.usage, cost, handover: progress.handover }
    }

    /// Runs the steps. When the time is over, cancels them as if the person had aborted, because a request, a call or a
    /// question may be pending.
    async fn steps_in_time(
        &mut self,
        prompt: Vec<MessagePart>,
        progress: &mut Progress,
    ) -> Result<TurnEnd, StoreError> {
        let time = self.limits.time.unwrap_or(Duration::MAX);
        let stop = self.cancel.child_token();
        let person_cancel = std::mem::replace(&mut self.cancel, stop.clone());
        let end = {
            let mut steps = pin!(self.steps(prompt, progress));
            match tokio::time::timeout(time, &mut steps).await {
                Ok(end) => end?,
                Err(_) => {
                    stop.cancel();
                    steps.await?
                }
            }
        };
        if end != TurnEnd::Aborted {
            return Ok(end);
        }
        let (text, end) = match person_cancel.is_cancelled() {
            true => (words::ABORTED, end),
            false => (words::OUT_OF_TIME, TurnEnd::OverBudget(BudgetKind::Time)),
        };
        self.note(NoteKind::Aborted, text).await?;
        Ok(end)
    }

    fn progress(&self) -> Progress {
        Progress {
            step: 0,
            usage: Usage::default(),
            started: Instant::now(),
            waited: Duration::ZERO,
            cost: 0.0,
            call_ids: call_ids(self.transcript.entries()),
            last_compaction_step: None,
            repeats: RepeatDetector::default(),
            was_warned_of_loop: false,
            cut_calls: 0,
            pauses: 0,
            was_asked_to_go_on: false,
            was_asked_to_answer: false,
            was_asked_to_correct: false,
            refused_calls: 0,
            handover: None,
        }
    }

    async fn steps(
        &mut self,
        prompt: Vec<MessagePart>,
        progress: &mut Progress,
    ) -> Result<TurnEnd, StoreError> {
        // Messages that an earlier process did not deliver are older than the prompt.
        if let Err(end) = self.deliver_messages(progress).await? {
            return Ok(end);
        }
        if let Err(end) = self.append_message(prompt, None).await? {
            return Ok(end);
        }
        loop {
            if let Err(end) = self.deliver_messages(progress).await? {
                return Ok(end);
            }
            if let Some(kind) = self.exhausted(progress) {
                return Ok(TurnEnd::OverBudget(kind));
            }
            self.note_environment().await?;
            for (kind, text) in self.session_state.new_notes().await {
                let first_line = text.lines().next().unwrap_or_default();
                (self.emit)(AgentEvent::Notice(first_line.to_string()));
                self.note(kind, &text).await?;
            }
            progress.step += 1;
            self.budget.begin_step();
            let is_last = self.limits.steps == Some(progress.step)
                || !self.is_child() && self.budget.is_last_step();
            if is_last {
                self.note(NoteKind::Budget, words::LAST_STEP).await?;
            }
            let reply = match self.ask_model(progress, is_last).await? {
                Ok(reply) => reply,
                Err(end) => return Ok(end),
            };
            match self.handle(reply, progress, is_last).await? {
                Next::Continue => {}
                Next::End(end) => return Ok(end),
            }
        }
    }

    /// Adds a note about what changed in the environment since the last note. The system prompt is not changed, so that
    /// the provider's cache stays valid.
    async fn note_environment(&mut self) -> Result<(), StoreError> {
        let entries = self.transcript.entries();
        let undone_positions = compose::undone_positions(entries);
        let shown = || entries.iter().filter(|entry| !undone_positions.contains(&entry.seq));
        let tail = shown().rev().find_map(|entry| match entry.item {
            Item::Summary { tail, .. } => Some(tail),
            _ => None,
        });
        let known = shown().filter(|entry| entry.seq >= tail.unwrap_or(0));
        let known = known.filter_map(|entry| match &entry.item {
            Item::Note { note: NoteKind::Environment, text } => Some(text.as_str()),
            _ => None,
        });
        let changed = prompt::environment_changes(known, &self.session_state.environment().await);
        match changed {
            Some(text) => self.note(NoteKind::Environment, &text).await,
            None => Ok(()),
        }
    }

    /// Moves the messages for the next request from the inbox to the transcript.
    async fn deliver_messages(
        &mut self,
        progress: &mut Progress,
    ) -> Result<Result<(), TurnEnd>, StoreError> {
        while let Some(WaitingMessage { id, text, .. }) = self.inbox.next() {
            progress.step = 0;
            self.budget.reset_steps();
            let content = vec![MessagePart::Text(text)];
            if let Err(end) = self.append_message(content, Some(id)).await? {
                return Ok(Err(end));
            }
        }
        Ok(Ok(()))
    }

    /// Stores a person's message after the hooks have changed it. `waiting` is its id if it waited in the inbox.
    async fn append_message(
        &mut self,
        mut content: Vec<MessagePart>,
        waiting: Option<String>,
    ) -> Result<Result<(), TurnEnd>, StoreError> {
        for hook in self.hooks {
            if let Err(why) = hook.message(self.chat_context(), &mut content).await {
                return Ok(Err(TurnEnd::Failed(why)));
            }
        }
        self.transcript.append_message(content, waiting).await?;
        Ok(Ok(()))
    }

    fn chat_context(&self) -> ChatContext<'_> {
        ChatContext {
            session: &self.session.id,
            agent: &self.session.caller.agent,
            model: &self.model.reference,
        }
    }

    fn exhausted(&self, progress: &Progress) -> Option<BudgetKind> {
        let is_over = |limit: Option<u64>, used: u64| limit.is_some_and(|limit| used >= limit);
        if self.limits.steps.is_some_and(|limit| progress.step >= limit) {
            return Some(BudgetKind::Steps);
        }
        if is_over(self.limits.tokens, progress.usage.total()) {
            return Some(BudgetKind::Tokens);
        }
        if self.limits.cost.is_some_and(|limit| progress.cost >= limit) {
            return Some(BudgetKind::Cost);
        }
        if self.limits.time.is_some_and(|limit| progress.started.elapsed() >= limit) {
            return Some(BudgetKind::Time);
        }
        self.budget.exhausted(self.is_child())
    }

    /// Whether this is the turn of a sub-agent.
    fn is_child(&self) -> bool {
        self.session.parent.is_some()
    }

    async fn note(&mut self, note: NoteKind, text: &str) -> Result<(), StoreError> {
        self.transcript.append(vec![Item::Note { note, text: text.into() }]).await
    }

    /// Stores the part of a reply that arrived before the turn was aborted.
    async fn store_partial(&mut self, text: String) -> Result<(), StoreError> {
        if text.trim().is_empty() {
            return Ok(());
        }
        let partial = self.assistant(vec![Block::Text(text)], StopReason::EndTurn, true);
        self.transcript.append(vec![partial]).await
    }

    fn assistant(&self, blocks: Vec<Block>, stop: StopReason, is_partial: bool) -> Item {
        let origin = self.model.reference.clone();
        Item::Assistant(AssistantMessage { blocks, origin, stop, is_partial })
    }

    async fn handle(
        &mut self,
        mut reply: ModelReply,
        progress: &mut Progress,
        is_last: bool,
    ) -> Result<Next, StoreError> {
        ensure_unique_ids(&mut progress.call_ids, &mut reply.blocks);
        let reported = reply.usage.map(|usage| usage.total());
        let stop = reply.stop.clone();
        let calls: Vec<CallBlock> = reply.calls().cloned().collect();
        let has_text = reply.has_text();
        if stop == StopReason::EndTurn && !has_text && calls.is_empty() {
            return self.handle_silence(progress).await;
        }
        self.run_text_hooks(&mut reply.blocks).await;
        self.transcript.append(vec![self.assistant(reply.blocks, stop.clone(), false)]).await?;
        if let Some(tokens) = reported {
            self.transcript.set_reported_tokens(tokens);
        }
        match stop {
            StopReason::Refused => Ok(Next::End(TurnEnd::Refused)),
            StopReason::Paused => {
                progress.pauses += 1;
                let is_over = progress.pauses > MAX_PAUSES;
                Ok(if is_over { Next::End(TurnEnd::NoAnswer) } else { Next::Continue })
            }
            StopReason::Length | StopReason::ContextFull => self.handle_cut(calls, progress).await,
            StopReason::EndTurn | StopReason::ToolUse | StopReason::Other(_)
                if calls.is_empty() =>
            {
                self.handle_answer(progress, is_last).await
            }
            StopReason::EndTurn | StopReason::ToolUse | StopReason::Other(_) => {
                self.run_calls(calls, progress, is_last).await
            }
        }
    }

    /// Handles a reply with neither text nor calls.
    async fn handle_silence(&mut self, progress: &mut Progress) -> Result<Next, StoreError> {
        if std::mem::replace(&mut progress.was_asked_to_answer, true) {
            return Ok(Next::End(TurnEnd::NoAnswer));
        }
        self.note(NoteKind::Correction, words::EMPTY_REPLY).await?;
        Ok(Next::Continue)
    }

    async fn handle_answer(
        &mut self,
        progress: &mut Progress,
        is_last: bool,
    ) -> Result<Next, StoreError> {
        if self.inbox.prepare_next_step() {
            return Ok(Next::Continue);
        }
        if let Some(problems) = self.schema_problems() {
            if std::mem::replace(&mut progress.was_asked_to_correct, true) || is_last {
                let message = format!("the answer does not follow the schema: {problems}");
                return Ok(Next::End(TurnEnd::Failed(message)));
            }
            self.note(NoteKind::Correction, &words::answer_not_matching(&problems)).await?;
            return Ok(Next::Continue);
        }
        // A refused call of a sub-agent also counts for the main agent.
        let was_refused =
            progress.refused_calls > 0 || !self.is_child() && self.budget.spent().was_refused;
        Ok(Next::End(match (was_refused, is_last) {
            (true, _) => TurnEnd::NotAllowed,
            (false, true) => TurnEnd::OverBudget(BudgetKind::Steps),
            (false, false) => TurnEnd::Answered,
        }))
    }

    /// Returns how the last message violates the output schema; `None` if it does not, or if there is no schema.
    fn schema_problems(&self) -> Option<String> {
        let schema = self.output_schema?;
        let last = self.transcript.entries().last();
        let text = last.map(|entry| match &entry.item {
            Item::Assistant(message) => message.text(),
            _ => String::new(),
        });
        answer::check(schema, &text.unwrap_or_default()).err()
    }

    /// Handles a reply that was cut at the output limit. Its calls are not run.
    async fn handle_cut(
        &mut self,
        calls: Vec<CallBlock>,
        progress: &mut Progress,
    ) -> Result<Next, StoreError> {
        if calls.is_empty() {
            if std::mem::replace(&mut progress.was_asked_to_go_on, true) {
                return Ok(Next::End(TurnEnd::OverBudget(BudgetKind::OutputLength)));
            }
            self.note(NoteKind::Correction, words::REPLY_CUT).await?;
            return Ok(Next::Continue);
        }
        progress.cut_calls += 1;
        let cut = |call| Item::Result(error_result(call, words::CALL_CUT));
        let results = calls.iter().map(cut).collect();
        self.transcript.append(results).await?;
        Ok(match progress.cut_calls >= MAX_CUT_CALLS {
            true => Next::End(TurnEnd::OverBudget(BudgetKind::OutputLength)),
            false => Next::Continue,
        })
    }

    async fn run_calls(
        &mut self,
        calls: Vec<CallBlock>,
        progress: &mut Progress,
        is_last: bool,
    ) -> Result<Next, StoreError> {
        if is_last {
            let refused = |call| Item::Result(error_result(call, words::NO_MORE_CALLS));
            let results = calls.iter().map(refused).collect();
            self.transcript.append(results).await?;
            return Ok(Next::End(TurnEnd::OverBudget(BudgetKind::Steps)));
        }
        let repeated: Vec<&CallBlock> =
            calls.iter().filter(|call| progress.repeats.record(call)).collect();
        if let Some(repeated) = repeated.last() {
            if let Err(error) = self.confirm_repeats(repeated).await {
                return self.handle_repeats(&calls, &error, progress).await;
            }
            progress.repeats = RepeatDetector::default();
        }
        let CallsOutcome { errors, handover } = self.call_and_watch(&calls).await?;
        let was_rejected = errors.contains(&ErrorKind::Rejected);
        let is_refused =
            |kind: &&ErrorKind| matches!(kind, ErrorKind::Rejected | ErrorKind::Unanswered);
        let refused = errors.iter().filter(is_refused).count();
        progress.refused_calls += u32::try_from(refused).unwrap_or(u32::MAX);
        if refused > 0 {
            self.budget.note_refusal();
        }
        if self.cancel.is_cancelled() {
            return Ok(Next::End(TurnEnd::Aborted));
        }
        if handover.is_some() && !was_rejected {
            progress.handover = handover;
            return Ok(Next::End(TurnEnd::Answered));
        }
        Ok(if was_rejected { Next::End(TurnEnd::NotAllowed) } else { Next::Continue })
    }

    /// Asks whether the model may make the same call once more.
    async fn confirm_repeats(&self, call: &CallBlock) -> Result<(), ToolError> {
        let part = Part::new(DOOM_LOOP, call.name.clone());
        let ask = Ask { parts: vec![part], ..Ask::default() };
        let text = "The model made this call several times with the same arguments:";
        let ask = ask.preview(format!("{text}\n{} {}", call.name, call.arguments));
        self.engine.confirm(self.session, &tool_call(call), ask, &self.cancel).await
    }

    /// Handles repeated calls that the person did not permit. The first time, the model gets a note; the second time,
    /// the turn ends.
    async fn handle_repeats(
        &mut self,
        calls: &[CallBlock],
        error: &ToolError,
        progress: &mut Progress,
    ) -> Result<Next, StoreError> {
        let repeated = |call| Item::Result(error_result(call, words::REPEATED_CALL));
        let results = calls.iter().map(repeated).collect();
        self.transcript.append(results).await?;
        if self.cancel.is_cancelled() {
            return Ok(Next::End(TurnEnd::Aborted));
        }
        let is_over = std::mem::replace(&mut progress.was_warned_of_loop, true)
            || error.kind == ErrorKind::Rejected;
        Ok(if is_over { Next::End(TurnEnd::Loop) } else { Next::Continue })
    }
}

/// Returns the ids of all calls of a session.
fn call_ids(entries: &[Entry]) -> BTreeSet<String> {
    let calls = entries.iter().filter_map(|entry| match &entry.item {
        Item::Assistant(message) => Some(message.calls().map(|call| call.id.clone())),
        _ => None,
    });
    calls.flatten().collect()
}

fn tool_call(call: &CallBlock) -> ToolCall {
    let input = match call.form {
        CallForm::Json if call.arguments.trim().is_empty() => Input::Raw("{}".into()),
        CallForm::Json => Input::Raw(call.arguments.clone()),
        CallForm::Text => Input::Text(call.arguments.clone()),
    };
    ToolCall { id: call.id.clone(), ..ToolCall::new(call.name.clone(), input) }
}

fn error_result(call: &CallBlock, text: &str) -> CallResult {
    CallResult {
        call: call.id.clone(),
        title: call.name.clone(),
        content: vec![MessagePart::Text(text.into())],
        is_error: true,
        saved: None,
    }
}

fn call_result(
    call: &CallBlock,
    outcome: Result<helve_core::output::ToolOutput, ToolError>,
) -> CallResult {
    match outcome {
        Ok(output) => {
            let title = if output.title.is_empty() { call.name.clone() } else { output.title };
            let saved = output.saved.map(|saved| saved.path.to_string_lossy().into_owned());
            let content = output.content.into_iter().map(message_part).collect();
            CallResult { call: call.id.clone(), title, content, is_error: false, saved }
        }
        Err(error) => error_result(call, &error.full_message()),
    }
}

fn message_part(content: Content) -> MessagePart {
    match content {
        Content::Text(text) => MessagePart::Text(text),
        Content::Media { mime, data } => MessagePart::Media {
            mime,
            data: base64::Engine::encode(&base64::engine::general_purpose::STANDARD, data),
            name: None,
        },
        Content::Link { uri, name } => MessagePart::Text(format!("{name}: {uri}")),
    }
}
