//! How commands are run in a workspace: by which shell, in which environment, confined to what.

use std::ffi::OsString;
use std::time::Duration;

use bytes::Bytes;
use helve_text::shell::ShellLanguage;

use crate::confine::Sandbox;
use crate::process::Network;

/// The settings that every command of a workspace runs with.
pub struct Shell {
    /// The shell and the arguments before the script.
    pub program: Vec<OsString>,
    /// The shell's language, or why its scripts cannot be judged and so are never run.
    pub language: Result<ShellLanguage, String>,
    /// The complete environment of every command.
    pub environment: Vec<(OsString, OsString)>,
    /// Values that are redacted from output.
    pub secrets: Vec<Bytes>,
    pub sandbox: Sandbox,
    pub network: Network,
    pub timeouts: CommandTimeouts,
    pub leftovers: Leftovers,
}

/// How long a command may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandTimeouts {
    /// Unless the call says otherwise.
    pub default: Duration,
    /// The longest that a call may ask for.
    pub max: Duration,
}

/// What happens to processes that a command leaves running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leftovers {
    /// They keep running, under a handle.
    Keep,
    /// They are ended, because this Helve process exits after the call.
    End,
}
