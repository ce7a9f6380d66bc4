//! `helve mcp list` and `helve mcp check`: the configured MCP servers.

use helve::ServerError;
use helve::config::ConfigLayer;
use helve::servers::{ServerInfo, ServerStatus};
use helve::visible::{escape, escape_line};
use serde_json::{Value, json};

use crate::Exit;
use crate::args::GlobalArgs;
use crate::output::{self, BOLD, DIM, GREEN, PLAIN, RED, YELLOW};

pub(crate) async fn list(common: &GlobalArgs) -> anyhow::Result<Exit> {
    let toolbox = common.toolbox().await?;
    let all = toolbox.servers().list();
    if common.json {
        output::print_json(&Value::from(all.iter().map(as_json).collect::<Vec<_>>()))?;
    } else if all.is_empty() {
        output::print(
            "No MCP servers are configured. Add them under \"mcp\" in helve.json or in .mcp.json.\n",
        )?;
    } else {
        for server in &all {
            print(server)?;
        }
    }
    toolbox.close().await;
    Ok(Exit::Done)
}

pub(crate) async fn check(common: &GlobalArgs, name: &str) -> anyhow::Result<Exit> {
    let toolbox = common.toolbox().await?;
    let checked = toolbox.servers().check(name).await;
    let ready = match &checked {
        Ok(server) => {
            if common.json {
                output::print_json(&as_json(server))?;
            } else {
                print(server)?;
            }
            matches!(server.status, ServerStatus::Ready { .. })
        }
        Err(error) => {
            if common.json {
                output::print_json(
                    &json!({"name": name, "state": "unknown", "error": error.to_string()}),
                )?;
            } else {
                output::error(&format!("{name}: {error}{}", advice(name, error)));
            }
            false
        }
    };
    toolbox.close().await;
    Ok(if ready { Exit::Done } else { Exit::Failed })
}

fn print(server: &ServerInfo) -> anyhow::Result<()> {
    let ServerInfo { name, kind, location, layer, status } = server;
    let (colour, state) = match status {
        ServerStatus::NotStarted => (DIM, "not started"),
        ServerStatus::Starting => (DIM, "starting"),
        ServerStatus::Ready { .. } => (GREEN, "ready"),
        ServerStatus::Down(ServerError::Off) => (DIM, "off"),
        ServerStatus::Down(ServerError::Untrusted) => (YELLOW, "needs trust"),
        ServerStatus::Down(_) => (RED, "down"),
    };
    output::print(&format!(
        "{BOLD}{}{PLAIN} {colour}{state}{PLAIN}  {DIM}{kind}, {}: {}{PLAIN}\n",
        escape_line(name),
        owner_name(*layer),
        escape_line(location)
    ))?;
    match status {
        ServerStatus::NotStarted | ServerStatus::Starting => {}
        ServerStatus::Down(error) => {
            let line = format!("  {error}{}\n", advice(name, error));
            output::print(&escape(&line))?;
        }
        ServerStatus::Ready { reported_name, protocol, tools, has_resources, notes } => {
            let resources = if *has_resources { " and resources" } else { "" };
            let reported_name = escape_line(reported_name);
            let count = tools.len();
            output::print(&format!(
                "  {reported_name}, protocol {protocol}: {count} tools{resources}\n"
            ))?;
            for tool in tools {
                output::print(&format!("    {}\n", escape_line(&tool.name)))?;
            }
            for note in notes {
                output::print(&format!("  {YELLOW}note:{PLAIN} {}\n", escape_line(note)))?;
            }
        }
    }
    Ok(())
}

fn owner_name(layer: ConfigLayer) -> &'static str {
    match layer {
        ConfigLayer::User => "yours",
        ConfigLayer::Project => "this folder's",
    }
}

/// Suggests what to do about a problem.
fn advice(name: &str, error: &ServerError) -> String {
    match error {
        ServerError::Unknown { known } if known.is_empty() => "; none are configured".into(),
        ServerError::Unknown { known } => format!("; configured: {}", known.join(", ")),
        ServerError::Untrusted => "; review what it would run, then run `helve trust`".into(),
        ServerError::Off => {
            format!("; set \"mcp\": {{\"{name}\": {{\"enabled\": true}}}} to enable it")
        }
        ServerError::NeedsLogin { .. } => {
            "; Helve cannot log in to servers yet: add a token to its \"headers\"".into()
        }
        ServerError::NoAnswer { .. } => "; if it is just slow, raise its \"timeout\"".into(),
        ServerError::NotStarted(_) => "; check \"command\" and \"cwd\"".into(),
        ServerError::Unreachable(_) => "; check \"url\" and \"headers\"".into(),
        ServerError::Ended { .. }
        | ServerError::TooLarge { .. }
        | ServerError::RestartLimitReached { .. }
        | ServerError::ErrorReply { .. }
        | ServerError::InvalidReply
        | ServerError::Changed { .. }
        | ServerError::WrongResult { .. }
        | ServerError::NoResources { .. } => String::new(),
    }
}

fn as_json(server: &ServerInfo) -> Value {
    let ServerInfo { name, kind, location, layer, status } = server;
    let mut value = json!({
        "name": name,
        "type": kind,
        "location": location,
        "from": match layer { ConfigLayer::User => "user", ConfigLayer::Project => "project" },
    });
    let state = match status {
        ServerStatus::NotStarted => json!({"state": "not started"}),
        ServerStatus::Starting => json!({"state": "starting"}),
        ServerStatus::Down(ServerError::Off) => json!({"state": "off"}),
        ServerStatus::Down(ServerError::Untrusted) => json!({"state": "needs trust"}),
        ServerStatus::Down(error) => json!({"state": "down", "error": error.to_string()}),
        ServerStatus::Ready { reported_name, protocol, tools, has_resources, notes } => json!({
            "state": "ready",
            "server": reported_name,
            "protocol": protocol,
            "tools": tools.iter().map(|tool| json!({"name": tool.name, "tool": tool.name_on_server})).collect::<Vec<_>>(),
            "resources": has_resources,
            "notes": notes,
        }),
    };
    if let (Value::Object(value), Value::Object(state)) = (&mut value, state) {
        value.extend(state);
    }
    value
}
