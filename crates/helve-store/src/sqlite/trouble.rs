//! What can go wrong with the file, and the sentence for it.

use std::io;
use std::path::Path;

use rusqlite::ErrorCode;
use rusqlite::ffi;

/// What is wrong with the database file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Not a database, or one whose pages make no sense.
    Damaged,
    /// Not what it was when it was opened: replaced or rebuilt by another process.
    Changed,
    /// Held by another process for longer than we wait.
    Locked,
    /// Cannot be made, opened or written: permissions, a full disk, a failing one.
    Unwritable,
    /// Written by a version that knows more.
    Newer { found: i64, known: i64 },
}

impl Trouble {
    /// `None` for an error that says nothing about the file.
    pub(crate) fn of(error: &rusqlite::Error) -> Option<Self> {
        let (rusqlite::Error::SqliteFailure(failure, _)
        | rusqlite::Error::SqlInputError { error: failure, .. }) = error
        else {
            return None;
        };
        if failure.extended_code == ffi::SQLITE_READONLY_DBMOVED {
            return Some(Trouble::Changed);
        }
        match failure.code {
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => Some(Trouble::Damaged),
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Some(Trouble::Locked),
            ErrorCode::DiskFull
            | ErrorCode::SystemIoFailure
            | ErrorCode::ReadOnly
            | ErrorCode::CannotOpen
            | ErrorCode::PermissionDenied
            | ErrorCode::FileLockingProtocolFailed
            | ErrorCode::NoLargeFileSupport => Some(Trouble::Unwritable),
            // Our statements are right, so the tables are not.
            ErrorCode::Unknown | ErrorCode::SchemaChanged | ErrorCode::InternalMalfunction => {
                Some(Trouble::Changed)
            }
            _ => None,
        }
    }
}

/// Why a file could not be opened.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) trouble: Trouble,
    pub(crate) why: String,
}

impl Failure {
    /// `None` for an error that says nothing about the file.
    pub(crate) fn of(error: &rusqlite::Error) -> Option<Self> {
        Some(Self { trouble: Trouble::of(error)?, why: words(error) })
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self { trouble: Trouble::Unwritable, why: error.to_string() }
    }
}

impl From<rusqlite::Error> for Failure {
    /// While a file is being opened nobody else changes it.
    fn from(error: rusqlite::Error) -> Self {
        let trouble = match Trouble::of(&error) {
            None | Some(Trouble::Changed) => Trouble::Damaged,
            Some(trouble) => trouble,
        };
        Self { trouble, why: words(&error) }
    }
}

/// The sentence for going on in memory.
pub(crate) fn in_memory(path: &Path, failure: &Failure) -> String {
    let path = path.display();
    let why = failure.why.trim_end_matches('.');
    let (what, remedy) = match failure.trouble {
        Trouble::Newer { found, known } => (
            format!(
                "was written by a newer Helve (version {found}, this one knows {known}) and is only read"
            ),
            "update Helve to write to it again",
        ),
        Trouble::Locked => (
            format!("is locked by another program ({why})"),
            "end that program and restart Helve to write to it again",
        ),
        Trouble::Unwritable => (
            format!("cannot be written ({why})"),
            "check its permissions and the free space, then restart Helve",
        ),
        Trouble::Damaged | Trouble::Changed => {
            (format!("cannot be used ({why})"), "move it away and restart Helve")
        }
    };
    format!(
        "The store {path} {what}, so calls, approvals, trust and the journal for undo are kept in memory until this process ends; {remedy}."
    )
}

/// The sentence for a file that was moved aside.
pub(crate) fn moved_aside(path: &Path, aside: &Path, why: &str) -> String {
    let (path, aside) = (path.display(), aside.display());
    let why = why.trim_end_matches('.');
    format!(
        "The store {path} was damaged ({why}), so it was moved to {aside} and a new one begun without the earlier calls, approvals, trust and journal for undo; delete the moved file when you do not need it."
    )
}

/// An error for whoever asked.
pub(crate) fn refused(error: &rusqlite::Error) -> io::Error {
    io::Error::other(format!("The store could not answer: {}.", words(error)))
}

/// What SQLite says, without the statement it says it about.
fn words(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        other => other.to_string(),
    }
}
