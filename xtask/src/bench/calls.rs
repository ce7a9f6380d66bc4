//! Benchmarks of single calls. Each is compared with a baseline, and its answer is checked.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::fixture::{Fixture, LONG_LINES, long_line};
use super::measure::{interleaved, timed};
use super::search;
use super::{Baseline, Measurement};
use crate::helve::CALL_LIMIT;
use crate::mcp::{McpProcess, ToolAnswer};
use crate::process::{self, peak_memory};

/// Number of lines that `read_tail` reads.
const TAIL_LINES: usize = 2_000;

pub(super) fn start(fixture: &mut Fixture) -> Result<Measurement, String> {
    let ours = || {
        let (server, took) = timed(|| {
            let mut server = fixture.helve.start_mcp()?;
            server.client()?.initialize()?;
            let tools = server.client()?.list_tools()?;
            if tools.is_empty() { Err("no tools are listed".into()) } else { Ok(server) }
        })?;
        drop(server);
        Ok(took)
    };
    compare("true", 20, || baseline_command("true", &[]), ours)
}

pub(super) fn read_small(fixture: &mut Fixture) -> Result<Measurement, String> {
    let path = fixture.small_file();
    let arguments = json!({"filePath": path});
    let server = fixture.server()?;
    compare(
        "cat FILE",
        200,
        || baseline_command("cat", &[&path]),
        || timed_read(server, &arguments, "line 50 of the small file"),
    )
}

pub(super) fn read_tail(fixture: &mut Fixture) -> Result<Measurement, String> {
    let path = fixture.long_file();
    let (arguments, first) = tail_of(&path);
    let server = fixture.server()?;
    compare(
        "wc -l FILE",
        30,
        || baseline_command("wc", &[Path::new("-l"), &path]),
        || timed_read(server, &arguments, &first),
    )
}

pub(super) fn call_read(fixture: &mut Fixture) -> Result<Measurement, String> {
    let path = fixture.small_file();
    let ours = || {
        let finished = fixture.helve.call("bench", "read", &json!({"filePath": path}))?;
        let took = finished.took;
        let printed = finished.success("helve call read")?;
        if printed.contains("line 50 of the small file") {
            Ok(took)
        } else {
            Err(format!("unexpected answer: {printed}"))
        }
    };
    compare("cat FILE", 30, || baseline_command("cat", &[&path]), ours)
}

/// Measures the peak memory of the server. Makes every call once more, so that the result does not depend on which
/// other benchmarks ran.
pub(super) fn memory(fixture: &mut Fixture) -> Result<Measurement, String> {
    let small = json!({"filePath": fixture.small_file()});
    let (tail, first) = tail_of(&fixture.long_file());
    search::run_each_once(fixture)?;
    let server = fixture.server()?;
    timed_read(server, &small, "line 50 of the small file")?;
    timed_read(server, &tail, &first)?;
    Ok(Measurement { ours: peak_memory(server.id())?, baseline: None, rounds: 1 })
}

/// Returns the arguments that read the end of the file, and the first line that is read.
fn tail_of(path: &Path) -> (Value, String) {
    let first = LONG_LINES - TAIL_LINES + 1;
    (json!({"filePath": path, "offset": first, "limit": TAIL_LINES}), long_line(first))
}

/// Measures our call and the baseline. `command` describes the baseline in the output.
pub(super) fn compare(
    command: &'static str,
    rounds: usize,
    baseline: impl FnMut() -> Result<Duration, String>,
    ours: impl FnMut() -> Result<Duration, String>,
) -> Result<Measurement, String> {
    let medians = interleaved(rounds, baseline, ours)?;
    Ok(Measurement {
        ours: medians.ours,
        baseline: Some(Baseline { command, value: medians.baseline }),
        rounds,
    })
}

/// Runs a program and returns how long it took.
fn baseline_command(program: &str, arguments: &[&Path]) -> Result<Duration, String> {
    let finished = process::run(Command::new(program).args(arguments), CALL_LIMIT)?;
    let took = finished.took;
    finished.success(program).map(|_| took)
}

fn timed_read(
    server: &mut McpProcess,
    arguments: &Value,
    expected: &str,
) -> Result<Duration, String> {
    timed_call_expecting(server, "read", arguments, expected)
}

pub(super) fn timed_call(
    server: &mut McpProcess,
    name: &str,
    arguments: &Value,
) -> Result<(ToolAnswer, Duration), String> {
    let client = server.client()?;
    timed(|| client.call(name, arguments))
}

/// Calls a tool whose answer must contain `expected`, and returns how long it took.
pub(super) fn timed_call_expecting(
    server: &mut McpProcess,
    name: &str,
    arguments: &Value,
    expected: &str,
) -> Result<Duration, String> {
    let (answer, took) = timed_call(server, name, arguments)?;
    if answer.is_error || !answer.text.contains(expected) {
        let start: String = answer.text.chars().take(500).collect();
        return Err(format!("the answer of {name} does not contain `{expected}`: {start}"));
    }
    Ok(took)
}
