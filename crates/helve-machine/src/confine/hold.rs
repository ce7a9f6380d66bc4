//! Protected paths that are not there yet: an empty folder stands in their place while a program runs.
//!
//! What does not exist cannot be mounted on, and a program could make it. An empty folder is as good as nothing to
//! everybody else (git does not see it, and it goes away without losing anything), and several Helves share it.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use helve_core::process::Confine;
use rustix::fs::{Access, FlockOperation, access, flock};
use rustix::process::geteuid;

use super::named;

/// Keeps the stand-ins of one plan there. Dropping it removes those that nobody else holds.
#[derive(Debug, Default)]
pub struct Held {
    stand_ins: Vec<(PathBuf, File)>,
    /// What was missing, can have no stand-in, and is removed if it is there in the end.
    unwanted: Vec<PathBuf>,
}

/// Git takes whatever has this name for the way to another repository, with other hooks: nothing can stand in for it.
const REDIRECT: &str = "commondir";

/// Puts stand-ins where something protected is missing. To be kept until nothing of the program lives.
pub fn hold(plan: &Confine) -> io::Result<Held> {
    let mut held = Held::default();
    for path in &plan.protected {
        let Some(guard) = guard(plan, path)? else { continue };
        if guard.state == There::Nowhere {
            held.unwanted.push(guard.path);
            continue;
        }
        if guard.state == There::Stands || held.stand_ins.iter().any(|(it, _)| *it == guard.path) {
            continue;
        }
        let folder = stand_in(&guard.path)
            .map_err(|err| named(&format!("standing in for {}", guard.path.display()), err))?;
        held.stand_ins.push((guard.path, folder));
    }
    Ok(held)
}

/// How often who lets go patiently looks whether others have.
const LOOK: Duration = Duration::from_millis(10);

impl Held {
    /// Lets go, but waits for others who may be about to.
    pub fn let_go(mut self, patience: Duration) {
        let began = Instant::now();
        self.remove();
        while !self.stand_ins.is_empty() && began.elapsed() < patience {
            std::thread::sleep(LOOK);
            self.remove();
        }
    }

    /// Removes what nobody else holds. What is no longer empty stays.
    fn remove(&mut self) {
        self.stand_ins.retain(|(path, folder)| {
            let is_last = flock(folder, FlockOperation::NonBlockingLockExclusive).is_ok();
            if is_last && is_ours(folder) {
                fs::remove_dir(path).unwrap_or_default();
            }
            !is_last
        });
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.remove();
        for path in self.unwanted.drain(..) {
            // Most often it is not there.
            fs::remove_file(&path).unwrap_or_default();
        }
    }
}

/// What must be kept from change so that a protected path is.
pub(super) struct Guard {
    /// The path itself, or the first on the way to it that is not a folder with something in it.
    pub(super) path: PathBuf,
    /// The folders between the writable one and that.
    pub(super) above: Vec<PathBuf>,
    pub(super) state: There,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum There {
    Stands,
    /// Nothing is there, or an empty folder, which may be a stand-in.
    Missing,
    /// Nothing is there, and nothing can stand in for it.
    Nowhere,
}

/// Nothing where the path cannot be written anyway.
pub(super) fn guard(plan: &Confine, protected: &Path) -> io::Result<Option<Guard>> {
    let above = plan.writable.iter().filter(|folder| protected.starts_with(folder));
    let Some(top) = above.max_by_key(|folder| folder.components().count()) else { return Ok(None) };
    let way = protected.strip_prefix(top).map_err(io::Error::other)?;
    let mut guard = Guard { path: top.clone(), above: Vec::new(), state: There::Stands };
    for (number, name) in way.iter().enumerate() {
        if number > 0 {
            guard.above.push(guard.path.clone());
        }
        guard.path.push(name);
        match fs::symlink_metadata(&guard.path) {
            Ok(metadata) if metadata.is_symlink() => {
                let why = format!(
                    "{} is a symbolic link, which cannot be protected: put a file or folder in its place",
                    guard.path.display()
                );
                return Err(io::Error::other(why));
            }
            Ok(metadata) if !metadata.is_dir() => return Ok(Some(guard)),
            Ok(_) if !is_empty(&guard.path)? => {}
            Err(err) if err.kind() != io::ErrorKind::NotFound => {
                return Err(named(&format!("looking at {}", guard.path.display()), err));
            }
            Err(_) if is_out_of_reach(&guard.path) => return Ok(None),
            Err(_) if name == REDIRECT => {
                guard.state = There::Nowhere;
                return Ok(Some(guard));
            }
            Ok(_) | Err(_) => {
                guard.state = There::Missing;
                return Ok(Some(guard));
            }
        }
    }
    Ok(Some(guard))
}

/// Whether nobody but others can put something here.
fn is_out_of_reach(missing: &Path) -> bool {
    let Some(above) = missing.parent() else { return false };
    let is_own = fs::metadata(above).is_ok_and(|it| it.uid() == geteuid().as_raw());
    !is_own && access(above, Access::WRITE_OK).is_err()
}

fn is_empty(folder: &Path) -> io::Result<bool> {
    match fs::read_dir(folder) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        // What cannot be listed is no stand-in.
        Err(err) if err.kind() == io::ErrorKind::PermissionDenied => Ok(false),
        Err(err) => Err(named(&format!("looking into {}", folder.display()), err)),
    }
}

/// Everybody may look into a stand-in. By these two bits of its mode it is known, as no folder that people make has them:
/// sticky, and not writable to its owner.
const MODE: u32 = 0o1555;
const KNOWN_BY: u32 = 0o1200;

/// An empty folder may be somebody's own, and then it stays.
fn is_ours(folder: &File) -> bool {
    folder.metadata().is_ok_and(|it| it.mode() & KNOWN_BY == MODE & KNOWN_BY)
}

/// How often another Helve may take the folder away while it is being taken hold of.
const TRIES: usize = 100;

fn stand_in(path: &Path) -> io::Result<File> {
    for _ in 0..TRIES {
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
        let there = fs::symlink_metadata(path);
        if there.is_ok_and(|it| (it.dev(), it.ino()) == (opened.dev(), opened.ino())) {
            return Ok(folder);
        }
    }
    Err(io::Error::other("others keep taking it away"))
}
