//! Published MCP servers, configured in Helve and called through it.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use super::{E2eResult, FILE, LINE, RUN_LIMIT, npm, python};
use crate::helve::Helve;
use crate::process;

const EVERYTHING: &str = "@modelcontextprotocol/server-everything@2026.8.31";
const FILES: &str = "@modelcontextprotocol/server-filesystem@2026.8.31";
const SCRIPT: &str = include_str!("server.py");

/// A tool, its arguments, and what the answer must contain.
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

pub(super) fn run(helve: &Helve) -> Result<E2eResult, String> {
    if !npm::is_installed() {
        return Ok(E2eResult::Skipped("npm is not installed".into()));
    }
    let modules = npm::install(&[npm::NODE, EVERYTHING, FILES])?;
    let Some(python) = python::install(&python::VERSION_1)? else {
        return Ok(E2eResult::Skipped("python3 is not installed".into()));
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
        let printed = process::run(&mut command, RUN_LIMIT)?.success(tool)?;
        let answer: Value = serde_json::from_str(&printed)
            .map_err(|error| format!("{tool}: {error}: {printed}"))?;
        let text = answer["output"].as_str().unwrap_or_default();
        let mime = answer["attachments"][0]["mime"].as_str().unwrap_or_default();
        if !text.contains(expected) && mime != *expected {
            return Err(format!("{tool} returned {answer}"));
        }
    }
    Ok(E2eResult::Passed(format!(
        "{} calls returned the expected output; one of them read {FILE} through an MCP server",
        CALLS.len()
    )))
}
