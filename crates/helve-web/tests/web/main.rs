//! Tests with real servers on loopback.
#![expect(clippy::disallowed_methods, reason = "the tests are servers themselves")]

mod addresses;
mod bodies;
mod searches;
mod server;
mod tls;
