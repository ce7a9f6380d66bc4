//! Reconstructs the changes of a call from its journal entries.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use helve_core::journal::{self, AfterImage, ChangedFile, RecordedChange, UndoneCall};
use helve_core::paths;
use rusqlite::{Connection, OptionalExtension, params};

use super::super::database::{Database, IntactImages};
use super::super::failure::DatabaseFailure;
use super::super::schema::Table;
use super::super::unsigned;
use super::entries::{DONE, IntendedState, decode_undoes};
use super::images::{self, ImageKey};
use super::path_bytes;

/// The path of a file whose earlier content, from before the call, can no longer be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LostImage {
    pub(super) path: PathBuf,
}

/// Returns everything that the newest call with this id changed, in any session or in a certain one.
pub(super) fn change(
    database: &Database,
    folder: &Path,
    call: &str,
    session: Option<&str>,
) -> rusqlite::Result<Option<Result<RecordedChange, LostImage>>> {
    let read = |connection: &Connection| {
        let Some(key) = CallKey::newest(connection, call, session)? else { return Ok(None) };
        let call = JournaledCall::of(connection, &key)?;
        call.map(|call| call.change(connection, folder)).transpose()
    };
    match read(&database.main)? {
        Some(found) => {
            let is_damaged = match &found {
                Ok(change) => change.files.iter().any(|file| file.after == AfterImage::Lost),
                Err(LostImage { .. }) => true,
            };
            if is_damaged {
                // Forgets which images are intact, so that the next entry with this content stores it again.
                *database.intact_images.borrow_mut() = IntactImages::default();
            }
            Ok(Some(found))
        }
        None => Ok(original_file(database).and_then(|original| read(original).ok()?)),
    }
}

/// Returns the newest changes in a folder, newest first, without contents.
pub(super) fn newest(
    database: &Database,
    root: &Path,
    max: usize,
) -> rusqlite::Result<Vec<RecordedChange>> {
    let mut found = read_newest(&database.main, root, max)?;
    let in_original =
        original_file(database).and_then(|original| read_newest(original, root, max).ok());
    for (number, change) in in_original.unwrap_or_default() {
        // A call that was running during the switch to memory is in both databases. The change in memory is newer, and
        // is kept.
        let is_same = |(_, other): &(i64, RecordedChange)| {
            (&other.session, &other.call) == (&change.session, &change.call)
        };
        if !found.iter().any(is_same) {
            found.push((number, change));
        }
    }
    found.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
    found.truncate(max);
    Ok(found.into_iter().map(|(_, change)| change).collect())
}

fn read_newest(
    connection: &Connection,
    root: &Path,
    max: usize,
) -> rusqlite::Result<Vec<(i64, RecordedChange)>> {
    let mut statement = connection.prepare_cached(
        "SELECT owner, session, root, call, number FROM journal WHERE root = ?1 ORDER BY number DESC",
    )?;
    let mut rows = statement.query([path_bytes(root)])?;
    let (mut found, mut seen) = (Vec::new(), HashSet::new());
    while found.len() < max
        && let Some(row) = rows.next()?
    {
        // Unreadable rows are skipped.
        let (Ok(key), Ok(number)) = (CallKey::decode(row), row.get(4)) else { continue };
        if seen.contains(&key) {
            continue;
        }
        match JournaledCall::of(connection, &key) {
            Ok(call) => found.extend(call.map(|call| (number, call.outline()))),
            Err(error) if DatabaseFailure::of(&error).is_none() => {}
            Err(error) => return Err(error),
        }
        seen.insert(key);
    }
    Ok(found)
}

/// Identifies a call. The id alone is not enough, because clients choose it.
#[derive(PartialEq, Eq, Hash)]
struct CallKey {
    owner: String,
    session: String,
    root: Vec<u8>,
    call: String,
}

impl CallKey {
    fn newest(
        connection: &Connection,
        call: &str,
        session: Option<&str>,
    ) -> rusqlite::Result<Option<Self>> {
        let mut statement = connection.prepare_cached(
            "SELECT owner, session, root, call FROM journal
             WHERE call = ?1 AND (?2 IS NULL OR session = ?2) ORDER BY number DESC LIMIT 1",
        )?;
        statement.query_row(params![call, session], Self::decode).optional()
    }

    fn decode(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        let (owner, session) = (row.get(0)?, row.get(1)?);
        Ok(Self { owner, session, root: row.get(2)?, call: row.get(3)? })
    }
}

/// The journal's record of a call, with row numbers instead of contents.
struct JournaledCall {
    call: String,
    session: String,
    tool: String,
    at: u64,
    undoes: Vec<UndoneCall>,
    files: Vec<JournaledFile>,
}

struct JournaledFile {
    path: PathBuf,
    /// The image row and the mode. `None` if the file did not exist.
    before: Option<(i64, u32)>,
    after: AfterState,
}

/// A file after a call, with a row number instead of content.
enum AfterState {
    /// The image row and the mode.
    Image(i64, u32),
    Absent,
    /// The call was interrupted before the result was recorded.
    Unrecorded(IntendedState),
}

impl JournaledCall {
    /// Reads a call. If it committed several times, each file has its first "before" and its last "after".
    fn of(connection: &Connection, key: &CallKey) -> rusqlite::Result<Option<Self>> {
        // The column `meant` is the intended content, and `left_mode` the mode after the call. The `+` before `root`
        // keeps SQLite from using the index on that column.
        let mut statement = connection.prepare_cached(
            "SELECT tool, at, state, path, before, mode, after, meant, left_mode, undoes
             FROM journal JOIN journal_files ON entry = number
             WHERE call = ?1 AND owner = ?2 AND session = ?3 AND +root = ?4
             ORDER BY number, position",
        )?;
        let CallKey { owner, session, root, call } = key;
        let mut rows = statement.query(params![call, owner, session, root])?;
        let (call, session) = (call.clone(), session.clone());
        let mut call = Self {
            call,
            session,
            tool: String::new(),
            at: 0,
            undoes: Vec::new(),
            files: Vec::new(),
        };
        let mut indexes: HashMap<PathBuf, usize> = HashMap::new();
        while let Some(row) = rows.next()? {
            (call.tool, call.at) = (row.get(0)?, unsigned(row.get(1)?));
            call.undoes = decode_undoes(row.get(9).ok().flatten());
            let path = paths::from_bytes(row.get(3)?);
            let mode = row.get::<_, Option<u32>>(5).ok().flatten().unwrap_or(UNKNOWN_MODE);
            let before = row.get::<_, Option<i64>>(4)?.map(|image| (image, mode));
            let after = match (row.get::<_, String>(2)? == DONE, row.get(6)?) {
                // A missing mode means that the call did not change it.
                (true, Some(image)) => AfterState::Image(
                    image,
                    row.get::<_, Option<u32>>(8).ok().flatten().unwrap_or(mode),
                ),
                (true, None) => AfterState::Absent,
                (false, _) => {
                    AfterState::Unrecorded(IntendedState::decode(row.get(7).ok().flatten()))
                }
            };
            let earlier = indexes.get(&path).and_then(|index| call.files.get_mut(*index));
            if let Some(file) = earlier {
                file.after = after;
                continue;
            }
            indexes.insert(path.clone(), call.files.len());
            call.files.push(JournaledFile { path, before, after });
        }
        Ok((!call.files.is_empty()).then_some(call))
    }

    /// Converts to a change with the contents, which are loaded from the images.
    fn change(
        self,
        connection: &Connection,
        folder: &Path,
    ) -> rusqlite::Result<Result<RecordedChange, LostImage>> {
        let load = |row: i64| images::load(connection, folder, ImageKey::Row(row));
        let mut files = Vec::new();
        for JournaledFile { path, before, after } in self.files {
            let before = match before {
                None => None,
                Some((row, mode)) => match load(row)? {
                    Some(bytes) => Some(journal::FileImage::new(bytes, mode)),
                    None => return Ok(Err(LostImage { path })),
                },
            };
            let after = match after {
                AfterState::Image(row, mode) => match load(row)? {
                    Some(bytes) => AfterImage::Known(Some(journal::FileImage::new(bytes, mode))),
                    None => AfterImage::Lost,
                },
                AfterState::Absent => AfterImage::Known(None),
                AfterState::Unrecorded(intended) => intended.into_image(),
            };
            files.push(ChangedFile { path, before, after });
        }
        let Self { call, session, tool, at, undoes, .. } = self;
        Ok(Ok(RecordedChange { call, session, tool, at, undoes, files }))
    }

    /// Converts to a change without contents.
    fn outline(self) -> RecordedChange {
        let files =
            self.files.into_iter().map(|JournaledFile { path, before, after }| ChangedFile {
                path,
                before: before.map(|(_, mode)| without_content(mode)),
                after: match after {
                    AfterState::Image(_, mode) => AfterImage::Known(Some(without_content(mode))),
                    AfterState::Absent => AfterImage::Known(None),
                    AfterState::Unrecorded(intended) => intended.into_image(),
                },
            });
        let files = files.collect();
        RecordedChange {
            call: self.call,
            session: self.session,
            tool: self.tool,
            at: self.at,
            undoes: self.undoes,
            files,
        }
    }
}

/// Returns an image with a mode and no content.
fn without_content(mode: u32) -> journal::FileImage {
    journal::FileImage::new(Bytes::new(), mode)
}

/// The mode assumed if the recorded mode cannot be read, so that the content can still be used.
const UNKNOWN_MODE: u32 = 0o600;

/// If Helve switched to a database in memory, returns the one on disk, which is only read, provided that its journal
/// tables have the expected schema.
fn original_file(database: &Database) -> Option<&Connection> {
    let tables = [Table::Journal, Table::JournalFiles, Table::JournalImages];
    tables.into_iter().map(|table| database.original_file(table)).reduce(Option::and).flatten()
}
