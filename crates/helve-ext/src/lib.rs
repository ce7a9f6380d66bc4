//! What users bring along: their configuration, with the agents and MCP servers it names.

pub mod config;
#[cfg(feature = "servers")]
pub mod servers;
