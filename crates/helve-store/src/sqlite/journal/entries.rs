//! What calls did to which files: one entry for each commit, put together again by call.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use helve_core::journal::{Change, Changed, Entry, EntryId, Image};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use super::super::base::Base;
use super::super::schema::Table;
use super::super::trouble::Failure;
use super::super::{now, signed, unsigned};
use super::images::{self, By};

/// Takes an entry down; `befores` are its images, in order.
pub(super) fn begin(
    base: &Base,
    folder: &Path,
    entry: &Entry,
    befores: &[Option<images::Image>],
) -> rusqlite::Result<EntryId> {
    prepare(base, folder, befores)?;
    let transaction = Transaction::new_unchecked(&base.main, TransactionBehavior::Immediate)?;
    // Numbers tell the order, and which entry it is even after the database was replaced by another.
    let number: i64 = transaction.query_row(
        "INSERT INTO journal (number, owner, call, session, tool, root, at, state)
         VALUES ((SELECT max(coalesce(max(number), 0) + 1, ?1) FROM journal), ?2, ?3, ?4, ?5, ?6, ?7, ?8)
         RETURNING number",
        params![
            now().saturating_mul(1000),
            base.owner,
            entry.call,
            entry.session,
            entry.tool,
            bytes_of(&entry.root),
            signed(entry.at),
            BEGUN,
        ],
        |row| row.get(0),
    )?;
    let mut statement = transaction.prepare_cached(
        "INSERT INTO journal_files (entry, position, path, before, mode) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    for (position, (file, before)) in entry.files.iter().zip(befores).enumerate() {
        let before = before.as_ref().map(|image| image.keep(base, folder)).transpose()?;
        let mode = file.image.as_ref().map(|image| image.mode);
        statement.execute(params![number, place(position), bytes_of(&file.path), before, mode])?;
    }
    drop(statement);
    transaction.commit()?;
    Ok(EntryId(number))
}

/// Whether there was an entry to complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Completed {
    Yes,
    /// It is not there, is complete already, or has another number of files.
    No,
}

/// Completes an entry with what its files are now, in order.
pub(super) fn done(
    base: &Base,
    folder: &Path,
    id: EntryId,
    afters: &[Option<images::Image>],
) -> rusqlite::Result<Completed> {
    prepare(base, folder, afters)?;
    let transaction = Transaction::new_unchecked(&base.main, TransactionBehavior::Immediate)?;
    let files: i64 = transaction
        .prepare_cached("SELECT count(*) FROM journal_files WHERE entry = ?1")?
        .query_row([id.0], |row| row.get(0))?;
    let completed = transaction
        .prepare_cached("UPDATE journal SET state = ?2 WHERE number = ?1 AND state = ?3")?
        .execute(params![id.0, DONE, BEGUN])?;
    if completed == 0 || files != place(afters.len()) {
        return Ok(Completed::No);
    }
    for (position, after) in afters.iter().enumerate() {
        let Some(after) = after else { continue };
        let after = after.keep(base, folder)?;
        transaction
            .prepare_cached(
                "UPDATE journal_files SET after = ?3 WHERE entry = ?1 AND position = ?2",
            )?
            .execute(params![id.0, place(position), after])?;
    }
    transaction.commit()?;
    Ok(Completed::Yes)
}

fn prepare(base: &Base, folder: &Path, images: &[Option<images::Image>]) -> rusqlite::Result<()> {
    images.iter().flatten().try_for_each(|image| image.prepare(base, folder))
}

/// Forgets an entry that came to nothing.
pub(super) fn void(base: &Base, folder: &Path, id: EntryId) -> rusqlite::Result<()> {
    let transaction = Transaction::new_unchecked(&base.main, TransactionBehavior::Immediate)?;
    forget(&transaction, folder, id.0)?;
    transaction.commit()
}

/// Removes an entry and the images that only it needs; returns how many bytes that gives free.
pub(super) fn forget(
    transaction: &Transaction<'_>,
    folder: &Path,
    entry: i64,
) -> rusqlite::Result<u64> {
    let mut statement = transaction.prepare_cached(
        "SELECT before FROM journal_files WHERE entry = ?1 AND before IS NOT NULL
         UNION SELECT after FROM journal_files WHERE entry = ?1 AND after IS NOT NULL",
    )?;
    let needed = statement.query_map([entry], |row| row.get(0))?;
    let needed = needed.collect::<rusqlite::Result<Vec<i64>>>()?;
    transaction.prepare_cached("DELETE FROM journal_files WHERE entry = ?1")?.execute([entry])?;
    transaction.prepare_cached("DELETE FROM journal WHERE number = ?1")?.execute([entry])?;
    let mut freed = 0u64;
    for image in needed {
        freed = freed.saturating_add(images::release(transaction, folder, image)?);
    }
    Ok(freed)
}

/// What a file was before a call can no longer be said.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Lost {
    pub(super) path: PathBuf,
}

/// Everything that the newest call of this id changed.
pub(super) fn change(
    base: &Base,
    folder: &Path,
    call: &str,
) -> rusqlite::Result<Option<Result<Change, Lost>>> {
    let whole = |connection: &Connection| {
        let Some(whose) = Whose::newest(connection, call)? else { return Ok(None) };
        let told = Told::of(connection, &whose)?;
        told.map(|told| told.change(connection, folder)).transpose()
    };
    match whole(&base.main)? {
        Some(found) => Ok(Some(found)),
        None => Ok(behind(base).and_then(|behind| whole(behind).ok()?)),
    }
}

/// The newest changes in a folder, newest first. Where there is content it is left empty.
pub(super) fn newest(base: &Base, root: &Path, most: usize) -> rusqlite::Result<Vec<Change>> {
    let mut found = of(&base.main, root, most)?;
    if let Some(behind) = behind(base) {
        found.extend(of(behind, root, most).unwrap_or_default());
    }
    found.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
    found.truncate(most);
    Ok(found.into_iter().map(|(_, change)| change).collect())
}

fn of(connection: &Connection, root: &Path, most: usize) -> rusqlite::Result<Vec<(i64, Change)>> {
    let mut statement = connection.prepare_cached(
        "SELECT owner, session, root, call, number FROM journal WHERE root = ?1 ORDER BY number DESC",
    )?;
    let mut rows = statement.query([bytes_of(root)])?;
    let (mut found, mut seen) = (Vec::new(), HashSet::new());
    while found.len() < most
        && let Some(row) = rows.next()?
    {
        // A row that cannot be read is left out.
        let (Ok(whose), Ok(number)) = (Whose::decode(row), row.get(4)) else { continue };
        if seen.contains(&whose) {
            continue;
        }
        match Told::of(connection, &whose) {
            Ok(told) => found.extend(told.map(|told| (number, told.outline()))),
            Err(error) if Failure::of(&error).is_none() => {}
            Err(error) => return Err(error),
        }
        seen.insert(whose);
    }
    Ok(found)
}

/// A call, by all that tells it apart: clients number their calls as they like.
#[derive(PartialEq, Eq, Hash)]
struct Whose {
    owner: String,
    session: String,
    root: Vec<u8>,
    call: String,
}

impl Whose {
    fn newest(connection: &Connection, call: &str) -> rusqlite::Result<Option<Self>> {
        let mut statement = connection.prepare_cached(
            "SELECT owner, session, root, call FROM journal WHERE call = ?1 ORDER BY number DESC LIMIT 1",
        )?;
        statement.query_row([call], Self::decode).optional()
    }

    fn decode(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        let (owner, session) = (row.get(0)?, row.get(1)?);
        Ok(Self { owner, session, root: row.get(2)?, call: row.get(3)? })
    }
}

/// What the journal says about a call, with rows in the place of content.
struct Told {
    call: String,
    session: String,
    tool: String,
    at: u64,
    files: Vec<File>,
}

struct File {
    path: PathBuf,
    before: Option<(i64, u32)>,
    after: After,
}

enum After {
    Image(i64),
    Absent,
    /// The call was interrupted between the commit and the note about it.
    Unknown,
}

impl Told {
    /// A call that committed several times changed each file from what it first was to what it last became.
    fn of(connection: &Connection, whose: &Whose) -> rusqlite::Result<Option<Self>> {
        let mut statement = connection.prepare_cached(
            "SELECT tool, at, state, path, before, mode, after
             FROM journal JOIN journal_files ON entry = number
             WHERE call = ?1 AND owner = ?2 AND session = ?3 AND root = ?4
             ORDER BY number, position",
        )?;
        let Whose { owner, session, root, call } = whose;
        let mut rows = statement.query(params![call, owner, session, root])?;
        let (call, session) = (call.clone(), session.clone());
        let mut told = Self { call, session, tool: String::new(), at: 0, files: Vec::new() };
        let mut places: HashMap<PathBuf, usize> = HashMap::new();
        while let Some(row) = rows.next()? {
            (told.tool, told.at) = (row.get(0)?, unsigned(row.get(1)?));
            let path = path_of(row.get(3)?);
            let before = row.get::<_, Option<i64>>(4)?.zip(row.get(5)?);
            let after = match (row.get::<_, String>(2)? == DONE, row.get(6)?) {
                (true, Some(image)) => After::Image(image),
                (true, None) => After::Absent,
                (false, _) => After::Unknown,
            };
            let known = places.get(&path).and_then(|place| told.files.get_mut(*place));
            if let Some(file) = known {
                file.after = after;
                continue;
            }
            places.insert(path.clone(), told.files.len());
            told.files.push(File { path, before, after });
        }
        Ok((!told.files.is_empty()).then_some(told))
    }

    fn change(
        self,
        connection: &Connection,
        folder: &Path,
    ) -> rusqlite::Result<Result<Change, Lost>> {
        let load = |row: i64| images::load(connection, folder, By::Row(row));
        let mut files = Vec::new();
        for File { path, before, after } in self.files {
            let before = match before {
                None => None,
                Some((row, mode)) => match load(row)? {
                    Some(bytes) => Some(Image { bytes, mode }),
                    None => return Ok(Err(Lost { path })),
                },
            };
            let after = match after {
                // Without it the old content can still be brought back, if not merged.
                After::Image(row) => load(row)?,
                After::Absent | After::Unknown => None,
            };
            files.push(Changed { path, before, after });
        }
        let Self { call, session, tool, at, .. } = self;
        Ok(Ok(Change { call, session, tool, at, files }))
    }

    fn outline(self) -> Change {
        let files = self.files.into_iter().map(|File { path, before, after }| Changed {
            path,
            before: before.map(|(_, mode)| Image { bytes: Bytes::new(), mode }),
            after: match after {
                After::Image(_) => Some(Bytes::new()),
                After::Absent | After::Unknown => None,
            },
        });
        let files = files.collect();
        Change { call: self.call, session: self.session, tool: self.tool, at: self.at, files }
    }
}

const BEGUN: &str = "begun";
const DONE: &str = "done";

/// The file behind, if it has the whole journal as we know it.
fn behind(base: &Base) -> Option<&Connection> {
    let tables = [Table::Journal, Table::JournalFiles, Table::JournalImages];
    tables.into_iter().map(|table| base.behind(table)).reduce(Option::and).flatten()
}

fn place(position: usize) -> i64 {
    i64::try_from(position).unwrap_or(i64::MAX)
}

fn bytes_of(path: &Path) -> &[u8] {
    path.as_os_str().as_encoded_bytes()
}

#[cfg(unix)]
fn path_of(bytes: Vec<u8>) -> PathBuf {
    let path: std::ffi::OsString = std::os::unix::ffi::OsStringExt::from_vec(bytes);
    path.into()
}

/// Where paths are not bytes, those that are not text cannot be had back without trusting the database.
#[cfg(not(unix))]
fn path_of(bytes: Vec<u8>) -> PathBuf {
    String::from_utf8_lossy(&bytes).into_owned().into()
}
