//! Runs the generated edits of the library's tests with a large count.

use super::Context;
use crate::process;

pub(super) fn run(context: &Context<'_>) -> Result<String, String> {
    let status = process::cargo("test --release --quiet -p helve --test files -- model_edits")
        .env("HELVE_EDIT_CASES", context.count.to_string())
        .env("HELVE_EDIT_SEED", context.seed.to_string())
        .status()
        .map_err(|error| format!("cargo: {error}"))?;
    if status.success() {
        Ok("faulty edits were refused, the others applied exactly".into())
    } else {
        Err("see above".into())
    }
}
