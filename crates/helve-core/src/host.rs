//! A host: one machine with its environment and home folder.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::machine::Machine;
use crate::process::Processes;

/// A machine to work on. Commands are judged by its files and run on it.
#[derive(Clone)]
pub struct Host {
    machine: Arc<dyn Machine>,
    environment: Vec<(OsString, OsString)>,
    home: Option<PathBuf>,
}

impl Host {
    /// Makes a host. `environment` holds the variables of the machine, from which the environment of commands is built;
    /// `home` is what `~` stands for.
    pub fn new(
        machine: Arc<dyn Machine>,
        environment: Vec<(OsString, OsString)>,
        home: Option<PathBuf>,
    ) -> Self {
        Self { machine, environment, home }
    }

    pub fn machine(&self) -> &Arc<dyn Machine> {
        &self.machine
    }

    /// Returns the operations on processes; `None` if no process can be started.
    pub fn processes(&self) -> Option<Arc<dyn Processes>> {
        self.machine.processes()
    }

    pub fn environment(&self) -> &[(OsString, OsString)] {
        &self.environment
    }

    pub fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }
}
