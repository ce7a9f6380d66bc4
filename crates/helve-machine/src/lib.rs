//! Effects: the machine this process runs on. The only crate that touches the files of a workspace.

#![cfg_attr(test, expect(clippy::disallowed_methods, reason = "the tests work on real folders"))]

pub mod commit;
pub mod confine;
mod errors;
mod find;
mod hop;
mod list;
mod local;
mod locate;
mod open;
mod process;
mod search;
mod walk;
mod whole;
mod window;

#[cfg(feature = "faults")]
pub use commit::faults::Faults;
pub use local::Local;
pub use process::{Keeper, Programs, Settings, keeper};

#[cfg(test)]
mod fixture;
