//! Runs the property tests of requests (crate helve-agent) with a large count, as a release build.

use super::Context;
use crate::process;

pub(super) fn run(context: &Context<'_>) -> Result<String, String> {
    let status = process::cargo("test --release --quiet -p helve-agent --lib -- every_request")
        .env("HELVE_TRANSCRIPTS", context.count.to_string())
        .status()
        .map_err(|error| format!("cargo: {error}"))?;
    if status.success() {
        Ok("every request was valid and began with the previous one".into())
    } else {
        Err("see above".into())
    }
}
