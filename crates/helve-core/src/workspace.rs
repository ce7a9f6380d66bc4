//! One folder on one machine, shared by all its sessions.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::after::AfterWrite;
use crate::hook::Hook;
use crate::journal::{Change, Journal};
use crate::machine::Machine;
use crate::process::Confinement;
use crate::programs::Shell;
use crate::registry::Registry;
use crate::store::StoreError;

/// What the sessions of a folder share.
pub struct Workspace {
    root: PathBuf,
    home: Option<PathBuf>,
    machine: Arc<dyn Machine>,
    journal: Arc<dyn Journal>,
    neighbours: Neighbours,
    shell: Option<Shell>,
    pub registry: Arc<Registry>,
}

/// Who sees what happens in a folder. A plugin comes with a folder and sees that folder's calls only.
#[derive(Default)]
pub struct Neighbours {
    pub hooks: Vec<Arc<dyn Hook>>,
    pub after: Vec<Arc<dyn AfterWrite>>,
}

impl Workspace {
    /// `root` must be absolute with every link followed; `home` is what `~` stands for; without a
    /// `shell` no programs are run.
    pub fn new(
        root: PathBuf,
        home: Option<PathBuf>,
        machine: Arc<dyn Machine>,
        journal: Arc<dyn Journal>,
        neighbours: Neighbours,
        shell: Option<Shell>,
    ) -> Arc<Self> {
        let registry = Arc::default();
        Arc::new(Self { root, home, machine, journal, neighbours, shell, registry })
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

    /// What confinement programs can have here.
    pub async fn confinement(&self) -> Confinement {
        match &self.shell {
            Some(shell) => shell.processes.confinement().await,
            None => Confinement::default(),
        }
    }

    pub(crate) fn shell(&self) -> Option<&Shell> {
        self.shell.as_ref()
    }

    pub(crate) fn hooks(&self) -> &[Arc<dyn Hook>] {
        &self.neighbours.hooks
    }

    pub(crate) fn after(&self) -> &[Arc<dyn AfterWrite>] {
        &self.neighbours.after
    }

    /// What calls changed, to be looked at and undone.
    pub fn journal(&self) -> &Arc<dyn Journal> {
        &self.journal
    }

    /// What a call changed, with the content before and after; the last change here, unless named.
    pub async fn changed(&self, call: Option<&str>) -> Result<Option<Change>, StoreError> {
        match call {
            Some(call) => self.journal.change(call).await,
            None => match self.journal.entries(&self.root, 1).await?.first() {
                Some(newest) => self.journal.change(&newest.call).await,
                None => Ok(None),
            },
        }
    }
}
