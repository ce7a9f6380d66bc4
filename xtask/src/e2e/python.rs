//! The `mcp` package of PyPI, in its own virtual environment.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::{
    DOWNLOAD_LIMIT, E2eResult, FILE, LINE, RUN_LIMIT, check_tools, download_folder, tool_names,
};
use crate::helve::Helve;
use crate::process;

/// A version of the package, and which of its two clients client.py uses.
pub(super) struct PythonPackage {
    version: &'static str,
    client: &'static str,
}

pub(super) const VERSION_1: PythonPackage = PythonPackage { version: "1.30.0", client: "session" };
/// The client of this version tries the newest protocol version first.
pub(super) const VERSION_2: PythonPackage = PythonPackage { version: "2.3.0", client: "client" };

const SCRIPT: &str = include_str!("client.py");

pub(super) fn run(helve: &Helve, package: &PythonPackage) -> Result<E2eResult, String> {
    let Some(python) = install(package)? else {
        return Ok(E2eResult::Skipped("python3 is not installed".into()));
    };
    let mut command = Command::new(&python);
    command
        .args(["-c", SCRIPT, package.client])
        .arg(helve.binary())
        .arg(&helve.workspace)
        .arg(FILE);
    let printed =
        process::run(command.envs(helve.environment()), RUN_LIMIT)?.success("client.py")?;
    check_report(&printed).map(E2eResult::Passed)
}

/// Installs the package and returns the Python interpreter that has it, or `None` without Python.
pub(super) fn install(package: &PythonPackage) -> Result<Option<PathBuf>, String> {
    install_packages(&[("mcp", package.version)])
}

/// Installs packages, given by name and version, into a virtual environment of their own. Returns its interpreter, or
/// `None` without Python.
pub(super) fn install_packages(packages: &[(&str, &str)]) -> Result<Option<PathBuf>, String> {
    if process::run(Command::new("python3").arg("--version"), RUN_LIMIT).is_err() {
        return Ok(None);
    }
    let names: Vec<String> =
        packages.iter().map(|(name, version)| format!("{name}-{version}")).collect();
    let environment = download_folder(&format!("python-{}", names.join("-")));
    let python = environment.join("bin/python");
    create_environment(&environment, &python, packages)?;
    Ok(Some(python))
}

fn create_environment(
    environment: &Path,
    python: &Path,
    packages: &[(&str, &str)],
) -> Result<(), String> {
    const IS_INSTALLED: &str =
        "import sys, importlib.metadata as m; [m.version(name) for name in sys.argv[1:]]";
    let names = packages.iter().map(|(name, _)| *name);
    let mut check = Command::new(python);
    let found = process::run(check.args(["-c", IS_INSTALLED]).args(names), RUN_LIMIT);
    if found.is_ok_and(|finished| finished.status.success()) {
        return Ok(());
    }
    let mut venv = Command::new("python3");
    process::run(venv.args(["-m", "venv", "--clear"]).arg(environment), DOWNLOAD_LIMIT)?
        .success("python3 -m venv")?;
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "install", "--quiet"]);
    pip.args(packages.iter().map(|(name, version)| format!("{name}=={version}")));
    process::run(&mut pip, DOWNLOAD_LIMIT)?.success("pip install").map(|_| ())
}

fn check_report(printed: &str) -> Result<String, String> {
    let report: Value = serde_json::from_str(printed)
        .map_err(|error| format!("{error} in the output of client.py: {printed}"))?;
    let names = tool_names(&report["tools"]);
    check_tools(&names)?;
    let (read, missing) = (&report["read"], &report["missing"]);
    if read["error"] != false || !read["text"].as_str().is_some_and(|text| text.contains(LINE)) {
        return Err(format!("reading {FILE} returned {read}"));
    }
    if missing["error"] != true {
        return Err(format!("reading a missing file returned {missing}"));
    }
    let (question, forms) = (&report["question"], report["forms"].to_string());
    let is_answered = question["text"].as_str().is_some_and(|text| text.contains("=\"red\""));
    if question["error"] != false || !is_answered || !forms.contains("Which colour?") {
        return Err(format!("a question returned {question}, with the forms {forms}"));
    }
    Ok(format!(
        "protocol {}, {} tools, a file read, a question answered",
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
            "question": {"error": false, "text": "\"Which colour?\"=\"red\""}, "forms": ["Which colour?"],
        })
    }

    #[test]
    fn a_good_report_passes() {
        assert_eq!(
            check_report(&report().to_string()).unwrap(),
            "protocol 2025-11-25, 3 tools, a file read, a question answered"
        );
    }

    #[test]
    fn wrong_reports_fail() {
        for (pointer, value, what) in [
            ("/read/text", json!("something else"), "reading hello.txt returned"),
            ("/read/error", json!(true), "reading hello.txt returned"),
            ("/missing/error", json!(false), "reading a missing file"),
            ("/tools", json!([]), "`read` is not listed"),
            ("/question/text", json!("nobody"), "a question returned"),
            ("/forms", json!([]), "a question returned"),
        ] {
            let mut report = report();
            *report.pointer_mut(pointer).unwrap() = value;
            assert!(check_report(&report.to_string()).unwrap_err().starts_with(what), "{pointer}");
        }
        assert!(check_report("Traceback").is_err());
    }
}
