//! The `mcp` package of PyPI, in a virtual environment of its own.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::{FETCH_LIMIT, FILE, LINE, RUN_LIMIT, Said, check_tools, names, shelf};
use crate::helve::Helve;
use crate::process;

/// One release of the package, and which of its two clients to use.
pub(super) struct Release {
    version: &'static str,
    style: &'static str,
}

pub(super) const FIRST: Release = Release { version: "1.30.0", style: "session" };
/// `client` looks for the newest revision of the protocol first.
pub(super) const SECOND: Release = Release { version: "2.3.0", style: "client" };

const SCRIPT: &str = include_str!("client.py");

pub(super) fn run(helve: &Helve, release: &Release) -> Result<Said, String> {
    let Some(python) = interpreter(release)? else {
        return Ok(Said::Skipped("there is no python3".into()));
    };
    let mut command = Command::new(&python);
    command.args(["-c", SCRIPT, release.style]).arg(helve.binary()).arg(&helve.workspace).arg(FILE);
    let printed =
        process::finish(command.envs(helve.environment()), RUN_LIMIT)?.good("client.py")?;
    check(&printed).map(Said::Passed)
}

/// A Python that has the package; nothing where there is no Python.
pub(super) fn interpreter(release: &Release) -> Result<Option<PathBuf>, String> {
    if process::finish(Command::new("python3").arg("--version"), RUN_LIMIT).is_err() {
        return Ok(None);
    }
    let environment = shelf(&format!("python-mcp-{}", release.version));
    let python = environment.join("bin/python");
    fetch(&environment, &python, release.version)?;
    Ok(Some(python))
}

fn fetch(environment: &Path, python: &Path, version: &str) -> Result<(), String> {
    let ready = process::finish(Command::new(python).args(["-c", "import mcp"]), RUN_LIMIT);
    if ready.is_ok_and(|finished| finished.status.success()) {
        return Ok(());
    }
    let mut make = Command::new("python3");
    process::finish(make.args(["-m", "venv", "--clear"]).arg(environment), FETCH_LIMIT)?
        .good("python3 -m venv")?;
    let mut install = Command::new(python);
    install.args(["-m", "pip", "install", "--quiet", &format!("mcp=={version}")]);
    process::finish(&mut install, FETCH_LIMIT)?.good("pip install").map(|_| ())
}

fn check(printed: &str) -> Result<String, String> {
    let report: Value = serde_json::from_str(printed)
        .map_err(|error| format!("{error} in what client.py printed: {printed}"))?;
    let names = names(&report["tools"]);
    check_tools(&names)?;
    let (read, missing) = (&report["read"], &report["missing"]);
    if read["error"] != false || !read["text"].as_str().is_some_and(|text| text.contains(LINE)) {
        return Err(format!("read of {FILE} answered {read}"));
    }
    if missing["error"] != true {
        return Err(format!("read of a file that does not exist answered {missing}"));
    }
    Ok(format!(
        "protocol {}, {} tools, read answered",
        report["protocol"].as_str().unwrap_or("?"),
        names.len()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn report() -> Value {
        json!({
            "protocol": "2025-11-25", "tools": ["read", "todowrite", "todoread"],
            "read": {"error": false, "text": format!("00001| {LINE}")}, "missing": {"error": true, "text": "no such file"},
        })
    }

    #[test]
    fn a_good_report_passes() {
        assert_eq!(
            check(&report().to_string()).unwrap(),
            "protocol 2025-11-25, 3 tools, read answered"
        );
    }

    #[test]
    fn each_fault_is_seen() {
        for (pointer, value, what) in [
            ("/read/text", json!("something else"), "read of hello.txt answered"),
            ("/read/error", json!(true), "read of hello.txt answered"),
            ("/missing/error", json!(false), "read of a file that does not exist"),
            ("/tools", json!([]), "`read` is not listed"),
        ] {
            let mut report = report();
            *report.pointer_mut(pointer).unwrap() = value;
            assert!(check(&report.to_string()).unwrap_err().starts_with(what), "{pointer}");
        }
        assert!(check("Traceback").is_err());
    }
}
