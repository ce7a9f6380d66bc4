//! Benches of `bash`: what it costs beyond the shell itself.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::json;

use super::Figures;
use super::calls::{compared, tool};
use super::measure::{peak_memory, timed};
use super::stage::Stage;
use crate::mcp::Server;

pub(super) fn nothing(stage: &mut Stage) -> Result<Figures, String> {
    let arguments = json!({"command": "true"});
    let server = &mut allowed(stage)?;
    compared(
        "bash -c true",
        200,
        || floor("true"),
        || tool(server, "bash", &arguments, "exit code 0"),
    )
}

pub(super) fn much(stage: &mut Stage) -> Result<Figures, String> {
    let file = ten_megabytes(stage)?;
    let script = format!("cat '{}'", file.display());
    let arguments = json!({"command": script});
    let server = &mut allowed(stage)?;
    compared(
        "bash -c 'cat FILE'",
        40,
        || floor(&script),
        || tool(server, "bash", &arguments, "exit code 0"),
    )
}

pub(super) fn memory_of_ten_megabytes(stage: &mut Stage) -> Result<Figures, String> {
    let script = format!("cat '{}'", ten_megabytes(stage)?.display());
    growth(stage, &script)
}

pub(super) fn memory_of_a_gigabyte(stage: &mut Stage) -> Result<Figures, String> {
    growth(stage, "yes 'a line of output' | head -c 1G")
}

/// A server of its own, that asks nothing.
fn allowed(stage: &Stage) -> Result<Server, String> {
    let mut server = stage.helve.serve_with(&["--yes"])?;
    server.client()?.initialize()?;
    Ok(server)
}

/// How much a server of its own grows by one command.
fn growth(stage: &Stage, script: &str) -> Result<Figures, String> {
    let mut server = allowed(stage)?;
    tool(&mut server, "bash", &json!({"command": "true"}), "exit code 0")?;
    let before = peak_memory(server.id())?;
    tool(&mut server, "bash", &json!({"command": script}), "exit code 0")?;
    let ours = peak_memory(server.id())? - before;
    Ok(Figures { ours, floor: None, rounds: 1 })
}

fn ten_megabytes(stage: &Stage) -> Result<PathBuf, String> {
    let path = stage.helve.workspace.join("ten.txt");
    if !path.exists() {
        let line = "a line of output that is sixty-four characters long, or nearly so\n";
        let text = line.repeat(10_000_000 / line.len());
        std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(path)
}

/// Nothing but the shell and the pipes: no limit, no thread beside.
fn floor(script: &str) -> Result<Duration, String> {
    let mut command = Command::new("bash");
    let (output, took) = timed(|| {
        let running = command.args(["-c", script]).stdin(Stdio::null()).output();
        running.map_err(|error| format!("bash: {error}"))
    })?;
    if output.status.success() { Ok(took) } else { Err(format!("bash: {}", output.status)) }
}
