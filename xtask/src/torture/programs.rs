//! Programs that do not want to end: each must be gone with all it started, also when Helve is killed.

use std::process::Command;
use std::time::Duration;

use super::Ground;
use crate::{process, repository};

/// A thousand of each take a few minutes.
const LIMIT: Duration = Duration::from_secs(3600);

pub(super) fn run(ground: &Ground) -> Result<String, String> {
    // `run` takes one program, and the keeper has to be there beside it.
    let mut keeper = Command::new("cargo");
    keeper.args(["build", "--quiet", "--release", "-p", "helve-machine", "--bin", "helve-keeper"]);
    keeper.current_dir(repository::root());
    process::finish(&mut keeper, LIMIT)?.good("cargo build")?;
    let mut command = Command::new("cargo");
    command.args(["run", "--quiet", "--release", "-p", "helve-machine", "--example", "ending"]);
    command.args(["--", &ground.count.to_string()]).current_dir(repository::root());
    let said = process::finish(&mut command, LIMIT)?.good("programs that do not want to end")?;
    Ok(said.trim_end().replace('\n', "\n   "))
}
