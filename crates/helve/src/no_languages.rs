//! Replaces `languages` in builds without the feature `languages`. All functions do nothing.

use std::sync::Arc;

use helve_core::shell::Leftovers;
use helve_core::store::Store;
use helve_core::{AfterWrite, AnyTool};
use helve_ext::config::Config;

use helve_tools::EditSettings;

use crate::program_context::ProgramContext;
use crate::trust::TrustState;

pub(crate) struct LanguageServers;

pub(crate) fn languages(
    _context: &ProgramContext<'_>,
    _store: &Arc<dyn Store>,
) -> Arc<LanguageServers> {
    Arc::new(LanguageServers)
}

pub(crate) fn after_write(
    _languages: &Arc<LanguageServers>,
    _config: &Config,
    _leftovers: Leftovers,
) -> Vec<Arc<dyn AfterWrite>> {
    Vec::new()
}

pub(crate) fn tools(
    _languages: &Arc<LanguageServers>,
    _config: &Config,
    _trust: TrustState,
    _settings: EditSettings,
) -> Vec<Arc<dyn AnyTool>> {
    Vec::new()
}

impl LanguageServers {
    pub(crate) async fn close(&self) {}
}
