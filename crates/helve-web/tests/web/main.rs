//! Tests with real servers on loopback.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "the tests are servers themselves, and a test that cannot be set up has failed"
)]

mod addresses;
mod bodies;
mod searches;
mod server;
mod tls;
