//! Which program runs tools and plugins, and what it is started with.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use helve_core::process::{Processes, SandboxPlan};

/// How long a tool may block the event loop of the process by default, for example while it waits synchronously for a
/// program. The same as the default timeout of a command.
pub const DEFAULT_BLOCKING_TIME: Duration = Duration::from_secs(120);
/// How long a hook may take by default.
pub const DEFAULT_HOOK_TIME: Duration = Duration::from_secs(9);

/// Which program runs tools and plugins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RuntimeChoice {
    /// bun if it is installed, else node.
    #[default]
    Automatic,
    /// A program by name or path.
    Program(String),
}

/// How to start the helper process.
pub struct RuntimeSettings {
    /// Starts processes; `None` if programs cannot be run here.
    pub processes: Option<Arc<dyn Processes>>,
    pub choice: RuntimeChoice,
    pub environment: Vec<(OsString, OsString)>,
    /// Values that are redacted from the output of the process.
    pub secrets: Vec<Bytes>,
    pub sandbox: Option<SandboxPlan>,
    /// A folder for temporary files, which a sandboxed process may write.
    pub scratch: PathBuf,
    pub root: PathBuf,
    pub limits: ScriptLimits,
}

/// How long a tool may block the helper process, and how long a hook may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptLimits {
    /// How long a tool may block the event loop of the process, so that nothing else can run.
    pub blocking_time: Duration,
    /// How long one hook may take.
    pub hook_time: Duration,
}

impl RuntimeSettings {
    /// Returns the variables of a process. In a sandbox, `TMPDIR` is the scratch folder.
    pub(crate) fn environment(&self) -> Vec<(OsString, OsString)> {
        let mut environment = self.environment.clone();
        if self.sandbox.is_some() {
            environment.retain(|(name, _)| name != "TMPDIR");
            environment.push(("TMPDIR".into(), self.scratch.clone().into()));
        }
        environment
    }
}

/// The program that runs tools and plugins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuntimeInfo {
    pub program: PathBuf,
    /// `bun` or `node`.
    pub name: String,
    pub version: String,
}
