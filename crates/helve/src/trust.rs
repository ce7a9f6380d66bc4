//! Finds out whether the configuration of a folder is trusted.

use std::path::Path;

use helve_core::store::Store;
use helve_ext::config::{Config, ConfigLayer};

/// Whether the configuration of a folder is trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustState {
    /// The folder has no configuration and no instruction file.
    NothingToTrust,
    /// Nobody has trusted the configuration yet: its rules can only forbid more, and no program it defines is started.
    Untrusted,
    /// The configuration has changed since it was trusted.
    Changed,
    Trusted,
}

/// Returns whether a person trusted the current configuration of the folder. Does not read the store if there is
/// nothing to trust.
pub(crate) async fn trust_state(
    store: &dyn Store,
    root: &Path,
    config: &Config,
    has_scripts: bool,
) -> TrustState {
    let has_config = config.sources.iter().any(|file| file.layer == ConfigLayer::Project);
    let has_instructions =
        config.instructions.iter().any(|file| file.layer == ConfigLayer::Project);
    if !has_config && !has_instructions && !has_scripts {
        return TrustState::NothingToTrust;
    }
    match store.trusted_digest(root).await {
        Ok(Some(digest)) if digest == config.digest => TrustState::Trusted,
        Ok(Some(_)) => TrustState::Changed,
        Ok(None) | Err(_) => TrustState::Untrusted,
    }
}
