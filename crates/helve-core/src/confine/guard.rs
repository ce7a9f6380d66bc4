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

/// Whether a plan refuses a change of a path. The path is absolute, with every link followed. `has_head(n)` says
/// whether the folder `n` levels above the path has an entry named `HEAD`; the parent folder is one level above.
pub fn refuses_change(
    plan: &SandboxPlan,
    path: &Path,
    change: PathChange,
    has_head: impl Fn(usize) -> bool,
) -> bool {
    // A write or a move can replace a whole folder, including the protected paths in it.
    let replaces = change != PathChange::CreateFolder;
    let is_protected = |protected: &PathBuf| {
        path.starts_with(protected) || replaces && protected.starts_with(path)
    };
    // A writable folder itself contains protected paths too, but it is a mount, which cannot be replaced.
    if !plan.writable.iter().any(|folder| folder == path) && plan.protected.iter().any(is_protected)
    {
        return true;
    }
    let Some(relative) = guarded_part(plan, path) else { return false };
    let names: Vec<&OsStr> = relative.iter().collect();
    let mut is_in_git = false;
    for (at, name) in names.iter().enumerate() {
        let levels_above = names.len() - at;
        let is_last = levels_above == 1;
        if is_git(name) {
            let is_settings = names.get(at + 1).is_some_and(|it| builtin::is_protected_in_git(it));
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
    }
    false
}

/// Whether moving a folder takes it out of a git folder.
pub fn leaves_git_folder(plan: &SandboxPlan, from: &Path, to: &Path) -> bool {
    let is_inside = |path: &Path| {
        guarded_part(plan, path)
            .and_then(Path::parent)
            .is_some_and(|around| around.iter().any(is_git))
    };
    is_inside(from) && !is_inside(to)
}

/// Returns the path relative to the guarded folder that contains it. `None` if the innermost writable or copied folder
/// that contains the path is not guarded.
fn guarded_part<'p>(plan: &SandboxPlan, path: &'p Path) -> Option<&'p Path> {
    let copied = plan.copied.iter().map(|copied| &copied.folder);
    let around = plan.writable.iter().chain(copied).filter(|folder| path.starts_with(folder));
    let innermost = around.max_by_key(|folder| folder.components().count())?;
    if !plan.guarded.contains(innermost) {
        return None;
    }
    path.strip_prefix(innermost).ok()
}

fn is_git(name: &OsStr) -> bool {
    name.eq_ignore_ascii_case(".git")
}

fn is_head(name: &OsStr) -> bool {
    name.eq_ignore_ascii_case("HEAD")
}
