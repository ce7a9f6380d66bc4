//! Benchmarks of `bash`. The baseline is the same script in a shell, without Helve.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::json;

use super::Measurement;
use super::calls::{compare, timed_call_expecting};
use super::fixture::Fixture;
use super::measure::{interleaved, timed};
use crate::mcp::McpProcess;
use crate::process::peak_memory;

pub(super) fn empty_command(fixture: &mut Fixture) -> Result<Measurement, String> {
    let arguments = json!({"command": "true"});
    let server = &mut start_server(fixture)?;
    compare(
        "bash -c true",
        200,
        || timed_shell("true"),
        || timed_call_expecting(server, "bash", &arguments, "exit code 0"),
    )
}

/// Measures what the sandbox `workspace-write` adds to a command.
pub(super) fn confinement(fixture: &mut Fixture) -> Result<Measurement, String> {
    let config = fixture.helve.data().with_file_name("sandbox.json");
    std::fs::write(&config, r#"{"sandbox": "workspace-write"}"#)
        .map_err(|error| format!("{}: {error}", config.display()))?;
    let rounds = 100;
    let arguments = json!({"command": "true"});
    let mut unconfined = start_server(fixture)?;
    let mut confined = start_server_with(fixture, &["--config", &config.to_string_lossy()])?;
    let medians = interleaved(
        rounds,
        || timed_call_expecting(&mut unconfined, "bash", &arguments, "exit code 0"),
        || timed_call_expecting(&mut confined, "bash", &arguments, "exit code 0"),
    )?;
    Ok(Measurement { ours: medians.ours - medians.baseline, baseline: None, rounds })
}

pub(super) fn ten_megabytes(fixture: &mut Fixture) -> Result<Measurement, String> {
    let file = ten_megabyte_file(fixture)?;
    let script = format!("cat '{}'", file.display());
    let arguments = json!({"command": script});
    let server = &mut start_server(fixture)?;
    compare(
        "bash -c 'cat FILE'",
        40,
        || timed_shell(&script),
        || timed_call_expecting(server, "bash", &arguments, "exit code 0"),
    )
}

pub(super) fn memory_for_ten_megabytes(fixture: &mut Fixture) -> Result<Measurement, String> {
    let script = format!("cat '{}'", ten_megabyte_file(fixture)?.display());
    memory_growth(fixture, &script)
}

pub(super) fn memory_for_a_gigabyte(fixture: &mut Fixture) -> Result<Measurement, String> {
    memory_growth(fixture, "yes 'a line of output' | head -c 1G")
}

/// Starts a server that allows everything.
fn start_server(fixture: &Fixture) -> Result<McpProcess, String> {
    start_server_with(fixture, &[])
}

/// Starts a server that allows everything, with further options.
fn start_server_with(fixture: &Fixture, options: &[&str]) -> Result<McpProcess, String> {
    let mut server = fixture.helve.start_mcp_with(&[&["--yes"], options].concat())?;
    server.client()?.initialize()?;
    Ok(server)
}

/// Measures how much the memory of a new server grows with one command.
fn memory_growth(fixture: &Fixture, script: &str) -> Result<Measurement, String> {
    let mut server = start_server(fixture)?;
    timed_call_expecting(&mut server, "bash", &json!({"command": "true"}), "exit code 0")?;
    let before = peak_memory(server.id())?;
    timed_call_expecting(&mut server, "bash", &json!({"command": script}), "exit code 0")?;
    let ours = peak_memory(server.id())? - before;
    Ok(Measurement { ours, baseline: None, rounds: 1 })
}

fn ten_megabyte_file(fixture: &Fixture) -> Result<PathBuf, String> {
    let path = fixture.helve.workspace.join("ten.txt");
    if !path.exists() {
        let line = "a line of output that is sixty-four characters long, or nearly so\n";
        let text = line.repeat(10_000_000 / line.len());
        std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(path)
}

/// Runs a script in a shell and returns how long it took.
fn timed_shell(script: &str) -> Result<Duration, String> {
    let mut command = Command::new("bash");
    let (output, took) = timed(|| {
        let output = command.args(["-c", script]).stdin(Stdio::null()).output();
        output.map_err(|error| format!("bash: {error}"))
    })?;
    if output.status.success() { Ok(took) } else { Err(format!("bash: {}", output.status)) }
}
