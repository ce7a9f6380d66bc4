//! Programs that are hard to end. Each must end with all its children, even if Helve is killed.

use std::time::Duration;

use super::Context;
use crate::process::{self, cargo};

/// Time limit. A thousand programs of each kind take a few minutes.
const TIME_LIMIT: Duration = Duration::from_secs(3600);

pub(super) fn run(context: &Context) -> Result<String, String> {
    // The example expects the keeper next to it, and `cargo run` builds only one program.
    let mut keeper = cargo("build --quiet --release -p helve-machine --bin helve-keeper");
    process::run(&mut keeper, TIME_LIMIT)?.success("cargo build")?;
    let line = format!(
        "run --quiet --release -p helve-machine --example end_programs -- {}",
        context.count
    );
    let printed = process::run(&mut cargo(&line), TIME_LIMIT)?.success("example `end_programs`")?;
    Ok(printed.trim_end().replace('\n', "\n   "))
}
