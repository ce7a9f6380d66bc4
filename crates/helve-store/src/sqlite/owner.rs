//! Which process a running call belongs to: each holds a lock that ends with it, however it ends.

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

/// The folder of the locks.
pub(crate) fn run_folder(data: &Path) -> PathBuf {
    data.join("run")
}

/// This process, as long as it lives.
pub(crate) struct Owner {
    pub(crate) id: String,
    path: PathBuf,
    _lock: File,
}

impl Owner {
    /// Call it while [`Opening`] is held: until the lock is taken its file looks like one of the dead.
    pub(crate) fn new(data: &Path) -> io::Result<Self> {
        let id = Uuid::new_v4().simple().to_string();
        let path = run_folder(data).join(format!("{id}.lock"));
        let lock = private::create(&path)?;
        lock.try_lock()?;
        Ok(Self { id, path, _lock: lock })
    }

    /// Whether others still find the lock: somebody may have emptied the folder.
    pub(crate) fn is_seen(&self) -> bool {
        self.path.exists()
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // A file that stays is removed by whoever opens the store next.
        std::fs::remove_file(&self.path).ok();
    }
}

/// Only one process at a time looks at the file, mends it, and says who is alive.
pub(crate) struct Opening {
    _lock: File,
}

/// How long to wait before trying a held lock again.
const PAUSE: Duration = Duration::from_millis(5);

impl Opening {
    /// `None` when another process keeps it.
    pub(crate) fn begin(data: &Path, patience: Duration) -> io::Result<Option<Self>> {
        let file = private::lockable(&run_folder(data).join("opening"))?;
        let until = Instant::now() + patience;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Some(Self { _lock: file })),
                Err(TryLockError::Error(error)) => return Err(error),
                Err(TryLockError::WouldBlock) if Instant::now() >= until => return Ok(None),
                Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
            }
        }
    }
}

/// Marks the calls that a dead process left running.
pub(crate) fn bury(connection: &Connection, data: &Path) -> rusqlite::Result<()> {
    let alive = alive(data);
    let mut statement =
        connection.prepare("SELECT DISTINCT owner FROM calls WHERE owner IS NOT NULL")?;
    let owners = statement.query_map([], |row| row.get::<_, String>(0))?;
    for owner in owners.collect::<rusqlite::Result<Vec<_>>>()? {
        if !alive.contains(&owner) {
            connection.execute(
                "UPDATE calls SET status = 'error', error = ?1, ended = ?2, owner = NULL WHERE owner = ?3",
                params![INTERRUPTED, now(), owner],
            )?;
        }
    }
    Ok(())
}

/// The owners whose lock is held. Lock files of the dead are removed on the way.
fn alive(data: &Path) -> HashSet<String> {
    let mut alive = HashSet::new();
    let Ok(entries) = std::fs::read_dir(run_folder(data)) else { return alive };
    for path in entries.filter_map(Result::ok).map(|entry| entry.path()) {
        let Some(id) = path.file_stem().and_then(|stem| stem.to_str()) else { continue };
        if path.extension().is_none_or(|extension| extension != "lock") {
            continue;
        }
        if is_dead(&path) {
            // What cannot be removed is tried again next time.
            std::fs::remove_file(&path).ok();
        } else {
            alive.insert(id.to_owned());
        }
    }
    alive
}

/// In doubt an owner lives.
fn is_dead(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| file.try_lock().is_ok())
}
