//! The history of calls: one row per call, written when the call starts to run and when it ends.

use std::collections::HashSet;

use helve_core::event::{CallOutcome, CallState, CallStatus, Event, EventKind, Progress};
use rusqlite::{Connection, Row, params};
use serde_json::{Map, Value, json};

use super::database::{Database, Location};
use super::now;
use super::schema::Table;
use super::{signed, unsigned};

/// Maximum size of a stored output or error.
const MAX_TEXT_BYTES: usize = 64 << 10;
/// Maximum size of stored arguments or metadata, as JSON.
const MAX_JSON_BYTES: usize = 256 << 10;
/// Maximum size of each string in arguments or metadata that exceed [`MAX_JSON_BYTES`].
const MAX_JSON_STRING_BYTES: usize = 1 << 10;
/// Maximum size of a title.
const MAX_TITLE_BYTES: usize = 1 << 10;
/// Maximum number of calls in the history.
const MAX_CALLS: i64 = 10_000;
/// Maximum number of calls in the history if the store is in memory.
const MAX_CALLS_IN_MEMORY: i64 = 200;
/// Maximum age of a call, in milliseconds.
const MAX_AGE_MS: i64 = 30 * 24 * 3600 * 1000;
/// How many calls are removed at a time. Queries run between two batches, so they do not wait for the whole cleanup.
const BATCH_SIZE: i64 = 200;

/// Reduces an event to the fields that are stored about its call. Returns `None` if nothing is stored.
pub(crate) fn reduce(event: &Event) -> Option<Event> {
    let kind = match &event.kind {
        EventKind::Started { .. } | EventKind::Running { .. } => event.kind.clone(),
        EventKind::Asked { .. } | EventKind::Answered { .. } | EventKind::Edited { .. } => {
            return None;
        }
        EventKind::Progress(progress) => {
            let Progress { title, metadata, text: _, units_done: _ } = progress;
            if title.is_none() && metadata.is_empty() {
                return None;
            }
            let (title, metadata) = (title.clone(), metadata.clone());
            EventKind::Progress(Progress { title, metadata, ..Progress::default() })
        }
        EventKind::Finished(CallOutcome::Completed { title, metadata, output }) => {
            let (title, metadata, output) =
                (title.clone(), metadata.clone(), truncate(output, MAX_TEXT_BYTES));
            EventKind::Finished(CallOutcome::Completed { title, metadata, output })
        }
        EventKind::Finished(CallOutcome::Failed { kind, error }) => {
            EventKind::Finished(CallOutcome::Failed {
                kind: *kind,
                error: truncate(error, MAX_TEXT_BYTES),
            })
        }
    };
    let Event { call, root_call, session, at, kind: _ } = event;
    let (call, root_call, session) = (call.clone(), root_call.clone(), session.clone());
    Some(Event { call, root_call, session, at: *at, kind })
}

/// Writes a call to its row, or to a new row if it has none. Returns the row. `owner` is the process that runs the
/// call; a call that has ended has none.
pub(crate) fn write(
    connection: &Connection,
    owner: &str,
    row: Option<i64>,
    call: &CallState,
) -> rusqlite::Result<i64> {
    let owner = match call.status {
        CallStatus::Pending | CallStatus::Running => Some(owner),
        CallStatus::Completed | CallStatus::Error => None,
    };
    // The statement also works if the row was removed in the meantime: it inserts the row again.
    let mut statement = connection.prepare_cached(
        "INSERT OR REPLACE INTO calls (number, owner, created, started, ended, id, session, parent,
             tool, status, title, input, metadata, error, output)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
    )?;
    statement.insert(params![
        row,
        owner,
        signed(call.created),
        call.started.map(signed),
        call.ended.map(signed),
        call.id,
        call.session,
        call.parent,
        call.tool,
        status_name(call.status),
        truncate(&call.title, MAX_TITLE_BYTES),
        limited_json(&call.input),
        limited_json(&Value::Object(call.metadata.clone())),
        call.error,
        call.output,
    ])
}

/// Returns the newest calls, last written first.
pub(crate) fn newest(
    database: &Database,
    session: Option<&str>,
    max: usize,
) -> rusqlite::Result<Vec<CallState>> {
    let mut calls = read_calls(&database.main, session, max)?;
    // After a switch to memory, earlier calls are in the read-only file.
    let Some(original) = database.original_file(Table::Calls) else { return Ok(calls) };
    calls.extend(read_calls(original, session, max).unwrap_or_default());
    let mut seen = HashSet::new();
    // A call that began before the switch to memory is in both databases. Its row in memory is newer, and is kept.
    calls.retain(|call| seen.insert((call.session.clone(), call.id.clone(), call.created)));
    calls.sort_by_key(|call| std::cmp::Reverse(call.created));
    calls.truncate(max);
    Ok(calls)
}

fn read_calls(
    connection: &Connection,
    session: Option<&str>,
    max: usize,
) -> rusqlite::Result<Vec<CallState>> {
    const ALL_SESSIONS_SQL: &str =
        "SELECT id, session, parent, tool, status, title, input, metadata, error,
             output, created, started, ended FROM calls
         ORDER BY number DESC LIMIT ?1";
    const ONE_SESSION_SQL: &str =
        "SELECT id, session, parent, tool, status, title, input, metadata, error,
             output, created, started, ended FROM calls
         WHERE session = ?2 ORDER BY number DESC LIMIT ?1";
    let mut statement = connection.prepare_cached(if session.is_some() {
        ONE_SESSION_SQL
    } else {
        ALL_SESSIONS_SQL
    })?;
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    let mut rows = match session {
        Some(session) => statement.query(params![max, session])?,
        None => statement.query([max])?,
    };
    let mut calls = Vec::new();
    while let Some(row) = rows.next()? {
        // Unreadable rows are skipped.
        calls.extend(decode(row).ok().flatten());
    }
    Ok(calls)
}

fn decode(row: &Row<'_>) -> rusqlite::Result<Option<CallState>> {
    let status = match row.get::<_, String>(4)?.as_str() {
        "pending" => CallStatus::Pending,
        "running" => CallStatus::Running,
        "completed" => CallStatus::Completed,
        "error" => CallStatus::Error,
        _ => return Ok(None),
    };
    let json = |column: usize| -> rusqlite::Result<Value> {
        Ok(serde_json::from_str(&row.get::<_, String>(column)?).unwrap_or(Value::Null))
    };
    Ok(Some(CallState {
        id: row.get(0)?,
        session: row.get(1)?,
        parent: row.get(2)?,
        tool: row.get(3)?,
        status,
        title: row.get(5)?,
        input: json(6)?,
        metadata: match json(7)? {
            Value::Object(metadata) => metadata,
            _ => Map::new(),
        },
        error: row.get(8)?,
        output: row.get(9)?,
        created: unsigned(row.get(10)?),
        started: row.get::<_, Option<i64>>(11)?.map(unsigned),
        ended: row.get::<_, Option<i64>>(12)?.map(unsigned),
    }))
}

fn status_name(status: CallStatus) -> &'static str {
    match status {
        CallStatus::Pending => "pending",
        CallStatus::Running => "running",
        CallStatus::Completed => "completed",
        CallStatus::Error => "error",
    }
}

/// Whether everything that exceeds the limits was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PruneResult {
    Complete,
    Partial,
}

/// Removes one batch of surplus calls and one of expired calls.
pub(crate) fn prune(database: &Database) -> rusqlite::Result<PruneResult> {
    let max = match database.location {
        Location::File(_) => MAX_CALLS,
        Location::Memory => MAX_CALLS_IN_MEMORY,
    };
    let too_many = database.main.execute(
        "DELETE FROM calls WHERE owner IS NULL AND number IN (
             SELECT number FROM calls ORDER BY number DESC LIMIT ?1 OFFSET ?2)",
        [BATCH_SIZE, max],
    )?;
    let too_old = database.main.execute(
        "DELETE FROM calls WHERE number IN (
             SELECT number FROM calls WHERE owner IS NULL AND created < ?1
             ORDER BY created LIMIT ?2)",
        [now() - MAX_AGE_MS, BATCH_SIZE],
    )?;
    let batch_size = usize::try_from(BATCH_SIZE).unwrap_or(usize::MAX);
    Ok(if too_many.max(too_old) < batch_size {
        PruneResult::Complete
    } else {
        PruneResult::Partial
    })
}

/// Converts a value to JSON. If the JSON is too large, strings are truncated; if that is not enough, only the size is
/// kept.
fn limited_json(value: &Value) -> String {
    let text = value.to_string();
    if text.len() <= MAX_JSON_BYTES {
        return text;
    }
    let mut clipped = value.clone();
    truncate_strings(&mut clipped);
    let truncated = clipped.to_string();
    if truncated.len() <= MAX_JSON_BYTES {
        truncated
    } else {
        json!({ "omitted": text.len() }).to_string()
    }
}

fn truncate_strings(value: &mut Value) {
    match value {
        Value::String(text) => *text = truncate(text, MAX_JSON_STRING_BYTES),
        Value::Array(items) => items.iter_mut().for_each(truncate_strings),
        Value::Object(fields) => fields.values_mut().for_each(truncate_strings),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Truncates a text of more than `max` bytes, and appends the number of bytes that are missing.
fn truncate(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let kept = &text[..text.floor_char_boundary(max)];
    format!("{kept}… ({} more bytes)", text.len() - kept.len())
}

#[cfg(test)]
mod tests;
