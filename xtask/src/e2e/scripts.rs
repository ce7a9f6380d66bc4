//! Runs the tests of custom tools and plugins on bun and on every supported node.

use std::process::Command;
use std::time::Duration;

use super::{E2eResult, npm};
use crate::helve::Helve;
use crate::{process, repository};

/// npm package, and its program relative to `node_modules`.
const RUNTIMES: &[(&str, &str)] = &[
    ("bun@1.4.4", ".bin/bun"),
    ("node@20", "node/bin/node"),
    ("node@22", "node/bin/node"),
    ("node@24", "node/bin/node"),
];

const LIMIT: Duration = Duration::from_secs(900);

pub(super) fn run(_: &Helve) -> Result<E2eResult, String> {
    if !npm::is_installed() {
        return Ok(E2eResult::Skipped("npm is not installed".into()));
    }
    for (package, program) in RUNTIMES {
        let program = npm::install(&[package])?.join(program);
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(["test", "--quiet", "--package", "helve-cli", "--test", "scripts"]);
        cargo.current_dir(repository::root()).env("HELVE_TEST_JAVASCRIPT", program);
        process::run(&mut cargo, LIMIT)?.success(package)?;
    }
    let names: Vec<&str> = RUNTIMES.iter().map(|(package, _)| *package).collect();
    Ok(E2eResult::Passed(format!(
        "the tests of custom tools and plugins pass on {}",
        names.join(", ")
    )))
}
