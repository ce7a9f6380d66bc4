//! Trusted folders, by the bytes of their path.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension, params};

use super::database::Database;
use super::now;
use super::schema::Table;

/// Returns the digest for which a folder is trusted, or `None` if the folder is not trusted.
pub(crate) fn trusted_digest(database: &Database, root: &Path) -> rusqlite::Result<Option<String>> {
    let found = match find(&database.main, root)? {
        Some(found) => Some(found),
        None => {
            database.original_file(Table::Trust).and_then(|original| find(original, root).ok()?)
        }
    };
    Ok(found.flatten())
}

/// Stores or withdraws trust. Withdrawn trust is a row without a digest, so that the row also overrides trust
/// in the read-only file.
pub(crate) fn set_trusted_digest(
    database: &Database,
    root: &Path,
    digest: Option<&str>,
) -> rusqlite::Result<()> {
    let mut statement = database
        .main
        .prepare_cached("INSERT OR REPLACE INTO trust (root, digest, given) VALUES (?1, ?2, ?3)")?;
    statement.execute(params![root.as_os_str().as_encoded_bytes(), digest, now()]).map(drop)
}

/// Returns the digest of the row, if the folder has a row. An unreadable digest counts as no trust.
fn find(connection: &Connection, root: &Path) -> rusqlite::Result<Option<Option<String>>> {
    let mut statement = connection.prepare_cached("SELECT digest FROM trust WHERE root = ?1")?;
    let root = root.as_os_str().as_encoded_bytes();
    statement.query_row([root], |row| Ok(row.get(0).unwrap_or(None))).optional()
}
