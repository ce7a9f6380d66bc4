//! Judges commands, then runs them, for one call.
//!
//! [`Programs::prepare`] determines what a script may do, without running it (`judge`). With a grant,
//! [`Programs::start`] runs exactly that script (`run`).

use std::sync::Arc;
use std::time::Duration;

use crate::call::CallRef;
use crate::confine::Sandbox;
use crate::process::Processes;
use crate::session::Session;
use crate::shell::{AUTO_BACKGROUND, CommandTimeouts, Leftovers, Shell};

mod judge;
mod repository;
mod run;
mod search_path;
mod trees;
mod unreadable;

pub use judge::{BadScript, PreparedCommand, control_request, input_request};
pub use run::{RunOptions, RunningCommand, SandboxUse, StartError};

/// Judges and runs commands for one call, and controls the processes that they start.
pub struct Programs {
    pub(crate) session: Arc<Session>,
    pub(crate) call: Arc<CallRef>,
    /// How long each hook may take.
    pub(crate) hook_timeout: Duration,
}

impl Programs {
    /// Returns how long commands may take; `None` if the workspace cannot run commands.
    pub fn timeouts(&self) -> Option<CommandTimeouts> {
        self.shell().map(|shell| shell.timeouts)
    }

    /// Returns what happens to processes that a command leaves running.
    pub fn leftovers(&self) -> Leftovers {
        self.shell().map_or(Leftovers::End, |shell| shell.leftovers)
    }

    /// Whether commands run in a sandbox.
    pub fn has_sandbox(&self) -> bool {
        self.shell().is_some_and(|shell| shell.sandbox != Sandbox::Off)
    }

    /// Whether a command that reaches the default timeout is moved to the background instead of being ended.
    pub fn auto_background(&self) -> bool {
        self.leftovers() == Leftovers::Keep && self.session.caller.flags.contains(AUTO_BACKGROUND)
    }

    fn shell(&self) -> Option<&Shell> {
        self.session.workspace.shell()
    }

    fn processes(&self) -> Option<Arc<dyn Processes>> {
        self.session.workspace.host().processes()
    }
}
