//! Tests of the core as a whole: engine, gate, hooks, sessions and events, with small tools.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod bounds;
mod cancelling;
mod changing;
mod children;
mod denies;
mod events;
mod hooks;
mod nesting;
mod stage;
mod web;
