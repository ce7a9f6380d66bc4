//! Placeholders for protected paths that do not exist. They stay while a program runs.
//!
//! A missing path cannot be a mount point, so a confined program could create it. An empty folder is harmless to
//! everybody else (git ignores it, and nothing is lost when it is removed), and several Helve processes can share it.
//!
//! In a git folder, some names have a meaning even as an empty folder. There the placeholder is a link that leads nowhere,
//! which git takes for missing, or a file with a harmless content.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use helve_core::process::SandboxPlan;
use rustix::fs::{Access, FlockOperation, access, flock};
use rustix::process::geteuid;

use super::devices::NOWHERE;
use super::with_context;

/// Holds the placeholders of one plan. Dropping it removes the placeholders that no other process holds.
#[derive(Debug, Default)]
pub struct Placeholders {
    folders: Vec<(PathBuf, File)>,
    /// Files and links, each list with the folder that contains them. Links cannot be locked, so the folder is.
    entries: Vec<(File, Vec<PathBuf>)>,
}

/// A placeholder that is not a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EntryKind {
    /// A link that leads nowhere.
    Link,
    /// A file that says that the repository is where it is.
    SameFolder,
}

/// The names whose placeholders are not folders. A `commondir` leads git to another repository; the others are the state
/// of a rebase and similar commands, which exist as soon as their folder exists.
const ENTRIES: [(&str, EntryKind); 4] = [
    ("commondir", EntryKind::SameFolder),
    ("rebase-apply", EntryKind::Link),
    ("rebase-merge", EntryKind::Link),
    ("sequencer", EntryKind::Link),
];

/// The content of [`EntryKind::SameFolder`].
const SAME_FOLDER: &str = ".\n";

impl EntryKind {
    fn of(path: &Path) -> Option<EntryKind> {
        let name = path.file_name()?;
        ENTRIES.iter().find(|(entry, _)| name == *entry).map(|(_, kind)| *kind)
    }

    fn create(self, path: &Path) -> io::Result<()> {
        let created = match self {
            EntryKind::Link => symlink(NOWHERE, path),
            EntryKind::SameFolder => {
                // Written beside and renamed, so that git never reads an empty file.
                let new = path.with_extension(format!("{}.new", std::process::id()));
                fs::write(&new, SAME_FOLDER)?;
                let created = fs::hard_link(&new, path);
                fs::remove_file(&new)?;
                created
            }
        };
        match created {
            Err(err) if err.kind() != io::ErrorKind::AlreadyExists => Err(err),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Whether this placeholder is at a path, rather than something that belongs to the user.
    fn is_at(self, path: &Path) -> bool {
        match self {
            EntryKind::Link => fs::read_link(path).is_ok_and(|target| target == Path::new(NOWHERE)),
            EntryKind::SameFolder => {
                let is_file = fs::symlink_metadata(path).is_ok_and(|entry| entry.is_file());
                is_file && fs::read_to_string(path).is_ok_and(|content| content == SAME_FOLDER)
            }
        }
    }
}

/// Creates placeholders for missing protected paths. Keep the result until all processes of the program have ended.
pub fn create_placeholders(plan: &SandboxPlan) -> io::Result<Placeholders> {
    let mut placeholders = Placeholders::default();
    for path in &plan.protected {
        let Some(target) = mount_target(plan, path)? else { continue };
        if target.state == PathState::NeedsPlaceholder && EntryKind::of(&target.path).is_some() {
            placeholders.hold_entry(&target.path).map_err(|err| {
                with_context(&format!("creating a placeholder for {}", target.path.display()), err)
            })?;
            continue;
        }
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
        while !(self.folders.is_empty() && self.entries.is_empty()) && began.elapsed() < timeout {
            std::thread::sleep(POLL_INTERVAL);
            self.remove();
        }
    }

    /// Creates a file or link and locks the folder around it.
    fn hold_entry(&mut self, path: &Path) -> io::Result<()> {
        let (Some(kind), Some(folder)) = (EntryKind::of(path), path.parent()) else {
            return Ok(());
        };
        let is_same = |entries: &Vec<PathBuf>| entries.iter().any(|it| it.parent() == Some(folder));
        match self.entries.iter_mut().find(|(_, entries)| is_same(entries)) {
            Some((_, entries)) => entries.push(path.into()),
            None => {
                let opened = File::open(folder)?;
                flock(&opened, FlockOperation::LockShared)?;
                self.entries.push((opened, vec![path.into()]));
            }
        }
        // Under the lock nobody removes it.
        kind.create(path)
    }

    /// Removes placeholders that no other process holds. A folder that is no longer empty stays.
    fn remove(&mut self) {
        self.entries.retain(|(folder, entries)| {
            let is_unused = flock(folder, FlockOperation::NonBlockingLockExclusive).is_ok();
            for path in entries.iter().filter(|_| is_unused) {
                if EntryKind::of(path).is_some_and(|kind| kind.is_at(path)) {
                    fs::remove_file(path).unwrap_or_default();
                }
            }
            !is_unused
        });
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
    /// The protected path, or its topmost ancestor that is missing, an empty folder or not a folder.
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
        if EntryKind::of(&target.path).is_some_and(|kind| kind.is_at(&target.path)) {
            target.state = PathState::NeedsPlaceholder;
            return Ok(Some(target));
        }
        match fs::symlink_metadata(&target.path) {
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

/// Whether this user cannot create the missing path.
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

/// The mode of a placeholder. It is recognized by two bits that are unusual for folders: sticky, and not writable by its
/// owner.
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
