//! User-provided extensions: configuration files, and the agents and MCP servers they name.

pub mod config;
#[cfg(feature = "servers")]
pub mod servers;
