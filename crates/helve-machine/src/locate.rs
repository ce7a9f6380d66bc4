//! Resolves every link of a path, as far as the path exists.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use helve_core::MachineError;
use helve_core::machine::{FileKind, LocatedPath};
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, StatxFlags, openat2, readlinkat, statat,
    statx,
};
use rustix::io::Errno;

use crate::errors::{kind_of_type, machine_error, type_of};

/// The number of links that the kernel follows in one path.
const MAX_LINKS: usize = 40;
/// The longest path that the kernel accepts, without its final NUL.
const MAX_PATH_BYTES: usize = 4095;

pub(crate) fn locate(path: &Path) -> Result<LocatedPath, MachineError> {
    if !path.is_absolute() {
        return Err(MachineError::Other("the path is not absolute".into()));
    }
    if path.as_os_str().as_bytes().contains(&0) {
        return Err(MachineError::Other("the path contains a NUL byte".into()));
    }
    let mut resolver = LinkResolver {
        real: PathBuf::from("/"),
        kind: Some(FileKind::Folder),
        remaining: Vec::new(),
        links: 0,
    };
    resolver.prepend(path);
    while let Some(step) = resolver.remaining.pop() {
        resolver.step(&step)?;
        if resolver.real.as_os_str().len() > MAX_PATH_BYTES {
            return Err(machine_error(Errno::NAMETOOLONG));
        }
    }
    Ok(LocatedPath { real: resolver.real, kind: resolver.kind })
}

/// Like [`locate`], for a path without links and `..` that the kernel has in its caches. Never waits for a file system.
/// `None` if that is not enough to tell.
pub(crate) fn locate_cached(path: &Path) -> Option<LocatedPath> {
    let is_plain = |step: Component<'_>| matches!(step, Component::RootDir | Component::Normal(_));
    if !path.is_absolute() || !path.components().all(is_plain) {
        return None;
    }
    let resolve = ResolveFlags::CACHED | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let found = openat2(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve).ok()?;
    // The type of a file never changes, so the cached one is right.
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let stat = statx(found, c"", flags, StatxFlags::TYPE).ok()?;
    let kind = kind_of_type(FileType::from_raw_mode(stat.stx_mode.into()))?;
    Some(LocatedPath { real: path.components().collect(), kind: Some(kind) })
}

struct LinkResolver {
    /// The resolved part of the path, free of links.
    real: PathBuf,
    kind: Option<FileKind>,
    /// The components still to resolve, the next one last.
    remaining: Vec<OsString>,
    links: usize,
}

impl LinkResolver {
    fn prepend(&mut self, path: &Path) {
        let components = path.components().filter_map(|step| match step {
            Component::Normal(name) => Some(name),
            Component::ParentDir => Some(OsStr::new("..")),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
        });
        self.remaining.extend(components.rev().map(OsStr::to_owned));
    }

    fn step(&mut self, name: &OsStr) -> Result<(), MachineError> {
        let is_up = name == "..";
        match self.kind {
            Some(FileKind::Folder) if is_up => {
                self.real.pop();
                Ok(())
            }
            Some(FileKind::Folder) => self.enter(name),
            None if is_up => Err(MachineError::NotFound),
            None => {
                self.real.push(name);
                Ok(())
            }
            Some(_) => Err(MachineError::NotAFolder),
        }
    }

    fn enter(&mut self, name: &OsStr) -> Result<(), MachineError> {
        self.real.push(name);
        match statat(CWD, &self.real, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => match kind_of_type(type_of(&stat)) {
                Some(kind) => {
                    self.kind = Some(kind);
                    Ok(())
                }
                // A symbolic link has no kind of its own.
                None => self.follow(),
            },
            Err(Errno::NOENT) => {
                self.kind = None;
                Ok(())
            }
            Err(errno) => Err(machine_error(errno)),
        }
    }

    fn follow(&mut self) -> Result<(), MachineError> {
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(MachineError::LinkLoop);
        }
        let target = match readlinkat(CWD, &self.real, Vec::new()) {
            Ok(target) => PathBuf::from(OsString::from_vec(target.into_bytes())),
            // It is no longer a link.
            Err(Errno::INVAL) => return Err(MachineError::PathChanged),
            Err(errno) => return Err(machine_error(errno)),
        };
        if target.is_absolute() {
            self.real = PathBuf::from("/");
        } else {
            self.real.pop();
        }
        self.prepend(&target);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
