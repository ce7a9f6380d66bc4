//! Classifies database failures, and writes the warnings about them.

use std::io;
use std::path::Path;

use rusqlite::ErrorCode;
use rusqlite::ffi;

/// A problem with the database file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DatabaseProblem {
    /// The file is not a database, or it is corrupt.
    Damaged,
    /// Another process replaced or rebuilt the file after we opened it.
    Changed,
    /// Another process locked the file for longer than the timeout.
    Locked,
    /// The file cannot be created, opened or written: missing permissions, or a disk that is full or failing.
    Unwritable,
    /// Written by a newer version of Helve, in a store format that this version does not know.
    Newer { found: i64, known: i64 },
}

impl DatabaseProblem {
    /// Classifies an error. Returns `None` if the error does not concern the file.
    pub(crate) fn of(error: &rusqlite::Error) -> Option<Self> {
        let (rusqlite::Error::SqliteFailure(failure, _)
        | rusqlite::Error::SqlInputError { error: failure, .. }) = error
        else {
            return None;
        };
        if failure.extended_code == ffi::SQLITE_READONLY_DBMOVED {
            return Some(DatabaseProblem::Changed);
        }
        match failure.code {
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => Some(DatabaseProblem::Damaged),
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Some(DatabaseProblem::Locked),
            ErrorCode::DiskFull
            | ErrorCode::SystemIoFailure
            | ErrorCode::ReadOnly
            | ErrorCode::CannotOpen
            | ErrorCode::PermissionDenied
            | ErrorCode::FileLockingProtocolFailed
            | ErrorCode::NoLargeFileSupport => Some(DatabaseProblem::Unwritable),
            // Our statements are valid, so another process must have changed the tables.
            ErrorCode::Unknown | ErrorCode::SchemaChanged | ErrorCode::InternalMalfunction => {
                Some(DatabaseProblem::Changed)
            }
            _ => None,
        }
    }
}

/// A problem with the database file and its reason.
#[derive(Debug)]
pub(crate) struct DatabaseFailure {
    pub(crate) problem: DatabaseProblem,
    pub(crate) why: String,
}

impl DatabaseFailure {
    /// Classifies an error. Returns `None` if the error does not concern the file.
    pub(crate) fn of(error: &rusqlite::Error) -> Option<Self> {
        Some(Self { problem: DatabaseProblem::of(error)?, why: message(error) })
    }
}

impl From<io::Error> for DatabaseFailure {
    fn from(error: io::Error) -> Self {
        Self { problem: DatabaseProblem::Unwritable, why: error.to_string() }
    }
}

impl From<rusqlite::Error> for DatabaseFailure {
    /// Converts an error that occurred while opening a file. No other process changes the file during opening, so an
    /// unexpected error means damage.
    fn from(error: rusqlite::Error) -> Self {
        let problem = match DatabaseProblem::of(&error) {
            None | Some(DatabaseProblem::Changed) => DatabaseProblem::Damaged,
            Some(problem) => problem,
        };
        Self { problem, why: message(&error) }
    }
}

/// Returns the warning that the store is kept in memory from now on.
pub(crate) fn in_memory_warning(path: &Path, failure: &DatabaseFailure) -> String {
    let path = path.display();
    let why = failure.why.trim_end_matches('.');
    let (what, remedy) = match failure.problem {
        DatabaseProblem::Newer { found, known } => (
            format!(
                "was written by a newer Helve (store format {found}; this one supports up to {known}) and is read-only"
            ),
            "update Helve to write to it again",
        ),
        DatabaseProblem::Locked => (
            format!("is locked by another program ({why})"),
            "end that program and restart Helve to write to it again",
        ),
        DatabaseProblem::Unwritable => (
            format!("cannot be written ({why})"),
            "check its permissions and the free space, then restart Helve",
        ),
        DatabaseProblem::Damaged | DatabaseProblem::Changed => {
            (format!("cannot be used ({why})"), "move it away and restart Helve")
        }
    };
    format!(
        "The store {path} {what}, so calls, approvals, trust and the undo journal are kept in memory until this process ends; {remedy}."
    )
}

/// Returns the warning that a damaged file was moved to another name.
pub(crate) fn moved_aside_warning(path: &Path, aside: &Path, why: &str) -> String {
    let (path, aside) = (path.display(), aside.display());
    let why = why.trim_end_matches('.');
    format!(
        "The store {path} was damaged ({why}), so it was moved to {aside} and a new one was created without the earlier calls, approvals, trust and undo journal; delete the moved file when you no longer need it."
    )
}

/// Converts the error of a query to the form that callers of the store get.
pub(crate) fn query_error(error: &rusqlite::Error) -> io::Error {
    io::Error::other(format!("The store query failed: {}.", message(error)))
}

/// Returns SQLite's message without the statement.
fn message(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        other => other.to_string(),
    }
}
