//! Finds out whether the configuration of a folder is trusted.

use std::fmt;
use std::path::Path;

use helve_core::store::Store;
use helve_ext::config::{Config, ConfigLayer};

/// Whether the configuration of a folder is trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustState {
    /// The folder has no configuration, instruction files, custom tools or plugins.
    NothingToTrust,
    /// Nobody has trusted the configuration yet. Its rules can only forbid more, and programs that it defines are not
    /// started.
    Untrusted,
    /// The configuration has changed since it was trusted.
    Changed,
    Trusted,
}

/// How a file differs from the one that was trusted. Paths are relative to the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrustChange {
    Added(String),
    Changed(String),
    Removed(String),
}

impl fmt::Display for TrustChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, path) = match self {
            TrustChange::Added(path) => ("added", path),
            TrustChange::Changed(path) => ("changed", path),
            TrustChange::Removed(path) => ("removed", path),
        };
        write!(f, "{what} {path}")
    }
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
