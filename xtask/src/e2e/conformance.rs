//! The MCP conformance suite (npm package `@modelcontextprotocol/conformance`), for Helve as server and as client.

mod client;
mod server;

use std::path::PathBuf;

use super::npm;

pub(super) use client::run as as_client;
pub(super) use server::run as as_server;

const PACKAGE: &str = "@modelcontextprotocol/conformance@0.1.16";

/// Installs the suite and the node version it needs. Returns `None` if npm is not installed.
fn install() -> Result<Option<PathBuf>, String> {
    if !npm::is_installed() {
        return Ok(None);
    }
    npm::install(&[npm::NODE, PACKAGE]).map(Some)
}
