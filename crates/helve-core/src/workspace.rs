//! A workspace: one folder on one host, shared by all its sessions.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::OnceCell;

use crate::after::AfterWrite;
use crate::hook::Hook;
use crate::host::Host;
use crate::journal::{Journal, RecordedChange};
use crate::process::SandboxSupport;
use crate::shell::{SearchFolder, Shell};
use crate::store::StoreError;
use crate::web::{PageCache, Web};

/// What the sessions of a folder share.
pub struct Workspace {
    root: PathBuf,
    host: Host,
    journal: Arc<dyn Journal>,
    extensions: Extensions,
    shell: Option<Shell>,
    /// The folders in which the shell looks for programs. Set when they are first looked up.
    search_path: OnceCell<Arc<[SearchFolder]>>,
    page_cache: PageCache,
}

/// The hooks of a workspace, what runs after a write (formatters and language servers), and its web client. Each is
/// used only for calls of its own workspace.
#[derive(Default)]
pub struct Extensions {
    pub hooks: Vec<Arc<dyn Hook>>,
    pub after_write: Vec<Arc<dyn AfterWrite>>,
    /// The web client; `None` if no tool can reach the web.
    pub web: Option<Arc<dyn Web>>,
}

impl Workspace {
    /// Makes a workspace. `root` must be absolute, with every link followed. Without a `shell`, no command can be run.
    pub fn new(
        root: PathBuf,
        host: Host,
        journal: Arc<dyn Journal>,
        extensions: Extensions,
        shell: Option<Shell>,
    ) -> Arc<Self> {
        let (search_path, page_cache) = (OnceCell::new(), PageCache::default());
        Arc::new(Self { root, host, journal, extensions, shell, search_path, page_cache })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Returns which sandboxing is available for commands.
    pub async fn sandbox_support(&self) -> SandboxSupport {
        match self.host.processes() {
            Some(processes) => processes.sandbox_support().await,
            None => SandboxSupport::default(),
        }
    }

    pub(crate) fn shell(&self) -> Option<&Shell> {
        self.shell.as_ref()
    }

    pub(crate) fn search_path(&self) -> &OnceCell<Arc<[SearchFolder]>> {
        &self.search_path
    }

    pub(crate) fn web(&self) -> Option<&Arc<dyn Web>> {
        self.extensions.web.as_ref()
    }

    pub(crate) fn page_cache(&self) -> &PageCache {
        &self.page_cache
    }

    pub(crate) fn hooks(&self) -> &[Arc<dyn Hook>] {
        &self.extensions.hooks
    }

    pub(crate) fn after_write(&self) -> &[Arc<dyn AfterWrite>] {
        &self.extensions.after_write
    }

    /// The journal, for listing and undoing changes.
    pub fn journal(&self) -> &Arc<dyn Journal> {
        &self.journal
    }

    /// Returns what the call with this id changed, with the content before and after. If `call` is `None`, returns the
    /// last change in the workspace.
    pub async fn recorded_change(
        &self,
        call: Option<&str>,
    ) -> Result<Option<RecordedChange>, StoreError> {
        match call {
            Some(call) => self.journal.change(call).await,
            None => match self.journal.changes(&self.root, 1).await?.first() {
                Some(newest) => self.journal.change(&newest.call).await,
                None => Ok(None),
            },
        }
    }

    /// Returns what a call of the given session changed, with the content before and after.
    pub async fn change_in_session(
        &self,
        session: &str,
        call: &str,
    ) -> Result<Option<RecordedChange>, StoreError> {
        self.journal.change_in_session(session, call).await
    }
}
