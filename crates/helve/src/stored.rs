//! Stored sessions: opens, forks, searches, exports and deletes their transcripts, and undoes and redoes turns.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use helve_agent::history::{self, TranscriptCall};
use helve_agent::item::{CallResult, Entry, Item, MessagePart};
use helve_agent::transcript::Transcript;
use helve_agent::words;
use helve_core::journal::{AfterImage, ChangedFile};
use helve_core::store::StoreError;
use helve_core::transcript::{
    ModelTotals, SearchHit, TotalsOf, TranscriptInfo, Transcripts, WriterClaim, WriterLock,
};
use helve_core::{Input, Origin, ToolCall, paths};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::child_turns::{ChildTurns, ChildUndo, MAX_CHILDREN};
use crate::export::ExportedSession;
use crate::toolbox::{Toolbox, new_session_id};

/// Maximum number of sessions that statistics cover.
const MAX_COUNTED_SESSIONS: usize = 10_000;
/// Maximum number of ancestors that are looked up for a session that is a fork.
const MAX_FORKS: usize = 100;

/// Why a session cannot be opened or changed.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error("the session cannot be loaded or stored: {0}")]
    Store(#[from] StoreError),
    #[error("the session {session} is in use by {}; wait until it ends, or work in a copy with --fork", holder(.process))]
    InUse { session: String, process: Option<u32> },
    #[error("there is no session {0}; `helve sessions` lists the sessions")]
    Unknown(String),
    #[error("there is no session in this folder yet; `helve run PROMPT` begins one")]
    NoSession,
    #[error("there is nothing to undo in this session")]
    NothingToUndo,
    #[error(
        "there is nothing to redo: nothing was undone, or the conversation continued after the undo"
    )]
    NothingToRedo,
    #[error("the file changes cannot be undone, so nothing was undone: {0}")]
    UndoFailed(String),
}

/// Names the process that holds a session.
fn holder(process: &Option<u32>) -> String {
    match process {
        Some(process) => format!("process {process}"),
        None => "another process".into(),
    }
}

/// What an undo reverted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnUndone {
    /// The text of the user's message.
    pub prompt: String,
    /// The file changes that were reverted, as text with diffs; empty if no file changed.
    pub files: String,
    /// The shell commands that the undone calls ran. What they changed is not reverted.
    pub commands: Vec<String>,
}

/// What a redo restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnRedone {
    /// The file changes that were restored, as text with diffs; empty if no file changed.
    pub files: String,
}

/// The tokens and costs of sessions by model, and their calls by tool.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionStatistics {
    pub sessions: usize,
    /// One entry for each model. Its field `session` is empty.
    pub models: Vec<ModelTotals>,
    /// One entry for each tool, sorted by name.
    pub tools: Vec<ToolTotals>,
}

/// The calls of one tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolTotals {
    pub name: String,
    pub calls: u64,
    pub errors: u64,
}

/// A session of a toolbox, opened for writing. While this exists, nothing else can write to the session.
pub struct StoredSession<'t> {
    pub(crate) toolbox: &'t Toolbox,
    pub(crate) transcript: Transcript,
    /// The sessions from which this one was forked, directly and indirectly, nearest first. Each has the position of
    /// the last item that was copied from it.
    origins: Vec<(String, u64)>,
    _lock: WriterLock,
}

impl Toolbox {
    /// Opens this toolbox's session for writing.
    pub async fn stored_session(&self) -> Result<StoredSession<'_>, SessionError> {
        let session = self.session_id();
        let lock = match self.transcripts.claim(session).await? {
            WriterClaim::Granted(lock) => lock,
            WriterClaim::Taken { process } => {
                return Err(SessionError::InUse { session: session.into(), process });
            }
        };
        let transcript = Transcript::load(session.into(), self.transcripts.clone()).await?;
        let mut origins = Vec::new();
        let mut id = session.to_string();
        while origins.len() < MAX_FORKS
            && let Some(origin) = self.transcripts.info(&id).await?.and_then(|info| info.fork)
        {
            id.clone_from(&origin.session);
            origins.push((origin.session, origin.last));
        }
        Ok(StoredSession { toolbox: self, transcript, origins, _lock: lock })
    }

    /// Returns the store of transcripts.
    pub fn transcripts(&self) -> Arc<dyn Transcripts> {
        self.transcripts.clone()
    }

    /// Returns the sessions with a transcript in this folder, newest first.
    pub async fn sessions(&self, max: usize) -> Result<Vec<TranscriptInfo>, StoreError> {
        self.transcripts.list(Some(self.root()), max).await
    }

    /// Returns the title, folder and times of a session, of this folder or another one.
    pub async fn session_info(&self, session: &str) -> Result<Option<TranscriptInfo>, StoreError> {
        self.transcripts.info(session).await
    }

    /// Returns the transcript of a session; empty if the session is unknown.
    pub async fn transcript(&self, session: &str) -> Result<Vec<Entry>, StoreError> {
        let transcript = Transcript::load(session.into(), self.transcripts.clone()).await?;
        Ok(transcript.entries().to_vec())
    }

    /// Copies a session. Returns the id of the copy.
    pub async fn fork_session(&self, session: &str) -> Result<String, SessionError> {
        let unknown = || SessionError::Unknown(session.into());
        let info = self.transcripts.info(session).await?.ok_or_else(unknown)?;
        let fork = new_session_id();
        let title = match info.title.ends_with("(fork)") {
            true => info.title,
            false => format!("{} (fork)", info.title),
        };
        match self.transcripts.fork(session, &fork, &title).await? {
            true => Ok(fork),
            false => Err(unknown()),
        }
    }

    /// Returns the items of this folder's sessions that contain all of these words, best first.
    pub async fn search_sessions(
        &self,
        words: &str,
        max: usize,
    ) -> Result<Vec<SearchHit>, StoreError> {
        self.transcripts.search(self.root(), words, max).await
    }

    /// Returns a session with everything that is stored about it.
    pub async fn exported_session(&self, session: &str) -> Result<ExportedSession, SessionError> {
        let unknown = || SessionError::Unknown(session.into());
        Ok(ExportedSession {
            info: self.transcripts.info(session).await?.ok_or_else(unknown)?,
            entries: self.transcript(session).await?,
            totals: self.session_totals(session).await?,
        })
    }

    /// Adds up the tokens, costs and calls of one session, or of all sessions of this folder.
    pub async fn session_statistics(
        &self,
        session: Option<&str>,
    ) -> Result<SessionStatistics, SessionError> {
        let (sessions, totals) = match session {
            Some(id) => {
                let unknown = || SessionError::Unknown(id.into());
                let info = self.transcripts.info(id).await?.ok_or_else(unknown)?;
                (vec![info], self.session_totals(id).await?)
            }
            None => {
                let sessions = self.sessions(MAX_COUNTED_SESSIONS).await?;
                (sessions, self.transcripts.totals(TotalsOf::Folder(self.root())).await?)
            }
        };
        let mut tools: BTreeMap<String, ToolTotals> = BTreeMap::new();
        for info in &sessions {
            let entries = self.transcript(&info.session).await?;
            // Calls that were copied from another session are counted there.
            let first_new = info.fork.as_ref().map_or(0, |fork| fork.last + 1);
            let new_entries = entries.iter().filter(|entry| entry.seq >= first_new);
            count_calls(new_entries, &mut tools);
        }
        let models = by_model(totals);
        Ok(SessionStatistics {
            sessions: sessions.len(),
            models,
            tools: tools.into_values().collect(),
        })
    }

    /// Returns the tokens and costs of a session, by model.
    pub async fn session_totals(&self, session: &str) -> Result<Vec<ModelTotals>, StoreError> {
        self.transcripts.totals(TotalsOf::Session(session)).await
    }

    /// Deletes a session's transcript. Returns whether there was one.
    pub async fn delete_transcript(&self, session: &str) -> Result<bool, SessionError> {
        match self.transcripts.claim(session).await? {
            WriterClaim::Granted(_lock) => {
                let is_deleted = self.transcripts.delete(session).await?;
                let properties = serde_json::json!({"info": {"id": session}});
                self.tell_plugins("session.deleted", properties).await;
                Ok(is_deleted)
            }
            WriterClaim::Taken { process } => {
                Err(SessionError::InUse { session: session.into(), process })
            }
        }
    }

    /// Marks turns of sub-agents as undone.
    async fn mark_undone(&self, undos: &[ChildUndo]) -> Result<(), SessionError> {
        for undo in undos {
            let item = Item::Undone { from: undo.from, call: None };
            self.append_to_child(&undo.session, item).await?;
        }
        Ok(())
    }

    /// Marks the last undone turns of sub-agents as redone, and those of the sub-agents that these turns started.
    async fn mark_redone(&self, mut pending: Vec<ChildTurns>) -> Result<(), SessionError> {
        let mut remaining = MAX_CHILDREN;
        while let Some(ChildTurns { session, .. }) = pending.pop() {
            let entries = self.transcript(&session).await?;
            let Some(plan) = history::plan_redo(&entries).filter(|_| remaining > 0) else {
                continue;
            };
            remaining -= 1;
            self.append_to_child(&session, Item::Redone { undone: plan.undone }).await?;
            let redone = history::redone_entries(&entries, plan.undone);
            pending.extend(self.started_children(&session, redone.into_iter()).await?);
        }
        Ok(())
    }

    /// Appends an item to the transcript of a sub-agent's session.
    async fn append_to_child(&self, session: &str, item: Item) -> Result<(), SessionError> {
        let _lock = match self.transcripts.claim(session).await? {
            WriterClaim::Granted(lock) => lock,
            WriterClaim::Taken { process } => {
                return Err(SessionError::InUse { session: session.into(), process });
            }
        };
        let mut transcript = Transcript::load(session.into(), self.transcripts.clone()).await?;
        Ok(transcript.append(vec![item]).await?)
    }
}

impl StoredSession<'_> {
    /// Returns the transcript: all messages, calls and results so far.
    pub fn entries(&self) -> &[Entry] {
        self.transcript.entries()
    }

    /// Undoes the user's last message, everything that followed it, and the file changes that calls made since,
    /// including those of sub-agents. If a file change cannot be reverted, nothing is undone.
    pub async fn undo(&mut self) -> Result<TurnUndone, SessionError> {
        let plan = history::plan_undo(self.entries()).ok_or(SessionError::NothingToUndo)?;
        let visible = history::shown(self.entries());
        let undone = visible.into_iter().filter(|entry| entry.seq > plan.from);
        let children = self.toolbox.started_children(self.session_at(plan.from), undone).await?;
        let children = self.toolbox.plan_child_undos(children).await?;
        let own_calls =
            plan.calls.iter().map(|made| (self.session_at(made.seq), made.call.id.as_str()));
        let child_calls = children.iter().flat_map(|child| {
            child.calls.iter().map(|made| (child.session.as_str(), made.call.id.as_str()))
        });
        let (call, files) = self.revert(own_calls.chain(child_calls).collect()).await?;
        self.transcript.append(vec![Item::Undone { from: plan.from, call }]).await?;
        self.toolbox.mark_undone(&children).await?;
        let calls = plan.calls.iter().chain(children.iter().flat_map(|child| &child.calls));
        let commands = calls.filter_map(command).collect();
        Ok(TurnUndone { prompt: plan.prompt, files, commands })
    }

    /// Redoes what was undone last.
    pub async fn redo(&mut self) -> Result<TurnRedone, SessionError> {
        let plan = history::plan_redo(self.entries()).ok_or(SessionError::NothingToRedo)?;
        let calls = plan.call.iter().map(|call| (self.session_at(plan.undone), call.as_str()));
        let (_, files) = self.revert(calls.collect()).await?;
        let redone = history::redone_entries(self.entries(), plan.undone);
        let first_redone = redone.first().map_or(plan.undone, |entry| entry.seq);
        let session = self.session_at(first_redone);
        let children = self.toolbox.started_children(session, redone.into_iter()).await?;
        self.transcript.append(vec![Item::Redone { undone: plan.undone }]).await?;
        self.toolbox.mark_redone(children).await?;
        Ok(TurnRedone { files })
    }

    /// Reverts the file changes of calls. Each call is given as its session and its id. Returns the id of the `undo`
    /// call that reverted them (`None` if no file had changed), and the text of its result.
    async fn revert(
        &self,
        calls: Vec<(&str, &str)>,
    ) -> Result<(Option<String>, String), SessionError> {
        let mut file_changes = Vec::new();
        for (session, call) in calls {
            let change = self.toolbox.workspace.change_in_session(session, call).await?;
            file_changes.extend(change.map(|change| (change.at, session, call)));
        }
        if file_changes.is_empty() {
            return Ok((None, String::new()));
        }
        // Oldest first, because an agent and its sub-agents may have changed the same file in turn.
        file_changes.sort_by_key(|(at, ..)| *at);
        let targets: Vec<_> = file_changes
            .into_iter()
            .map(|(_, session, call)| json!({"session": session, "call": call}))
            .collect();
        let input = Input::Json(json!({"calls": targets}));
        // The person asked for the undo, so they are not asked for permission. A rule that denies it still applies.
        let call = ToolCall { origin: Origin::Person, ..ToolCall::new("undo", input) };
        let (engine, tools) = (&self.toolbox.engine, self.toolbox.tools());
        let cancel = CancellationToken::new();
        let result = engine.call(self.toolbox.session(), &tools, call, cancel).await;
        match result.outcome {
            Ok(output) => Ok((Some(result.call), output.joined_text())),
            Err(error) => Err(SessionError::UndoFailed(error.full_message())),
        }
    }

    /// Returns the session in which the item at a position was first stored: this one, or one that it was forked from.
    fn session_at(&self, seq: u64) -> &str {
        let older = self.origins.iter().take_while(|(_, last)| seq <= *last);
        older.last().map_or(self.toolbox.session_id(), |(session, _)| session)
    }

    /// Stores a result for every call that an earlier process left without one. The result lists the files that the
    /// call changed according to the journal. Returns a message for the person about each call.
    pub(crate) async fn answer_interrupted_calls(&mut self) -> Result<Vec<String>, StoreError> {
        let unanswered = history::unanswered(self.entries());
        let (mut results, mut messages) = (Vec::new(), Vec::new());
        for TranscriptCall { seq, call } in unanswered {
            let workspace = &self.toolbox.workspace;
            // If the journal cannot be read, the session can still be continued.
            let change = workspace.change_in_session(self.session_at(seq), &call.id).await;
            let files = change.ok().flatten().map(|change| change.files).unwrap_or_default();
            let (changed, uncertain) = split_by_certainty(self.toolbox.root(), &files);
            let text = words::interrupted(&changed, &uncertain);
            messages.push(format!("{}: {text}", call.name));
            results.push(Item::Result(CallResult {
                call: call.id,
                title: call.name,
                content: vec![MessagePart::Text(text)],
                is_error: true,
                saved: None,
            }));
        }
        if !results.is_empty() {
            self.transcript.append(results).await?;
        }
        Ok(messages)
    }
}

/// Splits changed files into those that were certainly changed and those that may have been changed. Returns their
/// names.
fn split_by_certainty(root: &Path, files: &[ChangedFile]) -> (Vec<String>, Vec<String>) {
    let (mut changed, mut uncertain) = (Vec::new(), Vec::new());
    for file in files {
        let name = paths::display(file.path.strip_prefix(root).unwrap_or(&file.path)).into_owned();
        match &file.after {
            AfterImage::Known(_) => changed.push(name),
            AfterImage::Intended(_) | AfterImage::Lost => uncertain.push(name),
        }
    }
    (changed, uncertain)
}

/// Returns the shell command that a call ran, if it has one.
fn command(made: &TranscriptCall) -> Option<String> {
    let arguments: serde_json::Value = serde_json::from_str(&made.call.arguments).ok()?;
    arguments.get("command")?.as_str().map(String::from)
}

/// Counts calls and their errors by tool.
fn count_calls<'a>(
    entries: impl Iterator<Item = &'a Entry>,
    tools: &mut BTreeMap<String, ToolTotals>,
) {
    let mut names: BTreeMap<&str, &str> = BTreeMap::new();
    for entry in entries {
        match &entry.item {
            Item::Assistant(message) => {
                for call in message.calls() {
                    names.insert(&call.id, &call.name);
                    let name = call.name.clone();
                    let tool = tools.entry(name.clone()).or_default();
                    tool.name = name;
                    tool.calls += 1;
                }
            }
            Item::Result(result) if result.is_error => {
                let name = names.get(result.call.as_str());
                if let Some(tool) = name.and_then(|name| tools.get_mut(*name)) {
                    tool.errors += 1;
                }
            }
            Item::User { .. }
            | Item::Result(_)
            | Item::Note { .. }
            | Item::Summary { .. }
            | Item::OutputsCleared { .. }
            | Item::MediaRejected { .. }
            | Item::Undone { .. }
            | Item::Redone { .. } => {}
        }
    }
}

/// Adds up the totals of several sessions by model.
fn by_model(totals: Vec<ModelTotals>) -> Vec<ModelTotals> {
    let mut models: BTreeMap<(String, String), ModelTotals> = BTreeMap::new();
    for total in totals {
        let key = (total.provider.clone(), total.model.clone());
        match models.get_mut(&key) {
            None => {
                models.insert(key, ModelTotals { session: String::new(), ..total });
            }
            Some(sum) => {
                sum.requests += total.requests;
                sum.tokens = sum.tokens.plus(&total.tokens);
                sum.estimated += total.estimated;
                sum.cost += total.cost;
                sum.unpriced += total.unpriced;
                sum.milliseconds += total.milliseconds;
            }
        }
    }
    models.into_values().collect()
}
