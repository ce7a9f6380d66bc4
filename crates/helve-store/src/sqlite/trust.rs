//! Folders that a person trusts, by the bytes of their path.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension, params};

use super::base::Base;
use super::now;
use super::schema::Table;

pub(crate) fn trusted(base: &Base, root: &Path) -> rusqlite::Result<Option<String>> {
    let found = match find(&base.main, root)? {
        Some(found) => Some(found),
        None => base.behind(Table::Trust).and_then(|behind| find(behind, root).ok()?),
    };
    Ok(found.flatten())
}

/// Withdrawn trust stays as a row without a digest, so that it also hides what a file behind says.
pub(crate) fn trust(base: &Base, root: &Path, digest: Option<&str>) -> rusqlite::Result<()> {
    let mut statement = base
        .main
        .prepare_cached("INSERT OR REPLACE INTO trust (root, digest, given) VALUES (?1, ?2, ?3)")?;
    statement.execute(params![root.as_os_str().as_encoded_bytes(), digest, now()]).map(drop)
}

/// The row, if there is one, and its digest; what cannot be read is no trust.
fn find(connection: &Connection, root: &Path) -> rusqlite::Result<Option<Option<String>>> {
    let mut statement = connection.prepare_cached("SELECT digest FROM trust WHERE root = ?1")?;
    let root = root.as_os_str().as_encoded_bytes();
    statement.query_row([root], |row| Ok(row.get(0).unwrap_or(None))).optional()
}
