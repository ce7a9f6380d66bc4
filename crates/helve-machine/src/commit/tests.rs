//! Tests of commits in real folders.

mod basic;
mod faults;
mod interference;
mod locking;
mod processes;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use helve_core::Place;
use tempfile::TempDir;

use super::faults::InjectedFaults;
use super::*;
use crate::fixture::{folder, folder_in_memory, place};

/// A folder with files, and helpers to change them.
struct Fixture {
    root: TempDir,
    locks: TempDir,
    faults: InjectedFaults,
}

impl Fixture {
    /// On a real disk, where syncing is slow.
    fn on_disk() -> Self {
        Self { root: folder(), locks: folder(), faults: InjectedFaults::default() }
    }

    /// Files are given as `name = content`, one per line.
    fn new(files: &str) -> Self {
        let fixture = Self {
            root: folder_in_memory(),
            locks: folder_in_memory(),
            faults: InjectedFaults::default(),
        };
        for (name, content) in files.lines().filter_map(|line| line.trim().split_once(" = ")) {
            let path = fixture.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        fixture
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn commit(&self, changes: &[CommitChange]) -> Result<Vec<Committed>, CommitError> {
        self.commit_after(changes, AwaitRecorded::nothing())
    }

    fn commit_after(
        &self,
        changes: &[CommitChange],
        recorded: AwaitRecorded,
    ) -> Result<Vec<Committed>, CommitError> {
        let locks = PathLocks::new(self.locks.path().join("locks"), Duration::from_secs(10));
        let sys = Syscalls { faults: self.faults.clone() };
        commit(&sys, &locks, &SweptFolders::default(), changes, recorded)
            .map(|applied| applied.committed)
    }

    fn at(&self, name: &str) -> Place {
        place(self.root.path(), name)
    }

    /// Expects the current content.
    fn expect(&self, name: &str) -> ExpectedContent {
        match fs::read(self.path(name)) {
            Ok(content) => ExpectedContent::File(content.into()),
            Err(_) => ExpectedContent::Absent,
        }
    }

    fn write(&self, name: &str, content: &str) -> CommitChange {
        CommitChange::Write {
            at: self.at(name),
            expect: self.expect(name),
            bytes: Bytes::copy_from_slice(content.as_bytes()),
            mode: FileMode::Keep,
            links: HardLinks::Replace,
        }
    }

    fn remove(&self, name: &str) -> CommitChange {
        CommitChange::Remove { at: self.at(name), expect: self.expect(name) }
    }

    fn rename(&self, from: &str, to: &str, content: MovedContent) -> CommitChange {
        let (expect, expect_at_target) = (self.expect(from), self.expect(to));
        CommitChange::Move {
            from: self.at(from),
            expect,
            to: self.at(to),
            expect_at_target,
            content,
        }
    }

    /// Parses changes: `name = content`, `- name`, `from > to`, `from > to = content`.
    fn changes(&self, lines: &str) -> Vec<CommitChange> {
        let change = |line: &str| match (
            line.strip_prefix("- "),
            line.split_once(" > "),
            line.split_once(" = "),
        ) {
            (Some(name), _, _) => self.remove(name),
            (None, Some((from, to)), None) => self.rename(from, to, MovedContent::Same),
            (None, Some((from, _)), Some((before, content))) => {
                let to = before.split_once(" > ").map_or(before, |(_, to)| to);
                self.rename(from, to, MovedContent::New(Bytes::copy_from_slice(content.as_bytes())))
            }
            (None, None, Some((name, content))) => self.write(name, content),
            (None, None, None) => panic!("not a change: {line}"),
        };
        lines.lines().map(str::trim).filter(|line| !line.is_empty()).map(change).collect()
    }

    /// Lists every file and folder with its content, and with its mode unless that is 644.
    fn tree(&self) -> String {
        let mut entries = BTreeMap::new();
        collect(self.root.path(), "", &mut entries);
        entries.into_iter().map(|(name, content)| format!("{name}{content}\n")).collect()
    }
}

fn collect(folder: &Path, prefix: &str, entries: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        let metadata = entry.path().symlink_metadata().unwrap();
        if metadata.is_dir() {
            entries.insert(format!("{name}/"), String::new());
            collect(&entry.path(), &format!("{name}/"), entries);
        } else {
            let mode = metadata.mode() & 0o7777;
            let mode = if mode == 0o644 { String::new() } else { format!(" ({mode:o})") };
            let content = if metadata.is_file() {
                fs::read(entry.path()).unwrap_or_default()
            } else {
                b"?".to_vec()
            };
            entries.insert(name, format!("{mode} = {}", content.escape_ascii()));
        }
    }
}
