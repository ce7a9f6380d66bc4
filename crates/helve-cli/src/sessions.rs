//! `helve sessions`: lists, shows, exports, searches, undoes, forks and deletes the sessions of `helve run`.
#![expect(
    clippy::disallowed_methods,
    reason = "the file that the user names on the command line is the user's own, not the model's"
)]

use std::path::Path;

use anyhow::Context;
use helve::agent_loop::item::{Block, Entry, Item, MessagePart};
use helve::{ModelTotals, SearchHit, SessionError, ToolTotals, Toolbox, totals_json, visible};
use serde_json::{Value, json};

use crate::Exit;
use crate::args::{ExportFormat, GlobalArgs, SessionsCommand};
use crate::history::ago;
use crate::output::{self, BOLD, CYAN, DIM, PLAIN, RED};

/// Maximum number of lines shown per result.
const MAX_RESULT_LINES: usize = 12;

pub(crate) async fn run(
    common: &GlobalArgs,
    command: Option<&SessionsCommand>,
) -> anyhow::Result<Exit> {
    let toolbox = common.toolbox().await?;
    let outcome = run_command(common, &toolbox, command).await;
    toolbox.close().await;
    match outcome {
        // Exits with the code for a failure, not with that for wrong usage.
        Err(error) if error.downcast_ref::<SessionError>().is_some() => {
            output::error(&format!("{error:#}"));
            Ok(Exit::Failed)
        }
        outcome => outcome,
    }
}

async fn run_command(
    common: &GlobalArgs,
    toolbox: &Toolbox,
    command: Option<&SessionsCommand>,
) -> anyhow::Result<Exit> {
    match command {
        None => list(common, toolbox, 20).await?,
        Some(SessionsCommand::List { limit }) => list(common, toolbox, *limit).await?,
        Some(SessionsCommand::Show { id }) => show(common, toolbox, id.as_deref()).await?,
        Some(SessionsCommand::Export { id, format, output }) => {
            let format = if common.json { ExportFormat::Json } else { *format };
            export(toolbox, id.as_deref(), format, output.as_deref()).await?;
        }
        Some(SessionsCommand::Undo { id }) => undo(common, toolbox, id.as_deref()).await?,
        Some(SessionsCommand::Redo { id }) => redo(common, toolbox, id.as_deref()).await?,
        Some(SessionsCommand::Fork { id }) => fork(common, toolbox, id.as_deref()).await?,
        Some(SessionsCommand::Search { words, limit }) => {
            search(common, toolbox, &words.join(" "), *limit).await?;
        }
        Some(SessionsCommand::Stats { id }) => stats(common, toolbox, id.as_deref()).await?,
        Some(SessionsCommand::Delete { id }) => delete(common, toolbox, id).await?,
    }
    Ok(Exit::Done)
}

/// The named session, or the newest one of the folder.
async fn pick(toolbox: &Toolbox, id: Option<&str>) -> Result<String, SessionError> {
    match id {
        Some(id) => match toolbox.session_info(id).await? {
            Some(_) => Ok(id.into()),
            None => Err(SessionError::Unknown(id.into())),
        },
        None => {
            let newest = toolbox.sessions(1).await?.into_iter().next();
            newest.map(|info| info.session).ok_or(SessionError::NoSession)
        }
    }
}

async fn list(common: &GlobalArgs, toolbox: &Toolbox, limit: usize) -> anyhow::Result<()> {
    let sessions = toolbox.sessions(limit).await?;
    if common.json {
        let session = |info: &helve::TranscriptInfo| {
            json!({
                "id": info.session, "title": info.title,
                "created": info.created, "updated": info.updated,
                "forkOf": info.fork.as_ref().map(|fork| &fork.session),
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
    Ok(())
}

/// Shows a session. With `--json` nothing is left out.
async fn show(common: &GlobalArgs, toolbox: &Toolbox, id: Option<&str>) -> anyhow::Result<()> {
    let id = pick(toolbox, id).await?;
    let entries = toolbox.transcript(&id).await?;
    if common.json {
        let items = entries.iter().map(serde_json::to_value).collect::<Result<Vec<Value>, _>>()?;
        let shown = json!({"session": id, "items": items}).to_string();
        output::print_bytes(format!("{}\n", toolbox.redact_keys(&shown)).as_bytes())?;
        return Ok(());
    }
    for entry in &entries {
        output::print(&toolbox.redact_keys(&format_entry(entry)))?;
    }
    Ok(())
}

/// Writes a session. Keys of providers are replaced, wherever they occur.
async fn export(
    toolbox: &Toolbox,
    id: Option<&str>,
    format: ExportFormat,
    file: Option<&Path>,
) -> anyhow::Result<()> {
    let session = toolbox.exported_session(&pick(toolbox, id).await?).await?;
    let text = match format {
        ExportFormat::Json => format!("{:#}\n", session.to_json()?),
        ExportFormat::Markdown => session.to_markdown(),
        ExportFormat::Html => session.to_html(),
    };
    let text = toolbox.redact_keys(&text);
    match file {
        Some(path) => std::fs::write(path, text)
            .with_context(|| format!("cannot write {}", path.display()))?,
        None => output::print_bytes(text.as_bytes())?,
    }
    Ok(())
}

async fn undo(common: &GlobalArgs, toolbox: &Toolbox, id: Option<&str>) -> anyhow::Result<()> {
    let toolbox = toolbox.with_session(pick(toolbox, id).await?);
    let undone = toolbox.stored_session().await?.undo().await?;
    if common.json {
        return output::print_json(&json!({
            "session": toolbox.session_id(),
            "prompt": undone.prompt,
            "files": undone.files,
            "commands": undone.commands,
        }));
    }
    let first = undone.prompt.lines().next().unwrap_or_default();
    output::print(&format!("Took back: {}\n", visible::escape_line(first)))?;
    output::print(&output::colour_diff(&undone.files, ""))?;
    for command in &undone.commands {
        let command = visible::escape_line(command);
        output::note(&format!("{DIM}not undone, because it was a command: {command}{PLAIN}"));
    }
    Ok(())
}

async fn redo(common: &GlobalArgs, toolbox: &Toolbox, id: Option<&str>) -> anyhow::Result<()> {
    let toolbox = toolbox.with_session(pick(toolbox, id).await?);
    let redone = toolbox.stored_session().await?.redo().await?;
    if common.json {
        let session = toolbox.session_id();
        return output::print_json(&json!({"session": session, "files": redone.files}));
    }
    output::print("Restored what was taken back last.\n")?;
    output::print(&output::colour_diff(&redone.files, ""))
}

async fn fork(common: &GlobalArgs, toolbox: &Toolbox, id: Option<&str>) -> anyhow::Result<()> {
    let id = pick(toolbox, id).await?;
    let fork = toolbox.fork_session(&id).await?;
    match common.json {
        true => output::print_json(&json!({"session": fork, "forkOf": id})),
        false => output::print(&format!("{fork}\n")),
    }
}

async fn search(
    common: &GlobalArgs,
    toolbox: &Toolbox,
    words: &str,
    limit: usize,
) -> anyhow::Result<()> {
    let hits = toolbox.search_sessions(words, limit).await?;
    if common.json {
        let hit = |hit: &SearchHit| {
            json!({
                "session": hit.session, "title": hit.title, "seq": hit.seq, "at": hit.at,
                "excerpt": toolbox.redact_keys(&hit.excerpt),
            })
        };
        return output::print_json(&hits.iter().map(hit).collect());
    }
    if hits.is_empty() {
        output::print("Nothing was found in the sessions of this folder.\n")?;
    }
    for hit in &hits {
        let excerpt = toolbox.redact_keys(&hit.excerpt);
        output::print(&format!(
            "{BOLD}{}{PLAIN}  {DIM}{}{PLAIN}  {}\n    {}\n",
            hit.session,
            ago(hit.at),
            visible::escape_line(&hit.title),
            visible::escape_line(&excerpt)
        ))?;
    }
    Ok(())
}

async fn stats(common: &GlobalArgs, toolbox: &Toolbox, id: Option<&str>) -> anyhow::Result<()> {
    let statistics = toolbox.session_statistics(id).await?;
    if common.json {
        let tool = |tool: &ToolTotals| json!({"name": tool.name, "calls": tool.calls, "errors": tool.errors});
        return output::print_json(&json!({
            "sessions": statistics.sessions,
            "models": statistics.models.iter().map(totals_json).collect::<Vec<_>>(),
            "tools": statistics.tools.iter().map(tool).collect::<Vec<_>>(),
        }));
    }
    output::print(&format!("{}\n", output::count(statistics.sessions, "session")))?;
    for totals in &statistics.models {
        output::print(&format_totals(totals))?;
    }
    for tool in &statistics.tools {
        let errors = match tool.errors {
            0 => String::new(),
            errors => format!(", {RED}{errors} failed{PLAIN}"),
        };
        let name = visible::escape_line(&tool.name);
        output::print(&format!("{BOLD}{name}{PLAIN}  {} calls{errors}\n", tool.calls))?;
    }
    Ok(())
}

fn format_totals(totals: &ModelTotals) -> String {
    let tokens = &totals.tokens;
    let input = tokens.input + tokens.cache_read + tokens.cache_write;
    let cached = (tokens.cache_read * 100).checked_div(input).unwrap_or(0);
    let cost = match totals.unpriced {
        0 => format!("${:.4}", totals.cost),
        unpriced if unpriced == totals.requests => "unknown cost".into(),
        unpriced => format!("${:.4}, and {unpriced} requests of unknown cost", totals.cost),
    };
    let estimated = match totals.estimated {
        0 => String::new(),
        estimated => format!(" {DIM}(token counts of {estimated} requests are estimated){PLAIN}"),
    };
    format!(
        "{BOLD}{}/{}{PLAIN}  {} requests, {input} tokens in ({cached} % from a cache), {} out, {cost}{estimated}\n",
        visible::escape_line(&totals.provider),
        visible::escape_line(&totals.model),
        totals.requests,
        tokens.output + tokens.reasoning,
    )
}

async fn delete(common: &GlobalArgs, toolbox: &Toolbox, id: &str) -> anyhow::Result<()> {
    if !toolbox.delete_transcript(id).await? {
        return Err(SessionError::Unknown(id.into()).into());
    }
    match common.json {
        true => output::print_json(&json!({"deleted": id})),
        false => Ok(()),
    }
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
                Block::Reasoning { .. } | Block::Phase(_) | Block::Other(_) => String::new(),
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
