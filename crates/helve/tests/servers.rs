//! MCP servers that behave and that do not: what a call to them says, and that nothing else suffers.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot be set up has failed"
)]
#![expect(clippy::disallowed_methods, reason = "these tests start real servers on real files")]

#[path = "servers/approval.rs"]
mod approval;
#[path = "servers/faults.rs"]
mod faults;
#[path = "servers/remote.rs"]
mod remote;
#[path = "servers/stage.rs"]
mod stage;
#[path = "servers/trust.rs"]
mod trust;
#[path = "servers/usual.rs"]
mod usual;
