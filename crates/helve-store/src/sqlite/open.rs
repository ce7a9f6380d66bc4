//! Opens the database of a data folder, and recovers if the file is damaged or cannot be used.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::database::{Database, FileIdentity};
use super::failure::{self, DatabaseFailure, DatabaseProblem};
use super::process_lock::{self, OpenLock, ProcessLock};
use crate::private;

/// A usable database, and a warning for the user if a problem occurred.
pub(crate) struct OpenedDatabase {
    pub(crate) database: Database,
    pub(crate) warning: Option<String>,
}

/// Returns the path of the database file in a data folder.
pub(crate) fn database_path(data: &Path) -> PathBuf {
    data.join("store.db")
}

/// Returns the path of SQLite's write-ahead log.
pub(crate) fn wal_path(data: &Path) -> PathBuf {
    with_suffix(&database_path(data), "-wal")
}

/// Opens the database file. If the file cannot be used, opens an in-memory database.
///
/// `lock` is created if it is `None`. `damaged` is a file already known to be damaged, with the reason.
pub(crate) fn open(
    data: &Path,
    timeout: Duration,
    lock: &mut Option<ProcessLock>,
    damaged: Option<(FileIdentity, String)>,
) -> Result<OpenedDatabase, DatabaseFailure> {
    let path = database_path(data);
    let failure = match open_on_disk(data, timeout, lock, damaged) {
        Ok(opened) => return Ok(opened),
        Err(failure) => failure,
    };
    let mut database = Database::memory()?;
    match failure.problem {
        DatabaseProblem::Newer { .. } | DatabaseProblem::Unwritable => {
            database.open_original_file(&path)
        }
        DatabaseProblem::Damaged | DatabaseProblem::Changed | DatabaseProblem::Locked => {}
    }
    Ok(OpenedDatabase { database, warning: Some(failure::in_memory_warning(&path, &failure)) })
}

fn open_on_disk(
    data: &Path,
    timeout: Duration,
    lock: &mut Option<ProcessLock>,
    damaged: Option<(FileIdentity, String)>,
) -> Result<OpenedDatabase, DatabaseFailure> {
    private::create_folder(data)?;
    private::create_folder(&process_lock::run_folder(data))?;
    let Some(_opening) = OpenLock::acquire(data, timeout)? else {
        let why = "another process has been opening the store for too long".to_owned();
        return Err(DatabaseFailure { problem: DatabaseProblem::Locked, why });
    };
    let path = database_path(data);
    let mut warning = None;
    if let Some((identity, why)) = damaged
        && FileIdentity::of(&path).ok() == Some(identity)
    {
        warning = Some(failure::moved_aside_warning(&path, &move_aside(&path)?, &why));
    }
    let database = match open_file(&path, data, timeout, lock) {
        Err(DatabaseFailure { problem: DatabaseProblem::Damaged, why }) => {
            warning = Some(failure::moved_aside_warning(&path, &move_aside(&path)?, &why));
            open_file(&path, data, timeout, lock)?
        }
        result => result?,
    };
    Ok(OpenedDatabase { database, warning })
}

fn open_file(
    path: &Path,
    data: &Path,
    timeout: Duration,
    lock: &mut Option<ProcessLock>,
) -> Result<Database, DatabaseFailure> {
    prepare(path)?;
    let lock = match lock.take() {
        Some(known) if known.exists() => lock.insert(known),
        Some(_) | None => lock.insert(ProcessLock::new(data)?),
    };
    let database = Database::file(path, timeout, &lock.id)?;
    process_lock::mark_interrupted(&database.main, data)?;
    Ok(database)
}

/// Makes sure that there is a private file to open.
fn prepare(path: &Path) -> io::Result<()> {
    match std::fs::metadata(path) {
        // The file is not opened here, because closing it again would release SQLite's locks on it.
        Ok(found) if found.is_file() => private::restrict(path),
        Ok(_) => Err(io::Error::other("the path is not a file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => private::create(path).map(drop),
        Err(error) => Err(error),
    }
}

/// Maximum number of damaged files that are kept.
const MAX_DAMAGED_FILES: usize = 4;

/// Renames a damaged file together with its log, so that both can still be examined.
fn move_aside(path: &Path) -> io::Result<PathBuf> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let is_free = |at: &u64| !with_suffix(path, &format!(".corrupt-{at}")).exists();
    let at = (now..).find(is_free).unwrap_or(now);
    let aside = with_suffix(path, &format!(".corrupt-{at}"));
    // The logs are renamed before the database, so that a new database never finds an old log.
    for part in ["-wal", "-shm", ""] {
        match std::fs::rename(with_suffix(path, part), with_suffix(&aside, part)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    remove_oldest_damaged(path);
    Ok(aside)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Removes the oldest damaged files, so that a failing disk does not fill up with them.
fn remove_oldest_damaged(path: &Path) {
    let Some(entries) = path.parent().and_then(|data| std::fs::read_dir(data).ok()) else { return };
    let time = |name: &str| name.strip_prefix("store.db.corrupt-")?.parse::<u64>().ok();
    let names = entries.filter_map(Result::ok).map(|entry| entry.file_name());
    let mut times: Vec<u64> = names.filter_map(|name| time(name.to_str()?)).collect();
    times.sort_unstable();
    times.reverse();
    for at in times.into_iter().skip(MAX_DAMAGED_FILES) {
        for log in ["", "-wal", "-shm"] {
            // If the file cannot be removed, the next call tries again.
            std::fs::remove_file(with_suffix(path, &format!(".corrupt-{at}{log}"))).ok();
        }
    }
}
