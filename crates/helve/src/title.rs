//! Titles of sessions: the first line of the prompt, until a small model has written a better one.

use std::sync::Arc;
use std::time::Duration;

use helve_agent::http::ModelClient;
use helve_agent::item::MessagePart;
use helve_agent::model::ActiveModel;
use helve_agent::request::{InputPart, Message, ModelRequest, ToolChoice};
use helve_agent::{wire, words};
use helve_core::transcript::Transcripts;
use tokio::task::JoinHandle;

use crate::toolbox::Toolbox;

/// Maximum length of a title, in characters.
const MAX_TITLE: usize = 80;
/// Maximum length of the prompt that the small model sees, in characters.
const MAX_PROMPT: usize = 4_000;
/// Maximum number of output tokens for a title.
const TITLE_TOKENS: u64 = 200;
/// How long to wait for the title once the turn has ended.
const GRACE: Duration = Duration::from_secs(3);

/// Returns the first non-empty line of a prompt, as a title.
pub(crate) fn first_line(prompt: &[MessagePart]) -> String {
    let text = prompt.iter().find_map(|part| match part {
        MessagePart::Text(text) => text.lines().map(str::trim).find(|line| !line.is_empty()),
        MessagePart::Media { .. } => None,
    });
    text.unwrap_or("(no title)").chars().take(MAX_TITLE).collect()
}

/// A task in which a small model writes a title while the turn runs. If it fails, the title stays the first line of the
/// prompt.
pub(crate) struct TitleTask(JoinHandle<()>);

impl TitleTask {
    pub(crate) fn start(
        toolbox: &Toolbox,
        client: &ModelClient,
        model: ActiveModel,
        prompt: &[MessagePart],
    ) -> Self {
        let (store, session) = (toolbox.transcripts.clone(), toolbox.session_id().to_string());
        let text = |part: &MessagePart| match part {
            MessagePart::Text(text) => text.clone(),
            MessagePart::Media { .. } => String::new(),
        };
        let prompt: String = prompt.iter().map(text).collect::<Vec<_>>().join("\n");
        let prompt = prompt.chars().take(MAX_PROMPT).collect();
        Self(tokio::spawn(write_title(store, session, client.clone(), model, prompt)))
    }

    /// Waits a few seconds for the title, then aborts the task.
    pub(crate) async fn finish(mut self) {
        if tokio::time::timeout(GRACE, &mut self.0).await.is_err() {
            self.0.abort();
        }
    }
}

async fn write_title(
    store: Arc<dyn Transcripts>,
    session: String,
    client: ModelClient,
    mut model: ActiveModel,
    prompt: String,
) {
    model.settings.max_output = Some(TITLE_TOKENS);
    let text = words::title_request(&prompt);
    let body = wire::body(&ModelRequest {
        model: &model.reference,
        system: &[],
        tools: &[],
        messages: vec![Message::User(vec![InputPart::Text(text.into())])],
        tool_choice: ToolChoice::None,
        settings: &model.settings,
        output_schema: None,
        cache_key: &session,
    });
    let reply = client.send(&model.endpoint, body, Some(TITLE_TOKENS), |_| {}).await;
    let Ok(reply) = reply else { return };
    if let Some(title) = title_in(&reply.text()) {
        // If this fails, the old title stays.
        store.set_title(&session, &title).await.ok();
    }
}

/// Returns the first non-empty line of a reply, without markup. Thoughts before `</think>` are skipped.
fn title_in(reply: &str) -> Option<String> {
    let spoken = reply.rsplit_once("</think>").map_or(reply, |(_, spoken)| spoken);
    let line = spoken.lines().map(str::trim).find(|line| !line.is_empty())?;
    let line = line.trim_matches(['"', '#', '*', '`', ' ']);
    let title = line.chars().filter(|c| !c.is_control()).take(MAX_TITLE).collect::<String>();
    (!title.is_empty()).then_some(title)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_taken_from_replies() {
        let check = |reply, expected: Option<&str>| {
            assert_eq!(title_in(reply).as_deref(), expected, "{reply}");
        };
        check("\n  \"Fix the parser\"\nmore", Some("Fix the parser"));
        check("<think>hm\nwell</think>\n# Rename a\u{1b}", Some("Rename a"));
        check("  \n", None);
        assert_eq!(title_in(&"x".repeat(200)).map(|title| title.len()), Some(MAX_TITLE));
    }
}
