//! `helve call`: calls a tool and prints its result.

mod changes;
mod status_line;

use std::io::IsTerminal;

use helve::{CallMode, Content, ErrorKind, Input, ToolOutput, ToolResult};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use self::status_line::StatusLine;

use crate::args::{self, GlobalArgs};
use crate::prompt::INTERRUPT;
use crate::{Exit, output, prompt};

/// Calls a tool and prints its result. With `exit_code`, the exit code of a command becomes Helve's own.
pub(crate) async fn run(
    common: &GlobalArgs,
    tool: &str,
    raw_args: &[String],
    exit_code: bool,
) -> anyhow::Result<Exit> {
    let (exit, result) =
        call_in_mode(common, CallMode::Run, tool, args::parse_input(raw_args)?).await?;
    Ok(match result.outcome {
        Ok(output) if exit_code => command_exit(&output),
        Ok(_) | Err(_) => exit,
    })
}

/// Returns the exit code of the command that a tool ran. A command that was ended by a signal, or still runs, has none.
fn command_exit(output: &ToolOutput) -> Exit {
    match output.metadata.get("exit") {
        None => Exit::Done,
        Some(code) => {
            let code = code.as_i64().and_then(|code| u8::try_from(code).ok());
            code.map_or(Exit::Failed, Exit::OfCommand)
        }
    }
}

/// Prints what a call would change.
pub(crate) async fn preview(
    common: &GlobalArgs,
    tool: &str,
    raw_args: &[String],
) -> anyhow::Result<Exit> {
    let called = call_in_mode(common, CallMode::Preview, tool, args::parse_input(raw_args)?).await;
    called.map(|(exit, _)| exit)
}

/// Calls a tool and prints its result.
pub(crate) async fn call_and_print(
    common: &GlobalArgs,
    tool: &str,
    input: Input,
) -> anyhow::Result<Exit> {
    call_in_mode(common, CallMode::Run, tool, input).await.map(|(exit, _)| exit)
}

async fn call_in_mode(
    common: &GlobalArgs,
    mode: CallMode,
    tool: &str,
    input: Input,
) -> anyhow::Result<(Exit, ToolResult)> {
    let toolbox = common.toolbox().await?;
    let cancel = CancellationToken::new();
    let ctrl_c_task = tokio::spawn(on_ctrl_c(cancel.clone()));
    let has_status = std::io::stderr().is_terminal() && !common.json;
    let status_line = has_status.then(|| StatusLine::show(toolbox.events()));
    let result = match mode {
        CallMode::Run => toolbox.call_with_cancellation(tool, input, cancel.clone()).await,
        CallMode::Preview => toolbox.preview_with_cancellation(tool, input, cancel.clone()).await,
    };
    // Ctrl-C at a question ends the call as unanswered. Let the Ctrl-C task cancel the token before it is aborted.
    tokio::task::yield_now().await;
    ctrl_c_task.abort();
    if let Some(line) = status_line {
        line.remove().await;
    }
    if let Some(warning) = toolbox.store().pending_warning().await {
        output::note(&warning);
    }
    let exit = match cancel.is_cancelled() && result.outcome.is_err() {
        true => Exit::Interrupted,
        false => exit_status(&result),
    };
    let printed = if common.json { output::print_json(&as_json(&result)) } else { print(&result) };
    toolbox.close().await;
    printed.map(|()| (exit, result))
}

/// Cancels the call on the first Ctrl-C, and ends the process on the second.
pub(crate) async fn on_ctrl_c(cancel: CancellationToken) {
    first_ctrl_c(&cancel).await;
    exit_on_next_ctrl_c().await;
}

/// Cancels on the next Ctrl-C, including one pressed while a question is shown.
pub(crate) async fn first_ctrl_c(cancel: &CancellationToken) {
    tokio::select! {
        pressed = tokio::signal::ctrl_c() => {
            if pressed.is_ok() {
                cancel.cancel();
            }
        }
        () = INTERRUPT.notified() => cancel.cancel(),
    }
}

/// Ends the process on the next Ctrl-C.
pub(crate) async fn exit_on_next_ctrl_c() {
    if tokio::signal::ctrl_c().await.is_ok() {
        #[expect(clippy::exit, reason = "second Ctrl-C: exit without waiting")]
        std::process::exit(130);
    }
}

fn exit_status(result: &ToolResult) -> Exit {
    match &result.outcome {
        Ok(_) => Exit::Done,
        Err(err) => match err.kind {
            ErrorKind::UnknownTool | ErrorKind::InvalidArgs => Exit::BadUsage,
            ErrorKind::Denied | ErrorKind::Rejected | ErrorKind::Unanswered => Exit::Refused,
            ErrorKind::Cancelled => Exit::Interrupted,
            ErrorKind::NotFound
            | ErrorKind::Stale
            | ErrorKind::TimedOut
            | ErrorKind::Failed
            | ErrorKind::ExplainOnly => Exit::Failed,
        },
    }
}

fn print(result: &ToolResult) -> anyhow::Result<()> {
    match &result.outcome {
        Err(err) => {
            output::error(&err.for_person.clone().unwrap_or_else(|| err.full_message()));
            Ok(())
        }
        Ok(output) => print_output(output),
    }
}

fn print_output(output: &ToolOutput) -> anyhow::Result<()> {
    let diff = output.metadata.get("diff").and_then(Value::as_str).unwrap_or_default();
    let diff_seen = prompt::was_shown(diff);
    for content in &output.content {
        match content {
            // A pipe gets the text unchanged. On a terminal, control characters are escaped.
            Content::Text(text) if std::io::stdout().is_terminal() => {
                output::print(&changes::coloured(text, diff, diff_seen))?;
            }
            Content::Text(text) => output::print_bytes(format!("{text}\n").as_bytes())?,
            Content::Media { mime, data } => {
                output::print(&format!(
                    "[{mime}, {} bytes; use --json to print it]\n",
                    data.len()
                ))?;
            }
            Content::Link { uri, .. } => output::print_escaped(uri)?,
        }
    }
    Ok(())
}

fn as_json(result: &ToolResult) -> Value {
    match &result.outcome {
        Ok(output) => json!({
            "call": result.call,
            "ok": true,
            "title": output.title,
            "output": output.joined_text(),
            "metadata": output.metadata,
            "attachments": attachments(output),
        }),
        Err(err) => json!({
            "call": result.call,
            "ok": false,
            "error": {
                "kind": err.kind,
                "message": err.message,
                "hint": err.hint,
                "metadata": err.metadata,
            },
        }),
    }
}

fn attachments(output: &ToolOutput) -> Vec<Value> {
    let attachments = output.content.iter().filter_map(|content| match content {
        Content::Text(_) => None,
        Content::Media { mime, data } => Some(json!({"mime": mime, "data": helve::base64(data)})),
        Content::Link { uri, name } => Some(json!({"uri": uri, "name": name})),
    });
    attachments.collect()
}
