//! Slots: values that sessions remember. A write with [`compare_and_set`] names the version that it replaces, and fails
//! if the slot has another version.

use std::io;

use rusqlite::{Connection, OptionalExtension, params};
use serde_json::Value;

use super::database::Database;
use super::schema::Table;
use super::{now, signed, unsigned};

/// Maximum size of a slot's value, as JSON.
const MAX_VALUE_BYTES: usize = 16 << 20;
/// Maximum nesting depth of a value. `serde_json` parses at most 127 levels, so a deeper value could not be read back.
const MAX_DEPTH: usize = 120;
/// Maximum number of slots. A session has one slot for each file that was shown to it.
const MAX_SLOTS: i64 = 50_000;
/// How long a slot is kept after its last change, in milliseconds.
const MAX_AGE_MS: i64 = 180 * 24 * 3600 * 1000;

/// Encodes a value. Fails if the value is nested too deeply or too large to be read back.
pub(crate) fn encode(value: &Value) -> io::Result<String> {
    let invalid = |why| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    if !is_nested_within(MAX_DEPTH, value) {
        return invalid(format!(
            "A value nested deeper than {MAX_DEPTH} levels cannot be remembered."
        ));
    }
    let text = value.to_string();
    if text.len() > MAX_VALUE_BYTES {
        let length = text.len();
        return invalid(format!(
            "A value of {length} bytes is too large to be remembered; the maximum is {MAX_VALUE_BYTES}."
        ));
    }
    Ok(text)
}

fn is_nested_within(depth: usize, value: &Value) -> bool {
    let Some(deeper) = depth.checked_sub(1) else { return false };
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
        Value::Array(items) => items.iter().all(|item| is_nested_within(deeper, item)),
        Value::Object(fields) => fields.values().all(|field| is_nested_within(deeper, field)),
    }
}

pub(crate) fn get(
    database: &Database,
    session: &str,
    key: &str,
) -> rusqlite::Result<Option<(u64, Value)>> {
    let found = match find(&database.main, session, key)? {
        Some(found) => Some(found),
        None => find_in_original_file(database, session, key),
    };
    match found {
        Some(SlotRow { version, text: Some(text) }) => match serde_json::from_str(&text) {
            Ok(value) => return Ok(Some((unsigned(version), value))),
            Err(_) => delete_slot(database, session, key)?,
        },
        Some(SlotRow { text: None, .. }) => delete_slot(database, session, key)?,
        None => {}
    }
    Ok(None)
}

/// Deletes a slot with an unreadable value, so that the slot can be written again.
fn delete_slot(database: &Database, session: &str, key: &str) -> rusqlite::Result<()> {
    let mut statement =
        database.main.prepare_cached("DELETE FROM slots WHERE session = ?1 AND key = ?2")?;
    statement.execute([session, key]).map(drop)
}

/// Replaces a slot if its version is `expected_version`, where 0 stands for a slot that does not exist. Returns whether
/// the slot was replaced.
pub(crate) fn compare_and_set(
    database: &Database,
    session: &str,
    key: &str,
    expected_version: u64,
    value: &str,
) -> rusqlite::Result<bool> {
    copy_from_original_file(database, session, key)?;
    let mut statement = match expected_version {
        0 => database.main.prepare_cached(
            "INSERT OR IGNORE INTO slots (session, key, version, touched, value) VALUES (?1, ?2, ?3 + 1, ?4, ?5)",
        )?,
        _ => database.main.prepare_cached(
            "UPDATE slots SET version = ?3 + 1, touched = ?4, value = ?5
             WHERE session = ?1 AND key = ?2 AND version = ?3",
        )?,
    };
    Ok(statement.execute(params![session, key, signed(expected_version), now(), value])? == 1)
}

/// Replaces a slot without checking its version, unlike [`compare_and_set`].
pub(crate) fn set(
    database: &Database,
    session: &str,
    key: &str,
    value: &str,
) -> rusqlite::Result<()> {
    copy_from_original_file(database, session, key)?;
    let mut statement = database.main.prepare_cached(
        "INSERT INTO slots (session, key, version, touched, value) VALUES (?1, ?2, 1, ?3, ?4)
         ON CONFLICT (session, key) DO UPDATE SET version = version + 1, touched = ?3, value = ?4",
    )?;
    statement.execute(params![session, key, now(), value]).map(drop)
}

/// If the store has fallen back to memory, copies a slot from the read-only file into memory, so that it can be
/// replaced.
fn copy_from_original_file(database: &Database, session: &str, key: &str) -> rusqlite::Result<()> {
    if database.original_file(Table::Slots).is_none()
        || find(&database.main, session, key)?.is_some()
    {
        return Ok(());
    }
    if let Some(SlotRow { version, text: Some(text) }) =
        find_in_original_file(database, session, key)
    {
        database.main.execute(
            "INSERT INTO slots (session, key, version, touched, value) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![session, key, version, now(), text],
        )?;
    }
    Ok(())
}

struct SlotRow {
    version: i64,
    /// `None` if the value is not valid text.
    text: Option<String>,
}

fn find(connection: &Connection, session: &str, key: &str) -> rusqlite::Result<Option<SlotRow>> {
    let mut statement = connection
        .prepare_cached("SELECT version, value FROM slots WHERE session = ?1 AND key = ?2")?;
    let found = statement.query_row([session, key], |row| {
        Ok(SlotRow { version: row.get(0).unwrap_or(0), text: row.get(1).ok() })
    });
    found.optional()
}

/// If the store has fallen back to memory, returns a slot from the read-only file, provided that its value can be read.
fn find_in_original_file(database: &Database, session: &str, key: &str) -> Option<SlotRow> {
    let found = find(database.original_file(Table::Slots)?, session, key).ok()??;
    let is_value = |text: &String| serde_json::from_str::<Value>(text).is_ok();
    found.text.as_ref().is_some_and(is_value).then_some(found)
}

/// Removes expired slots, then the oldest slots beyond [`MAX_SLOTS`].
pub(crate) fn prune(database: &Database) -> rusqlite::Result<()> {
    database.main.execute("DELETE FROM slots WHERE touched < ?1", [now() - MAX_AGE_MS])?;
    let sql = "DELETE FROM slots WHERE rowid IN (
        SELECT rowid FROM slots ORDER BY touched DESC LIMIT -1 OFFSET ?1)";
    database.main.execute(sql, [MAX_SLOTS]).map(drop)
}

#[cfg(test)]
mod tests;
