//! The tables, as a sequence of migrations.

use rusqlite::{Connection, TransactionBehavior};

use super::failure::{DatabaseFailure, DatabaseProblem};

/// Some column names are hard to guess. They stay, because existing files have them. Their meanings:
/// - `slots.touched`: time of the last write.
/// - `calls.owner`: id of the process (`ProcessLock`) that runs the call; null once the call has ended.
/// - `journal.owner`: id of the process that made the entry.
/// - `journal.undoes`: the calls that the entry undoes, as JSON; null for none.
/// - `rules.holder`: the session id or project root to which an approval applies.
/// - `transcripts.forked_at`: for a fork, the position of the last item copied from `parent`.
/// - `trust.given`: time when trust was given or withdrawn.
/// - `journal_files.before`, `after`: the image rows of the file before and after the commit.
/// - `journal_files.meant`: hash of the content that the commit intends to write; empty for a removal.
/// - `journal_files.mode`, `left_mode`: permissions before and after the commit.
/// - `journal_images.length`, `kept`: size of the content, and its size as stored.
/// - `journal_images.form`: how the content is stored: `raw`, `lz4`, or `diff` for a difference from another image.
/// - `journal_images.base`: for a difference, the row of the other image.
/// - `journal_images.seal`: checksum over the other columns and the stored bytes.
/// - `journal_images.bytes`: the stored bytes; null if they are in a file.
///
/// All times are in milliseconds since the Unix epoch.
///
/// `MIGRATIONS[n]` migrates version n to n + 1. Never change a released migration; append a new one.
///
/// A process of the previous version may have the file open during a migration, so migrations only add.
const MIGRATIONS: &[&str] = &[
    "
    CREATE TABLE slots (
        session TEXT NOT NULL,
        key     TEXT NOT NULL,
        version INTEGER NOT NULL,
        touched INTEGER NOT NULL,
        value   TEXT NOT NULL,
        PRIMARY KEY (session, key)
    ) STRICT;
    CREATE INDEX slots_by_time ON slots (touched);

    CREATE TABLE calls (
        number   INTEGER PRIMARY KEY,
        owner    TEXT,
        created  INTEGER NOT NULL,
        started  INTEGER,
        ended    INTEGER,
        id       TEXT NOT NULL,
        session  TEXT NOT NULL,
        parent   TEXT,
        tool     TEXT NOT NULL,
        status   TEXT NOT NULL,
        title    TEXT NOT NULL,
        input    TEXT NOT NULL,
        metadata TEXT NOT NULL,
        error    TEXT,
        output   TEXT
    ) STRICT;
    CREATE INDEX calls_by_time ON calls (created);
    CREATE INDEX calls_of_session ON calls (session, created);
    CREATE INDEX calls_not_ended ON calls (owner) WHERE owner IS NOT NULL;

    CREATE TABLE rules (
        number     INTEGER PRIMARY KEY,
        scope      TEXT NOT NULL,
        holder     BLOB NOT NULL,
        permission TEXT NOT NULL,
        kind       TEXT NOT NULL,
        pattern    TEXT NOT NULL,
        action     TEXT NOT NULL,
        remembered INTEGER NOT NULL,
        UNIQUE (scope, holder, permission, kind, pattern)
    ) STRICT;

    CREATE TABLE trust (
        root   BLOB PRIMARY KEY,
        digest TEXT,
        given  INTEGER NOT NULL
    ) STRICT;
",
    "
    CREATE TABLE journal (
        number  INTEGER PRIMARY KEY,
        owner   TEXT NOT NULL,
        call    TEXT NOT NULL,
        session TEXT NOT NULL,
        tool    TEXT NOT NULL,
        root    BLOB NOT NULL,
        at      INTEGER NOT NULL,
        state   TEXT NOT NULL
    ) STRICT;
    CREATE INDEX journal_of_call ON journal (call);
    CREATE INDEX journal_of_root ON journal (root);

    CREATE TABLE journal_files (
        entry    INTEGER NOT NULL,
        position INTEGER NOT NULL,
        path     BLOB NOT NULL,
        before   INTEGER,
        mode     INTEGER,
        after    INTEGER,
        PRIMARY KEY (entry, position)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX journal_files_before ON journal_files (before) WHERE before IS NOT NULL;
    CREATE INDEX journal_files_after ON journal_files (after) WHERE after IS NOT NULL;

    CREATE TABLE journal_images (
        number INTEGER PRIMARY KEY,
        hash   BLOB NOT NULL UNIQUE,
        length INTEGER NOT NULL,
        kept   INTEGER NOT NULL,
        form   TEXT NOT NULL,
        seal   BLOB NOT NULL,
        bytes  BLOB
    ) STRICT;
    CREATE INDEX journal_images_by_size ON journal_images (kept);

    CREATE TABLE sweeps (
        what TEXT PRIMARY KEY,
        at   INTEGER NOT NULL
    ) STRICT;
",
    "
    ALTER TABLE journal_files ADD COLUMN meant BLOB;
    ALTER TABLE journal_files ADD COLUMN left_mode INTEGER;
",
    "
    CREATE TABLE transcripts (
        session TEXT PRIMARY KEY,
        root    BLOB NOT NULL,
        title   TEXT NOT NULL,
        created INTEGER NOT NULL,
        updated INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX transcripts_of_root ON transcripts (root, updated);

    CREATE TABLE transcript_items (
        session TEXT NOT NULL,
        seq     INTEGER NOT NULL,
        at      INTEGER NOT NULL,
        json    TEXT NOT NULL,
        PRIMARY KEY (session, seq)
    ) STRICT, WITHOUT ROWID;
",
    "
    ALTER TABLE transcripts ADD COLUMN parent TEXT;
    ALTER TABLE transcripts ADD COLUMN forked_at INTEGER;

    CREATE TABLE transcript_requests (
        number      INTEGER PRIMARY KEY,
        session     TEXT NOT NULL,
        at          INTEGER NOT NULL,
        ms          INTEGER NOT NULL,
        provider    TEXT NOT NULL,
        model       TEXT NOT NULL,
        input       INTEGER NOT NULL,
        cache_read  INTEGER NOT NULL,
        cache_write INTEGER NOT NULL,
        output      INTEGER NOT NULL,
        reasoning   INTEGER NOT NULL,
        estimated   INTEGER NOT NULL,
        cost        REAL
    ) STRICT;
    CREATE INDEX transcript_requests_of_session ON transcript_requests (session);

    CREATE VIRTUAL TABLE transcript_words USING fts5 (session UNINDEXED, seq UNINDEXED, words);
",
    "
    CREATE TABLE transcript_waiting (
        number   INTEGER PRIMARY KEY,
        session  TEXT NOT NULL,
        id       TEXT NOT NULL UNIQUE,
        delivery TEXT NOT NULL,
        at       INTEGER NOT NULL,
        text     TEXT NOT NULL
    ) STRICT;
    CREATE INDEX transcript_waiting_of_session ON transcript_waiting (session);
",
    // Older processes do not know that a difference needs its base. The trigger keeps them from removing it.
    "
    ALTER TABLE journal_images ADD COLUMN base INTEGER;
    CREATE INDEX journal_images_of_base ON journal_images (base) WHERE base IS NOT NULL;
    CREATE TRIGGER journal_images_keep_base BEFORE DELETE ON journal_images
        WHEN EXISTS (SELECT 1 FROM journal_images WHERE base = OLD.number)
        BEGIN SELECT RAISE(IGNORE); END;
",
    "
    ALTER TABLE journal ADD COLUMN undoes TEXT;
",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    Slots,
    Calls,
    Rules,
    Trust,
    Journal,
    JournalFiles,
    JournalImages,
    Sweeps,
    Transcripts,
    TranscriptItems,
    TranscriptRequests,
    TranscriptWords,
    TranscriptWaiting,
}

pub(crate) const TABLES: [Table; 13] = [
    Table::Slots,
    Table::Calls,
    Table::Rules,
    Table::Trust,
    Table::Journal,
    Table::JournalFiles,
    Table::JournalImages,
    Table::Sweeps,
    Table::Transcripts,
    Table::TranscriptItems,
    Table::TranscriptRequests,
    Table::TranscriptWords,
    Table::TranscriptWaiting,
];

impl Table {
    fn name(self) -> &'static str {
        match self {
            Table::Slots => "slots",
            Table::Calls => "calls",
            Table::Rules => "rules",
            Table::Trust => "trust",
            Table::Journal => "journal",
            Table::JournalFiles => "journal_files",
            Table::JournalImages => "journal_images",
            Table::Sweeps => "sweeps",
            Table::Transcripts => "transcripts",
            Table::TranscriptItems => "transcript_items",
            Table::TranscriptRequests => "transcript_requests",
            Table::TranscriptWords => "transcript_words",
            Table::TranscriptWaiting => "transcript_waiting",
        }
    }

    fn columns(self) -> &'static str {
        match self {
            Table::Slots => "session key version touched value",
            Table::Calls => {
                "number owner created started ended id session parent tool status title input metadata error output"
            }
            Table::Rules => "number scope holder permission kind pattern action remembered",
            Table::Trust => "root digest given",
            Table::Journal => "number owner call session tool root at state undoes",
            Table::JournalFiles => "entry position path before mode after meant left_mode",
            Table::JournalImages => "number hash length kept form seal bytes base",
            Table::Sweeps => "what at",
            Table::Transcripts => "session root title created updated parent forked_at",
            Table::TranscriptItems => "session seq at json",
            Table::TranscriptRequests => {
                "number session at ms provider model input cache_read cache_write output reasoning estimated cost"
            }
            Table::TranscriptWords => "session seq words",
            Table::TranscriptWaiting => "number session id delivery at text",
        }
    }

    /// Whether a database has this table in exactly the known form. A table with an additional column is rejected,
    /// because that column could change the meaning of a row.
    pub(crate) fn matches(self, connection: &Connection) -> rusqlite::Result<bool> {
        let mut statement = connection.prepare("SELECT name FROM pragma_table_info(?1)")?;
        let names = statement.query_map([self.name()], |row| row.get::<_, String>(0))?;
        Ok(names.collect::<rusqlite::Result<Vec<_>>>()?.join(" ") == self.columns())
    }
}

/// Returns the version that this program writes.
pub(crate) fn current_version() -> i64 {
    i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX)
}

pub(crate) fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Returns an error if a version is negative or newer than this program supports. Older versions can be migrated.
pub(crate) fn check(found: i64) -> Result<(), DatabaseFailure> {
    let known = current_version();
    let (problem, why) = match found {
        ..0 => (DatabaseProblem::Damaged, format!("its store format is {found}")),
        _ if found > known => (DatabaseProblem::Newer { found, known }, String::new()),
        _ => return Ok(()),
    };
    Err(DatabaseFailure { problem, why })
}

/// Migrates a database to the current version, and checks its tables.
pub(crate) fn migrate(connection: &mut Connection) -> Result<(), DatabaseFailure> {
    if version(connection)? != current_version() {
        apply_migrations(connection)?;
    }
    for table in TABLES {
        if !table.matches(connection)? {
            let why = format!("the table {} has unexpected columns", table.name());
            return Err(DatabaseFailure { problem: DatabaseProblem::Damaged, why });
        }
    }
    Ok(())
}

fn apply_migrations(connection: &mut Connection) -> Result<(), DatabaseFailure> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found = version(&transaction)?;
    check(found)?;
    for migration in MIGRATIONS.iter().skip(usize::try_from(found).unwrap_or(usize::MAX)) {
        transaction.execute_batch(migration)?;
    }
    transaction.pragma_update(None, "user_version", current_version())?;
    Ok(transaction.commit()?)
}
