//! Other people's MCP servers as tools inside Helve.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use super::{FILE, LINE, RUN_LIMIT, Said, npm, python};
use crate::helve::Helve;
use crate::process;

const EVERYTHING: &str = "@modelcontextprotocol/server-everything@2026.8.31";
const FILES: &str = "@modelcontextprotocol/server-filesystem@2026.8.31";
const SCRIPT: &str = include_str!("server.py");

/// A call, and what its answer must hold.
const CALLS: &[(&str, &str, &str)] = &[
    ("everything_echo", r#"{"message": "hello"}"#, "Echo: hello"),
    ("everything_get-sum", r#"{"a": 2, "b": 40}"#, "42"),
    ("everything_get-tiny-image", "{}", "image/png"),
    ("everything_trigger-elicitation-request", "{}", ""),
    ("everything_trigger-long-running-operation", r#"{"duration": 1, "steps": 2}"#, "completed"),
    ("files_read_text_file", r#"{"path": "hello.txt"}"#, LINE),
    ("python_add", r#"{"a": 2, "b": 40}"#, "42"),
    ("list_mcp_resources", "{}", "\"server\": \"everything\""),
];

pub(super) fn run(helve: &Helve) -> Result<Said, String> {
    if !npm::is_there() {
        return Ok(Said::Skipped("there is no npm".into()));
    }
    let modules = npm::install(&[npm::NODE, EVERYTHING, FILES])?;
    let Some(python) = python::interpreter(&python::FIRST)? else {
        return Ok(Said::Skipped("there is no python3".into()));
    };
    let node = modules.join("node/bin/node");
    let package = |name: &str| modules.join(format!("@modelcontextprotocol/{name}/dist/index.js"));
    let config = json!({"mcp": {
        "everything": {"type": "local", "command": [node, package("server-everything"), "stdio"]},
        "files": {"type": "local", "command": [node, package("server-filesystem"), helve.workspace]},
        "python": {"type": "local", "command": [python, "-c", SCRIPT]},
    }});
    let file = helve.workspace.with_file_name("servers.json");
    fs::write(&file, config.to_string()).map_err(|error| format!("{}: {error}", file.display()))?;
    for (tool, arguments, expected) in CALLS {
        let mut command = Command::new(helve.binary());
        command.envs(helve.environment()).current_dir(&helve.workspace);
        command.arg("--dir").arg(&helve.workspace).arg("--config").arg(&file);
        command.args(["--yes", "--json", "call", tool, arguments]);
        let printed = process::finish(&mut command, RUN_LIMIT)?.good(tool)?;
        let answer: Value = serde_json::from_str(&printed)
            .map_err(|error| format!("{tool}: {error}: {printed}"))?;
        let text = answer["output"].as_str().unwrap_or_default();
        let mime = answer["attachments"][0]["mime"].as_str().unwrap_or_default();
        if !text.contains(expected) && mime != *expected {
            return Err(format!("{tool} answered {answer}"));
        }
    }
    Ok(Said::Passed(format!("{} calls answered; {FILE} read by another server", CALLS.len())))
}
