//! Decides by name which changes could create a git repository, or lead git to other settings or programs.
//!
//! Mounts protect the repositories that exist when a command starts. In the `guarded` folders of a plan, names are
//! checked too, whenever a command creates, moves or opens a file for writing:
//!
//! - No entry may be named `.git`, and none with this name may be moved.
//! - The entries of a git folder that configure or run programs may not be written.
//! - A bare repository has no `.git`, but a file named `HEAD`. Outside of git folders, no file may get this name, and a
//!   folder that has such a file is treated as a git folder.
//! - No folder may be moved out of a git folder, because it may already contain a `HEAD`.
//! - A git folder gets no symbolic links, because git writes to what they lead to. So only files may be moved into one.
//!
//! - The index of a repository lists the files that git writes. A program replaces it by renaming a file, whose content
//!   is checked then ([`NameGuard::is_index`]). It cannot be written in any other way.
//!
//! A folder around a hidden file cannot be moved either. The file would be found under its new name by the next
//! command, whose plan might not hide it.
//!
//! A check stays valid while other processes rename folders: renaming the folders around a path never makes one of
//! these rules apply to it.

use std::collections::HashSet;
use std::path::Path;

use helve_policy::{builtin, could_refer_to};

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
    /// An entry with another name gets this one.
    Arrive,
}

/// Whether a file may be changed. The innermost folder of a plan that contains the file decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Area {
    /// In a writable folder, where changes are seen by everybody.
    Writable,
    /// In a copied folder, whose changes stay in the sandbox.
    Copied,
    /// Elsewhere.
    ReadOnly,
}

/// A plan, prepared for checking many paths. All paths are absolute and in the form that the kernel returns: without
/// links, empty names, `.`, `..` and a slash at the end.
#[derive(Debug)]
pub struct NameGuard {
    protected: HashSet<EncodedPath>,
    /// The folders around protected and hidden paths.
    fixed_folders: HashSet<EncodedPath>,
    /// The writable and copied folders, inner ones first.
    areas: Vec<GuardedArea>,
}

/// A path as bytes. Comparing these is much faster than comparing paths.
type EncodedPath = Vec<u8>;

#[derive(Debug)]
struct GuardedArea {
    folder: EncodedPath,
    area: Area,
    names: NameRules,
}

/// Which rules about names apply in an area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NameRules {
    None,
    /// Those of a guarded folder.
    Guarded,
    /// Those inside of a git folder, because the area is one or a part of one.
    Git,
}

impl NameGuard {
    pub fn new(plan: &SandboxPlan) -> NameGuard {
        let to_vec = |path: &Path| encoded(path).to_vec();
        let writable = plan.writable.iter().map(|folder| (folder, Area::Writable));
        let copied = plan.copied.iter().map(|copied| (&copied.folder, Area::Copied));
        let mut areas: Vec<_> = writable
            .chain(copied)
            .map(|(folder, area)| {
                let names = if plan.git_folders.contains(folder) {
                    NameRules::Git
                } else if plan.guarded.contains(folder) {
                    NameRules::Guarded
                } else {
                    NameRules::None
                };
                GuardedArea { folder: to_vec(folder), area, names }
            })
            .collect();
        // Of the folders around a path, the longest is the innermost.
        areas.sort_by_key(|area| std::cmp::Reverse(area.folder.len()));
        let protected = || plan.protected.iter().chain(&plan.protected_links);
        let fixed = protected().chain(&plan.hidden);
        let around = fixed.flat_map(|path| path.ancestors().skip(1));
        NameGuard {
            protected: protected().map(|path| to_vec(path)).collect(),
            fixed_folders: around.map(to_vec).collect(),
            areas,
        }
    }

    /// Whether the plan refuses a change of a path. `has_head(n)` says whether the folder `n` levels above the path has
    /// an entry named `HEAD`; the parent folder is one level above.
    pub fn refuses(
        &self,
        path: &Path,
        change: PathChange,
        has_head: impl Fn(usize) -> bool,
    ) -> bool {
        let path = encoded(path);
        let innermost = self.innermost(path);
        // A writable folder also contains protected paths, but it is a mount point, which cannot be replaced.
        let is_area = innermost.is_some_and(|(_, relative)| relative.is_empty());
        if !is_area && self.is_protected(path, change) {
            return true;
        }
        let Some((rules, relative)) = guarded_part(innermost) else { return false };
        if change == PathChange::Write && is_index(rules, relative, &has_head) {
            return true;
        }
        let mut is_in_git = rules == NameRules::Git;
        let mut levels_above = names(relative).count();
        let mut names = names(relative).peekable();
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

    /// Whether a path names the index of a repository, or a part of the index. For `has_head`, see
    /// [`NameGuard::refuses`].
    pub fn is_index(&self, path: &Path, has_head: impl Fn(usize) -> bool) -> bool {
        let guarded = guarded_part(self.innermost(encoded(path)));
        guarded.is_some_and(|(rules, relative)| is_index(rules, relative, &has_head))
    }

    /// Whether moving a folder takes it out of a git folder.
    pub fn leaves_git_folder(&self, from: &Path, to: &Path) -> bool {
        self.is_below_git(from) == Some(true) && self.is_below_git(to) != Some(true)
    }

    /// Whether a path is inside a git folder. For `has_head`, see [`NameGuard::refuses`].
    pub fn is_in_git_folder(&self, path: &Path, has_head: impl Fn(usize) -> bool) -> bool {
        match self.is_below_git(path) {
            None => false,
            Some(true) => true,
            Some(false) => {
                let relative = guarded_part(self.innermost(encoded(path)));
                (1..=relative.map_or(0, |(_, relative)| names(relative).count())).any(has_head)
            }
        }
    }

    /// Whether a folder around a path is a git folder by its name. `None` if names are not checked there.
    fn is_below_git(&self, path: &Path) -> Option<bool> {
        let (rules, relative) = guarded_part(self.innermost(encoded(path)))?;
        let levels = names(relative).count();
        let is_named = names(relative).take(levels.saturating_sub(1)).any(is_git);
        Some(rules == NameRules::Git || is_named)
    }

    /// Returns where a path is.
    pub fn area(&self, path: &Path) -> Area {
        self.innermost(encoded(path)).map_or(Area::ReadOnly, |(area, _)| area.area)
    }

    /// Returns the innermost area around a path, and the path relative to it.
    fn innermost<'p>(&self, path: &'p [u8]) -> Option<(&GuardedArea, &'p [u8])> {
        self.areas.iter().find_map(|area| {
            let rest = path.strip_prefix(area.folder.as_slice())?;
            let is_below = rest.is_empty() || rest[0] == b'/' || area.folder.ends_with(b"/");
            is_below.then_some((area, rest))
        })
    }

    /// Whether a path is protected, or is a folder around a protected or hidden path that would be replaced.
    fn is_protected(&self, path: &[u8], change: PathChange) -> bool {
        let is_slash = |(at, byte): (usize, &u8)| (*byte == b'/').then_some(at);
        let mut folders = path.iter().enumerate().filter_map(is_slash).map(|end| &path[..end]);
        self.protected.contains(path)
            || change != PathChange::CreateFolder && self.fixed_folders.contains(path)
            || folders.any(|folder| self.protected.contains(folder))
    }
}

fn encoded(path: &Path) -> &[u8] {
    path.as_os_str().as_encoded_bytes()
}

/// Returns the rules and the relative path if names in the area are checked.
fn guarded_part<'p>(innermost: Option<(&GuardedArea, &'p [u8])>) -> Option<(NameRules, &'p [u8])> {
    let (area, relative) = innermost?;
    (area.names != NameRules::None).then_some((area.names, relative))
}

/// Returns the names in a relative path.
fn names(relative: &[u8]) -> impl Iterator<Item = &[u8]> {
    relative.split(|byte| *byte == b'/').filter(|name| !name.is_empty())
}

/// Whether a path in an area is an index, in a git folder itself and not below it.
fn is_index(rules: NameRules, relative: &[u8], has_head: &impl Fn(usize) -> bool) -> bool {
    let mut names = relative.rsplit(|byte| *byte == b'/').filter(|name| !name.is_empty());
    let is_named = names.next().is_some_and(|name| {
        could_refer_to(name, "index") || name.to_ascii_lowercase().starts_with(b"sharedindex.")
    });
    is_named
        && match names.next() {
            Some(folder) if is_git(folder) => true,
            None if rules == NameRules::Git => true,
            _ => rules != NameRules::Git && !names.any(is_git) && has_head(1),
        }
}

pub(super) fn is_git(name: &[u8]) -> bool {
    could_refer_to(name, ".git")
}

fn is_head(name: &[u8]) -> bool {
    could_refer_to(name, "HEAD")
}
