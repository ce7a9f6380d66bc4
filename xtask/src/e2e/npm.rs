//! Installs npm packages, each set in its own folder.

use std::path::PathBuf;
use std::process::Command;

use super::{DOWNLOAD_LIMIT, download_folder};
use crate::process;

/// The package with the node version that the other packages need.
pub(super) const NODE: &str = "node@22.23.3";

/// Installs packages and returns their `node_modules` folder.
pub(super) fn install(packages: &[&str]) -> Result<PathBuf, String> {
    install_with(packages, &[])
}

/// Installs a package that is not trusted: none of its scripts run. Returns the `node_modules` folder.
pub(super) fn install_without_scripts(package: &str) -> Result<PathBuf, String> {
    install_with(&[package], &["--ignore-scripts"])
}

fn install_with(packages: &[&str], options: &[&str]) -> Result<PathBuf, String> {
    let name: String = packages
        .join("+")
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' })
        .collect();
    let folder = download_folder(&format!("npm{name}"));
    let modules = folder.join("node_modules");
    let marker = folder.join("done");
    if marker.exists() {
        return Ok(modules);
    }
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--silent", "--no-fund", "--no-audit", "--prefix"]).arg(&folder);
    process::run(npm.args(options).args(packages), DOWNLOAD_LIMIT)?.success("npm install")?;
    std::fs::write(&marker, "").map_err(|error| format!("{}: {error}", marker.display()))?;
    Ok(modules)
}

pub(super) fn is_installed() -> bool {
    process::run(Command::new("npm").arg("--version"), DOWNLOAD_LIMIT).is_ok()
}

/// Returns `PATH` with the installed node first.
pub(super) fn path(modules: &std::path::Path) -> Result<std::ffi::OsString, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(modules.join("node/bin")).chain(std::env::split_paths(&path));
    std::env::join_paths(folders).map_err(|error| format!("PATH: {error}"))
}
