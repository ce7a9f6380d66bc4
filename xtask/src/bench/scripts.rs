//! Benchmarks of custom tools on the runtime that is installed. A row whose runtime is missing is skipped.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;

use super::calls::timed_call_expecting;
use super::fixture::Fixture;
use super::measure::{interleaved, timed};
use super::{Baseline, Measurement};
use crate::helve::Helve;
use crate::mcp::McpProcess;

/// Number of tool files in the workspace.
const TOOLS: usize = 10;

/// Measures how much longer listing takes with custom tools whose schemas are in the cache.
pub(super) fn listing(fixture: &mut Fixture) -> Result<Measurement, String> {
    let Some(runtime) = ["bun", "node"].into_iter().find(|name| is_installed(name)) else {
        return Ok(skipped("scripts-list", "neither bun nor node is installed"));
    };
    let (without, with) = (workspace(fixture, runtime, 0)?, workspace(fixture, runtime, TOOLS)?);
    let rounds = 20;
    let listing = |helve: &Helve, expected| {
        let (server, took) = timed(|| start(helve, expected))?;
        drop(server);
        Ok(took)
    };
    let medians = interleaved(rounds, || listing(&without, 0), || listing(&with, TOOLS))?;
    Ok(Measurement {
        ours: medians.ours - medians.baseline,
        baseline: Some(Baseline { command: "no custom tools", value: medians.baseline }),
        rounds,
    })
}

pub(super) fn first_call_on_bun(fixture: &mut Fixture) -> Result<Measurement, String> {
    first_call(fixture, "scripts-first-bun", "bun")
}

pub(super) fn first_call_on_node(fixture: &mut Fixture) -> Result<Measurement, String> {
    first_call(fixture, "scripts-first-node", "node")
}

/// Measures the first call of a tool in a server, which starts the runtime. The call of a built-in tool is the
/// baseline.
fn first_call(
    fixture: &mut Fixture,
    row: &str,
    runtime: &'static str,
) -> Result<Measurement, String> {
    if !is_installed(runtime) {
        return Ok(skipped(row, &format!("{runtime} is not installed")));
    }
    let helve = workspace(fixture, runtime, TOOLS)?;
    let rounds = 10;
    let first = |call: fn(&mut McpProcess, &Helve) -> Result<Duration, String>| {
        let mut server = start(&helve, TOOLS)?;
        call(&mut server, &helve)
    };
    let medians = interleaved(rounds, || first(call_built_in), || first(call_custom))?;
    Ok(Measurement {
        ours: medians.ours,
        baseline: Some(Baseline { command: "read FILE", value: medians.baseline }),
        rounds,
    })
}

/// Measures how much longer a call of a custom tool takes than one of a built-in tool, once the runtime is started.
pub(super) fn next_call(fixture: &mut Fixture) -> Result<Measurement, String> {
    let Some(runtime) = ["bun", "node"].into_iter().find(|name| is_installed(name)) else {
        return Ok(skipped("scripts-next", "neither bun nor node is installed"));
    };
    let helve = workspace(fixture, runtime, TOOLS)?;
    let server = std::cell::RefCell::new(start(&helve, TOOLS)?);
    let rounds = 200;
    let medians = interleaved(
        rounds,
        || call_built_in(&mut server.borrow_mut(), &helve),
        || call_custom(&mut server.borrow_mut(), &helve),
    )?;
    Ok(Measurement {
        ours: medians.ours - medians.baseline,
        baseline: Some(Baseline { command: "read FILE", value: medians.baseline }),
        rounds,
    })
}

fn skipped(row: &str, why: &str) -> Measurement {
    eprintln!("{row}: skipped, because {why}");
    Measurement { ours: 0.0, baseline: None, rounds: 0 }
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Creates a trusted workspace with this many tools, and lists them once, so that their schemas are in the cache.
fn workspace(fixture: &Fixture, runtime: &str, tools: usize) -> Result<Helve, String> {
    let helve = fixture.helve.with_workspace(&format!("scripts-{runtime}-{tools}"))?;
    let folder = helve.workspace.join(".opencode");
    let config = json!({"javascript": {"runtime": runtime}}).to_string();
    write(folder.join("opencode.json"), &config)?;
    write(small_file(&helve), "a small file\n")?;
    for number in 0..tools {
        let source = format!(
            "import {{ tool }} from \"@opencode-ai/plugin\"\n\
             export default tool({{\n\
             \x20 description: \"Greets number {number}\",\n\
             \x20 args: {{ name: tool.schema.string().describe(\"Who\") }},\n\
             \x20 async execute({{ name }}: {{ name: string }}) {{\n\
             \x20   return `hello ${{name}}`\n\
             \x20 }},\n\
             }})\n"
        );
        write(folder.join(format!("tool/greet{number}.ts")), &source)?;
    }
    helve.run(&["trust", "--yes"])?.success("helve trust")?;
    drop(start(&helve, tools)?);
    Ok(helve)
}

/// Starts a server that must list this many custom tools.
fn start(helve: &Helve, tools: usize) -> Result<McpProcess, String> {
    let mut server = helve.start_mcp_with(&["--yes"])?;
    server.client()?.initialize()?;
    let listed = server.client()?.list_tools()?;
    let names = listed.iter().filter_map(|tool| tool["name"].as_str());
    let found = names.filter(|name| name.starts_with("greet")).count();
    match found == tools {
        true => Ok(server),
        false => Err(format!("{found} of {tools} custom tools are listed")),
    }
}

fn call_custom(server: &mut McpProcess, _helve: &Helve) -> Result<Duration, String> {
    timed_call_expecting(server, "greet0", &json!({"name": "you"}), "hello you")
}

fn call_built_in(server: &mut McpProcess, helve: &Helve) -> Result<Duration, String> {
    timed_call_expecting(server, "read", &json!({"filePath": small_file(helve)}), "a small file")
}

fn small_file(helve: &Helve) -> PathBuf {
    helve.workspace.join("small.txt")
}

fn write(path: PathBuf, text: &str) -> Result<(), String> {
    let written = path.parent().map_or(Ok(()), fs::create_dir_all);
    let written = written.and_then(|()| fs::write(&path, text));
    written.map_err(|error| format!("{}: {error}", path.display()))
}
