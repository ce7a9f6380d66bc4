//! Whether the configuration of a folder is trusted.

use std::path::Path;

use helve_core::store::Store;
use helve_ext::config::{Config, ConfigLayer};

/// Whether the configuration of a folder is trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustState {
    /// The folder has no configuration.
    NothingToTrust,
    /// Nobody trusted it yet: its rules only narrow, and nothing it defines is executed.
    Untrusted,
    /// It was trusted, but its configuration changed since.
    Changed,
    Trusted,
}

/// Returns whether a person trusted the current configuration of the folder. Asks the store only if there is one.
pub(crate) async fn trust_state(store: &dyn Store, root: &Path, config: &Config) -> TrustState {
    let has_config = config.sources.iter().any(|file| file.layer == ConfigLayer::Project);
    if !has_config {
        return TrustState::NothingToTrust;
    }
    match store.trusted(root).await {
        Ok(Some(trusted)) if trusted == config.digest => TrustState::Trusted,
        Ok(Some(_)) => TrustState::Changed,
        Ok(None) | Err(_) => TrustState::Untrusted,
    }
}
