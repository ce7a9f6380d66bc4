//! Benchmarks of edits with language servers: the time that a running server adds until its error is reported.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use serde_json::json;

use super::calls::timed_call;
use super::fixture::Fixture;
use super::measure::interleaved;
use super::{Baseline, Measurement};
use crate::e2e::languages::{InstalledServers, install, write_project};
use crate::helve::Helve;
use crate::mcp::McpProcess;

/// Time limit for one server and everything that it is asked.
const LIMIT: Duration = Duration::from_secs(300);
/// How long an edit may wait for a server, in milliseconds. Slow edits are to be measured, not cut off.
const EDIT_TIMEOUT: u64 = 9_000;
/// What the answer says if the server reported the error.
const REPORTED: &str = "This change introduced";

/// Whether language servers run, and so whether an edit reports an error.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ServerMode {
    On,
    Off,
}

pub(super) fn typescript(fixture: &mut Fixture) -> Result<Measurement, String> {
    added_time(fixture, "edit-typescript", "src/bench.ts", "export const x: number = ")
}

pub(super) fn pyright(fixture: &mut Fixture) -> Result<Measurement, String> {
    added_time(fixture, "edit-pyright", "src/bench.py", "x: int = ")
}

pub(super) fn rust(fixture: &mut Fixture) -> Result<Measurement, String> {
    added_time(fixture, "edit-rust", "rust/src/a.rs", "pub const X: i32 = ")
}

/// Measures the time added to an edit that introduces an error. The baseline is the same edit without language servers.
fn added_time(fixture: &Fixture, row: &str, file: &str, line: &str) -> Result<Measurement, String> {
    let Some(servers) = install()? else {
        return Ok(skipped(row, "npm or python3 is not installed"));
    };
    if row == "edit-rust" && !servers.has_rust {
        return Ok(skipped(row, "rust-analyzer is not available"));
    }
    let (mut with, mut without) =
        (start(fixture, &servers, ServerMode::On)?, start(fixture, &servers, ServerMode::Off)?);
    let content = json!({"filePath": file, "content": format!("{line}0\n")});
    for process in [&mut with, &mut without] {
        if row == "edit-rust" {
            process.client()?.call("read", &json!({"filePath": file}))?;
        }
        process.client()?.call("write", &content)?;
    }
    // The first question waits until the server has loaded the project.
    with.client()?.call("lsp", &json!({"operation": "diagnostics", "filePath": file}))?;
    let rounds = 20;
    let medians = interleaved(
        rounds,
        || introduce_error(&mut without, file, ServerMode::Off),
        || introduce_error(&mut with, file, ServerMode::On),
    )?;
    Ok(Measurement {
        ours: medians.ours - medians.baseline,
        baseline: Some(Baseline { command: "no server", value: medians.baseline }),
        rounds,
    })
}

/// Measures the time added to an edit of a file that no server is for.
pub(super) fn no_server(fixture: &mut Fixture) -> Result<Measurement, String> {
    let Some(servers) = install()? else {
        return Ok(skipped("edit-no-server", "npm or python3 is not installed"));
    };
    let (mut with, mut without) =
        (start(fixture, &servers, ServerMode::On)?, start(fixture, &servers, ServerMode::Off)?);
    let content = json!({"filePath": "notes.txt", "content": "= 0\n"});
    for process in [&mut with, &mut without] {
        process.client()?.call("write", &content)?;
    }
    let rounds = 300;
    let medians = interleaved(
        rounds,
        || introduce_error(&mut without, "notes.txt", ServerMode::Off),
        || introduce_error(&mut with, "notes.txt", ServerMode::Off),
    )?;
    Ok(Measurement {
        ours: medians.ours - medians.baseline,
        baseline: Some(Baseline { command: "lsp: false", value: medians.baseline }),
        rounds,
    })
}

/// Starts Helve in a project of 300 files per language.
fn start(
    fixture: &Fixture,
    servers: &InstalledServers,
    mode: ServerMode,
) -> Result<McpProcess, String> {
    let name = match mode {
        ServerMode::On => "languages",
        ServerMode::Off => "no-languages",
    };
    let helve: Helve = fixture.helve.with_workspace(name)?;
    write_project(&helve.workspace, EDIT_TIMEOUT)?;
    if mode == ServerMode::Off {
        let config = helve.workspace.join("opencode.json");
        fs::write(&config, r#"{"lsp": false}"#)
            .map_err(|error| format!("{}: {error}", config.display()))?;
    }
    helve.run(&["trust"])?.success("helve trust")?;
    let mut command = helve.mcp_command();
    command.arg("--yes").env("PATH", &servers.path).stderr(Stdio::null());
    let mut process = McpProcess::start(&mut command, LIMIT)?;
    process.client()?.initialize()?;
    Ok(process)
}

/// Introduces an error and removes it again. Returns how long the first took.
fn introduce_error(
    process: &mut McpProcess,
    file: &str,
    mode: ServerMode,
) -> Result<Duration, String> {
    let edit = |old: &str, new: &str| json!({"filePath": file, "oldString": old, "newString": new});
    let (answer, took) = timed_call(process, "edit", &edit("= 0", "= 'x'"))?;
    if answer.is_error || answer.text.contains(REPORTED) != (mode == ServerMode::On) {
        return Err(format!("{file}: {}", answer.text));
    }
    let fixed = process.client()?.call("edit", &edit("= 'x'", "= 0"))?;
    if fixed.is_error || fixed.text.contains(REPORTED) {
        return Err(format!("{file}: {}", fixed.text));
    }
    Ok(took)
}

fn skipped(row: &str, why: &str) -> Measurement {
    eprintln!("{row}: skipped, because {why}");
    Measurement { ours: 0.0, baseline: None, rounds: 0 }
}
