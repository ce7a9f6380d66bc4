//! Judges commands, then runs them, for one call.
//!
//! [`Programs::prepare`] reads a script and works out what it may do (`judge`); nothing runs. With the grant,
//! [`Programs::start`] runs exactly that script (`run`).

use std::sync::Arc;
use std::time::Duration;

use crate::call::CallRef;
use crate::process::Processes;
use crate::session::Session;
use crate::shell::{CommandTimeouts, Leftovers, Shell};

mod judge;
mod repository;
mod run;

pub use judge::{BadScript, PreparedCommand, control_request, input_request};
pub use run::{RunOptions, RunningCommand, StartError};

/// One call's view of commands and the processes they start.
pub struct Programs {
    pub(crate) session: Arc<Session>,
    pub(crate) call: Arc<CallRef>,
    /// How long each hook may take.
    pub(crate) hook_timeout: Duration,
}

impl Programs {
    /// How long commands may take here; `None` if none can be run.
    pub fn timeouts(&self) -> Option<CommandTimeouts> {
        self.shell().map(|shell| shell.timeouts)
    }

    pub fn leftovers(&self) -> Leftovers {
        self.shell().map_or(Leftovers::End, |shell| shell.leftovers)
    }

    fn shell(&self) -> Option<&Shell> {
        self.session.workspace.shell()
    }

    fn processes(&self) -> Option<Arc<dyn Processes>> {
        self.session.workspace.host().processes()
    }
}
