//! `helve history`, `show` and `undo`: what calls changed, and taking it back.

use std::path::Path;

use helve::journal::{AfterImage, ChangedFile, RecordedChange};
use helve::{Input, Toolbox, paths, visible};
use serde_json::{Value, json};

use crate::args::Common;
use crate::paint::{self, BOLD, DIM, PLAIN};
use crate::{End, call};

pub(crate) async fn list(common: &Common, most: usize) -> anyhow::Result<End> {
    let toolbox = common.toolbox().await?;
    let changes = toolbox.history(most).await?;
    if common.json {
        let all: Vec<Value> = changes.iter().map(|change| as_json(&toolbox, change)).collect();
        paint::json(&Value::from(all))?;
    } else if changes.is_empty() {
        paint::out("Nothing was changed here yet.\n")?;
    } else {
        for change in &changes {
            let files: Vec<String> =
                change.files.iter().map(|file| shown(&toolbox, &file.path)).collect();
            paint::out(&format!(
                "{BOLD}{}{PLAIN}  {DIM}{}{PLAIN}  {}  {}\n",
                change.call,
                ago(change.at),
                change.tool,
                visible::escape_line(&files.join(", "))
            ))?;
        }
    }
    toolbox.close().await;
    Ok(End::Done)
}

pub(crate) async fn show(common: &Common, named: Option<&str>) -> anyhow::Result<End> {
    let toolbox = common.toolbox().await?;
    let change = toolbox.change(named).await?;
    let end = match change {
        None => {
            let which = named.map_or("Nothing was changed here yet.".into(), |call| {
                format!("No change of a call {call} is known; `helve history` lists them.")
            });
            paint::error(&which);
            End::Failed
        }
        Some(change) => {
            for file in &change.files {
                print(&toolbox, file)?;
            }
            End::Done
        }
    };
    toolbox.close().await;
    Ok(end)
}

pub(crate) async fn undo(
    common: &Common,
    named: Option<String>,
    dry_run: bool,
) -> anyhow::Result<End> {
    let input = Input::Json(json!({"call": named, "dryRun": dry_run}));
    call::make(common, "undo", input).await
}

fn print(toolbox: &Toolbox, file: &ChangedFile) -> anyhow::Result<()> {
    let name = shown(toolbox, &file.path);
    let before = file.before.as_ref().map(|image| &image.bytes[..]);
    let text = match &file.after {
        AfterImage::Known(left) => {
            helve::difference(&name, before, left.as_ref().map(|image| &image.bytes[..]))
        }
        AfterImage::Meant(_) => format!(
            "{name}: the call was interrupted before it noted what it left; it found this:\n{}",
            helve::difference(&name, None, before)
        ),
        AfterImage::Lost => format!(
            "{name}: what the call left is no longer known; it found this:\n{}",
            helve::difference(&name, None, before)
        ),
    };
    paint::out(&paint::difference(&text, ""))
}

fn as_json(toolbox: &Toolbox, change: &RecordedChange) -> Value {
    let files: Vec<String> = change.files.iter().map(|file| shown(toolbox, &file.path)).collect();
    json!({
        "call": change.call,
        "session": change.session,
        "tool": change.tool,
        "at": change.at,
        "files": files,
    })
}

fn shown(toolbox: &Toolbox, path: &Path) -> String {
    paths::shown(path.strip_prefix(toolbox.root()).unwrap_or(path)).into_owned()
}

/// How long ago, in the largest unit that fits.
fn ago(at: u64) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(0));
    let seconds = now.saturating_sub(at) / 1000;
    match seconds {
        0..60 => format!("{seconds} s ago"),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..86400 => format!("{} h ago", seconds / 3600),
        _ => format!("{} d ago", seconds / 86400),
    }
}
