//! Protects names if system calls cannot be watched: git folders are read-only as a whole, and missing protected paths
//! are replaced by placeholders while a program runs.
//!
//! A missing path cannot be a mount point, so a confined program could create it. A placeholder is an empty folder.
//! That is harmless to everybody else (git ignores it, and nothing is lost when it is removed), and several Helve
//! processes can share it.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use helve_core::process::SandboxPlan;
use rustix::fs::{Access, FlockOperation, access, flock};
use rustix::process::geteuid;

use super::with_context;

/// Holds the placeholders of one plan. Dropping it removes the placeholders that no other process holds.
#[derive(Debug, Default)]
pub struct Placeholders {
    folders: Vec<(PathBuf, File)>,
}

/// How many folders below a guarded one are searched for git folders.
const MAX_SEARCHED: usize = 2_000;

/// Returns a plan that works without watching calls: it protects git folders as a whole.
pub fn plan_without_watch(plan: &SandboxPlan) -> SandboxPlan {
    let mut plan = plan.clone();
    for folder in std::mem::take(&mut plan.git_folders) {
        plan.writable.retain(|path| *path != folder);
    }
    for guarded in std::mem::take(&mut plan.guarded) {
        let git_folders = git_folders(&guarded);
        plan.protected.retain(|path| !git_folders.iter().any(|folder| path.starts_with(folder)));
        plan.protected.extend(git_folders);
    }
    plan
}

/// Returns the path of `.git` in a folder, even if it is missing, and the existing ones below it. Searches at most
/// [`MAX_SEARCHED`] folders.
fn git_folders(top: &Path) -> Vec<PathBuf> {
    let mut found = vec![top.join(".git")];
    let mut folders = vec![top.to_path_buf()];
    let mut next = 0;
    while let Some(folder) = folders.get(next).cloned() {
        next += 1;
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if entry.file_name() == ".git" {
                if folder != top {
                    found.push(entry.path());
                }
            } else if is_folder && folders.len() < MAX_SEARCHED {
                folders.push(entry.path());
            }
        }
    }
    found
}

/// Creates placeholders for missing protected paths. Keep the result until all processes of the program have ended.
pub fn create_placeholders(plan: &SandboxPlan) -> io::Result<Placeholders> {
    let mut placeholders = Placeholders::default();
    for path in &plan.protected {
        let Some(target) = mount_target(plan, path)? else { continue };
        if target.state == PathState::Exists
            || placeholders.folders.iter().any(|(entry, _)| *entry == target.path)
        {
            continue;
        }
        let folder = create_placeholder(&target.path).map_err(|err| {
            with_context(&format!("creating a placeholder for {}", target.path.display()), err)
        })?;
        placeholders.folders.push((target.path, folder));
    }
    Ok(placeholders)
}

/// Interval at which [`Placeholders::remove_within`] checks whether other processes have released theirs.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

impl Placeholders {
    /// Removes the placeholders, waiting up to `timeout` for other processes that are about to release theirs.
    pub fn remove_within(mut self, timeout: Duration) {
        let began = Instant::now();
        self.remove();
        while !self.folders.is_empty() && began.elapsed() < timeout {
            std::thread::sleep(POLL_INTERVAL);
            self.remove();
        }
    }

    /// Removes placeholders that no other process holds. A folder that is no longer empty stays.
    fn remove(&mut self) {
        self.folders.retain(|(path, folder)| {
            let is_unused = flock(folder, FlockOperation::NonBlockingLockExclusive).is_ok();
            if is_unused && is_placeholder(folder) {
                fs::remove_dir(path).unwrap_or_default();
            }
            !is_unused
        });
    }
}

impl Drop for Placeholders {
    fn drop(&mut self) {
        self.remove();
    }
}

/// The path that has to be mounted read-only so that a protected path cannot change.
pub(super) struct MountTarget {
    /// The protected path; or, if one of its ancestors is missing, an empty folder or not a folder, the topmost such
    /// ancestor.
    pub(super) path: PathBuf,
    /// The folders between the writable folder and `path`.
    pub(super) ancestors: Vec<PathBuf>,
    pub(super) state: PathState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathState {
    Exists,
    /// Missing, or an empty folder, which may be a placeholder already.
    NeedsPlaceholder,
}

/// Returns what to mount to protect a path; `None` if the path is not writable anyway.
pub(super) fn mount_target(
    plan: &SandboxPlan,
    protected: &Path,
) -> io::Result<Option<MountTarget>> {
    let writable = plan.writable.iter().filter(|folder| protected.starts_with(folder));
    let Some(top) = writable.max_by_key(|folder| folder.components().count()) else {
        return Ok(None);
    };
    let relative = protected.strip_prefix(top).map_err(io::Error::other)?;
    let mut target =
        MountTarget { path: top.clone(), ancestors: Vec::new(), state: PathState::Exists };
    for (number, name) in relative.iter().enumerate() {
        if number > 0 {
            target.ancestors.push(target.path.clone());
        }
        target.path.push(name);
        match fs::symlink_metadata(&target.path) {
            Ok(metadata)
                if metadata.is_symlink() && plan.protected_links.contains(&target.path) =>
            {
                return Ok(Some(target));
            }
            Ok(metadata) if metadata.is_symlink() => {
                let why = format!(
                    "{} is a symbolic link, which cannot be protected: put a file or folder in its place",
                    target.path.display()
                );
                return Err(io::Error::other(why));
            }
            Ok(metadata) if !metadata.is_dir() => return Ok(Some(target)),
            Ok(_) if !is_empty(&target.path)? => {}
            Err(err) if err.kind() != io::ErrorKind::NotFound => {
                return Err(with_context(&format!("inspecting {}", target.path.display()), err));
            }
            Err(_) if cannot_create(&target.path) => return Ok(None),
            Ok(_) | Err(_) => {
                target.state = PathState::NeedsPlaceholder;
                return Ok(Some(target));
            }
        }
    }
    Ok(Some(target))
}

/// Whether this user cannot create the missing path. The owner of the parent folder could make it writable first.
fn cannot_create(missing: &Path) -> bool {
    let Some(parent) = missing.parent() else { return false };
    let is_owner = fs::metadata(parent).is_ok_and(|entry| entry.uid() == geteuid().as_raw());
    !is_owner && access(parent, Access::WRITE_OK).is_err()
}

fn is_empty(folder: &Path) -> io::Result<bool> {
    match fs::read_dir(folder) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        // A folder that cannot be listed is not a placeholder.
        Err(err) if err.kind() == io::ErrorKind::PermissionDenied => Ok(false),
        Err(err) => Err(with_context(&format!("listing {}", folder.display()), err)),
    }
}

/// The mode of a placeholder. It is recognized by two bits that are unusual for folders: sticky, and not writable by
/// its owner.
const MODE: u32 = 0o1555;
const MARKER_BITS: u32 = 0o1200;

/// Whether an empty folder is a placeholder, and not a folder that a user created.
fn is_placeholder(folder: &File) -> bool {
    folder.metadata().is_ok_and(|entry| entry.mode() & MARKER_BITS == MODE & MARKER_BITS)
}

/// How many times creation is attempted when another Helve process removes the folder concurrently.
const MAX_ATTEMPTS: usize = 100;

fn create_placeholder(path: &Path) -> io::Result<File> {
    for _ in 0..MAX_ATTEMPTS {
        match DirBuilder::new().mode(MODE).create(path) {
            Ok(()) => {}
            Err(err) if err.kind() == io::ErrorKind::AlreadyExists => {}
            Err(err) => return Err(err),
        }
        let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
        let folder = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
            Ok(folder) => folder,
            Err(err) if err.kind() == io::ErrorKind::NotFound => continue,
            Err(err) => return Err(err),
        };
        flock(&folder, FlockOperation::LockShared)?;
        let opened = folder.metadata()?;
        let current = fs::symlink_metadata(path);
        if current.is_ok_and(|entry| (entry.dev(), entry.ino()) == (opened.dev(), opened.ino())) {
            return Ok(folder);
        }
    }
    Err(io::Error::other("other processes keep removing it"))
}
