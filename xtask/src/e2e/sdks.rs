//! Checks Helve's requests and its parsing of replies against the types of the providers' own Python libraries.

use std::path::PathBuf;
use std::process::Command;

use serde::Deserialize;

use super::python::install_packages;
use super::{DOWNLOAD_LIMIT, E2eResult, RUN_LIMIT};
use crate::helve::Helve;
use crate::process;

const PACKAGES: &[(&str, &str)] = &[("openai", "3.49.0"), ("anthropic", "2.8.0")];
const SCRIPT: &str = include_str!("sdks.py");
/// Transcripts and streams per protocol.
const PER_PROTOCOL: usize = 50;
/// Number of protocols.
const PROTOCOLS: usize = 3;
/// Maximum number of problems that are shown.
const MAX_SHOWN: usize = 5;

/// The output of sdks.py.
#[derive(Debug, Deserialize)]
struct SdkReport {
    bodies: usize,
    streams: usize,
    problems: Vec<String>,
}

pub(super) fn run(_helve: &Helve) -> Result<E2eResult, String> {
    let Some(python) = install_packages(PACKAGES)? else {
        return Ok(E2eResult::Skipped("python3 is not installed".into()));
    };
    let program = build_example()?;
    let mut command = Command::new(python);
    command.args(["-c", SCRIPT]).arg(program).arg(PER_PROTOCOL.to_string());
    let printed = process::run(&mut command, RUN_LIMIT)?.success("sdks.py")?;
    check_report(&printed).map(E2eResult::Passed)
}

/// Builds the example program that shows requests and replies. Returns its path.
fn build_example() -> Result<PathBuf, String> {
    let line = "build --quiet --package helve-agent --example protocols --message-format json";
    let built = process::run(&mut process::cargo(line), DOWNLOAD_LIMIT)?;
    let messages = built.success("cargo build")?;
    process::built_executable(&messages, "protocols")
        .ok_or_else(|| "cargo did not report the path of the example".into())
}

fn check_report(printed: &str) -> Result<String, String> {
    let report: SdkReport = serde_json::from_str(printed)
        .map_err(|error| format!("{error} in the output of sdks.py: {printed}"))?;
    let SdkReport { bodies, streams, problems } = report;
    if !problems.is_empty() {
        let shown = &problems[..problems.len().min(MAX_SHOWN)];
        return Err(format!("{} problems, among them:\n{}", problems.len(), shown.join("\n")));
    }
    if (bodies, streams) != (PER_PROTOCOL * PROTOCOLS, PER_PROTOCOL * PROTOCOLS) {
        return Err(format!("only {bodies} requests and {streams} streams were checked"));
    }
    Ok(format!("{bodies} requests fit the types, {streams} streams were understood"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(bodies: usize, problems: &[&str], expected: Result<&str, &str>) {
        let report = json!({"bodies": bodies, "streams": 150, "problems": problems});
        let found = check_report(&report.to_string());
        assert_eq!(found.as_deref().map_err(String::as_str), expected);
    }

    #[test]
    fn reports_are_judged() {
        check(150, &[], Ok("150 requests fit the types, 150 streams were understood"));
        check(149, &[], Err("only 149 requests and 150 streams were checked"));
        check(150, &["chat body 1: model"], Err("1 problems, among them:\nchat body 1: model"));
        assert!(check_report("Traceback").is_err());
    }
}
