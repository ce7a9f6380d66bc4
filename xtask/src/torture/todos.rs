//! Todo lists with a number in them, and what may be found of them afterwards.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::helve::{CALL_LIMIT, Helve};
use crate::process;

const MARK: &str = "torture-number-";

pub(super) fn list(number: u64) -> Value {
    let entry = |place: u64| json!({"id": place.to_string(), "content": format!("{MARK}{number}."), "status": "pending", "priority": "high"});
    json!({"todos": [entry(1), entry(2), entry(3)]})
}

/// The number in a list as it was printed. `None` is an empty list; two numbers are a torn write.
pub(super) fn number_in(printed: &str) -> Result<Option<u64>, String> {
    let digits = printed.split(MARK).skip(1).map(|rest| rest.split('.').next().unwrap_or_default());
    let numbers: BTreeSet<_> = digits
        .map(str::parse::<u64>)
        .collect::<Result<_, _>>()
        .map_err(|_| format!("a broken list: {printed}"))?;
    match numbers.len() {
        0 | 1 => Ok(numbers.into_iter().next()),
        _ => Err(format!("two writes mixed in one list: {numbers:?}")),
    }
}

pub(super) fn read(helve: &Helve, session: &str) -> Result<Option<u64>, String> {
    number_in(&helve.call(session, "todoread", &json!({}))?.good("helve call todoread")?)
}

/// What one session must hold: the last write that was reported done, or one begun since whose process was killed.
#[derive(Debug, Default)]
pub(super) struct Expected {
    done: Option<u64>,
    perhaps: Vec<u64>,
}

impl Expected {
    pub(super) fn finished(&mut self, number: u64) {
        self.done = Some(number);
        self.perhaps.clear();
    }

    pub(super) fn killed(&mut self, number: u64) {
        self.perhaps.push(number);
    }

    /// Compares, and settles what was open: what was seen once must stay.
    pub(super) fn meet(&mut self, found: Option<u64>) -> Result<(), String> {
        if found != self.done && !found.is_some_and(|number| self.perhaps.contains(&number)) {
            return Err(format!(
                "found {found:?}, but {:?} was reported done (killed since: {:?})",
                self.done, self.perhaps
            ));
        }
        self.done = found;
        // A killed write that is not there yet cannot arrive later: its process is gone.
        self.perhaps.clear();
        Ok(())
    }
}

/// Asks SQLite itself, through Python's, whether every database below `data` is whole.
pub(super) fn check_databases(data: &Path) -> Result<String, String> {
    let databases = find_databases(data, 0)?;
    if databases.is_empty() {
        return Err(format!("no database below {}", data.display()));
    }
    const SCRIPT: &str = "import sqlite3, sys\n\
        print(sqlite3.connect(sys.argv[1], timeout=30).execute('pragma integrity_check').fetchone()[0])";
    for database in &databases {
        let checked = process::finish(
            Command::new("python3").args(["-c", SCRIPT]).arg(database),
            CALL_LIMIT,
        )?;
        let said = checked.good("integrity_check")?;
        if said.trim() != "ok" {
            return Err(format!("{}: {said}", database.display()));
        }
    }
    Ok(format!("{} database(s) whole", databases.len()))
}

fn find_databases(folder: &Path, depth: usize) -> Result<Vec<PathBuf>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.file_type().map_err(failed)?.is_dir() && depth < 4 {
            found.extend(find_databases(&entry.path(), depth + 1)?);
        } else if entry.path().extension().is_some_and(|extension| extension == "db") {
            found.push(entry.path());
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_comes_back() {
        assert_eq!(number_in(&list(42).to_string()), Ok(Some(42)));
        assert_eq!(number_in("[]"), Ok(None));
        assert!(number_in(&format!("{}{}", list(1), list(2))).unwrap_err().contains("mixed"));
        assert!(number_in("torture-number-x.").unwrap_err().contains("broken"));
    }

    #[test]
    fn a_reported_write_must_be_found() {
        let mut expected = Expected::default();
        expected.finished(1);
        assert!(expected.meet(None).is_err());
        assert!(expected.meet(Some(2)).is_err());
        assert_eq!(expected.meet(Some(1)), Ok(()));
    }

    #[test]
    fn a_killed_write_may_be_found_but_then_stays() {
        let mut expected = Expected::default();
        expected.finished(1);
        expected.killed(2);
        expected.killed(3);
        assert_eq!(expected.meet(Some(2)), Ok(()));
        assert!(expected.meet(Some(1)).is_err());
        assert!(expected.meet(Some(3)).is_err());
    }
}
