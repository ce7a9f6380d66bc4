//! The database in use: a file, or memory together with the original file, which is only read.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::failure::DatabaseFailure;
use super::open;
use super::schema::{self, TABLES, Table};

pub(crate) struct Database {
    pub(crate) main: Connection,
    pub(crate) location: Location,
    /// The id of this process, to which running calls belong.
    pub(crate) owner: String,
    /// The file on disk, if `main` is in memory because that file cannot be written or belongs to a newer version. Rows
    /// that `main` does not have are read from it. A read error counts as "not found".
    original_file: Option<OriginalFile>,
    /// Images in `main` that this process stored or verified.
    pub(crate) intact_images: RefCell<IntactImages>,
}

/// Hashes of images of which an intact copy was stored, the newest last. Such images are not verified again, because
/// that takes long for large files.
#[derive(Default)]
pub(crate) struct IntactImages(VecDeque<blake3::Hash>);

impl IntactImages {
    const MAX: usize = 64;

    pub(crate) fn contains(&self, hash: &blake3::Hash) -> bool {
        self.0.contains(hash)
    }

    pub(crate) fn insert(&mut self, hash: blake3::Hash) {
        self.0.retain(|known| *known != hash);
        if self.0.len() == Self::MAX {
            self.0.pop_front();
        }
        self.0.push_back(hash);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Location {
    File(FileIdentity),
    Memory,
}

struct OriginalFile {
    connection: Connection,
    /// The tables that have the expected schema.
    tables: Vec<Table>,
}

const STATEMENT_CACHE_SIZE: usize = 64;
/// A write-ahead log up to this size is not checkpointed on exit; the next process reads it.
const MAX_LEFTOVER_LOG_BYTES: u64 = 256 << 10;
/// The write-ahead log is truncated to this size.
const MAX_LOG_BYTES: i64 = 16 << 20;

impl Database {
    /// Opens an existing file, which may be empty.
    pub(crate) fn file(
        path: &Path,
        timeout: Duration,
        owner: &str,
    ) -> Result<Self, DatabaseFailure> {
        let mut main = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        main.busy_timeout(timeout)?;
        schema::check(schema::version(&main)?)?;
        // If the file system does not support a write-ahead log, SQLite keeps its rollback journal, which works too.
        main.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
        main.pragma_update(None, "synchronous", "NORMAL")?;
        main.pragma_update_and_check(None, "journal_size_limit", MAX_LOG_BYTES, |_| Ok(()))?;
        schema::migrate(&mut main)?;
        let location = Location::File(FileIdentity::of(path)?);
        let intact_images = RefCell::default();
        Ok(Self { main, location, owner: owner.into(), original_file: None, intact_images })
    }

    pub(crate) fn memory() -> Result<Self, DatabaseFailure> {
        let mut main = Connection::open_in_memory()?;
        main.set_prepared_statement_cache_capacity(STATEMENT_CACHE_SIZE);
        schema::migrate(&mut main)?;
        Ok(Self {
            main,
            location: Location::Memory,
            owner: "this".into(),
            original_file: None,
            intact_images: RefCell::default(),
        })
    }

    /// Opens the original file read-only, if it can be read.
    pub(crate) fn open_original_file(&mut self, path: &Path) {
        self.original_file =
            connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY).ok().and_then(OriginalFile::new);
    }

    /// Switches to memory. The file on disk is still read.
    pub(crate) fn into_memory(self) -> Result<Self, DatabaseFailure> {
        let original_file = match self.location {
            Location::File(_) => OriginalFile::new(self.main),
            Location::Memory => self.original_file,
        };
        Ok(Self { original_file, ..Self::memory()? })
    }

    /// Whether the path now leads to another file. If so, the database must be opened again, because SQLite would keep
    /// writing to the old file.
    pub(crate) fn was_replaced(&self, data: &Path) -> bool {
        match self.location {
            Location::File(identity) => {
                FileIdentity::of(&open::database_path(data)).ok() != Some(identity)
            }
            Location::Memory => false,
        }
    }

    /// Closes the database. Checkpointing the log takes several syncs, which would delay the exit of the process,
    /// so a short log is left to the next process, which reads it as after a crash.
    pub(crate) fn close(self, data: &Path) {
        let log = std::fs::metadata(open::wal_path(data)).map_or(0, |log| log.len());
        if log <= MAX_LEFTOVER_LOG_BYTES {
            let no_checkpoint = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
            // If the setting cannot be changed, closing only takes longer.
            self.main.set_db_config(no_checkpoint, true).ok();
        }
    }

    /// Runs work that can be postponed. The work fails at once, without waiting, if another process is writing.
    pub(crate) fn without_busy_wait<T>(
        &self,
        timeout: Duration,
        work: impl FnOnce(&Self) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        self.main.busy_timeout(Duration::ZERO)?;
        let result = work(self);
        self.main.busy_timeout(timeout)?;
        result
    }

    /// If `main` is in memory, returns the original file, provided that this table has the expected schema.
    pub(crate) fn original_file(&self, table: Table) -> Option<&Connection> {
        let original = self.original_file.as_ref()?;
        original.tables.contains(&table).then_some(&original.connection)
    }
}

impl OriginalFile {
    fn new(connection: Connection) -> Option<Self> {
        // The original file is optional, so no query waits for a lock on it.
        connection.busy_timeout(Duration::ZERO).ok()?;
        let is_known = |table: &Table| table.matches(&connection).unwrap_or(false);
        let tables: Vec<_> = TABLES.into_iter().filter(is_known).collect();
        (!tables.is_empty()).then_some(Self { connection, tables })
    }
}

fn connect(path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    let main = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    main.set_prepared_statement_cache_capacity(STATEMENT_CACHE_SIZE);
    main.pragma_update(None, "trusted_schema", false)?;
    main.pragma_update(None, "cell_size_check", true)?;
    Ok(main)
}

/// Identifies a file independent of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileIdentity(u64, u64);

impl FileIdentity {
    /// Identifies the file at a path. Does not open the file, because closing it again would release SQLite's locks on
    /// it.
    pub(crate) fn of(path: &Path) -> std::io::Result<Self> {
        std::fs::metadata(path).and_then(|file| Self::of_metadata(&file))
    }

    #[cfg(unix)]
    pub(crate) fn of_metadata(file: &std::fs::Metadata) -> std::io::Result<Self> {
        use std::os::unix::fs::MetadataExt;
        Ok(Self(file.dev(), file.ino()))
    }

    #[cfg(not(unix))]
    pub(crate) fn of_metadata(file: &std::fs::Metadata) -> std::io::Result<Self> {
        let created = file.created()?.duration_since(std::time::UNIX_EPOCH);
        let created = created.unwrap_or_default();
        Ok(Self(created.as_secs(), u64::from(created.subsec_nanos())))
    }
}
