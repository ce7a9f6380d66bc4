//! From a folder to a database that works, whatever is found there.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::base::{Base, Identity};
use super::owner::{self, Opening, Owner};
use super::trouble::{self, Failure, Trouble};
use crate::private;

/// A database ready for use, and what a person should know about it.
pub(crate) struct Opened {
    pub(crate) base: Base,
    pub(crate) notice: Option<String>,
}

/// The file in a data folder.
pub(crate) fn file_in(data: &Path) -> PathBuf {
    data.join("store.db")
}

/// What was written to the file last, until SQLite moves it there.
pub(crate) fn log_in(data: &Path) -> PathBuf {
    beside(&file_in(data), "-wal")
}

/// Opens the file, or memory where that cannot be done.
///
/// `owner` is made if there is none yet. `damaged` is a file already known to be so, with the reason.
pub(crate) fn open(
    data: &Path,
    patience: Duration,
    owner: &mut Option<Owner>,
    damaged: Option<(Identity, String)>,
) -> Result<Opened, Failure> {
    let path = file_in(data);
    let failure = match on_disk(data, patience, owner, damaged) {
        Ok(opened) => return Ok(opened),
        Err(failure) => failure,
    };
    let mut base = Base::memory()?;
    match failure.trouble {
        Trouble::Newer { .. } | Trouble::Unwritable => base.read_behind(&path),
        Trouble::Damaged | Trouble::Changed | Trouble::Locked => {}
    }
    Ok(Opened { base, notice: Some(trouble::in_memory(&path, &failure)) })
}

fn on_disk(
    data: &Path,
    patience: Duration,
    owner: &mut Option<Owner>,
    damaged: Option<(Identity, String)>,
) -> Result<Opened, Failure> {
    private::folder(data)?;
    private::folder(&owner::run_folder(data))?;
    let Some(_opening) = Opening::begin(data, patience)? else {
        let why = "another process has been opening it for too long".to_owned();
        return Err(Failure { trouble: Trouble::Locked, why });
    };
    let path = file_in(data);
    let mut notice = None;
    if let Some((identity, why)) = damaged
        && Identity::of(&path).ok() == Some(identity)
    {
        notice = Some(trouble::moved_aside(&path, &move_aside(&path)?, &why));
    }
    let base = match usable(&path, data, patience, owner) {
        Err(Failure { trouble: Trouble::Damaged, why }) => {
            notice = Some(trouble::moved_aside(&path, &move_aside(&path)?, &why));
            usable(&path, data, patience, owner)?
        }
        otherwise => otherwise?,
    };
    Ok(Opened { base, notice })
}

fn usable(
    path: &Path,
    data: &Path,
    patience: Duration,
    owner: &mut Option<Owner>,
) -> Result<Base, Failure> {
    prepare(path)?;
    let owner = match owner.take() {
        Some(known) if known.is_seen() => owner.insert(known),
        Some(_) | None => owner.insert(Owner::new(data)?),
    };
    let base = Base::file(path, patience, &owner.id)?;
    owner::bury(&base.main, data)?;
    Ok(base)
}

/// Sees to it that there is a file of ours to open.
fn prepare(path: &Path) -> io::Result<()> {
    match std::fs::metadata(path) {
        // Opening it ourselves would, at closing, release SQLite's locks on it.
        Ok(found) if found.is_file() => private::restrict(path),
        Ok(_) => Err(io::Error::other("it is not a file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => private::create(path).map(drop),
        Err(error) => Err(error),
    }
}

/// How many damaged files are kept.
const KEPT_ASIDE: usize = 4;

/// Renames the file with its log, so that both can still be looked at together.
fn move_aside(path: &Path) -> io::Result<PathBuf> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let free = |at: &u64| !beside(path, &format!(".corrupt-{at}")).exists();
    let at = (since..).find(free).unwrap_or(since);
    let aside = beside(path, &format!(".corrupt-{at}"));
    // The file last: a new one must not meet the log of the old.
    for part in ["-wal", "-shm", ""] {
        match std::fs::rename(beside(path, part), beside(&aside, part)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    forget_oldest(path);
    Ok(aside)
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// A failing disk must not fill itself with damaged files.
fn forget_oldest(path: &Path) {
    let Some(entries) = path.parent().and_then(|data| std::fs::read_dir(data).ok()) else { return };
    let age = |name: &str| name.strip_prefix("store.db.corrupt-")?.parse::<u64>().ok();
    let names = entries.filter_map(Result::ok).map(|entry| entry.file_name());
    let mut ages: Vec<u64> = names.filter_map(|name| age(name.to_str()?)).collect();
    ages.sort_unstable();
    ages.reverse();
    for at in ages.into_iter().skip(KEPT_ASIDE) {
        for log in ["", "-wal", "-shm"] {
            // What cannot be removed is tried again next time.
            std::fs::remove_file(beside(path, &format!(".corrupt-{at}{log}"))).ok();
        }
    }
}
