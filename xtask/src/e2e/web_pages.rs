//! Measures how much of real web pages survives in the Markdown of `webfetch`, compared with turndown.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::{DOWNLOAD_LIMIT, E2eResult, download_folder, npm};
use crate::helve::Helve;
use crate::process;

/// Packages to install: turndown and jsdom, whose output Helve's is compared with, and npm, whose documentation is used
/// as test pages.
const PACKAGES: &[&str] = &["turndown@7.2.0", "jsdom@24.1.3", "npm@10.8.2"];
/// Every third page of npm's documentation is used.
const NPM_PAGE_STEP: usize = 3;
const DOWNLOAD: &str = include_str!("web_pages.py");
const MEASURE: &str = include_str!("web_pages.mjs");
/// Fewer pages would say little.
const MIN_PAGES: u64 = 60;
/// Measures in which nothing may be lost.
const COMPLETE: &[&str] = &["code lines", "table cells"];
/// Parsing all pages with jsdom takes most of the time.
const MEASURE_LIMIT: Duration = Duration::from_secs(600);

pub(super) fn run(helve: &Helve) -> Result<E2eResult, String> {
    if !npm::is_installed() {
        return Ok(E2eResult::Skipped("npm is not installed".into()));
    }
    let modules = npm::install(PACKAGES)?;
    let Some(pages) = download_pages()? else {
        return Ok(E2eResult::Skipped("python3 with pip is not installed".into()));
    };
    copy_npm_pages(&modules, &pages)?;
    let script = modules.with_file_name("web_pages.mjs");
    fs::write(&script, MEASURE).map_err(|error| format!("{}: {error}", script.display()))?;
    let mut command = Command::new("node");
    command.arg(&script).arg(&pages).arg(modules.parent().unwrap_or(&modules)).arg(helve.binary());
    command.args(["--yes", "--dir"]).arg(&helve.workspace).args(["call", "webfetch"]);
    command.envs(helve.environment());
    let printed = process::run(&mut command, MEASURE_LIMIT)?.success("web_pages.mjs")?;
    let report: Value = serde_json::from_str(printed.trim())
        .map_err(|error| format!("web_pages.mjs printed no JSON: {error}"))?;
    check(&report).map(E2eResult::Passed)
}

/// Downloads the pages once; `None` without Python.
fn download_pages() -> Result<Option<PathBuf>, String> {
    let pages = download_folder("web-pages");
    let marker = pages.join("done");
    if marker.exists() {
        return Ok(Some(pages));
    }
    if process::run(Command::new("python3").args(["-m", "pip", "--version"]), DOWNLOAD_LIMIT)
        .is_err()
    {
        return Ok(None);
    }
    let write_error = |path: &Path, error| format!("{}: {error}", path.display());
    fs::create_dir_all(&pages).map_err(|error| write_error(&pages, error))?;
    let mut python = Command::new("python3");
    process::run(python.args(["-c", DOWNLOAD]).arg(&pages), DOWNLOAD_LIMIT)?
        .success("web_pages.py")?;
    fs::write(&marker, "").map_err(|error| write_error(&marker, error))?;
    Ok(Some(pages))
}

/// Adds pages of npm's documentation, which was written in Markdown: its code blocks are `pre` with `code`, with
/// languages.
fn copy_npm_pages(modules: &Path, pages: &Path) -> Result<(), String> {
    for folder in ["commands", "configuring-npm", "using-npm"] {
        let folder = modules.join("npm/docs/output").join(folder);
        let entries =
            fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        files.sort();
        for file in files.iter().step_by(NPM_PAGE_STEP) {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            let copied = fs::copy(file, pages.join(format!("npm-{name}")));
            copied.map_err(|error| format!("{}: {error}", file.display()))?;
        }
    }
    Ok(())
}

/// Checks that nothing is worse than with turndown. Returns a summary.
fn check(report: &Value) -> Result<String, String> {
    let pages = report["pages"].as_u64().unwrap_or(0);
    if pages < MIN_PAGES {
        return Err(format!("there are only {pages} pages"));
    }
    let (mut summary, mut worse) = (Vec::new(), Vec::new());
    for (measure, counts) in report["totals"].as_object().into_iter().flatten() {
        let count = |name: &str, at: usize| counts[name][at].as_u64().unwrap_or(0);
        let (ours, theirs, all) = (count("helve", 0), count("turndown", 0), count("helve", 1));
        summary.push(format!(
            "{measure} {} (turndown {})",
            percent(ours, all),
            percent(theirs, all)
        ));
        if ours < theirs || COMPLETE.contains(&measure.as_str()) && ours < all {
            worse.push(format!("{measure}: {ours} of {all}, turndown {theirs}"));
        }
    }
    if worse.is_empty() {
        return Ok(format!("{pages} pages: {}", summary.join(", ")));
    }
    let misses: Vec<&str> =
        report["misses"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    Err(format!("{}\n{}", worse.join("\n"), misses.join("\n")))
}

fn percent(part: u64, all: u64) -> String {
    format!("{:.2} %", 100.0 * part as f64 / all.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_worse_measure_is_reported() {
        let report = |ours: u64, pages: u64| json!({"pages": pages, "totals": {"links": {"helve": [ours, 10], "turndown": [9, 10]}}, "misses": ["a.html: links"]});
        let good = check(&report(9, 60)).unwrap();
        assert_eq!(good, "60 pages: links 90.00 % (turndown 90.00 %)");
        assert_eq!(check(&report(8, 60)).unwrap_err(), "links: 8 of 10, turndown 9\na.html: links");
        assert_eq!(check(&report(9, 59)).unwrap_err(), "there are only 59 pages");
        let cells = json!({"pages": 60, "totals": {"table cells": {"helve": [9, 10], "turndown": [1, 10]}}});
        assert!(check(&cells).is_err());
    }
}
