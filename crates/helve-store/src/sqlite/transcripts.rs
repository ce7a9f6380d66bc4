//! Transcripts: the items of sessions, in the order in which they were appended.

use std::path::Path;

use helve_core::paths;
use helve_core::transcript::{
    Delivery, ForkOrigin, NewItem, SearchHit, StoredItem, TranscriptInfo, WaitingMessage,
};
use rusqlite::{OptionalExtension, Row, params};

use super::database::Database;
use super::{now, signed, unsigned};

/// Maximum number of words in a search.
const MAX_SEARCH_WORDS: usize = 32;
/// The columns of [`TranscriptInfo`], in the order in which `decode_info` reads them.
const INFO_COLUMNS: &str = "session, root, title, created, updated, parent, forked_at";

/// Adds a session to the list if it is not there yet. A sub-agent's session has a parent and is not a fork.
pub(crate) fn register(
    database: &Database,
    session: &str,
    root: &Path,
    title: &str,
    parent: Option<&str>,
) -> rusqlite::Result<()> {
    database.main.execute(
        "INSERT INTO transcripts (session, root, title, created, updated, parent)
         VALUES (?1, ?2, ?3, ?4, ?4, ?5) ON CONFLICT (session) DO NOTHING",
        params![session, root.as_os_str().as_encoded_bytes(), title, now(), parent],
    )?;
    Ok(())
}

/// Changes a session's title.
pub(crate) fn set_title(database: &Database, session: &str, title: &str) -> rusqlite::Result<()> {
    let statement = "UPDATE transcripts SET title = ?2 WHERE session = ?1";
    database.main.execute(statement, [session, title]).map(drop)
}

/// Copies a session to a new one. Returns false if the first does not exist, or the second does.
pub(crate) fn fork(
    database: &Database,
    session: &str,
    fork: &str,
    title: &str,
) -> rusqlite::Result<bool> {
    let transaction = database.main.unchecked_transaction()?;
    let added = transaction.execute(
        "INSERT INTO transcripts (session, root, title, created, updated, parent, forked_at)
         SELECT ?2, root, ?3, ?4, ?4, session,
             (SELECT coalesce(max(seq), 0) FROM transcript_items WHERE session = ?1)
         FROM transcripts WHERE session = ?1
         ON CONFLICT (session) DO NOTHING",
        params![session, fork, title, now()],
    )?;
    if added == 0 {
        return Ok(false);
    }
    for statement in [
        "INSERT INTO transcript_items (session, seq, at, json)
         SELECT ?2, seq, at, json FROM transcript_items WHERE session = ?1",
        "INSERT INTO transcript_words (session, seq, words)
         SELECT ?2, seq, words FROM transcript_words WHERE session = ?1",
        "INSERT OR IGNORE INTO slots (session, key, version, touched, value)
         SELECT ?2, key, version, touched, value FROM slots WHERE session = ?1",
    ] {
        transaction.execute(statement, [session, fork])?;
    }
    transaction.commit()?;
    Ok(true)
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
    items: &[NewItem],
) -> rusqlite::Result<()> {
    let transaction = database.main.unchecked_transaction()?;
    let now = now();
    for NewItem { stored, words, delivered_message } in items {
        let mut insert = transaction.prepare_cached(
            "INSERT INTO transcript_items (session, seq, at, json) VALUES (?1, ?2, ?3, ?4)",
        )?;
        insert.execute(params![session, signed(stored.seq), now, stored.json])?;
        if !words.is_empty() {
            let mut insert = transaction.prepare_cached(
                "INSERT INTO transcript_words (session, seq, words) VALUES (?1, ?2, ?3)",
            )?;
            insert.execute(params![session, signed(stored.seq), words])?;
        }
        if let Some(id) = delivered_message {
            transaction.execute(REMOVE_WAITING, [session, id.as_str()])?;
        }
    }
    let mut update =
        transaction.prepare_cached("UPDATE transcripts SET updated = ?2 WHERE session = ?1")?;
    update.execute(params![session, now])?;
    drop(update);
    transaction.commit()
}

const REMOVE_WAITING: &str = "DELETE FROM transcript_waiting WHERE session = ?1 AND id = ?2";

/// Stores a message that waits for its delivery.
pub(crate) fn add_waiting(
    database: &Database,
    session: &str,
    message: &WaitingMessage,
) -> rusqlite::Result<()> {
    let delivery = match message.delivery {
        Delivery::Steer => "steer",
        Delivery::Queue => "queue",
    };
    let statement = "INSERT INTO transcript_waiting (session, id, delivery, at, text) VALUES (?1, ?2, ?3, ?4, ?5)";
    let values = params![session, message.id, delivery, now(), message.text];
    database.main.execute(statement, values).map(drop)
}

/// Removes a waiting message.
pub(crate) fn remove_waiting(database: &Database, session: &str, id: &str) -> rusqlite::Result<()> {
    database.main.execute(REMOVE_WAITING, [session, id]).map(drop)
}

/// Returns a session's waiting messages, oldest first.
pub(crate) fn waiting(database: &Database, session: &str) -> rusqlite::Result<Vec<WaitingMessage>> {
    let mut statement = database.main.prepare(
        "SELECT id, delivery, text FROM transcript_waiting WHERE session = ?1 ORDER BY number",
    )?;
    let messages = statement.query_map([session], |row| {
        let delivery: String = row.get(1)?;
        let delivery = if delivery == "queue" { Delivery::Queue } else { Delivery::Steer };
        Ok(WaitingMessage { id: row.get(0)?, delivery, text: row.get(2)? })
    })?;
    messages.collect()
}

/// Returns what is known about a session: its folder, title, times and origin.
pub(crate) fn info(database: &Database, session: &str) -> rusqlite::Result<Option<TranscriptInfo>> {
    let query = format!("SELECT {INFO_COLUMNS} FROM transcripts WHERE session = ?1");
    database.main.query_row(&query, [session], decode_info).optional()
}

/// Returns the sessions of a folder, or of all folders, newest first, without those of sub-agents.
pub(crate) fn list(
    database: &Database,
    root: Option<&Path>,
    max: usize,
) -> rusqlite::Result<Vec<TranscriptInfo>> {
    let mut statement = database.main.prepare(&format!(
        "SELECT {INFO_COLUMNS} FROM transcripts
         WHERE (?1 IS NULL OR root = ?1) AND (parent IS NULL OR forked_at IS NOT NULL)
         ORDER BY updated DESC, session DESC LIMIT ?2"
    ))?;
    let root = root.map(|root| root.as_os_str().as_encoded_bytes());
    let infos = statement.query_map(params![root, limit(max)], decode_info)?;
    infos.collect()
}

fn decode_info(row: &Row<'_>) -> rusqlite::Result<TranscriptInfo> {
    let parent: Option<String> = row.get(5)?;
    // `forked_at` is the position of the last item that was copied.
    let last: Option<i64> = row.get(6)?;
    Ok(TranscriptInfo {
        session: row.get(0)?,
        root: paths::from_bytes(row.get(1)?),
        title: row.get(2)?,
        created: unsigned(row.get(3)?),
        updated: unsigned(row.get(4)?),
        parent: parent.clone().filter(|_| last.is_none()),
        fork: parent.zip(last).map(|(session, last)| ForkOrigin { session, last: unsigned(last) }),
    })
}

/// Searches the transcripts of a folder's sessions for items that contain every word, or a longer word that begins with
/// it. Best matches first.
pub(crate) fn search(
    database: &Database,
    root: &Path,
    words: &str,
    max: usize,
) -> rusqlite::Result<Vec<SearchHit>> {
    let Some(query) = search_query(words) else { return Ok(Vec::new()) };
    let mut statement = database.main.prepare(
        "SELECT w.session, t.title, w.seq, i.at, snippet(transcript_words, 2, '', '', '…', 24)
         FROM transcript_words AS w
         JOIN transcripts AS t ON t.session = w.session
         JOIN transcript_items AS i ON i.session = w.session AND i.seq = w.seq
         WHERE transcript_words MATCH ?1 AND t.root = ?2 ORDER BY w.rank, i.at DESC LIMIT ?3",
    )?;
    let root = root.as_os_str().as_encoded_bytes();
    let hits = statement.query_map(params![query, root, limit(max)], |row| {
        Ok(SearchHit {
            session: row.get(0)?,
            title: row.get(1)?,
            seq: unsigned(row.get(2)?),
            at: unsigned(row.get(3)?),
            excerpt: row.get(4)?,
        })
    })?;
    hits.collect()
}

/// A full-text query for all words, each quoted, so that nothing in them has a special meaning.
fn search_query(words: &str) -> Option<String> {
    let quoted = |word: &str| format!("\"{}\"*", word.replace('"', "\"\""));
    let has_letters = |word: &&str| word.chars().any(char::is_alphanumeric);
    let words = words.split_whitespace().filter(has_letters).take(MAX_SEARCH_WORDS);
    let query = words.map(quoted).collect::<Vec<_>>().join(" ");
    (!query.is_empty()).then_some(query)
}

fn limit(max: usize) -> i64 {
    i64::try_from(max).unwrap_or(i64::MAX)
}

/// Removes the transcript of a session and those of its sub-agents. Returns whether there was one.
pub(crate) fn delete(database: &Database, session: &str) -> rusqlite::Result<bool> {
    let transaction = database.main.unchecked_transaction()?;
    let family = "WITH RECURSIVE family (id) AS (
         SELECT ?1 UNION SELECT t.session FROM transcripts AS t JOIN family ON t.parent = family.id
         WHERE t.forked_at IS NULL)";
    let tables =
        ["transcript_items", "transcript_words", "transcript_requests", "transcript_waiting"];
    for table in tables {
        let statement =
            format!("{family} DELETE FROM {table} WHERE session IN (SELECT id FROM family)");
        transaction.execute(&statement, [session])?;
    }
    let statement =
        format!("{family} DELETE FROM transcripts WHERE session IN (SELECT id FROM family)");
    let removed = transaction.execute(&statement, [session])? > 0;
    transaction.commit()?;
    Ok(removed)
}
