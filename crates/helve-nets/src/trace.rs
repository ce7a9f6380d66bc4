//! What a traced script did, as the tracer reports it.

use serde::{Deserialize, Serialize};

/// Where the sandbox assembles the file tree of a script. It then makes this directory the root.
pub(crate) const SANDBOX_ROOT: &str = "/tmp";

/// An attempted operation. It counts even if it failed here, because it may succeed elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct TraceEvent {
    pub operation: Operation,
    /// Absolute path, or the kind of a connection.
    pub path: String,
    /// The program that did the operation, then its ancestors up to the shell.
    pub program_chain: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum Operation {
    Execute,
    Read,
    /// Opened for reading with `O_NOFOLLOW`.
    ReadNoFollow,
    /// Opened for writing, created, removed, renamed, linked, or its mode, owner, times or attributes changed.
    Write,
    CreateFolder,
    /// Connecting a socket to an address, or binding it to one.
    ConnectOrBind,
}

/// The trace of one script.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Trace {
    pub events: Vec<TraceEvent>,
    /// Files that exist at the end.
    pub remaining_files: Vec<String>,
    /// Whether the script took too long and was killed.
    pub timed_out: bool,
    /// Why the script could not be traced. If set, the other fields are empty.
    pub error: Option<String>,
}

impl Trace {
    pub(crate) fn error(why: impl Into<String>) -> Self {
        Self { error: Some(why.into()), ..Self::default() }
    }
}
