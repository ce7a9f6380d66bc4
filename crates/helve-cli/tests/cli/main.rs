//! Tests of the `helve` program: arguments in; output, errors and exit code out.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot be set up has failed"
)]
#![expect(clippy::disallowed_methods, reason = "these tests start the real program on real files")]

#[cfg(target_os = "linux")]
mod agent_data;
mod clock;
mod config;
mod conversation;
mod data_folder;
mod install;
mod large;
mod mcp;
mod outside;
mod providers;
mod pty;
mod reading;
mod repository;
mod run;
mod sandbox;
mod search_path;
mod serve;
mod servers;
mod shell;
mod stage;
mod terminal;
mod trees;
mod why;
