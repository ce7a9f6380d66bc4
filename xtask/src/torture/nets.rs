//! The safety nets of the shell decision, large, on a release build; they print their own progress.

use std::process::{Command, Stdio};

use super::Ground;
use crate::repository;

pub(super) fn traced(_: &Ground<'_>) -> Result<String, String> {
    run(&["traced".into(), "all".into()])
}

pub(super) fn mutants(ground: &Ground<'_>) -> Result<String, String> {
    run(&["mutants".into(), ground.count.to_string(), ground.seed.to_string()])
}

pub(super) fn flows(ground: &Ground<'_>) -> Result<String, String> {
    run(&["flows".into(), ground.count.to_string(), ground.seed.to_string()])
}

pub(super) fn bytes(ground: &Ground<'_>) -> Result<String, String> {
    run(&["bytes".into(), ground.count.to_string(), ground.seed.to_string()])
}

fn run(words: &[String]) -> Result<String, String> {
    let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["run", "--release", "--quiet", "-p", "helve-nets", "--"])
        .args(words)
        .current_dir(repository::root())
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("cargo: {error}"))?;
    if status.success() {
        Ok("nothing was done that was not listed".into())
    } else {
        Err("see above".into())
    }
}
