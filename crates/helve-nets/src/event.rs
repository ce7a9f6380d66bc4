//! What a traced script did, as plain data that goes from the tracer to whoever judges it.

use serde::{Deserialize, Serialize};

/// One thing that was tried. Whether it succeeded is not asked: elsewhere it might.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct Event {
    pub what: What,
    /// Absolute; for a connection its kind.
    pub path: String,
    /// The programs that did it, from the nearest to the shell.
    pub by: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum What {
    Execute,
    Read,
    /// Opened for reading unless it is a link.
    ReadItself,
    /// Opened for writing, created, removed, renamed, linked, or its mode, owner, times or attributes changed.
    Write,
    MakeFolder,
    Connect,
}

/// The answer to one script.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Traced {
    pub events: Vec<Event>,
    /// Files that are still in the folder for temporary files.
    pub left: Vec<String>,
    /// It ran for so long that it was ended.
    pub ended: bool,
    /// Why it could not be traced; then nothing else is said.
    pub fault: Option<String>,
}

impl Traced {
    pub(crate) fn fault(why: impl Into<String>) -> Self {
        Self { fault: Some(why.into()), ..Self::default() }
    }
}
