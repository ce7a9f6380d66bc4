//! Replaces `scripts` in builds without the feature `scripts`. All functions do nothing.

use std::path::Path;
use std::sync::Arc;

use helve_agent::hook::ChatHook;
use helve_agent::item::MessagePart;
use helve_core::{Events, Hook, Media, Registry, ToolSet};
use helve_ext::config::{Config, ConfigPaths, PluginSettings};

use crate::program_context::ProgramContext;

pub(crate) struct Scripts;

pub(crate) struct ScriptFiles;

pub(crate) fn find(_config: &Config, _paths: &ConfigPaths) -> ScriptFiles {
    ScriptFiles
}

impl ScriptFiles {
    pub(crate) fn add_to_digest(&self, _config: &mut Config) -> bool {
        false
    }
}

pub(crate) fn set_up_scripts(
    _files: ScriptFiles,
    _context: &ProgramContext<'_>,
    _registry: &Arc<Registry>,
    _media: Arc<dyn Media>,
) -> Arc<Scripts> {
    Arc::new(Scripts)
}

pub(crate) async fn plugin_settings(
    _scripts: &Scripts,
    _config: &Config,
    _root: &Path,
) -> Option<PluginSettings> {
    None
}

pub(crate) fn chat_hook(_scripts: &Arc<Scripts>) -> Option<Arc<dyn ChatHook>> {
    None
}

pub(crate) async fn run_definition_hooks(
    _scripts: &Scripts,
    _registry: &Registry,
    _tools: ToolSet,
) {
}

pub(crate) async fn before_command(
    _scripts: &Scripts,
    _session: &str,
    _command: (&str, &str),
    _parts: &mut Vec<MessagePart>,
) -> Result<(), String> {
    Ok(())
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
