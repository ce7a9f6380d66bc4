//! What the journal says about a call: its entries put together again.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use helve_core::commit::ContentHash;
use helve_core::journal::{self, AfterImage, ChangedFile, RecordedChange};
use helve_core::paths;
use rusqlite::{Connection, OptionalExtension, params};

use super::super::base::Base;
use super::super::schema::Table;
use super::super::trouble::Failure;
use super::super::unsigned;
use super::bytes_of;
use super::entries::{DONE, meant_of};
use super::images::{self, By};

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
) -> rusqlite::Result<Option<Result<RecordedChange, Lost>>> {
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
pub(super) fn newest(
    base: &Base,
    root: &Path,
    most: usize,
) -> rusqlite::Result<Vec<RecordedChange>> {
    let mut found = of(&base.main, root, most)?;
    let behind = behind(base).and_then(|behind| of(behind, root, most).ok());
    for (number, change) in behind.unwrap_or_default() {
        // A call that was under way when the file went behind is in both; what memory says is newer.
        let is_same = |(_, other): &(i64, RecordedChange)| {
            (&other.session, &other.call) == (&change.session, &change.call)
        };
        if !found.iter().any(is_same) {
            found.push((number, change));
        }
    }
    found.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
    found.truncate(most);
    Ok(found.into_iter().map(|(_, change)| change).collect())
}

fn of(
    connection: &Connection,
    root: &Path,
    most: usize,
) -> rusqlite::Result<Vec<(i64, RecordedChange)>> {
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
    after: Left,
}

/// What a call left, with a row in the place of content.
enum Left {
    Image(i64, u32),
    Absent,
    /// The call was interrupted between the commit and the note about it. What it meant, if that can be read.
    Untold(Option<Option<ContentHash>>),
}

impl Told {
    /// A call that committed several times changed each file from what it first was to what it last became.
    fn of(connection: &Connection, whose: &Whose) -> rusqlite::Result<Option<Self>> {
        // The plus keeps SQLite from looking through everything under the root.
        let mut statement = connection.prepare_cached(
            "SELECT tool, at, state, path, before, mode, after, meant, left_mode
             FROM journal JOIN journal_files ON entry = number
             WHERE call = ?1 AND owner = ?2 AND session = ?3 AND +root = ?4
             ORDER BY number, position",
        )?;
        let Whose { owner, session, root, call } = whose;
        let mut rows = statement.query(params![call, owner, session, root])?;
        let (call, session) = (call.clone(), session.clone());
        let mut told = Self { call, session, tool: String::new(), at: 0, files: Vec::new() };
        let mut places: HashMap<PathBuf, usize> = HashMap::new();
        while let Some(row) = rows.next()? {
            (told.tool, told.at) = (row.get(0)?, unsigned(row.get(1)?));
            let path = paths::of_bytes(row.get(3)?);
            let mode = row.get::<_, Option<u32>>(5).ok().flatten().unwrap_or(UNKNOWN_MODE);
            let before = row.get::<_, Option<i64>>(4)?.map(|image| (image, mode));
            let after = match (row.get::<_, String>(2)? == DONE, row.get(6)?) {
                // Where it is not said the call did not change the mode.
                (true, Some(image)) => {
                    Left::Image(image, row.get::<_, Option<u32>>(8).ok().flatten().unwrap_or(mode))
                }
                (true, None) => Left::Absent,
                (false, _) => Left::Untold(meant_of(row.get(7).ok().flatten())),
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
    ) -> rusqlite::Result<Result<RecordedChange, Lost>> {
        let load = |row: i64| images::load(connection, folder, By::Row(row));
        let mut files = Vec::new();
        for File { path, before, after } in self.files {
            let before = match before {
                None => None,
                Some((row, mode)) => match load(row)? {
                    Some(bytes) => Some(journal::FileImage::new(bytes, mode)),
                    None => return Ok(Err(Lost { path })),
                },
            };
            let after = match after {
                Left::Image(row, mode) => match load(row)? {
                    Some(bytes) => AfterImage::Known(Some(journal::FileImage::new(bytes, mode))),
                    None => AfterImage::Lost,
                },
                Left::Absent => AfterImage::Known(None),
                Left::Untold(meant) => meant.map_or(AfterImage::Lost, AfterImage::Meant),
            };
            files.push(ChangedFile { path, before, after });
        }
        let Self { call, session, tool, at, .. } = self;
        Ok(Ok(RecordedChange { call, session, tool, at, files }))
    }

    fn outline(self) -> RecordedChange {
        let files = self.files.into_iter().map(|File { path, before, after }| ChangedFile {
            path,
            before: before.map(|(_, mode)| outlined(mode)),
            after: match after {
                Left::Image(_, mode) => AfterImage::Known(Some(outlined(mode))),
                Left::Absent => AfterImage::Known(None),
                Left::Untold(meant) => meant.map_or(AfterImage::Lost, AfterImage::Meant),
            },
        });
        let files = files.collect();
        RecordedChange {
            call: self.call,
            session: self.session,
            tool: self.tool,
            at: self.at,
            files,
        }
    }
}

/// A file that is told of without its content.
fn outlined(mode: u32) -> journal::FileImage {
    journal::FileImage::new(Bytes::new(), mode)
}

/// Where a mode cannot be read the content is still worth having.
const UNKNOWN_MODE: u32 = 0o600;

/// The file behind, if it has the whole journal as we know it.
fn behind(base: &Base) -> Option<&Connection> {
    let tables = [Table::Journal, Table::JournalFiles, Table::JournalImages];
    tables.into_iter().map(|table| base.behind(table)).reduce(Option::and).flatten()
}
