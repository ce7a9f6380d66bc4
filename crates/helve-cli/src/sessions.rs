//! `helve sessions`: lists, shows, exports and deletes the sessions of `helve run`.

use helve::agent_loop::item::{Block, Entry, Item, MessagePart};
use helve::{Toolbox, visible};
use serde_json::{Value, json};

use crate::Exit;
use crate::args::{GlobalArgs, SessionsCommand};
use crate::history::ago;
use crate::output::{self, BOLD, CYAN, DIM, PLAIN, RED};

/// The most lines of a result that are shown.
const MAX_RESULT_LINES: usize = 12;

pub(crate) async fn run(
    common: &GlobalArgs,
    command: Option<&SessionsCommand>,
) -> anyhow::Result<Exit> {
    let toolbox = common.toolbox().await?;
    let exit = match command {
        None => list(common, &toolbox, 20).await?,
        Some(SessionsCommand::List { limit }) => list(common, &toolbox, *limit).await?,
        Some(SessionsCommand::Show { id }) => show(common, &toolbox, id.as_deref()).await?,
        Some(SessionsCommand::Delete { id }) => delete(&toolbox, id).await?,
    };
    toolbox.close().await;
    Ok(exit)
}

async fn list(common: &GlobalArgs, toolbox: &Toolbox, limit: usize) -> anyhow::Result<Exit> {
    let sessions = toolbox.sessions(limit).await?;
    if common.json {
        let session = |info: &helve::TranscriptInfo| {
            json!({
                "id": info.session, "title": info.title,
                "created": info.created, "updated": info.updated,
            })
        };
        output::print_json(&sessions.iter().map(session).collect())?;
    } else if sessions.is_empty() {
        output::print("There is no session in this folder yet; `helve run PROMPT` begins one.\n")?;
    }
    for info in sessions.iter().filter(|_| !common.json) {
        output::print(&format!(
            "{BOLD}{}{PLAIN}  {DIM}{}{PLAIN}  {}\n",
            info.session,
            ago(info.updated),
            visible::escape_line(&info.title)
        ))?;
    }
    Ok(Exit::Done)
}

/// Shows a session. With `--json` nothing is left out.
async fn show(common: &GlobalArgs, toolbox: &Toolbox, id: Option<&str>) -> anyhow::Result<Exit> {
    let newest = toolbox.sessions(1).await?.into_iter().next().map(|info| info.session);
    let Some(id) = id.map(str::to_string).or(newest) else {
        output::error("There is no session in this folder yet.");
        return Ok(Exit::Failed);
    };
    let entries = toolbox.transcript(&id).await?;
    if entries.is_empty() {
        output::error(&format!("There is no session {id}; `helve sessions` lists the sessions."));
        return Ok(Exit::Failed);
    }
    if common.json {
        let items = entries.iter().map(serde_json::to_value).collect::<Result<Vec<Value>, _>>()?;
        output::print_json(&json!({"session": id, "items": items}))?;
        return Ok(Exit::Done);
    }
    for entry in &entries {
        output::print(&format_entry(entry))?;
    }
    Ok(Exit::Done)
}

async fn delete(toolbox: &Toolbox, id: &str) -> anyhow::Result<Exit> {
    if toolbox.delete_transcript(id).await? {
        return Ok(Exit::Done);
    }
    output::error(&format!("There is no session {id}; `helve sessions` lists the sessions."));
    Ok(Exit::Failed)
}

/// Formats one entry of a transcript for the terminal.
fn format_entry(entry: &Entry) -> String {
    let titled = |colour: &str, title: &str, text: &str| {
        format!("{colour}{title}{PLAIN} {}\n", visible::escape(text.trim_end()))
    };
    match &entry.item {
        Item::User { content } => titled(BOLD, "you:", &joined(content)),
        Item::Assistant(message) => {
            let block = |block: &Block| match block {
                Block::Text(text) => titled(CYAN, "model:", text),
                Block::Call(call) => {
                    let arguments = visible::escape_line(&call.arguments);
                    format!("{DIM}→{PLAIN} {BOLD}{}{PLAIN} {DIM}{arguments}{PLAIN}\n", call.name)
                }
                Block::Reasoning { text, .. } if !text.is_empty() => titled(DIM, "thinking:", text),
                Block::Reasoning { .. } | Block::Other(_) => String::new(),
            };
            message.blocks.iter().map(block).collect()
        }
        Item::Result(result) => {
            let colour = if result.is_error { RED } else { DIM };
            let text = joined(&result.content);
            let lines: Vec<&str> = text.lines().collect();
            let shown = lines.iter().take(MAX_RESULT_LINES);
            let mut all: String = shown
                .map(|line| format!("  {colour}{}{PLAIN}\n", visible::escape_line(line)))
                .collect();
            if lines.len() > MAX_RESULT_LINES {
                let more = lines.len() - MAX_RESULT_LINES;
                all.push_str(&format!("  {DIM}… {more} more lines{PLAIN}\n"));
            }
            all
        }
        Item::Note { text, .. } => titled(DIM, "note:", text),
        Item::Summary { text, .. } => titled(DIM, "summary:", text),
        Item::OutputsCleared { .. } | Item::MediaRejected { .. } => String::new(),
        Item::Undone { .. } => format!("{DIM}(undone){PLAIN}\n"),
        Item::Redone { .. } => format!("{DIM}(restored){PLAIN}\n"),
    }
}

fn joined(parts: &[MessagePart]) -> String {
    let part = |part: &MessagePart| match part {
        MessagePart::Text(text) => text.clone(),
        MessagePart::Media { mime, .. } => format!("({mime})"),
    };
    parts.iter().map(part).collect::<Vec<_>>().join("\n")
}
