//! `helve mcp list` and `helve mcp check`: the MCP servers whose tools are used here.

use helve::ServerError;
use helve::config::ConfigLayer;
use helve::servers::{ServerInfo, ServerStatus};
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
        for server in &all {
            print(server)?;
        }
    }
    toolbox.close().await;
    Ok(End::Done)
}

pub(crate) async fn check(common: &Common, name: &str) -> anyhow::Result<End> {
    let toolbox = common.toolbox().await?;
    let checked = toolbox.servers().check(name).await;
    let ready = match &checked {
        Ok(server) => {
            if common.json {
                paint::json(&as_json(server))?;
            } else {
                print(server)?;
            }
            matches!(server.status, ServerStatus::Ready { .. })
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

fn print(server: &ServerInfo) -> anyhow::Result<()> {
    let ServerInfo { name, kind, location, layer, status } = server;
    let (colour, word) = match status {
        ServerStatus::NotStarted => (DIM, "not started"),
        ServerStatus::Starting => (DIM, "starting"),
        ServerStatus::Ready { .. } => (GREEN, "ready"),
        ServerStatus::Down(ServerError::Off) => (DIM, "off"),
        ServerStatus::Down(ServerError::Untrusted) => (YELLOW, "waits for trust"),
        ServerStatus::Down(_) => (RED, "down"),
    };
    paint::out(&format!(
        "{BOLD}{}{PLAIN} {colour}{word}{PLAIN}  {DIM}{kind}, {}: {}{PLAIN}\n",
        escape_line(name),
        whose(*layer),
        escape_line(location)
    ))?;
    match status {
        ServerStatus::NotStarted | ServerStatus::Starting => {}
        ServerStatus::Down(trouble) => {
            let line = format!("  {trouble}{}\n", advice(name, trouble));
            paint::out(&visible_lines(&line))?;
        }
        ServerStatus::Ready { reported_name, protocol, tools, has_resources, notes } => {
            let resources = if *has_resources { ", and resources" } else { "" };
            let itself = escape_line(reported_name);
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

fn whose(layer: ConfigLayer) -> &'static str {
    match layer {
        ConfigLayer::User => "yours",
        ConfigLayer::Project => "the folder's",
    }
}

/// What to do about it.
fn advice(name: &str, trouble: &ServerError) -> String {
    match trouble {
        ServerError::Unknown { known } if known.is_empty() => "; none is".into(),
        ServerError::Unknown { known } => format!("; there are: {}", known.join(", ")),
        ServerError::Untrusted => "; look at what it would run, then `helve trust`".into(),
        ServerError::Off => {
            format!("; \"mcp\": {{\"{name}\": {{\"enabled\": true}}}} switches it on")
        }
        ServerError::NeedsLogin { .. } => {
            "; Helve cannot log in to servers yet: put a token into its \"headers\"".into()
        }
        ServerError::NoAnswer { .. } => "; if it is only slow, raise its \"timeout\"".into(),
        ServerError::NotStarted(_) => "; check \"command\" and \"cwd\"".into(),
        ServerError::Unreachable(_) => "; check \"url\" and \"headers\"".into(),
        ServerError::Ended { .. }
        | ServerError::TooLarge { .. }
        | ServerError::GaveUp { .. }
        | ServerError::Answered { .. }
        | ServerError::Nonsense
        | ServerError::Changed { .. }
        | ServerError::NoResources { .. } => String::new(),
    }
}

fn as_json(server: &ServerInfo) -> Value {
    let ServerInfo { name, kind, location, layer, status } = server;
    let mut value = json!({
        "name": name,
        "type": kind,
        "reachedBy": location,
        "from": match layer { ConfigLayer::User => "user", ConfigLayer::Project => "project" },
    });
    let more = match status {
        ServerStatus::NotStarted => json!({"state": "not started"}),
        ServerStatus::Starting => json!({"state": "starting"}),
        ServerStatus::Down(ServerError::Off) => json!({"state": "off"}),
        ServerStatus::Down(ServerError::Untrusted) => json!({"state": "waits for trust"}),
        ServerStatus::Down(trouble) => json!({"state": "down", "trouble": trouble.to_string()}),
        ServerStatus::Ready { reported_name, protocol, tools, has_resources, notes } => json!({
            "state": "ready",
            "server": reported_name,
            "protocol": protocol,
            "tools": tools.iter().map(|it| json!({"name": it.name, "tool": it.tool})).collect::<Vec<_>>(),
            "resources": has_resources,
            "notes": notes,
        }),
    };
    if let (Value::Object(value), Value::Object(more)) = (&mut value, more) {
        value.extend(more);
    }
    value
}
