//! Locks that show which processes are alive. A running call belongs to a process; if the process dies, its lock is
//! released and the call counts as interrupted.

use std::collections::HashSet;
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use helve_core::event::INTERRUPTED;
use rusqlite::{Connection, params};
use uuid::Uuid;

use super::now;
use crate::private;

/// Returns the folder of the lock files.
pub(crate) fn run_folder(data: &Path) -> PathBuf {
    data.join("run")
}

/// The lock that marks this process as alive.
pub(crate) struct ProcessLock {
    pub(crate) id: String,
    path: PathBuf,
    _lock: File,
}

impl ProcessLock {
    /// Creates the lock. Call this function while [`OpenLock`] is held: until the new file is locked, other processes
    /// would consider this process dead.
    pub(crate) fn new(data: &Path) -> io::Result<Self> {
        let id = Uuid::new_v4().simple().to_string();
        let path = run_folder(data).join(format!("{id}.lock"));
        let lock = private::create(&path)?;
        lock.try_lock()?;
        Ok(Self { id, path, _lock: lock })
    }

    /// Whether the lock file still exists. If somebody removed it, other processes consider this process dead.
    pub(crate) fn exists(&self) -> bool {
        self.path.exists()
    }
}

impl Drop for ProcessLock {
    fn drop(&mut self) {
        // If the file stays, the next process that opens the store removes it.
        std::fs::remove_file(&self.path).ok();
    }
}

/// Allows only one process at a time to open or repair the database and to check which processes are alive.
pub(crate) struct OpenLock {
    _lock: File,
}

/// Pause between two attempts to take the lock.
const RETRY_INTERVAL: Duration = Duration::from_millis(5);

impl OpenLock {
    /// Takes the lock. Returns `None` if another process holds the lock until the timeout.
    pub(crate) fn acquire(data: &Path, timeout: Duration) -> io::Result<Option<Self>> {
        let file = private::open_for_locking(&run_folder(data).join("opening"))?;
        let deadline = Instant::now() + timeout;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Some(Self { _lock: file })),
                Err(TryLockError::Error(error)) => return Err(error),
                Err(TryLockError::WouldBlock) if Instant::now() >= deadline => return Ok(None),
                Err(TryLockError::WouldBlock) => std::thread::sleep(RETRY_INTERVAL),
            }
        }
    }
}

/// Marks the calls that dead processes left running as interrupted.
pub(crate) fn mark_interrupted(connection: &Connection, data: &Path) -> rusqlite::Result<()> {
    let living = living_processes(data);
    let mut statement =
        connection.prepare("SELECT DISTINCT owner FROM calls WHERE owner IS NOT NULL")?;
    let owners = statement.query_map([], |row| row.get::<_, String>(0))?;
    for owner in owners.collect::<rusqlite::Result<Vec<_>>>()? {
        if !living.contains(&owner) {
            connection.execute(
                "UPDATE calls SET status = 'error', error = ?1, ended = ?2, owner = NULL WHERE owner = ?3",
                params![INTERRUPTED, now(), owner],
            )?;
        }
    }
    Ok(())
}

/// Returns the ids of living processes, whose locks are held. Removes the lock files of dead processes.
fn living_processes(data: &Path) -> HashSet<String> {
    let mut living = HashSet::new();
    let Ok(entries) = std::fs::read_dir(run_folder(data)) else { return living };
    for path in entries.filter_map(Result::ok).map(|entry| entry.path()) {
        let Some(id) = path.file_stem().and_then(|stem| stem.to_str()) else { continue };
        if path.extension().is_none_or(|extension| extension != "lock") {
            continue;
        }
        if is_dead(&path) {
            // If the file cannot be removed, the next process that opens the store tries again.
            std::fs::remove_file(&path).ok();
        } else {
            living.insert(id.to_owned());
        }
    }
    living
}

/// Whether the process of a lock file is dead. If the file cannot be opened, the process counts as alive.
fn is_dead(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| file.try_lock().is_ok())
}
