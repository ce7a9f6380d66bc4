//! `cargo xtask e2e`: runs the binary with MCP clients, servers and agents of other projects. These are downloaded
//! once, into the target folder.

mod agents;
mod builds;
mod conformance;
mod debian;
mod formatters;
mod inspector;
mod interactive;
pub(crate) mod languages;
mod model;
mod npm;
mod plugins;
mod python;
mod ripgrep;
mod scripts;
mod sdks;
mod servers;
mod web_pages;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::helve::Helve;
use crate::options::Options;
use crate::scratch::Scratch;
use crate::{Outcome, Verdict, repository};

struct E2eTest {
    name: &'static str,
    description: &'static str,
    run: fn(&Helve) -> Result<E2eResult, String>,
}

const TESTS: &[E2eTest] = &[
    E2eTest {
        name: "python-1",
        description: "the official Python client, 1.x",
        run: |helve| python::run(helve, &python::VERSION_1),
    },
    E2eTest {
        name: "python-2",
        description: "the official Python client, 2.x",
        run: |helve| python::run(helve, &python::VERSION_2),
    },
    E2eTest {
        name: "inspector",
        description: "the official inspector, which also checks the schemas",
        run: inspector::over_stdio,
    },
    E2eTest {
        name: "inspector-http",
        description: "the official inspector, over HTTP",
        run: inspector::over_http,
    },
    E2eTest {
        name: "conformance-server",
        description: "Helve as a server, tested by the MCP conformance suite over HTTP",
        run: conformance::as_server,
    },
    E2eTest {
        name: "ripgrep",
        description: "grep and glob compared with the program `rg`, on three trees",
        run: ripgrep::run,
    },
    E2eTest {
        name: "conformance-client",
        description: "Helve as a client, tested by the MCP conformance suite",
        run: conformance::as_client,
    },
    E2eTest {
        name: "servers",
        description: "published MCP servers that Helve uses",
        run: servers::run,
    },
    E2eTest {
        name: "sdks",
        description: "requests and replies compared with the types of openai and anthropic",
        run: sdks::run,
    },
    E2eTest {
        name: "interactive",
        description: "programs that expect a user at a terminal",
        run: interactive::run,
    },
    E2eTest {
        name: "scripts",
        description: "custom tools and plugins on bun and on node 20, 22 and 24",
        run: scripts::run,
    },
    E2eTest {
        name: "plugins",
        description: "published opencode plugins on bun and on node 20, 22 and 24",
        run: plugins::run,
    },
    E2eTest {
        name: "languages",
        description: "language servers and formatters: diagnostics, questions, a rename, and how much slower they make an edit",
        run: languages::run,
    },
    E2eTest {
        name: "web-pages",
        description: "webfetch compared with turndown, on pages of documentation and of other sites",
        run: web_pages::run,
    },
    E2eTest {
        name: "builds",
        description: "builds with npm, pip, pytest, cargo and go, inside and outside the sandbox",
        run: builds::run,
    },
    E2eTest {
        name: "codex",
        description: "the agent codex with a scripted model",
        run: agents::codex,
    },
    E2eTest {
        name: "opencode",
        description: "the agent opencode with a scripted model",
        run: agents::opencode,
    },
];

/// The result of a test that did not fail.
enum E2eResult {
    /// The test passed. The text says what was checked.
    Passed(String),
    /// The test was not run. The text says what is missing on this machine.
    Skipped(String),
}

/// Time limit for a download.
const DOWNLOAD_LIMIT: Duration = Duration::from_secs(600);
/// Time limit for one program.
const RUN_LIMIT: Duration = Duration::from_secs(120);

/// A file in the workspace, which every client reads.
const FILE: &str = "hello.txt";
/// The only line of `FILE`.
const LINE: &str = "a line that only this file has";
/// Tools that every client must see.
const TOOLS: &[&str] = &["read", "todowrite", "todoread"];

pub(crate) fn run(options: &Options) -> Outcome {
    let chosen = options.choose(TESTS, |test| test.name)?;
    if options.list {
        chosen.iter().for_each(|test| println!("{:<18} {}", test.name, test.description));
        return Ok(Verdict::Good);
    }
    let scratch = Scratch::new("e2e")?;
    let helve = Helve::prepare(options, &scratch)?;
    fs::write(helve.workspace.join(FILE), format!("{LINE}\n"))
        .map_err(|error| format!("{FILE}: {error}"))?;
    let (mut passed, mut skipped, mut failed) = (0, 0, 0);
    for test in chosen {
        println!("── {}: {}", test.name, test.description);
        match (test.run)(&helve) {
            Ok(E2eResult::Passed(report)) => {
                println!("   passed: {report}");
                passed += 1;
            }
            Ok(E2eResult::Skipped(why)) => {
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

/// Returns a folder for downloaded programs, which is kept between runs.
fn download_folder(name: &str) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| repository::root().join("target"), PathBuf::from);
    repository::root().join(target).join("e2e").join(name)
}

/// Checks that all of `TOOLS` are listed.
fn check_tools(names: &[&str]) -> Result<(), String> {
    match TOOLS.iter().find(|tool| !names.contains(tool)) {
        None => Ok(()),
        Some(missing) => Err(format!("`{missing}` is not listed, only: {}", names.join(", "))),
    }
}

/// Returns the names in a list of tools, which are objects or strings.
fn tool_names(tools: &Value) -> Vec<&str> {
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
            "`todowrite` is not listed, only: read, todoread"
        );
    }

    #[test]
    fn names_are_read_from_objects_and_from_strings() {
        assert_eq!(tool_names(&json!([{"name": "read"}, "write", 3])), ["read", "write"]);
        assert_eq!(tool_names(&Value::Null), [""; 0]);
    }
}
