//! Finds out whether all names of a file with several hard links are in the sandbox.
//!
//! A write to such a file changes it under all its names. The kernel reports how many names there are, but not where,
//! so the writable folders are searched for them. If fewer names are found there, the file may not be written.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use helve_core::confine::{Area, NameGuard, PathChange};
use helve_core::process::SandboxPlan;
use rustix::fs::{
    CWD, Mode, OFlags, ResolveFlags, Stat, StatVfsMountFlags, fstat, fstatvfs, openat2,
};

/// Maximum number of directory entries that are searched. Names beyond that count as outside.
const MAX_ENTRIES: usize = 500_000;

/// The known names of files that have several.
#[derive(Default)]
pub(super) struct LinkedFiles(RefCell<KnownNames>);

type KnownNames = HashMap<FileId, BTreeSet<PathBuf>>;

/// Device and inode number of a file.
type FileId = (u64, u64);

impl LinkedFiles {
    /// Whether all names of a file are in writable folders, and none of them is protected.
    pub(super) fn are_all_inside(
        &self,
        file: &Stat,
        guard: &NameGuard,
        plan: &SandboxPlan,
    ) -> bool {
        let id = (file.st_dev, file.st_ino);
        let is_name = |path: &&PathBuf| is_writable_name(path, id, guard);
        let has_all = |names: &KnownNames| {
            let names = names.get(&id).into_iter().flatten().filter(is_name);
            u64::try_from(names.count()).is_ok_and(|count| count >= file.st_nlink)
        };
        if has_all(&self.0.borrow()) {
            return true;
        }
        let found = search(plan);
        let is_inside = has_all(&found);
        self.0.replace(found);
        is_inside
    }

    /// Records the old and the new name of a file to which a program in the sandbox added a hard link.
    pub(super) fn add(&self, file: &Stat, names: [Option<&Path>; 2]) {
        let mut known = self.0.borrow_mut();
        let known = known.entry((file.st_dev, file.st_ino)).or_default();
        known.extend(names.into_iter().flatten().map(Path::to_path_buf));
    }
}

/// Searches the writable folders for files with several names.
fn search(plan: &SandboxPlan) -> KnownNames {
    let mut names = KnownNames::new();
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
            {
                names.entry((found.dev(), found.ino())).or_default().insert(entry.path());
            }
        }
    }
    names
}

/// Whether a path still names this file and may be written. Symbolic links are not followed.
fn is_writable_name(path: &Path, file: FileId, guard: &NameGuard) -> bool {
    // Git takes a folder with a file `HEAD` for a repository. See `NameGuard::refuses`.
    let has_head = |levels: usize| {
        let folder = path.ancestors().nth(levels);
        folder.is_none_or(|folder| fs::symlink_metadata(folder.join("HEAD")).is_ok())
    };
    if guard.area(path) != Area::Writable || guard.refuses(path, PathChange::Write, has_head) {
        return false;
    }
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let Ok(named) = openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) else {
        return false;
    };
    let is_same = fstat(&named).is_ok_and(|found| (found.st_dev, found.st_ino) == file);
    // A file system that is mounted in the folder may be read-only.
    let is_read_only =
        |found: rustix::fs::StatVfs| found.f_flag.contains(StatVfsMountFlags::RDONLY);
    is_same && fstatvfs(&named).is_ok_and(|found| !is_read_only(found))
}
