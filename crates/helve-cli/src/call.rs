//! `helve call`: one call, its answer, its exit code.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use helve::{
    Content, ErrorKind, EventDelivery, EventKind, Input, Subscription, ToolOutput, ToolResult,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::args::{self, Common};
use crate::{End, paint};

pub(crate) async fn run(common: &Common, tool: &str, typed: &[String]) -> anyhow::Result<End> {
    make(common, tool, args::input(typed)?).await
}

/// Calls a tool and prints what comes of it.
pub(crate) async fn make(common: &Common, tool: &str, input: Input) -> anyhow::Result<End> {
    let toolbox = common.toolbox().await?;
    let cancel = CancellationToken::new();
    let interrupted = tokio::spawn(on_ctrl_c(cancel.clone()));
    let watched = std::io::stderr().is_terminal() && !common.json;
    let is_shown = Arc::new(AtomicBool::new(false));
    let watching = watched.then(|| tokio::spawn(watch(toolbox.events(), is_shown.clone())));
    let result = toolbox.call_until(tool, input, cancel).await;
    interrupted.abort();
    if let Some(watching) = watching {
        watching.abort();
    }
    if is_shown.load(Ordering::Relaxed) {
        paint::status("");
    }
    if let Some(notice) = toolbox.store().notice().await {
        paint::note(&notice);
    }
    let end = ended(&result);
    let printed = if common.json { paint::json(&as_json(&result)) } else { print(&result) };
    toolbox.close().await;
    printed.map(|()| end)
}

/// The first Ctrl-C ends the call in order; the second is the shell's own.
pub(crate) async fn on_ctrl_c(cancel: CancellationToken) {
    if tokio::signal::ctrl_c().await.is_ok() {
        cancel.cancel();
    }
    asked_again().await;
}

/// Ends the process at the next Ctrl-C.
pub(crate) async fn asked_again() {
    if tokio::signal::ctrl_c().await.is_ok() {
        #[expect(clippy::exit, reason = "asked twice: nothing is to be waited for any more")]
        std::process::exit(130);
    }
}

async fn watch(mut events: Subscription, is_shown: Arc<AtomicBool>) {
    while let Some(news) = events.next().await {
        if let EventDelivery::Event(event) = news
            && let EventKind::Progress(progress) = event.what
            && let Some(text) = progress.text
        {
            is_shown.store(true, Ordering::Relaxed);
            paint::status(&text);
        }
    }
}

fn ended(result: &ToolResult) -> End {
    match &result.outcome {
        Ok(_) => End::Done,
        Err(err) => match err.kind {
            ErrorKind::UnknownTool | ErrorKind::InvalidArgs => End::BadUsage,
            ErrorKind::Denied => End::Refused,
            ErrorKind::Cancelled => End::Interrupted,
            ErrorKind::NotFound
            | ErrorKind::Stale
            | ErrorKind::TimedOut
            | ErrorKind::Failed
            | ErrorKind::Explained => End::Failed,
        },
    }
}

fn print(result: &ToolResult) -> anyhow::Result<()> {
    match &result.outcome {
        Err(err) => {
            paint::error(&err.words());
            Ok(())
        }
        Ok(output) => print_output(output),
    }
}

fn print_output(output: &ToolOutput) -> anyhow::Result<()> {
    for content in &output.content {
        match content {
            // In a pipe a file is what it is; on a terminal it must not steer.
            Content::Text(text) if std::io::stdout().is_terminal() => paint::foreign(text)?,
            Content::Text(text) => paint::bytes(format!("{text}\n").as_bytes())?,
            Content::Media { mime, data } => {
                paint::out(&format!("[{mime}, {} bytes; --json prints it]\n", data.len()))?;
            }
            Content::Link { uri, .. } => paint::foreign(uri)?,
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
            "output": output.joined(),
            "metadata": output.metadata,
            "attachments": attachments(output),
        }),
        Err(err) => json!({
            "call": result.call,
            "ok": false,
            "error": {"kind": err.kind, "message": err.message, "hint": err.hint},
        }),
    }
}

fn attachments(output: &ToolOutput) -> Vec<Value> {
    let each = output.content.iter().filter_map(|content| match content {
        Content::Text(_) => None,
        Content::Media { mime, data } => Some(json!({"mime": mime, "data": helve::base64(data)})),
        Content::Link { uri, name } => Some(json!({"uri": uri, "name": name})),
    });
    each.collect()
}
