//! `helve mcp list` and `helve mcp check`: the MCP servers whose tools are used here.

use helve::ServerTrouble;
use helve::config::Layer;
use helve::servers::{Standing, Status};
use helve::visible::escape_line;
use serde_json::{Value, json};

use crate::End;
use crate::args::Common;
use crate::paint::{self, BOLD, DIM, GREEN, PLAIN, RED, YELLOW};

pub(crate) async fn list(common: &Common) -> anyhow::Result<End> {
    let toolbox = common.toolbox().await?;
    let all = toolbox.servers().list();
    if common.json {
        paint::json(&Value::from(all.iter().map(as_json).collect::<Vec<_>>()))?;
    } else if all.is_empty() {
        paint::out("No MCP server is set up. \"mcp\" in helve.json and .mcp.json add them.\n")?;
    } else {
        for standing in &all {
            print(standing)?;
        }
    }
    toolbox.close().await;
    Ok(End::Done)
}

pub(crate) async fn check(common: &Common, name: &str) -> anyhow::Result<End> {
    let toolbox = common.toolbox().await?;
    let checked = toolbox.servers().check(name).await;
    let ready = match &checked {
        Ok(standing) => {
            if common.json {
                paint::json(&as_json(standing))?;
            } else {
                print(standing)?;
            }
            matches!(standing.status, Status::Ready { .. })
        }
        Err(trouble) => {
            if common.json {
                paint::json(
                    &json!({"name": name, "state": "unknown", "trouble": trouble.to_string()}),
                )?;
            } else {
                paint::error(&format!("{name}: {trouble}{}", advice(name, trouble)));
            }
            false
        }
    };
    toolbox.close().await;
    Ok(if ready { End::Done } else { End::Failed })
}

fn print(standing: &Standing) -> anyhow::Result<()> {
    let Standing { name, kind, reached_by, layer, status } = standing;
    let (colour, word) = match status {
        Status::NotStarted => (DIM, "not started"),
        Status::Starting => (DIM, "starting"),
        Status::Ready { .. } => (GREEN, "ready"),
        Status::Down(ServerTrouble::Off) => (DIM, "off"),
        Status::Down(ServerTrouble::Untrusted) => (YELLOW, "waits for trust"),
        Status::Down(_) => (RED, "down"),
    };
    paint::out(&format!(
        "{BOLD}{}{PLAIN} {colour}{word}{PLAIN}  {DIM}{kind}, {}: {}{PLAIN}\n",
        escape_line(name),
        whose(*layer),
        escape_line(reached_by)
    ))?;
    match status {
        Status::NotStarted | Status::Starting => {}
        Status::Down(trouble) => {
            let line = format!("  {trouble}{}\n", advice(name, trouble));
            paint::out(&visible_lines(&line))?;
        }
        Status::Ready { calls_itself, protocol, tools, holds_resources, notes } => {
            let resources = if *holds_resources { ", and resources" } else { "" };
            let itself = escape_line(calls_itself);
            let count = tools.len();
            paint::out(&format!("  {itself}, protocol {protocol}: {count} tools{resources}\n"))?;
            for tool in tools {
                paint::out(&format!("    {}\n", escape_line(&tool.name)))?;
            }
            for note in notes {
                paint::out(&format!("  {YELLOW}note:{PLAIN} {}\n", escape_line(note)))?;
            }
        }
    }
    Ok(())
}

fn visible_lines(text: &str) -> String {
    helve::visible::escape(text).into_owned()
}

fn whose(layer: Layer) -> &'static str {
    match layer {
        Layer::User => "yours",
        Layer::Project => "the folder's",
    }
}

/// What to do about it.
fn advice(name: &str, trouble: &ServerTrouble) -> String {
    match trouble {
        ServerTrouble::Unknown { known } if known.is_empty() => "; none is".into(),
        ServerTrouble::Unknown { known } => format!("; there are: {}", known.join(", ")),
        ServerTrouble::Untrusted => "; look at what it would run, then `helve trust`".into(),
        ServerTrouble::Off => {
            format!("; \"mcp\": {{\"{name}\": {{\"enabled\": true}}}} switches it on")
        }
        ServerTrouble::NeedsLogin { .. } => {
            "; Helve cannot log in to servers yet: put a token into its \"headers\"".into()
        }
        ServerTrouble::NoAnswer { .. } => "; if it is only slow, raise its \"timeout\"".into(),
        ServerTrouble::NotStarted(_) => "; check \"command\" and \"cwd\"".into(),
        ServerTrouble::Unreachable(_) => "; check \"url\" and \"headers\"".into(),
        ServerTrouble::Ended { .. }
        | ServerTrouble::TooLarge { .. }
        | ServerTrouble::GaveUp { .. }
        | ServerTrouble::Answered { .. }
        | ServerTrouble::Nonsense
        | ServerTrouble::Changed { .. }
        | ServerTrouble::NoResources { .. } => String::new(),
    }
}

fn as_json(standing: &Standing) -> Value {
    let Standing { name, kind, reached_by, layer, status } = standing;
    let mut value = json!({
        "name": name,
        "type": kind,
        "reachedBy": reached_by,
        "from": match layer { Layer::User => "user", Layer::Project => "project" },
    });
    let more = match status {
        Status::NotStarted => json!({"state": "not started"}),
        Status::Starting => json!({"state": "starting"}),
        Status::Down(ServerTrouble::Off) => json!({"state": "off"}),
        Status::Down(ServerTrouble::Untrusted) => json!({"state": "waits for trust"}),
        Status::Down(trouble) => json!({"state": "down", "trouble": trouble.to_string()}),
        Status::Ready { calls_itself, protocol, tools, holds_resources, notes } => json!({
            "state": "ready",
            "server": calls_itself,
            "protocol": protocol,
            "tools": tools.iter().map(|it| json!({"name": it.name, "tool": it.tool})).collect::<Vec<_>>(),
            "resources": holds_resources,
            "notes": notes,
        }),
    };
    if let (Value::Object(value), Value::Object(more)) = (&mut value, more) {
        value.extend(more);
    }
    value
}
