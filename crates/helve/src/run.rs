//! Running an agent: a model that works with the tools of a toolbox.

use std::time::{SystemTime, UNIX_EPOCH};

use helve_agent::event::{AgentEvent, TurnEnd};
use helve_agent::failure::Failure;
use helve_agent::http::ModelClient;
use helve_agent::item::{Entry, Item, MessagePart, NoteKind};
use helve_agent::model::ActiveModel;
use helve_agent::prompt;
use helve_agent::reply::Usage;
use helve_agent::transcript::Transcript;
use helve_agent::turn::{Compaction, Inbox, SessionState, Turn, TurnLimits};
use helve_core::BoxFuture;
use helve_core::store::StoreError;
use helve_core::transcript::TranscriptInfo;
use helve_ext::config;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::toolbox::Toolbox;

/// Maximum number of changes listed after a summary of the transcript.
const MAX_LISTED_CHANGES: usize = 200;
/// Maximum length of a session's title, in characters.
const MAX_TITLE: usize = 80;

/// Why an agent cannot run.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    #[error("the session cannot be loaded: {0}")]
    Store(#[from] StoreError),
    #[error("{0}")]
    Client(#[from] Failure),
}

/// A model at work in a session of a toolbox.
pub struct AgentSession<'t> {
    toolbox: &'t Toolbox,
    model: ActiveModel,
    client: ModelClient,
    system: Vec<String>,
    transcript: Transcript,
    pub inbox: Inbox,
}

/// How a turn ended, and what it used.
#[derive(Clone, Debug)]
pub struct TurnReport {
    pub end: TurnEnd,
    pub usage: Usage,
    /// The text of the model's last message.
    pub text: String,
}

/// What a turn may use, and the form that its answer must have.
#[derive(Clone, Debug)]
pub struct TurnOptions {
    pub limits: TurnLimits,
    pub compaction: Compaction,
    /// A JSON schema of the answer.
    pub output_schema: Option<Box<RawValue>>,
}

impl Toolbox {
    /// Returns an agent that continues this toolbox's session, or begins it.
    pub async fn agent(&self, model: ActiveModel) -> Result<AgentSession<'_>, AgentError> {
        let client = ModelClient::new()?;
        let transcript =
            Transcript::load(self.id.as_str().into(), self.transcripts.clone()).await?;
        let prompt = self.agent_config().and_then(|agent| agent.prompt.as_ref());
        let prompt = prompt.map_or(prompt::BASE, |prompt| prompt.value.as_str());
        let system = vec![prompt.trim_end().to_string()];
        Ok(AgentSession {
            toolbox: self,
            model,
            client,
            system,
            transcript,
            inbox: Inbox::default(),
        })
    }

    /// Returns the sessions with a transcript in this folder, newest first.
    pub async fn sessions(&self, max: usize) -> Result<Vec<TranscriptInfo>, StoreError> {
        self.transcripts.list(Some(self.root()), max).await
    }

    /// Returns what was said and done in a session; empty for an unknown one.
    pub async fn transcript(&self, session: &str) -> Result<Vec<Entry>, StoreError> {
        let transcript = Transcript::load(session.into(), self.transcripts.clone()).await?;
        Ok(transcript.entries().to_vec())
    }

    /// Deletes a session's transcript. Returns whether there was one.
    pub async fn delete_transcript(&self, session: &str) -> Result<bool, StoreError> {
        self.transcripts.delete(session).await
    }

    /// The configuration of this toolbox's agent.
    pub(crate) fn agent_config(&self) -> Option<&config::Agent> {
        self.config.agents.iter().find(|agent| agent.name == self.caller.agent)
    }

    /// The id of this toolbox's session.
    pub fn session_id(&self) -> &str {
        &self.id
    }
}

impl AgentSession<'_> {
    /// Runs one turn: the model works until it answers, or until something stops it.
    pub async fn run(
        &mut self,
        prompt: Vec<MessagePart>,
        options: &TurnOptions,
        emit: &(dyn Fn(AgentEvent) + Send + Sync),
        cancel: CancellationToken,
    ) -> Result<TurnReport, AgentError> {
        self.begin(&prompt).await?;
        let limits = self.limits(options.limits);
        let turn = Turn {
            engine: &self.toolbox.engine,
            session: self.toolbox.session(),
            tools: self.toolbox.tools(),
            model: &mut self.model,
            client: &self.client,
            system: &self.system,
            transcript: &mut self.transcript,
            limits,
            inbox: &self.inbox,
            compaction: options.compaction,
            state: &ChangedFiles(self.toolbox),
            output_schema: options.output_schema.as_deref(),
            emit,
            cancel,
        };
        let (end, usage) = turn.run(prompt).await;
        Ok(TurnReport { end, usage, text: last_text(self.transcript.entries()) })
    }

    /// The given limits, and those of the agent where none is given.
    fn limits(&self, given: TurnLimits) -> TurnLimits {
        let steps = self.toolbox.agent_config().and_then(|agent| agent.steps.as_ref());
        let steps = steps.map(|steps| u32::try_from(steps.value).unwrap_or(u32::MAX));
        TurnLimits { steps: given.steps.or(steps), ..given }
    }

    /// Registers a new session, and begins its transcript with a note about the environment.
    async fn begin(&mut self, prompt: &[MessagePart]) -> Result<(), StoreError> {
        if !self.transcript.entries().is_empty() {
            return Ok(());
        }
        let (id, root) = (self.toolbox.session_id(), self.toolbox.root());
        self.toolbox.transcripts.register(id, root, &title(prompt)).await?;
        let platform = format!("{} {}", std::env::consts::OS, std::env::consts::ARCH);
        let text = prompt::environment(root, is_git(self.toolbox).await, &platform, &today());
        self.transcript.append(vec![Item::Note { note: NoteKind::Environment, text }]).await
    }
}

/// Lists the files changed in the session, so that they survive a summary of the transcript.
struct ChangedFiles<'t>(&'t Toolbox);

impl SessionState for ChangedFiles<'_> {
    fn describe(&self) -> BoxFuture<'_, String> {
        Box::pin(async {
            let changes = self.0.history(MAX_LISTED_CHANGES).await.unwrap_or_default();
            let mut files: Vec<String> = changes
                .iter()
                .filter(|change| change.session == self.0.session_id())
                .flat_map(|change| change.files.iter().map(|file| file.path.display().to_string()))
                .collect();
            files.sort();
            files.dedup();
            match files.is_empty() {
                true => String::new(),
                false => format!("Files changed in this session:\n{}", files.join("\n")),
            }
        })
    }
}

async fn is_git(toolbox: &Toolbox) -> bool {
    let machine = toolbox.workspace.host().machine();
    let git = machine.locate(&toolbox.root().join(".git")).await;
    git.is_ok_and(|git| git.kind.is_some())
}

/// The first line of the prompt.
fn title(prompt: &[MessagePart]) -> String {
    let text = prompt.iter().find_map(|part| match part {
        MessagePart::Text(text) => text.lines().map(str::trim).find(|line| !line.is_empty()),
        MessagePart::Media { .. } => None,
    });
    text.unwrap_or("(no title)").chars().take(MAX_TITLE).collect()
}

fn last_text(entries: &[Entry]) -> String {
    let last = entries.iter().rev().find_map(|entry| match &entry.item {
        Item::Assistant(message) => Some(message.text()),
        _ => None,
    });
    last.unwrap_or_default()
}

/// The date as year, month and day, in UTC.
fn today() -> String {
    let days = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() / 86_400;
    let (year, month, day) = civil(i64::try_from(days).unwrap_or(0));
    format!("{year:04}-{month:02}-{day:02}")
}

/// Converts days since 1970-01-01 to a date of the Gregorian calendar.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_computed() {
        for (days, date) in [
            (0, (1970, 1, 1)),
            (58, (1970, 2, 28)),
            (59, (1970, 3, 1)),
            (11_016, (2000, 2, 29)),
            (20_773, (2026, 11, 16)),
        ] {
            assert_eq!(civil(days), date);
        }
    }
}
