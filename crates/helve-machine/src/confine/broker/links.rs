//! Finds out whether all names of a file with several hard links are in the sandbox.
//!
//! Whoever writes to such a file changes it under all its names. The kernel tells their number, but not where they are, so
//! the writable folders are searched for them. A file with a name that is not found there may not be written.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use helve_core::confine::{Area, NameGuard, PathChange};
use helve_core::process::SandboxPlan;
use rustix::fs::{Stat, StatVfsMountFlags, statvfs};

/// How many entries are searched. What is beyond counts as outside.
const MAX_ENTRIES: usize = 500_000;

/// The number of names that each file with several names has in the writable folders, once they are needed.
#[derive(Default)]
pub(super) struct LinkedFiles(RefCell<Option<HashMap<FileId, u64>>>);

/// Device and number of a file.
type FileId = (u64, u64);

impl LinkedFiles {
    /// Whether a file has all its names in writable folders, where none of them is protected.
    pub(super) fn are_all_inside(
        &self,
        file: &Stat,
        guard: &NameGuard,
        plan: &SandboxPlan,
    ) -> bool {
        let mut names = self.0.borrow_mut();
        let names = names.get_or_insert_with(|| count_names(guard, plan));
        names.get(&(file.st_dev, file.st_ino)).is_some_and(|count| *count >= file.st_nlink)
    }

    /// Records that a program in the sandbox has given another name to a file. `before` is its status before.
    pub(super) fn add_name(&self, before: &Stat) {
        if let Some(names) = self.0.borrow_mut().as_mut() {
            // A file with one name was not counted.
            let is_single = before.st_nlink <= 1;
            let count = names.entry((before.st_dev, before.st_ino)).or_default();
            *count = if is_single { before.st_nlink } else { *count } + 1;
        }
    }
}

fn count_names(guard: &NameGuard, plan: &SandboxPlan) -> HashMap<FileId, u64> {
    let mut names = HashMap::new();
    let is_inner =
        |folder: &PathBuf| plan.writable.iter().any(|it| it != folder && folder.starts_with(it));
    let mut folders: Vec<_> = plan.writable.iter().filter(|it| !is_inner(it)).cloned().collect();
    let mut left = MAX_ENTRIES;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Some(rest) = left.checked_sub(1) else { return names };
            left = rest;
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file()
                && let Ok(found) = entry.metadata()
                && found.nlink() > 1
                && is_writable(&entry.path(), guard)
            {
                *names.entry((found.dev(), found.ino())).or_default() += 1;
            }
        }
    }
    names
}

fn is_writable(path: &Path, guard: &NameGuard) -> bool {
    let has_head = |levels: usize| {
        let folder = path.ancestors().nth(levels);
        folder.is_none_or(|folder| fs::symlink_metadata(folder.join("HEAD")).is_ok())
    };
    let is_read_only = || {
        statvfs(path).map_or(true, |found| found.f_flag.contains(StatVfsMountFlags::RDONLY))
    };
    guard.area(path) == Area::Writable
        && !guard.refuses(path, PathChange::Write, has_head)
        && !is_read_only()
}
