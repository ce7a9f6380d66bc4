//! How a workspace runs commands: the shell, its environment, the sandbox, timeouts.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use helve_text::shell::ShellLanguage;

use crate::confine::Sandbox;
use crate::process::{Network, SandboxLimits};

/// The settings that every command of a workspace runs with.
pub struct Shell {
    /// The shell and the arguments before the script.
    pub argv: Vec<OsString>,
    /// The shell language that scripts are parsed as when they are judged.
    pub language: ShellLanguage,
    /// The complete environment of every command.
    pub environment: Vec<(OsString, OsString)>,
    /// Values that are redacted from output.
    pub secrets: Vec<Bytes>,
    pub sandbox: Sandbox,
    pub network: Network,
    /// How much a sandboxed command may use.
    pub limits: SandboxLimits,
    /// Helve's folders for data and configuration, with every link followed. A sandbox hides them.
    pub helve_folders: Vec<PathBuf>,
    /// Further folders that sandboxed commands may write to, with every link followed.
    pub writable: Vec<PathBuf>,
    /// Caches of package managers, of which sandboxed commands change a private copy.
    pub caches: Vec<PathBuf>,
    pub timeouts: CommandTimeouts,
    pub leftovers: Leftovers,
}

/// A folder in which the shell looks for programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SearchFolder {
    pub(crate) path: PathBuf,
    /// Whether the folder is in the workspace, by its path or through a link.
    pub(crate) is_inside: bool,
}

/// How long a command may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandTimeouts {
    /// Used if the call does not set a timeout.
    pub default: Duration,
    /// The longest timeout that a call may set.
    pub max: Duration,
}

/// What happens to processes that a command leaves running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leftovers {
    /// The processes keep running. A handle identifies each.
    Keep,
    /// The processes are ended, because this Helve process exits after the call.
    End,
}

/// The flag that marks a [`Caller`](crate::Caller) as one that is notified when a background process ends. For such
/// callers, a command that reaches the default timeout is moved to the background instead of being ended.
pub const AUTO_BACKGROUND: &str = "auto_background";
