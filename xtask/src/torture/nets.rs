//! Runs the safety nets of the shell decision (crate helve-nets) with large counts, as a release build. They print
//! their own progress.

use super::Context;
use crate::process;

/// Runs every program with each flag that counts as harmless, or a sample with `--short`.
pub(super) fn traced(context: &Context<'_>) -> Result<String, String> {
    run(if context.options.short { "known-scripts" } else { "known-scripts all" })
}

pub(super) fn mutants(context: &Context<'_>) -> Result<String, String> {
    run(&format!("mutants {} {}", context.count, context.seed))
}

pub(super) fn data_flow(context: &Context<'_>) -> Result<String, String> {
    run(&format!("data-flow {} {}", context.count, context.seed))
}

pub(super) fn random_texts(context: &Context<'_>) -> Result<String, String> {
    run(&format!("random-texts {} {}", context.count, context.seed))
}

fn run(arguments: &str) -> Result<String, String> {
    let status = process::cargo(&format!("run --release --quiet -p helve-nets -- {arguments}"))
        .status()
        .map_err(|error| format!("cargo: {error}"))?;
    if status.success() { Ok("no violation was found".into()) } else { Err("see above".into()) }
}
