//! Files changed through the whole of Helve, on a real machine: what must hold whatever happens.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
#![expect(
    clippy::disallowed_methods,
    reason = "these tests need real folders, files and processes"
)]

mod chosen;
mod faults;
mod hostile;
mod names;
mod processes;
mod stage;
mod undo;
