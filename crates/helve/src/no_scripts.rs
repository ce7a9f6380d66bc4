//! Replaces `scripts` in builds without the feature `scripts`. All functions do nothing.

use std::path::Path;
use std::sync::Arc;

use helve_agent::hook::ChatHook;
use helve_core::shell::Shell;
use helve_core::{Events, Hook, Host, Media, Registry};
use helve_ext::config::{Config, ConfigPaths};

use crate::trust::TrustState;

pub(crate) struct Scripts;

pub(crate) struct ScriptFiles;

#[expect(dead_code, reason = "the fields are read only with the feature `scripts`")]
pub(crate) struct ScriptsContext<'a> {
    pub(crate) host: &'a Host,
    pub(crate) shell: Option<&'a Shell>,
    pub(crate) root: &'a Path,
    pub(crate) data: &'a Path,
    pub(crate) config: &'a Config,
    pub(crate) trust: TrustState,
}

impl<'a> ScriptsContext<'a> {
    pub(crate) fn new(
        (host, shell): (&'a Host, Option<&'a Shell>),
        (root, data): (&'a Path, &'a Path),
        config: &'a Config,
        trust: TrustState,
    ) -> Self {
        Self { host, shell, root, data, config, trust }
    }
}

pub(crate) fn find(_config: &Config, _paths: &ConfigPaths) -> ScriptFiles {
    ScriptFiles
}

impl ScriptFiles {
    pub(crate) fn add_to_digest(&self, _digest: &mut String) -> bool {
        false
    }
}

pub(crate) fn scripts(
    _files: ScriptFiles,
    _context: &ScriptsContext<'_>,
    _registry: &Arc<Registry>,
    _media: Arc<dyn Media>,
) -> Arc<Scripts> {
    Arc::new(Scripts)
}

pub(crate) fn chat_hook(_scripts: &Arc<Scripts>) -> Option<Arc<dyn ChatHook>> {
    None
}

pub(crate) fn send_events(_scripts: &Arc<Scripts>, _events: &Events) {}

impl Scripts {
    pub(crate) fn hooks(&self) -> Vec<Arc<dyn Hook>> {
        Vec::new()
    }

    pub(crate) async fn load(&self) {}

    pub(crate) async fn send_event(&self, _event: &serde_json::Value) {}

    pub(crate) async fn close(&self) {}
}
