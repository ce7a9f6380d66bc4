//! `@modelcontextprotocol/conformance` of npm: the protocol's own judgement of both our ends.

mod client;
mod server;

use std::path::PathBuf;

use super::npm;

pub(super) use client::run as as_client;
pub(super) use server::run as as_server;

const PACKAGE: &str = "@modelcontextprotocol/conformance@0.1.16";

/// The packages, with the node that the suite needs. `None` where there is no npm to fetch them.
fn modules() -> Result<Option<PathBuf>, String> {
    if !npm::is_there() {
        return Ok(None);
    }
    npm::install(&[npm::NODE, PACKAGE]).map(Some)
}
