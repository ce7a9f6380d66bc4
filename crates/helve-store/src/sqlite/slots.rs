//! What sessions remember: values that are replaced only by who has seen the last one.

use std::io;

use rusqlite::{Connection, OptionalExtension, params};
use serde_json::Value;

use super::base::Base;
use super::schema::Table;
use super::{now, signed, unsigned};

/// The largest value of a slot, as JSON.
const LARGEST: usize = 16 << 20;
/// How deep it may be nested; the parser takes no more than 127.
const DEEPEST: usize = 120;
/// How many slots there are; each file that a session was shown has one.
const MOST: i64 = 50_000;
/// A slot that nobody has changed for so long is forgotten, in milliseconds.
const KEPT: i64 = 180 * 24 * 3600 * 1000;

/// The text of a value that can be read back.
pub(crate) fn encode(value: &Value) -> io::Result<String> {
    let refuse = |why| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    if !is_within(DEEPEST, value) {
        return refuse(format!("A value nested deeper than {DEEPEST} cannot be remembered."));
    }
    let text = value.to_string();
    if text.len() > LARGEST {
        let length = text.len();
        return refuse(format!(
            "A value of {length} bytes is too large to be remembered; the most is {LARGEST}."
        ));
    }
    Ok(text)
}

fn is_within(depth: usize, value: &Value) -> bool {
    let Some(deeper) = depth.checked_sub(1) else { return false };
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
        Value::Array(items) => items.iter().all(|item| is_within(deeper, item)),
        Value::Object(fields) => fields.values().all(|field| is_within(deeper, field)),
    }
}

pub(crate) fn get(base: &Base, session: &str, key: &str) -> rusqlite::Result<Option<(u64, Value)>> {
    let found = match find(&base.main, session, key)? {
        Some(found) => Some(found),
        None => find_behind(base, session, key),
    };
    match found {
        Some(Found { version, text: Some(text) }) => match serde_json::from_str(&text) {
            Ok(value) => Ok(Some((unsigned(version), value))),
            Err(_) => forget(base, session, key),
        },
        Some(Found { text: None, .. }) => forget(base, session, key),
        None => Ok(None),
    }
}

/// A value that cannot be read must not keep its slot from being filled again.
fn forget<T>(base: &Base, session: &str, key: &str) -> rusqlite::Result<Option<T>> {
    let mut statement =
        base.main.prepare_cached("DELETE FROM slots WHERE session = ?1 AND key = ?2")?;
    statement.execute([session, key])?;
    Ok(None)
}

pub(crate) fn put(
    base: &Base,
    session: &str,
    key: &str,
    seen: u64,
    value: &str,
) -> rusqlite::Result<bool> {
    fetch(base, session, key)?;
    let mut statement = match seen {
        0 => base.main.prepare_cached(
            "INSERT OR IGNORE INTO slots (session, key, version, touched, value) VALUES (?1, ?2, ?3 + 1, ?4, ?5)",
        )?,
        _ => base.main.prepare_cached(
            "UPDATE slots SET version = ?3 + 1, touched = ?4, value = ?5
             WHERE session = ?1 AND key = ?2 AND version = ?3",
        )?,
    };
    Ok(statement.execute(params![session, key, signed(seen), now(), value])? == 1)
}

/// Replaces a slot, whoever wrote it last.
pub(crate) fn set(base: &Base, session: &str, key: &str, value: &str) -> rusqlite::Result<()> {
    fetch(base, session, key)?;
    let mut statement = base.main.prepare_cached(
        "INSERT INTO slots (session, key, version, touched, value) VALUES (?1, ?2, 1, ?3, ?4)
         ON CONFLICT (session, key) DO UPDATE SET version = version + 1, touched = ?3, value = ?4",
    )?;
    statement.execute(params![session, key, now(), value]).map(drop)
}

/// Brings a slot of the file behind into memory, where it can be replaced.
fn fetch(base: &Base, session: &str, key: &str) -> rusqlite::Result<()> {
    if base.behind(Table::Slots).is_none() || find(&base.main, session, key)?.is_some() {
        return Ok(());
    }
    if let Some(Found { version, text: Some(text) }) = find_behind(base, session, key) {
        base.main.execute(
            "INSERT INTO slots (session, key, version, touched, value) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![session, key, version, now(), text],
        )?;
    }
    Ok(())
}

struct Found {
    version: i64,
    /// `None` if it is not text.
    text: Option<String>,
}

fn find(connection: &Connection, session: &str, key: &str) -> rusqlite::Result<Option<Found>> {
    let mut statement = connection
        .prepare_cached("SELECT version, value FROM slots WHERE session = ?1 AND key = ?2")?;
    let found = statement.query_row([session, key], |row| {
        Ok(Found { version: row.get(0).unwrap_or(0), text: row.get(1).ok() })
    });
    found.optional()
}

/// A value that cannot be read there is as good as none.
fn find_behind(base: &Base, session: &str, key: &str) -> Option<Found> {
    let found = find(base.behind(Table::Slots)?, session, key).ok()??;
    let is_value = |text: &String| serde_json::from_str::<Value>(text).is_ok();
    found.text.as_ref().is_some_and(is_value).then_some(found)
}

/// Removes what has not been touched for long, and of too much the oldest.
pub(crate) fn prune(base: &Base) -> rusqlite::Result<()> {
    base.main.execute("DELETE FROM slots WHERE touched < ?1", [now() - KEPT])?;
    let sql = "DELETE FROM slots WHERE rowid IN (
        SELECT rowid FROM slots ORDER BY touched DESC LIMIT -1 OFFSET ?1)";
    base.main.execute(sql, [MOST]).map(drop)
}

#[cfg(test)]
mod tests;
