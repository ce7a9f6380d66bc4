//! Changes to files through all of Helve, on the real machine: what must always hold.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
#![expect(
    clippy::disallowed_methods,
    reason = "these tests need real folders, files and processes"
)]

mod faults;
mod hostile;
mod names;
mod processes;
mod settings;
mod stage;
mod undo;
