//! The machine this process runs on: its files and processes. No other crate accesses the files of a workspace.

#![cfg_attr(
    test,
    expect(clippy::disallowed_methods, reason = "the tests work on real directories")
)]

mod allocator;
mod blocking;
pub mod commit;
pub mod confine;
mod errors;
mod find;
mod list;
mod local;
mod locate;
mod open;
mod process;
mod read;
mod restricted;
mod search;
mod walk;
mod window;

pub use allocator::keep_freed_memory;
#[cfg(feature = "faults")]
pub use commit::faults::InjectedFaults;
pub use local::LocalMachine;
pub use process::{KeeperCommand, LocalProcesses, ProcessSettings, keeper};

#[cfg(test)]
mod fixture;
