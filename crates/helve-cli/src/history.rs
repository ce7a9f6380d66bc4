//! `helve history`, `show` and `undo`: lists, shows and undoes the changes of calls.

use std::path::Path;

use helve::journal::{self, AfterImage, ChangedFile, RecordedChange, short_id};
use helve::{Input, Toolbox, paths, visible};
use serde_json::{Value, json};

use crate::args::GlobalArgs;
use crate::output::{self, BOLD, DIM, PLAIN};
use crate::{Exit, call};

/// Maximum number of files or calls named in a line.
const MAX_NAMED: usize = 5;

pub(crate) async fn list(common: &GlobalArgs, limit: usize) -> anyhow::Result<Exit> {
    let toolbox = common.toolbox().await?;
    let changes = toolbox.history(limit).await?;
    if common.json {
        let all: Vec<Value> = changes.iter().map(|change| as_json(&toolbox, change)).collect();
        output::print_json(&Value::from(all))?;
    } else if changes.is_empty() {
        output::print("No changes have been made here yet.\n")?;
    } else {
        let undoable: Vec<&str> =
            journal::undoable(&changes).iter().map(|change| change.call.as_str()).collect();
        for change in &changes {
            let marker = match undoable.contains(&change.call.as_str()) {
                _ if !change.undoes.is_empty() => format!(" of {}", undone_ids(change)),
                true => String::new(),
                false => " (undone)".into(),
            };
            output::print(&format!(
                "{BOLD}{}{PLAIN}  {DIM}{}{PLAIN}  {}{marker}  {}\n",
                short_id(&change.call),
                ago(change.at),
                change.tool,
                visible::escape_line(&file_names(&toolbox, change))
            ))?;
        }
    }
    toolbox.close().await;
    Ok(Exit::Done)
}

pub(crate) async fn show(common: &GlobalArgs, call: Option<&str>) -> anyhow::Result<Exit> {
    let toolbox = common.toolbox().await?;
    let change = toolbox.recorded_change(call).await?;
    let exit = match change {
        None => {
            let message = call.map_or("No changes have been made here yet.".into(), |call| {
                format!("No change by the call {call} is recorded for this folder; `helve history` lists the changes.")
            });
            output::error(&message);
            Exit::Failed
        }
        Some(change) if common.json => {
            let mut shown = as_json(&toolbox, &change);
            let diffs = change.files.iter().map(|file| diff_text(&toolbox, file));
            shown["diffs"] = diffs.collect();
            output::print_json(&shown)?;
            Exit::Done
        }
        Some(change) => {
            for file in &change.files {
                output::print(&output::colour_diff(&diff_text(&toolbox, file), ""))?;
            }
            Exit::Done
        }
    };
    toolbox.close().await;
    Ok(exit)
}

pub(crate) async fn undo(
    common: &GlobalArgs,
    call: Option<String>,
    last: Option<usize>,
    force: bool,
    dry_run: bool,
) -> anyhow::Result<Exit> {
    let input = Input::Json(json!({"call": call, "last": last, "force": force, "dryRun": dry_run}));
    call::call_and_print(common, "undo", input).await
}

pub(crate) async fn redo(common: &GlobalArgs, dry_run: bool) -> anyhow::Result<Exit> {
    let input = Input::Json(json!({"redo": true, "dryRun": dry_run}));
    call::call_and_print(common, "undo", input).await
}

/// Returns what a call changed in a file, as a diff. A line before it says so if the new content is not known.
fn diff_text(toolbox: &Toolbox, file: &ChangedFile) -> String {
    let name = display_path(toolbox, &file.path);
    let before = file.before.as_ref().map(|image| &image.bytes[..]);
    match &file.after {
        AfterImage::Known(after) => {
            helve::difference(&name, before, after.as_ref().map(|image| &image.bytes[..]))
        }
        AfterImage::Intended(_) => format!(
            "{name}: the call was interrupted before it recorded the new content; the old content was:\n{}",
            helve::difference(&name, None, before)
        ),
        AfterImage::Lost => format!(
            "{name}: the new content is no longer known; the old content was:\n{}",
            helve::difference(&name, None, before)
        ),
    }
}

fn undone_ids(change: &RecordedChange) -> String {
    let ids: Vec<&str> =
        change.undoes.iter().take(MAX_NAMED).map(|it| short_id(&it.call)).collect();
    more(ids.join(", "), change.undoes.len())
}

fn file_names(toolbox: &Toolbox, change: &RecordedChange) -> String {
    let files = change.files.iter().take(MAX_NAMED);
    let names: Vec<String> = files.map(|file| display_path(toolbox, &file.path)).collect();
    more(names.join(", "), change.files.len())
}

/// Adds how many of `total` are not named.
fn more(named: String, total: usize) -> String {
    match total.saturating_sub(MAX_NAMED) {
        0 => named,
        count => format!("{named} and {count} more"),
    }
}

fn as_json(toolbox: &Toolbox, change: &RecordedChange) -> Value {
    let files: Vec<String> =
        change.files.iter().map(|file| display_path(toolbox, &file.path)).collect();
    json!({
        "call": change.call,
        "session": change.session,
        "tool": change.tool,
        "at": change.at,
        "files": files,
        "undoes": change.undoes.iter().map(|it| &it.call).collect::<Vec<_>>(),
    })
}

fn display_path(toolbox: &Toolbox, path: &Path) -> String {
    paths::display(path.strip_prefix(toolbox.root()).unwrap_or(path)).into_owned()
}

/// Formats how long ago something was, in the largest unit that fits.
pub(crate) fn ago(at: u64) -> String {
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
