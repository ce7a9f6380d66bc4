//! Decides by name which changes could create a git repository, or lead git to other settings or programs.
//!
//! Mounts protect the repositories that exist when a command starts. In the `guarded` folders of a plan, names are checked
//! too, whenever a command creates, moves or opens a file for writing:
//!
//! - No entry may be named `.git`, and none with this name may be moved.
//! - The entries of a git folder that configure or run programs may not be written.
//! - A bare repository has no `.git`, but a file named `HEAD`. Outside of git folders, no file may get this name, and a
//!   folder that has such a file is treated as a git folder.
//! - No folder may be moved out of a git folder, because it may already contain a `HEAD`.
//!
//! A check stays valid while other processes rename folders: renaming the folders around a path never makes one of
//! these rules apply to it.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use helve_policy::builtin;

use crate::process::SandboxPlan;

/// How a path changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathChange {
    /// A file is opened for writing, or something other than an empty folder gets this name.
    Write,
    /// An empty folder gets this name.
    CreateFolder,
    /// The entry with this name gets another name.
    Move,
}

/// Where a file may be changed, by the innermost folder of a plan around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Area {
    /// In a writable folder, where changes are seen by everybody.
    Writable,
    /// In a copied folder, whose changes stay in the sandbox.
    Copied,
    /// Elsewhere.
    ReadOnly,
}

/// A plan, prepared for checking many paths. All paths are absolute, with every link followed.
#[derive(Debug)]
pub struct NameGuard {
    /// The protected paths, as the system encodes them.
    protected: HashSet<Vec<u8>>,
    /// The folders around protected paths.
    around_protected: HashSet<Vec<u8>>,
    /// The writable and copied folders, inner ones first.
    areas: Vec<GuardedArea>,
}

#[derive(Debug)]
struct GuardedArea {
    folder: PathBuf,
    area: Area,
    is_guarded: bool,
}

impl NameGuard {
    pub fn new(plan: &SandboxPlan) -> NameGuard {
        let encoded = |path: &Path| path.as_os_str().as_encoded_bytes().to_vec();
        let writable = plan.writable.iter().map(|folder| (folder, Area::Writable));
        let copied = plan.copied.iter().map(|copied| (&copied.folder, Area::Copied));
        let mut areas: Vec<_> = writable
            .chain(copied)
            .map(|(folder, area)| {
                let is_guarded = plan.guarded.contains(folder);
                GuardedArea { folder: folder.clone(), area, is_guarded }
            })
            .collect();
        areas.sort_by_key(|area| std::cmp::Reverse(area.folder.components().count()));
        let around = plan.protected.iter().flat_map(|path| path.ancestors().skip(1));
        NameGuard {
            protected: plan.protected.iter().map(|path| encoded(path)).collect(),
            around_protected: around.map(encoded).collect(),
            areas,
        }
    }

    /// Whether the plan refuses a change of a path. `has_head(n)` says whether the folder `n` levels above the path has an
    /// entry named `HEAD`; the parent folder is one level above.
    pub fn refuses(
        &self,
        path: &Path,
        change: PathChange,
        has_head: impl Fn(usize) -> bool,
    ) -> bool {
        let innermost = self.innermost(path);
        // A writable folder itself contains protected paths too, but it is a mount, which cannot be replaced.
        let is_area = innermost.is_some_and(|area| area.folder == path);
        if !is_area && self.is_protected(path, change) {
            return true;
        }
        let Some(relative) = innermost.and_then(|area| area.guarded_part(path)) else {
            return false;
        };
        let mut is_in_git = false;
        let mut names = relative.iter().peekable();
        let mut levels_above = relative.iter().count();
        while let Some(name) = names.next() {
            let is_last = levels_above == 1;
            if is_git(name) {
                let is_settings = names.peek().is_some_and(|it| builtin::is_protected_in_git(it));
                if is_last || is_settings {
                    return true;
                }
                is_in_git = true;
            } else if !is_in_git {
                let is_new_head = is_last && is_head(name) && change != PathChange::Move;
                if is_new_head || builtin::is_protected_in_git(name) && has_head(levels_above) {
                    return true;
                }
            }
            levels_above -= 1;
        }
        false
    }

    /// Whether moving a folder takes it out of a git folder.
    pub fn leaves_git_folder(&self, from: &Path, to: &Path) -> bool {
        let is_inside = |path: &Path| {
            let relative = self.innermost(path).and_then(|area| area.guarded_part(path));
            relative.and_then(Path::parent).is_some_and(|around| around.iter().any(is_git))
        };
        is_inside(from) && !is_inside(to)
    }

    /// Returns where a path is.
    pub fn area(&self, path: &Path) -> Area {
        self.innermost(path).map_or(Area::ReadOnly, |area| area.area)
    }

    fn innermost(&self, path: &Path) -> Option<&GuardedArea> {
        self.areas.iter().find(|area| path.starts_with(&area.folder))
    }

    /// Whether a path is protected, or is a folder around a protected path that would be replaced.
    fn is_protected(&self, path: &Path, change: PathChange) -> bool {
        let path = path.as_os_str().as_encoded_bytes();
        let is_slash = |(at, byte): (usize, &u8)| (*byte == b'/').then_some(at);
        let mut folders = path.iter().enumerate().filter_map(is_slash).map(|end| &path[..end]);
        self.protected.contains(path)
            || change != PathChange::CreateFolder && self.around_protected.contains(path)
            || folders.any(|folder| self.protected.contains(folder))
    }
}

impl GuardedArea {
    /// Returns a path relative to the folder. `None` if names in the folder are not checked.
    fn guarded_part<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        self.is_guarded.then(|| path.strip_prefix(&self.folder).ok()).flatten()
    }
}

fn is_git(name: &OsStr) -> bool {
    name.eq_ignore_ascii_case(".git")
}

fn is_head(name: &OsStr) -> bool {
    name.eq_ignore_ascii_case("HEAD")
}
