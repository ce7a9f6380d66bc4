//! Changes files through the whole library on the real machine, and checks what must always hold.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
#![expect(
    clippy::disallowed_methods,
    reason = "these tests need real folders, files and processes"
)]

mod advice;
mod faults;
mod hostile;
mod links;
mod model_edits;
mod names;
mod parallel;
mod previews;
mod processes;
mod sessions;
mod settings;
mod stage;
mod undo;
