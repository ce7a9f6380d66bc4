//! Transcripts: the items of sessions, in the order in which they were appended.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use helve_core::transcript::{StoredItem, TranscriptInfo};
use rusqlite::{OptionalExtension, params};

use super::database::Database;
use super::{now, signed, unsigned};

/// Stores a new, empty transcript. Does nothing if the session has one already.
/// Adds a session to the list if it is not there yet.
pub(crate) fn register(
    database: &Database,
    session: &str,
    root: &Path,
    title: &str,
) -> rusqlite::Result<()> {
    database.main.execute(
        "INSERT INTO transcripts (session, root, title, created, updated) VALUES (?1, ?2, ?3, ?4, ?4)
         ON CONFLICT (session) DO NOTHING",
        params![session, root.as_os_str().as_bytes(), title, now()],
    )?;
    Ok(())
}

/// Returns all items of a session, in order.
pub(crate) fn load(database: &Database, session: &str) -> rusqlite::Result<Vec<StoredItem>> {
    let mut statement = database
        .main
        .prepare("SELECT seq, json FROM transcript_items WHERE session = ?1 ORDER BY seq")?;
    let items = statement.query_map([session], |row| {
        Ok(StoredItem { seq: unsigned(row.get(0)?), json: row.get(1)? })
    })?;
    items.collect()
}

/// Appends all items or none. Fails if an item with the same sequence number exists, appended by another process.
pub(crate) fn append(
    database: &Database,
    session: &str,
    items: &[StoredItem],
) -> rusqlite::Result<()> {
    let transaction = database.main.unchecked_transaction()?;
    for item in items {
        transaction.execute(
            "INSERT INTO transcript_items (session, seq, at, json) VALUES (?1, ?2, ?3, ?4)",
            params![session, signed(item.seq), now(), item.json],
        )?;
    }
    transaction.execute(
        "UPDATE transcripts SET updated = ?2 WHERE session = ?1",
        params![session, now()],
    )?;
    transaction.commit()
}

/// Returns the sessions of a folder, or of all folders, newest first.
pub(crate) fn list(
    database: &Database,
    root: Option<&Path>,
    max: usize,
) -> rusqlite::Result<Vec<TranscriptInfo>> {
    let mut statement = database.main.prepare(
        "SELECT session, root, title, created, updated FROM transcripts
         WHERE ?1 IS NULL OR root = ?1 ORDER BY updated DESC, session DESC LIMIT ?2",
    )?;
    let root = root.map(|root| root.as_os_str().as_bytes());
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    let infos = statement.query_map(params![root, max], |row| {
        let root: Vec<u8> = row.get(1)?;
        Ok(TranscriptInfo {
            session: row.get(0)?,
            root: OsString::from_vec(root).into(),
            title: row.get(2)?,
            created: unsigned(row.get(3)?),
            updated: unsigned(row.get(4)?),
        })
    })?;
    infos.collect()
}

/// Removes a session's transcript. Returns whether the session had one.
pub(crate) fn delete(database: &Database, session: &str) -> rusqlite::Result<bool> {
    let transaction = database.main.unchecked_transaction()?;
    transaction.execute("DELETE FROM transcript_items WHERE session = ?1", [session])?;
    let removed = transaction.query_row(
        "DELETE FROM transcripts WHERE session = ?1 RETURNING 1",
        [session],
        |_| Ok(()),
    );
    let removed = removed.optional()?.is_some();
    transaction.commit()?;
    Ok(removed)
}
