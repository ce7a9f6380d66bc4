//! `cargo xtask e2e`: the binary beside other people's programs: MCP clients, servers, agents. Fetches them once, into the
//! target folder.

mod agents;
mod conformance;
mod inspector;
mod model;
mod npm;
mod people;
mod python;
mod ripgrep;
mod servers;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::helve::Helve;
use crate::options::Options;
use crate::scratch::Scratch;
use crate::{Outcome, Verdict, repository};

struct Run {
    name: &'static str,
    what: &'static str,
    run: fn(&Helve) -> Result<Said, String>,
}

const RUNS: &[Run] = &[
    Run {
        name: "python-1",
        what: "the official Python client, 1.x",
        run: |helve| python::run(helve, &python::FIRST),
    },
    Run {
        name: "python-2",
        what: "the official Python client, 2.x",
        run: |helve| python::run(helve, &python::SECOND),
    },
    Run {
        name: "inspector",
        what: "the official inspector, which also judges the schemas",
        run: inspector::over_pipes,
    },
    Run {
        name: "inspector-http",
        what: "the official inspector, over HTTP",
        run: inspector::over_http,
    },
    Run {
        name: "conformance-server",
        what: "the protocol's conformance suite, over HTTP",
        run: conformance::as_server,
    },
    Run {
        name: "ripgrep",
        what: "grep and glob beside the program `rg`, over three trees",
        run: ripgrep::run,
    },
    Run {
        name: "conformance-client",
        what: "the protocol's conformance suite, as a server inside Helve",
        run: conformance::as_client,
    },
    Run {
        name: "servers",
        what: "other people's servers as tools inside Helve",
        run: servers::run,
    },
    Run {
        name: "people",
        what: "programs that want a person at a terminal, without one",
        run: people::run,
    },
    Run { name: "codex", what: "the agent codex with a scripted model", run: agents::codex },
    Run {
        name: "opencode",
        what: "the agent opencode with a scripted model",
        run: agents::opencode,
    },
];

/// How a run ended that did not fail.
enum Said {
    Passed(String),
    /// The machine lacks what the run needs, and what that is.
    Skipped(String),
}

const FETCH_LIMIT: Duration = Duration::from_secs(600);
const RUN_LIMIT: Duration = Duration::from_secs(120);

/// What every client reads back, from a file of this name.
const FILE: &str = "hello.txt";
const LINE: &str = "a line that only this file has";
/// Without these it is not Helve that answers.
const TOOLS: &[&str] = &["read", "todowrite", "todoread"];

pub(crate) fn run(options: &Options) -> Outcome {
    let chosen = options.choose(RUNS, |run| run.name)?;
    if options.list {
        chosen.iter().for_each(|run| println!("{:<15} {}", run.name, run.what));
        return Ok(Verdict::Good);
    }
    let scratch = Scratch::new("e2e")?;
    let helve = Helve::prepare(options, &scratch)?;
    fs::write(helve.workspace.join(FILE), format!("{LINE}\n"))
        .map_err(|error| format!("{FILE}: {error}"))?;
    let (mut passed, mut skipped, mut failed) = (0, 0, 0);
    for run in chosen {
        println!("── {}: {}", run.name, run.what);
        match (run.run)(&helve) {
            Ok(Said::Passed(how)) => {
                println!("   passed: {how}");
                passed += 1;
            }
            Ok(Said::Skipped(why)) => {
                println!("   SKIPPED: {why}");
                skipped += 1;
            }
            Err(why) => {
                println!("   FAILED: {why}");
                failed += 1;
            }
        }
    }
    println!("{passed} passed, {failed} failed, {skipped} skipped");
    Ok(if failed == 0 { Verdict::Good } else { Verdict::Bad })
}

/// Where fetched clients are kept between runs.
fn shelf(name: &str) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| repository::root().join("target"), PathBuf::from);
    repository::root().join(target).join("e2e").join(name)
}

/// Whether all of our tools are among the listed names.
fn check_tools(names: &[&str]) -> Result<(), String> {
    match TOOLS.iter().find(|tool| !names.contains(tool)) {
        None => Ok(()),
        Some(missing) => Err(format!("`{missing}` is not listed; these are: {}", names.join(", "))),
    }
}

fn names(tools: &Value) -> Vec<&str> {
    tools
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|tool| tool["name"].as_str().or(tool.as_str()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_missing_tool_is_named() {
        assert_eq!(check_tools(&["todowrite", "read", "todoread", "more"]), Ok(()));
        assert_eq!(
            check_tools(&["read", "todoread"]).unwrap_err(),
            "`todowrite` is not listed; these are: read, todoread"
        );
    }

    #[test]
    fn names_are_read_from_objects_and_from_strings() {
        assert_eq!(names(&json!([{"name": "read"}, "write", 3])), ["read", "write"]);
        assert_eq!(names(&Value::Null), [""; 0]);
    }
}
