//! Programs of npm, each in a folder of its own.

use std::path::PathBuf;
use std::process::Command;

use super::{FETCH_LIMIT, shelf};
use crate::process;

/// The newest node that these programs ask for, as npm has it.
pub(super) const NODE: &str = "node@22.23.3";

/// The folder `node_modules` with these packages in it.
pub(super) fn install(packages: &[&str]) -> Result<PathBuf, String> {
    let name: String = packages
        .join("+")
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' })
        .collect();
    let folder = shelf(&format!("npm{name}"));
    let modules = folder.join("node_modules");
    let done = folder.join("done");
    if done.exists() {
        return Ok(modules);
    }
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut install = Command::new("npm");
    install.args(["install", "--silent", "--no-fund", "--no-audit", "--prefix"]).arg(&folder);
    process::finish(install.args(packages), FETCH_LIMIT)?.good("npm install")?;
    std::fs::write(&done, "").map_err(|error| format!("{}: {error}", done.display()))?;
    Ok(modules)
}

/// Whether npm can be started at all.
pub(super) fn is_there() -> bool {
    process::finish(Command::new("npm").arg("--version"), FETCH_LIMIT).is_ok()
}

/// The `PATH` with npm's node first.
pub(super) fn path(modules: &std::path::Path) -> Result<std::ffi::OsString, String> {
    let own = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(modules.join("node/bin")).chain(std::env::split_paths(&own));
    std::env::join_paths(folders).map_err(|error| format!("PATH: {error}"))
}
