//! One folder on one machine, shared by all its sessions.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::hook::Hook;
use crate::machine::Machine;
use crate::registry::Registry;

/// What the sessions of a folder share.
pub struct Workspace {
    root: PathBuf,
    home: Option<PathBuf>,
    machine: Arc<dyn Machine>,
    /// A plugin comes with a folder: it sees the calls of that folder's sessions only.
    hooks: Vec<Arc<dyn Hook>>,
    pub registry: Arc<Registry>,
}

impl Workspace {
    /// `root` must be absolute with every link followed; `home` is what `~` stands for.
    pub fn new(
        root: PathBuf,
        home: Option<PathBuf>,
        machine: Arc<dyn Machine>,
        hooks: Vec<Arc<dyn Hook>>,
    ) -> Arc<Self> {
        Arc::new(Self { root, home, machine, hooks, registry: Arc::default() })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    pub(crate) fn machine(&self) -> &Arc<dyn Machine> {
        &self.machine
    }

    pub(crate) fn hooks(&self) -> &[Arc<dyn Hook>] {
        &self.hooks
    }
}
