//! Tests that run real programs: nothing hangs, nothing is left behind. A warden is the process that watches over a
//! program, a keeper the process that forks wardens.
#![expect(clippy::disallowed_methods, reason = "the tests use real folders and processes")]
#![expect(clippy::unwrap_used, reason = "tests may panic")]

mod confined;
mod ending;
mod fixture;
mod helve_exit;
mod limits;
mod other_processes;
mod output;
mod pipes;
mod reuse;
mod starting;
mod terminal;
mod waiting;
