//! Programs on the real machine: nothing hangs, nothing is left behind.
#![expect(clippy::disallowed_methods, reason = "the tests work on real folders and processes")]
#![expect(clippy::unwrap_used, reason = "tests say what they expect")]

mod again;
mod confined;
mod ending;
mod gone;
mod limits;
mod others;
mod output;
mod stage;
mod starting;
mod terminal;
mod waiting;
