//! Numbered todo lists: each write uses a new number, and the number that is read shows which write was kept.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::helve::{CALL_LIMIT, Helve};
use crate::process;

const MARK: &str = "torture-number-";

/// Returns the arguments of `todowrite` for a list with this number.
pub(super) fn list(number: u64) -> Value {
    let entry = |id: u64| json!({"id": id.to_string(), "content": format!("{MARK}{number}."), "status": "pending", "priority": "high"});
    json!({"todos": [entry(1), entry(2), entry(3)]})
}

/// Returns the number in a printed list, or `None` for an empty list. Two different numbers are an error.
pub(super) fn number_in(printed: &str) -> Result<Option<u64>, String> {
    let digits = printed.split(MARK).skip(1).map(|rest| rest.split('.').next().unwrap_or_default());
    let numbers: BTreeSet<_> = digits
        .map(str::parse::<u64>)
        .collect::<Result<_, _>>()
        .map_err(|_| format!("malformed list: {printed}"))?;
    match numbers.len() {
        0 | 1 => Ok(numbers.into_iter().next()),
        _ => Err(format!("two writes are mixed in one list: {numbers:?}")),
    }
}

/// Returns the number in the list of a session.
pub(super) fn read(helve: &Helve, session: &str) -> Result<Option<u64>, String> {
    number_in(&helve.call(session, "todoread", &json!({}))?.success("helve call todoread")?)
}

/// What the list of a session may contain: the last finished write, or a later write whose process was killed.
#[derive(Debug, Default)]
pub(super) struct ExpectedList {
    finished: Option<u64>,
    killed: Vec<u64>,
}

impl ExpectedList {
    /// Records a write that finished.
    pub(super) fn add_finished(&mut self, number: u64) {
        self.finished = Some(number);
        self.killed.clear();
    }

    /// Records a write whose process was killed.
    pub(super) fn add_killed(&mut self, number: u64) {
        self.killed.push(number);
    }

    /// Checks the number in the list that was read. From now on, the list must contain that number.
    pub(super) fn check(&mut self, found: Option<u64>) -> Result<(), String> {
        if found != self.finished && !found.is_some_and(|number| self.killed.contains(&number)) {
            return Err(format!(
                "found {found:?}, but the last finished write is {:?} (killed since: {:?})",
                self.finished, self.killed
            ));
        }
        self.finished = found;
        // A killed write cannot arrive later, because its process is gone.
        self.killed.clear();
        Ok(())
    }
}

/// Checks the integrity of every database below `data` with SQLite, called from Python.
pub(super) fn check_databases(data: &Path) -> Result<String, String> {
    let databases = find_databases(data, 0)?;
    if databases.is_empty() {
        return Err(format!("no database found below {}", data.display()));
    }
    const SCRIPT: &str = "import sqlite3, sys\n\
        print(sqlite3.connect(sys.argv[1], timeout=30).execute('pragma integrity_check').fetchone()[0])";
    for database in &databases {
        let output =
            process::run(Command::new("python3").args(["-c", SCRIPT]).arg(database), CALL_LIMIT)?;
        let result = output.success("integrity_check")?;
        if result.trim() != "ok" {
            return Err(format!("{}: {result}", database.display()));
        }
    }
    Ok(format!("{} database(s) intact", databases.len()))
}

fn find_databases(folder: &Path, depth: usize) -> Result<Vec<PathBuf>, String> {
    let with_path = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(with_path)? {
        let entry = entry.map_err(with_path)?;
        if entry.file_type().map_err(with_path)?.is_dir() && depth < 4 {
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
    fn the_number_of_a_list_is_found() {
        assert_eq!(number_in(&list(42).to_string()), Ok(Some(42)));
        assert_eq!(number_in("[]"), Ok(None));
        assert!(number_in(&format!("{}{}", list(1), list(2))).unwrap_err().contains("mixed"));
        assert!(number_in("torture-number-x.").unwrap_err().contains("malformed"));
    }

    #[test]
    fn a_finished_write_must_be_found() {
        let mut expected = ExpectedList::default();
        expected.add_finished(1);
        assert!(expected.check(None).is_err());
        assert!(expected.check(Some(2)).is_err());
        assert_eq!(expected.check(Some(1)), Ok(()));
    }

    #[test]
    fn a_killed_write_that_was_read_once_must_stay() {
        let mut expected = ExpectedList::default();
        expected.add_finished(1);
        expected.add_killed(2);
        expected.add_killed(3);
        assert_eq!(expected.check(Some(2)), Ok(()));
        assert!(expected.check(Some(1)).is_err());
        assert!(expected.check(Some(3)).is_err());
    }
}
