//! Calls tools of well-behaved and misbehaving MCP servers, and checks that nothing else is affected.
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
#[path = "servers/features.rs"]
mod features;
#[path = "servers/remote.rs"]
mod remote;
#[path = "servers/stage.rs"]
mod stage;
#[path = "servers/trust.rs"]
mod trust;
