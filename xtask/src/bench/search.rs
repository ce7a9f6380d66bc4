//! Benchmarks of searches. The baseline is `rg` with the same search; it prints all matches.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::calls::{compare, timed_call_expecting};
use super::fixture::Fixture;
use super::measure::interleaved;
use super::tree::{COMMON, LARGE_FILES, RARE, VERY_LARGE_FILES};
use super::{Baseline, Measurement};
use crate::helve::CALL_LIMIT;
use crate::process;

const ROUNDS: usize = 30;

pub(super) fn grep_rare(fixture: &mut Fixture) -> Result<Measurement, String> {
    let tree = fixture.large_tree()?;
    let call = SearchCall {
        tool: "grep",
        arguments: json!({"pattern": RARE, "path": tree}),
        expected: RARE,
    };
    compare_with_rg(fixture, "rg -n RARE", &["-n", RARE], &tree, &call)
}

pub(super) fn grep_common(fixture: &mut Fixture) -> Result<Measurement, String> {
    let tree = fixture.large_tree()?;
    let arguments = json!({"pattern": COMMON, "path": tree});
    let call = SearchCall { tool: "grep", arguments, expected: "100 of " };
    compare_with_rg(fixture, "rg -n COMMON", &["-n", COMMON], &tree, &call)
}

pub(super) fn glob(fixture: &mut Fixture) -> Result<Measurement, String> {
    let tree = fixture.large_tree()?;
    let expected = format!("100 of {} files", LARGE_FILES.div_ceil(3));
    let call = SearchCall { tool: "glob", arguments: glob_arguments(&tree), expected: &expected };
    compare_with_rg(fixture, "rg --files -g", &["--files", "-g", "**/*.rs"], &tree, &call)
}

pub(super) fn glob_many(fixture: &mut Fixture) -> Result<Measurement, String> {
    let tree = fixture.very_large_tree()?;
    let expected = format!("100 of {} files", VERY_LARGE_FILES.div_ceil(3));
    let call = SearchCall { tool: "glob", arguments: glob_arguments(&tree), expected: &expected };
    compare_with_rg(fixture, "rg --files -g", &["--files", "-g", "**/*.rs"], &tree, &call)
}

pub(super) fn list(fixture: &mut Fixture) -> Result<Measurement, String> {
    let tree = fixture.large_tree()?;
    let call = SearchCall { tool: "list", arguments: json!({"path": tree}), expected: "part000/" };
    compare_with_rg(fixture, "rg --files", &["--files"], &tree, &call)
}

/// Makes each search once, for the memory benchmark.
pub(super) fn run_each_once(fixture: &mut Fixture) -> Result<(), String> {
    let tree = fixture.large_tree()?;
    let server = fixture.server()?;
    timed_call_expecting(server, "grep", &json!({"pattern": COMMON, "path": tree}), "100 of ")?;
    timed_call_expecting(server, "grep", &json!({"pattern": RARE, "path": tree}), RARE)?;
    timed_call_expecting(server, "glob", &glob_arguments(&tree), "100 of ")?;
    timed_call_expecting(server, "list", &json!({"path": tree}), "part000/").map(|_| ())
}

fn glob_arguments(tree: &Path) -> Value {
    json!({"pattern": "**/*.rs", "path": tree})
}

/// A call of a search tool, and a text that its answer must contain.
struct SearchCall<'a> {
    tool: &'static str,
    arguments: Value,
    expected: &'a str,
}

fn compare_with_rg(
    fixture: &mut Fixture,
    command: &'static str,
    arguments: &[&str],
    tree: &Path,
    call: &SearchCall<'_>,
) -> Result<Measurement, String> {
    let server = fixture.server()?;
    let ours = || timed_call_expecting(server, call.tool, &call.arguments, call.expected);
    if rg(&["--version"], None).is_ok() {
        return compare(command, ROUNDS, || rg(arguments, Some(tree)), ours);
    }
    eprintln!("rg is not installed, so {} is measured without a baseline", call.tool);
    let medians = interleaved(ROUNDS, || Ok(Duration::ZERO), ours)?;
    Ok(Measurement { ours: medians.ours, baseline: None::<Baseline>, rounds: ROUNDS })
}

fn rg(arguments: &[&str], tree: Option<&Path>) -> Result<Duration, String> {
    let mut command = Command::new("rg");
    command.args(["--no-config", "--hidden", "--glob", "!.git"]).args(arguments).args(tree);
    let finished = process::run(&mut command, CALL_LIMIT)?;
    let took = finished.took;
    finished.success("rg").map(|_| took)
}
