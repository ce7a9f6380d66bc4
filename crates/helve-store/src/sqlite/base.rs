//! The database in use: a file, or memory with a file behind it that is only read.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::open;
use super::schema::{self, TABLES, Table};
use super::trouble::Failure;

pub(crate) struct Base {
    pub(crate) main: Connection,
    pub(crate) place: Place,
    /// Who the calls that run belong to.
    pub(crate) owner: String,
    /// Asked where `main` has nothing. Its errors are "nothing" as well.
    behind: Option<Behind>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    File(Identity),
    Memory,
}

struct Behind {
    connection: Connection,
    tables: Vec<Table>,
}

const STATEMENTS: usize = 64;
/// A log up to this size is left to the next process.
const SHORT_LOG: u64 = 256 << 10;
/// The log is cut back to this size when it was larger.
const LOG: i64 = 16 << 20;

impl Base {
    /// Takes a file into use, which exists and may be empty.
    pub(crate) fn file(path: &Path, patience: Duration, owner: &str) -> Result<Self, Failure> {
        let mut main = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        main.busy_timeout(patience)?;
        schema::check(schema::version(&main)?)?;
        // Where the file system cannot do it SQLite keeps its older journal, which serves as well.
        main.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
        main.pragma_update(None, "synchronous", "NORMAL")?;
        main.pragma_update_and_check(None, "journal_size_limit", LOG, |_| Ok(()))?;
        schema::migrate(&mut main)?;
        let place = Place::File(Identity::of(path)?);
        Ok(Self { main, place, owner: owner.into(), behind: None })
    }

    pub(crate) fn memory() -> Result<Self, Failure> {
        let mut main = Connection::open_in_memory()?;
        main.set_prepared_statement_cache_capacity(STATEMENTS);
        schema::migrate(&mut main)?;
        Ok(Self { main, place: Place::Memory, owner: "this".into(), behind: None })
    }

    /// Reads on from a file that cannot be written, as far as it can be read.
    pub(crate) fn read_behind(&mut self, path: &Path) {
        self.behind = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY).ok().and_then(Behind::new);
    }

    /// Memory from now on, with what was the database behind it.
    pub(crate) fn into_memory(self) -> Result<Self, Failure> {
        let behind = match self.place {
            Place::File(_) => Behind::new(self.main),
            Place::Memory => self.behind,
        };
        Ok(Self { behind, ..Self::memory()? })
    }

    /// Whether the file in use is no longer the one that others find. SQLite would write to it all the same.
    pub(crate) fn has_moved(&self, data: &Path) -> bool {
        match self.place {
            Place::File(identity) => Identity::of(&open::file_in(data)).ok() != Some(identity),
            Place::Memory => false,
        }
    }

    /// Closes the database. Emptying its log takes several syncs, and somebody waits for a process to end,
    /// so a short one stays: the next process reads it, as it would after a crash.
    pub(crate) fn close(self, data: &Path) {
        let log = std::fs::metadata(open::log_in(data)).map_or(0, |log| log.len());
        if log <= SHORT_LOG {
            let keep = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
            // Otherwise it takes longer, no more.
            self.main.set_db_config(keep, true).ok();
        }
    }

    /// Does something that can as well be done another time, so not while others write.
    pub(crate) fn unhurried<T>(
        &self,
        patience: Duration,
        work: impl FnOnce(&Self) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        self.main.busy_timeout(Duration::ZERO)?;
        let done = work(self);
        self.main.busy_timeout(patience)?;
        done
    }

    /// What to ask after `main`, if it has that table as we know it.
    pub(crate) fn behind(&self, table: Table) -> Option<&Connection> {
        let behind = self.behind.as_ref()?;
        behind.tables.contains(&table).then_some(&behind.connection)
    }
}

impl Behind {
    fn new(connection: Connection) -> Option<Self> {
        // Nobody should wait for what can be done without.
        connection.busy_timeout(Duration::ZERO).ok()?;
        let fits = |table: &Table| table.fits(&connection).unwrap_or(false);
        let tables: Vec<_> = TABLES.into_iter().filter(fits).collect();
        (!tables.is_empty()).then_some(Self { connection, tables })
    }
}

fn connect(path: &Path, how: OpenFlags) -> rusqlite::Result<Connection> {
    let main = Connection::open_with_flags(path, how | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    main.set_prepared_statement_cache_capacity(STATEMENTS);
    main.pragma_update(None, "trusted_schema", false)?;
    main.pragma_update(None, "cell_size_check", true)?;
    Ok(main)
}

/// Which file it is, whatever it is called by now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity(u64, u64);

impl Identity {
    /// Does not open the file: closing it again would release SQLite's locks on it.
    #[cfg(unix)]
    pub(crate) fn of(path: &Path) -> std::io::Result<Self> {
        use std::os::unix::fs::MetadataExt;
        std::fs::metadata(path).map(|file| Self(file.dev(), file.ino()))
    }

    #[cfg(not(unix))]
    pub(crate) fn of(path: &Path) -> std::io::Result<Self> {
        let since = std::fs::metadata(path)?.created()?.duration_since(std::time::UNIX_EPOCH);
        let since = since.unwrap_or_default();
        Ok(Self(since.as_secs(), u64::from(since.subsec_nanos())))
    }
}
