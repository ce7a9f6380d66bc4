//! Reads the configuration of a folder, and applies the changes that plugins make to it.

use std::path::Path;

use helve_core::store::Store;
use helve_ext::config::{Config, ConfigPaths, Disk, Trust, gather, gather_with_plugins};

#[cfg(not(feature = "scripts"))]
use crate::no_scripts as scripts;
#[cfg(feature = "scripts")]
use crate::scripts;
use crate::trust::{TrustState, trust_state};
use scripts::ScriptFiles;

/// The configuration of a folder, before plugins change it.
pub(crate) struct ConfigBeforePlugins {
    pub(crate) config: Config,
    pub(crate) trust: TrustState,
    /// The digest of the project's files, without those of custom tools and plugins.
    files_digest: String,
}

impl ConfigBeforePlugins {
    /// Runs plugins and returns the configuration with their changes. If the project's files have changed since they
    /// were read, the changes are ignored. Without `plugins`, returns the configuration as it is.
    pub(crate) async fn with_plugins(
        self,
        plugins: Option<&scripts::Scripts>,
        paths: &ConfigPaths,
    ) -> Config {
        let Self { config, trust, files_digest } = self;
        let Some(plugins) = plugins else { return config };
        let Some(settings) = scripts::plugin_settings(plugins, &config, &paths.root).await else {
            return config;
        };
        let gathered = gather_with_plugins(&Disk, paths, settings);
        if gathered.digest() != files_digest {
            return config;
        }
        let trust = match trust {
            TrustState::Trusted => Trust::Trusted,
            TrustState::NothingToTrust | TrustState::Untrusted | TrustState::Changed => {
                Trust::Untrusted
            }
        };
        let mut changed = gathered.interpret(&Disk, trust);
        // These also cover custom tools and plugins, which `interpret` does not know.
        (changed.digest, changed.digested_files) = (config.digest, config.digested_files);
        changed
    }
}

/// Reads the configuration, and finds custom tools and plugins. Settings that need trust are left out unless the folder
/// is trusted.
pub(crate) async fn read_config(
    store: &dyn Store,
    root: &Path,
    paths: &ConfigPaths,
) -> (ConfigBeforePlugins, ScriptFiles) {
    let gathered = gather(&Disk, paths);
    let files_digest = gathered.digest().to_owned();
    let mut untrusted = gathered.interpret(&Disk, Trust::Untrusted);
    let script_files = scripts::find(&untrusted, paths);
    let has_scripts = script_files.add_to_digest(&mut untrusted);
    let trust = trust_state(store, root, &untrusted, has_scripts).await;
    let config = match trust {
        TrustState::Trusted => {
            let mut config = gathered.interpret(&Disk, Trust::Trusted);
            // These also cover custom tools and plugins, which `interpret` does not know.
            config.digest = untrusted.digest;
            config.digested_files = untrusted.digested_files;
            config
        }
        TrustState::NothingToTrust | TrustState::Untrusted | TrustState::Changed => untrusted,
    };
    (ConfigBeforePlugins { config, trust, files_digest }, script_files)
}
