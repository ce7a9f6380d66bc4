//! One exchange with the model: sends a request, retries it, and shortens the transcript if it is too long.

use std::borrow::Cow;

use helve_core::event::now;
use helve_core::store::StoreError;
use helve_core::transcript::RequestRecord;
use helve_text::near::nearest;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::{Compaction, Progress, Turn};
use crate::catalogue;
use crate::compact;
use crate::compose::{self, Target};
use crate::event::{AgentEvent, TurnEnd};
use crate::failure::{Failure, FailureKind};
use crate::http::Endpoint;
use crate::item::{Block, Item, ModelRef, StopReason};
use crate::media;
use crate::model::ActiveModel;
use crate::reply::{Delta, ModelReply, Usage};
use crate::request::{InputPart, Message, ModelRequest, ToolChoice};
use crate::retry;
use crate::wire;
use crate::words;

/// Optional fields of a request. If a server rejects one, it is no longer sent.
const OPTIONAL_FIELDS: [&str; 11] = [
    "stream_options",
    "reasoning_effort",
    "reasoning",
    "include",
    "prompt_cache_key",
    "parallel_tool_calls",
    "temperature",
    "top_p",
    "response_format",
    "thinking",
    "effort",
];
/// Maximum number of times that the transcript is shortened for one request.
const MAX_COMPACTIONS: u32 = 2;
/// Smaller prompts, in tokens, are not checked for truncation.
const MIN_CHECKED_PROMPT: u64 = 2_000;
/// A prompt counts as truncated if the server has read less than this share of it.
const MIN_READ_SHARE: f64 = 0.6;
/// Maximum number of times that media are left out for one request.
const MAX_EVICTIONS: u32 = 4;
/// Minimum free share of the context window.
const FREE_SHARE: f64 = 0.08;
/// If leaving out old outputs frees a smaller share of the window than this, the transcript is also summarized.
const MIN_CLEARED_SHARE: f64 = 0.25;
/// Tokens that are subtracted when the output limit is lowered to the free space, because counts are not exact.
const OUTPUT_MARGIN: u64 = 1_024;

/// A request that is ready to be sent.
struct PreparedRequest<'a> {
    body: Vec<u8>,
    endpoint: Cow<'a, Endpoint>,
    max_output: Option<u64>,
}

/// What to do after a failed attempt.
enum Remedy {
    /// Send the request again without a wait.
    Again,
    End(TurnEnd),
}

impl Turn<'_> {
    /// Lets the hooks change the texts of a reply.
    pub(super) async fn run_text_hooks(&self, blocks: &mut [Block]) {
        for block in blocks {
            let Block::Text(text) = block else { continue };
            for hook in self.hooks {
                let mut changed = text.clone();
                match hook.reply_text(self.chat_context(), &mut changed).await {
                    Ok(()) => *text = changed,
                    Err(why) => (self.emit)(AgentEvent::Notice(why)),
                }
            }
        }
    }

    /// Sends a request, with retries, until it succeeds, cannot succeed, or the person aborts.
    pub(super) async fn ask_model(
        &mut self,
        progress: &mut Progress,
        is_last_step: bool,
    ) -> Result<Result<ModelReply, TurnEnd>, StoreError> {
        if self.compaction == Compaction::Automatic
            && self.context_tokens() >= context_limit(self.model, self.reserved)
            && progress.last_compaction_step.is_none_or(|step| step < progress.step)
            && let Err(end) = self.compact(progress, true).await?
        {
            return Ok(Err(end));
        }
        let (mut attempt, mut compactions, mut evictions) = (1, 0, 0);
        loop {
            (self.emit)(AgentEvent::Request { step: progress.step, attempt });
            let started = Instant::now();
            let failure = match self.attempt(is_last_step).await? {
                Some(Ok(reply)) => {
                    self.count(&reply, started, progress);
                    return Ok(match self.truncation_error(&reply, progress) {
                        Some(message) => Err(TurnEnd::Failed(message)),
                        None => Ok(reply),
                    });
                }
                Some(Err(failure)) => failure,
                None => return Ok(Err(TurnEnd::Aborted)),
            };
            if self.drop_rejected_field(&failure) {
                continue;
            }
            if evictions < MAX_EVICTIONS && self.evict_media(&failure, is_last_step).await? {
                evictions += 1;
                continue;
            }
            if matches!(failure.kind, FailureKind::Overflow | FailureKind::TooLarge) {
                compactions += 1;
                match self.make_room(&failure, compactions, progress).await? {
                    Remedy::Again => continue,
                    Remedy::End(end) => return Ok(Err(end)),
                }
            }
            match self.wait_for_retry(attempt, &failure, progress).await {
                Some(true) => attempt += 1,
                Some(false) => return Ok(Err(TurnEnd::Aborted)),
                None => return Ok(Err(TurnEnd::Failed(self.explain(failure)))),
            }
        }
    }

    /// Sends one request. Returns `None` if the person aborted; then the text so far is stored.
    async fn attempt(
        &mut self,
        is_last_step: bool,
    ) -> Result<Option<Result<ModelReply, Failure>>, StoreError> {
        let PreparedRequest { body, endpoint, max_output } = match self.prepare(is_last_step).await
        {
            Ok(prepared) => prepared,
            Err(why) => return Ok(Some(Err(Failure::new(FailureKind::Hook, why)))),
        };
        let text = Mutex::new(String::new());
        let show = |delta: Delta| match delta {
            Delta::Text(more) => {
                text.lock().push_str(&more);
                (self.emit)(AgentEvent::Text(more));
            }
            Delta::Reasoning(more) => (self.emit)(AgentEvent::Reasoning(more)),
            Delta::Call { .. } | Delta::Arguments(_) => {}
        };
        let sending = self.client.send(&endpoint, body, max_output, show);
        tokio::select! {
            outcome = sending => Ok(Some(outcome)),
            () = self.cancel.cancelled() => {
                self.store_partial(text.into_inner()).await?;
                Ok(None)
            }
        }
    }

    /// Waits before the next attempt. Returns false if the person aborted, and `None` if there is no next attempt.
    async fn wait_for_retry(
        &self,
        attempt: u32,
        failure: &Failure,
        progress: &mut Progress,
    ) -> Option<bool> {
        let first = self.model.endpoint.timeouts.first_retry_wait;
        let wait = retry::wait_before(attempt, failure, first, fastrand::f64())?;
        progress.waited += wait;
        if progress.waited > retry::MAX_TURN_WAIT {
            return None;
        }
        let reason = failure.message.clone();
        (self.emit)(AgentEvent::Retry { attempt: attempt + 1, wait, reason });
        tokio::select! {
            () = tokio::time::sleep(wait) => Some(true),
            () = self.cancel.cancelled() => Some(false),
        }
    }

    /// The message of a failure, with what a person can do about it.
    fn explain(&self, failure: Failure) -> String {
        let ModelRef { provider, name: model, .. } = &self.model.reference;
        let advice = match failure.kind {
            FailureKind::Auth => words::check_key(provider),
            FailureKind::NotFound => {
                let known = catalogue::all().iter().filter(|known| known.provider == provider);
                words::check_model(model, &nearest(model, known.map(|known| known.name), 3))
            }
            _ => return failure.message,
        };
        format!("{}; {advice}", failure.message)
    }

    /// If the server's message names an optional field, leaves out that field from now on.
    fn drop_rejected_field(&mut self, failure: &Failure) -> bool {
        if failure.kind != FailureKind::BadRequest {
            return false;
        }
        let quirks = &mut self.model.settings.quirks;
        let is_named = |field: &&&str| failure.message.contains(**field) && quirks.allows(field);
        let Some(field) = OPTIONAL_FIELDS.iter().find(is_named) else { return false };
        quirks.without_fields.push(field.to_string());
        true
    }

    /// Returns an error message if the server read only a part of the first prompt.
    fn truncation_error(&self, reply: &ModelReply, progress: &Progress) -> Option<String> {
        let usage = reply.usage.filter(|_| self.model.settings.quirks.cuts_prompts)?;
        let read = usage.input.saturating_add(usage.cache_read).saturating_add(usage.cache_write);
        let sent = self.transcript.context_tokens(self.fixed_tokens);
        let is_truncated = progress.step == 1
            && sent >= MIN_CHECKED_PROMPT
            && read > 0
            && (read as f64) < sent as f64 * MIN_READ_SHARE;
        is_truncated.then(|| {
            format!(
                "the server read only {read} of about {sent} tokens, because its context window is too small; set \
                 OLLAMA_CONTEXT_LENGTH to a larger number, restart it, and try again"
            )
        })
    }

    /// Counts what a request used towards the limits of the turn.
    fn count(&self, reply: &ModelReply, started: Instant, progress: &mut Progress) {
        let (usage, cost) = self.record(self.model, reply, started);
        progress.usage = progress.usage.plus(&usage);
        progress.cost += cost.unwrap_or(0.0);
    }

    /// Stores and reports what a request used.
    fn record(
        &self,
        model: &ActiveModel,
        reply: &ModelReply,
        started: Instant,
    ) -> (Usage, Option<f64>) {
        let usage = reply.usage.unwrap_or_else(|| Usage {
            input: self.context_tokens(),
            output: reply.blocks.iter().map(compact::block_tokens).sum(),
            ..Usage::default()
        });
        let is_estimated = reply.usage.is_none();
        let cost = model.prices.map(|prices| prices.cost(&usage));
        self.transcript.record_request(RequestRecord {
            provider: model.reference.provider.clone(),
            model: model.reference.name.clone(),
            at: now(),
            milliseconds: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            tokens: usage.counts(),
            is_estimated,
            cost,
        });
        self.budget.add(&usage, cost);
        (self.emit)(AgentEvent::Usage { tokens: usage, is_estimated, cost });
        (usage, cost)
    }

    /// Builds a request. Hooks change copies, so their changes apply to this request only.
    async fn prepare(&self, is_last_step: bool) -> Result<PreparedRequest<'_>, String> {
        let model = &*self.model;
        let mut settings = Cow::Borrowed(&model.settings);
        let mut system = Cow::Borrowed(self.system);
        let mut entries = Cow::Borrowed(self.transcript.entries());
        let mut endpoint = Cow::Borrowed(&model.endpoint);
        let context = self.chat_context();
        for hook in self.hooks {
            hook.params(context, settings.to_mut()).await?;
            hook.system(context, system.to_mut()).await?;
            hook.entries(context, entries.to_mut()).await?;
            hook.headers(context, &mut endpoint.to_mut().headers).await?;
        }
        let target =
            Target { model: &model.reference, quirks: &settings.quirks, tools: self.definitions };
        let body = wire::body(&ModelRequest {
            model: &model.reference,
            system: &system,
            tools: self.definitions,
            messages: compose::messages(&entries, &target),
            tool_choice: if is_last_step { ToolChoice::None } else { ToolChoice::Auto },
            settings: &settings,
            output_schema: self.output_schema,
            cache_key: &self.session.id,
        });
        Ok(PreparedRequest { body, endpoint, max_output: settings.max_output })
    }

    /// Leaves out an image or document that the provider rejects, or all of them if the request has too many bytes.
    async fn evict_media(
        &mut self,
        failure: &Failure,
        is_last_step: bool,
    ) -> Result<bool, StoreError> {
        let entries = self.transcript.entries();
        let rejected: Vec<Item> = match failure.kind {
            FailureKind::TooLarge => {
                media::sent(entries).iter().map(|place| place.rejection_item()).collect()
            }
            FailureKind::BadRequest => {
                let body = self.prepare(is_last_step).await.map(|prepared| prepared.body);
                let body: serde_json::Value =
                    serde_json::from_slice(&body.unwrap_or_default()).unwrap_or_default();
                let place = media::find_rejected(&failure.message, &body, entries);
                place.iter().map(|place| place.rejection_item()).collect()
            }
            _ => return Ok(false),
        };
        if rejected.is_empty() {
            return Ok(false);
        }
        let text = "The provider rejected an image or document; it is left out from now on.";
        (self.emit)(AgentEvent::Notice(text.into()));
        self.transcript.append(rejected).await?;
        Ok(true)
    }

    /// Returns the size of the next request in tokens.
    fn context_tokens(&self) -> u64 {
        self.transcript.context_tokens(self.fixed_tokens)
    }

    /// Summarizes the older part of the transcript because a person asked for it.
    pub async fn compact_now(mut self) -> Result<TurnEnd, StoreError> {
        Ok(match self.replace_with_summary(true).await? {
            Ok(()) => TurnEnd::Answered,
            Err(end) => end,
        })
    }

    /// Handles a request that is too large for the provider.
    async fn make_room(
        &mut self,
        failure: &Failure,
        compactions: u32,
        progress: &mut Progress,
    ) -> Result<Remedy, StoreError> {
        let hint = failure.overflow;
        if let Some(window) = hint.and_then(|hint| hint.window) {
            self.model.window = window;
        }
        if let Some(input) = hint.and_then(|hint| hint.accepted_input) {
            let room = self.model.window.saturating_sub(input + OUTPUT_MARGIN);
            if room >= OUTPUT_MARGIN && Some(room) < self.model.settings.max_output {
                self.model.settings.max_output = Some(room);
                return Ok(Remedy::Again);
            }
        }
        if self.compaction == Compaction::Off || compactions > MAX_COMPACTIONS {
            let message = format!(
                "the conversation does not fit into the model's context window: {}; {}",
                failure.message,
                words::LARGER_WINDOW
            );
            return Ok(Remedy::End(TurnEnd::Failed(message)));
        }
        Ok(match self.compact(progress, compactions == 1).await? {
            Ok(()) => Remedy::Again,
            Err(end) => Remedy::End(end),
        })
    }

    /// Shortens the transcript. With `keep_recent`, the newest items are kept verbatim.
    async fn compact(
        &mut self,
        progress: &mut Progress,
        keep_recent: bool,
    ) -> Result<Result<(), TurnEnd>, StoreError> {
        progress.last_compaction_step = Some(progress.step);
        if keep_recent
            && let Some((item, saved)) = compact::plan_clearing(self.transcript.entries())
        {
            self.transcript.append(vec![item]).await?;
            let is_enough = saved as f64 >= self.model.window as f64 * MIN_CLEARED_SHARE;
            if is_enough {
                (self.emit)(AgentEvent::Notice("Old outputs are left out from now on.".into()));
                return Ok(Ok(()));
            }
        }
        self.replace_with_summary(keep_recent).await
    }

    /// Replaces the older part of the transcript with a summary; without `keep_recent`, all of it except the user's
    /// last message.
    async fn replace_with_summary(
        &mut self,
        keep_recent: bool,
    ) -> Result<Result<(), TurnEnd>, StoreError> {
        let max_tail = if keep_recent { compact::max_tail(self.model.window) } else { 0 };
        let plan = compact::plan_summary(self.transcript.entries(), max_tail)
            .or_else(|| compact::plan_summary(self.transcript.entries(), 0));
        let Some(plan) = plan else {
            let message = format!(
                "the prompt alone does not fit into the model's context window; {}",
                words::LARGER_WINDOW
            );
            return Ok(Err(TurnEnd::Failed(message)));
        };
        (self.emit)(AgentEvent::Notice("The conversation is being summarized.".into()));
        let summary = match self.summarize(&plan.text).await {
            Some(Ok(summary)) => summary,
            Some(Err(message)) => return Ok(Err(TurnEnd::Failed(message))),
            None => return Ok(Err(TurnEnd::Aborted)),
        };
        let session_state = self.session_state.describe_after_summary().await;
        let text = words::summary(&summary, &session_state);
        self.transcript
            .append(vec![Item::Summary { text, kept: plan.kept, tail: plan.tail_start }])
            .await?;
        // The note about the environment may be among the summarized entries, so it is added again.
        self.note_environment().await?;
        Ok(Ok(()))
    }

    /// Lets the model write a summary, with one retry. Returns `None` if the person aborted.
    async fn summarize(&self, conversation: &str) -> Option<Result<String, String>> {
        let mut prompt = words::SUMMARIZE.to_owned();
        for hook in self.hooks {
            if let Err(message) = hook.summary(self.chat_context(), &mut prompt).await {
                return Some(Err(message));
            }
        }
        let text = format!("{conversation}\n{prompt}");
        let model = self.summarizer.unwrap_or(self.model);
        let body = wire::body(&ModelRequest {
            model: &model.reference,
            system: self.system,
            tools: &[],
            messages: vec![Message::User(vec![InputPart::Text(text.into())])],
            tool_choice: ToolChoice::None,
            settings: &model.settings,
            output_schema: None,
            cache_key: &self.session.id,
        });
        let mut last = String::new();
        for _ in 0..2 {
            let max_output = model.settings.max_output;
            let started = Instant::now();
            let sending = self.client.send(&model.endpoint, body.clone(), max_output, |_| {});
            let outcome = tokio::select! {
                outcome = sending => outcome,
                () = self.cancel.cancelled() => return None,
            };
            match outcome {
                Ok(reply) if reply.stop == StopReason::EndTurn && reply.has_text() => {
                    self.record(model, &reply, started);
                    return Some(Ok(reply.text()));
                }
                Ok(_) => last = "the model did not write a summary".into(),
                Err(failure) => last = failure.message,
            }
        }
        Some(Err(format!("the conversation is too long, and summarizing it failed: {last}")))
    }
}

/// Returns the maximum number of tokens in a request that leaves room for the reply.
pub fn context_limit(model: &ActiveModel, reserved: u64) -> u64 {
    let free = ((model.window as f64 * FREE_SHARE) as u64).max(reserved);
    model.window.saturating_sub(model.settings.max_output.unwrap_or(0).max(free))
}
