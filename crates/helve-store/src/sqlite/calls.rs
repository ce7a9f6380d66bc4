//! The history of calls: one row each, written when a call starts to run and when it ends.

use std::collections::HashSet;

use helve_core::event::{CallOutcome, CallState, CallStatus, Event, EventKind, Progress};
use rusqlite::{Connection, Row, params};
use serde_json::{Map, Value, json};

use super::base::{Base, Place};
use super::now;
use super::schema::Table;
use super::{signed, unsigned};

/// How much of an output or an error the history keeps.
const TEXT: usize = 64 << 10;
/// How much of arguments or metadata the history keeps, as JSON.
const JSON: usize = 256 << 10;
/// How much of each text in them, where they are larger than that.
const JSON_TEXT: usize = 1 << 10;
/// How much of a title.
const TITLE: usize = 1 << 10;
/// How many calls the history has.
const MOST: i64 = 10_000;
/// The same where it is kept in memory.
const MOST_IN_MEMORY: i64 = 200;
/// How old they get, in milliseconds.
const KEPT: i64 = 30 * 24 * 3600 * 1000;
/// How many calls are removed at a time, so that nobody waits for it.
const HANDFUL: i64 = 200;

/// What of an event is worth queueing: nothing more than the state of its call will hold.
pub(crate) fn note(event: &Event) -> Option<Event> {
    let what = match &event.what {
        EventKind::Started { .. } | EventKind::Running { .. } => event.what.clone(),
        EventKind::Asked { .. } | EventKind::Answered { .. } | EventKind::Edited { .. } => {
            return None;
        }
        EventKind::Progress(progress) => {
            let Progress { title, metadata, text: _, done: _ } = progress;
            if title.is_none() && metadata.is_empty() {
                return None;
            }
            let (title, metadata) = (title.clone(), metadata.clone());
            EventKind::Progress(Progress { title, metadata, ..Progress::default() })
        }
        EventKind::Finished(CallOutcome::Completed { title, metadata, output }) => {
            let (title, metadata, output) = (title.clone(), metadata.clone(), clip(output, TEXT));
            EventKind::Finished(CallOutcome::Completed { title, metadata, output })
        }
        EventKind::Finished(CallOutcome::Failed { kind, error }) => {
            EventKind::Finished(CallOutcome::Failed { kind: *kind, error: clip(error, TEXT) })
        }
    };
    let Event { call, root, session, at, what: _ } = event;
    let (call, root, session) = (call.clone(), root.clone(), session.clone());
    Some(Event { call, root, session, at: *at, what })
}

/// Writes a call, into its row if it has one; returns the row.
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
    // Where the row is gone a new one takes its place.
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
        clip(&call.title, TITLE),
        bounded(&call.input),
        bounded(&Value::Object(call.metadata.clone())),
        call.error,
        call.output,
    ])
}

/// The newest calls, newest first, whatever the clock said.
pub(crate) fn newest(
    base: &Base,
    session: Option<&str>,
    most: usize,
) -> rusqlite::Result<Vec<CallState>> {
    let mut calls = of(&base.main, session, most)?;
    let Some(behind) = base.behind(Table::Calls) else { return Ok(calls) };
    calls.extend(of(behind, session, most).unwrap_or_default());
    let mut seen = HashSet::new();
    // A call that began before the file went behind is in both; what memory says is newer.
    calls.retain(|call| seen.insert((call.session.clone(), call.id.clone(), call.created)));
    calls.sort_by_key(|call| std::cmp::Reverse(call.created));
    calls.truncate(most);
    Ok(calls)
}

fn of(
    connection: &Connection,
    session: Option<&str>,
    most: usize,
) -> rusqlite::Result<Vec<CallState>> {
    const ALL: &str = "SELECT id, session, parent, tool, status, title, input, metadata, error,
             output, created, started, ended FROM calls
         ORDER BY number DESC LIMIT ?1";
    const ONE: &str = "SELECT id, session, parent, tool, status, title, input, metadata, error,
             output, created, started, ended FROM calls
         WHERE session = ?2 ORDER BY number DESC LIMIT ?1";
    let mut statement = connection.prepare_cached(if session.is_some() { ONE } else { ALL })?;
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let mut rows = match session {
        Some(session) => statement.query(params![most, session])?,
        None => statement.query([most])?,
    };
    let mut calls = Vec::new();
    while let Some(row) = rows.next()? {
        // A row that cannot be read is left out.
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

/// Whether there is more to remove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pruned {
    All,
    Some,
}

/// Removes a handful of calls that are too many, and one of those that are too old.
pub(crate) fn prune(base: &Base) -> rusqlite::Result<Pruned> {
    let most = match base.place {
        Place::File(_) => MOST,
        Place::Memory => MOST_IN_MEMORY,
    };
    let too_many = base.main.execute(
        "DELETE FROM calls WHERE owner IS NULL AND number IN (
             SELECT number FROM calls ORDER BY number DESC LIMIT ?1 OFFSET ?2)",
        [HANDFUL, most],
    )?;
    let too_old = base.main.execute(
        "DELETE FROM calls WHERE number IN (
             SELECT number FROM calls WHERE owner IS NULL AND created < ?1
             ORDER BY created LIMIT ?2)",
        [now() - KEPT, HANDFUL],
    )?;
    let handful = usize::try_from(HANDFUL).unwrap_or(usize::MAX);
    Ok(if too_many.max(too_old) < handful { Pruned::All } else { Pruned::Some })
}

/// JSON that the history can afford: where it is too large, its texts are clipped.
fn bounded(value: &Value) -> String {
    let whole = value.to_string();
    if whole.len() <= JSON {
        return whole;
    }
    let mut clipped = value.clone();
    clip_texts(&mut clipped);
    let text = clipped.to_string();
    if text.len() <= JSON { text } else { json!({ "omitted": whole.len() }).to_string() }
}

fn clip_texts(value: &mut Value) {
    match value {
        Value::String(text) => *text = clip(text, JSON_TEXT),
        Value::Array(items) => items.iter_mut().for_each(clip_texts),
        Value::Object(fields) => fields.values_mut().for_each(clip_texts),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The beginning of a text, with a word about the rest.
fn clip(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let kept = &text[..text.floor_char_boundary(most)];
    format!("{kept}… ({} more bytes)", text.len() - kept.len())
}

#[cfg(test)]
mod tests;
