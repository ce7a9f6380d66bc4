//! The benches themselves: one function each, with its floor and a look at the answer.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::measure::{interleaved, peak_memory, timed};
use super::search;
use super::stage::{LONG_LINES, Stage, long_line};
use super::{Figures, Floor};
use crate::helve::CALL_LIMIT;
use crate::{mcp, process};

const TAIL: usize = 2_000;

pub(super) fn start(stage: &mut Stage) -> Result<Figures, String> {
    let ours = || {
        let (server, took) = timed(|| {
            let mut server = stage.helve.serve()?;
            server.client()?.initialize()?;
            let tools = server.client()?.list_tools()?;
            if tools.is_empty() { Err("no tool was listed".into()) } else { Ok(server) }
        })?;
        drop(server);
        Ok(took)
    };
    compared("true", 20, || floor("true", &[]), ours)
}

pub(super) fn read_small(stage: &mut Stage) -> Result<Figures, String> {
    let path = stage.small();
    let arguments = json!({"filePath": path});
    let server = stage.server()?;
    compared(
        "cat FILE",
        200,
        || floor("cat", &[&path]),
        || read(server, &arguments, "line 50 of the small file"),
    )
}

pub(super) fn read_tail(stage: &mut Stage) -> Result<Figures, String> {
    let path = stage.long();
    let (arguments, first) = tail_of(&path);
    let server = stage.server()?;
    compared(
        "wc -l FILE",
        30,
        || floor("wc", &[Path::new("-l"), &path]),
        || read(server, &arguments, &first),
    )
}

pub(super) fn call_read(stage: &mut Stage) -> Result<Figures, String> {
    let path = stage.small();
    let ours = || {
        let finished = stage.helve.call("bench", "read", &json!({"filePath": path}))?;
        let took = finished.took;
        let printed = finished.good("helve call read")?;
        if printed.contains("line 50 of the small file") {
            Ok(took)
        } else {
            Err(format!("another answer: {printed}"))
        }
    };
    compared("cat FILE", 30, || floor("cat", &[&path]), ours)
}

/// Every call once more, so that the figure means the same when this bench runs alone.
pub(super) fn memory(stage: &mut Stage) -> Result<Figures, String> {
    let small = json!({"filePath": stage.small()});
    let (tail, first) = tail_of(&stage.long());
    search::once(stage)?;
    let server = stage.server()?;
    read(server, &small, "line 50 of the small file")?;
    read(server, &tail, &first)?;
    Ok(Figures { ours: peak_memory(server.id())?, floor: None, rounds: 1 })
}

fn tail_of(path: &Path) -> (Value, String) {
    let first = LONG_LINES - TAIL + 1;
    (json!({"filePath": path, "offset": first, "limit": TAIL}), long_line(first))
}

pub(super) fn compared(
    command: &'static str,
    rounds: usize,
    floor: impl FnMut() -> Result<Duration, String>,
    ours: impl FnMut() -> Result<Duration, String>,
) -> Result<Figures, String> {
    let pair = interleaved(rounds, floor, ours)?;
    Ok(Figures { ours: pair.ours, floor: Some(Floor { command, value: pair.floor }), rounds })
}

fn floor(program: &str, arguments: &[&Path]) -> Result<Duration, String> {
    let finished = process::finish(Command::new(program).args(arguments), CALL_LIMIT)?;
    let took = finished.took;
    finished.good(program).map(|_| took)
}

fn read(server: &mut mcp::Server, arguments: &Value, expected: &str) -> Result<Duration, String> {
    tool(server, "read", arguments, expected)
}

pub(super) fn answered(
    server: &mut mcp::Server,
    name: &str,
    arguments: &Value,
) -> Result<(mcp::Answer, Duration), String> {
    let client = server.client()?;
    timed(|| client.call(name, arguments))
}

/// A call that must answer with `expected` somewhere in its text: speed without the answer is nothing.
pub(super) fn tool(
    server: &mut mcp::Server,
    name: &str,
    arguments: &Value,
    expected: &str,
) -> Result<Duration, String> {
    let (answer, took) = answered(server, name, arguments)?;
    if answer.is_error || !answer.text.contains(expected) {
        let start: String = answer.text.chars().take(500).collect();
        return Err(format!("{name} answered without `{expected}`: {start}"));
    }
    Ok(took)
}
