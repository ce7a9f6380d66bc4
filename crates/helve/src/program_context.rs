//! The context in which a workspace's programs are started: language servers, formatters, and the helper process that
//! runs scripts.

use std::path::Path;

use helve_core::Host;
use helve_core::shell::Shell;
use helve_ext::config::Config;

use crate::trust::TrustState;

/// The workspace in which programs are started.
#[cfg_attr(
    not(any(feature = "languages", feature = "scripts")),
    expect(dead_code, reason = "the fields are read only with one of these features")
)]
pub(crate) struct ProgramContext<'a> {
    pub(crate) host: &'a Host,
    /// The settings for running commands; `None` if the host has no processes.
    pub(crate) shell: Option<&'a Shell>,
    pub(crate) root: &'a Path,
    /// Helve's data folder.
    pub(crate) data: &'a Path,
    pub(crate) config: &'a Config,
    pub(crate) trust: TrustState,
}

impl<'a> ProgramContext<'a> {
    pub(crate) fn new(
        (host, shell): (&'a Host, Option<&'a Shell>),
        (root, data): (&'a Path, &'a Path),
        config: &'a Config,
        trust: TrustState,
    ) -> Self {
        Self { host, shell, root, data, config, trust }
    }
}
