//! Opens paths below an approved folder without following links.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path};

use helve_core::machine::FileKind;
use helve_core::{MachineError, Place};
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, openat, openat2, statat,
};
use rustix::io::Errno;

use crate::errors::{kind_of_type, machine_error, type_of};

const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);
/// How many times an open is attempted when the kernel reports a concurrent rename (`EAGAIN`).
const MAX_ATTEMPTS: usize = 16;

/// Opens a regular file for reading. Other kinds are rejected before they are opened, because opening a FIFO or a
/// device can already have an effect.
pub(crate) fn file(place: &Place) -> Result<(OwnedFd, Stat), MachineError> {
    let anchor = open_anchor(&place.anchor).map_err(machine_error)?;
    let checked =
        path_beneath(anchor.as_fd(), &place.beneath, OFlags::PATH).map_err(machine_error)?;
    stat_regular_file(&checked)?;
    let opened = path_beneath(anchor.as_fd(), &place.beneath, READ).map_err(machine_error)?;
    let stat = stat_regular_file(&opened)?;
    Ok((opened, stat))
}

/// Opens a folder for listing.
pub(crate) fn folder(place: &Place) -> Result<OwnedFd, MachineError> {
    let anchor = open_anchor(&place.anchor).map_err(machine_error)?;
    path_beneath(anchor.as_fd(), &place.beneath, READ | OFlags::DIRECTORY).map_err(machine_error)
}

/// Opens the anchor of a place without following links. The anchor had no links when it was approved, so any link in it
/// was added later.
pub(crate) fn open_anchor(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY;
    let Ok(beneath_root) = path.strip_prefix("/") else { return Err(Errno::INVAL) };
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match retry_openat2(CWD, path, flags, resolve) {
        Err(errno) if lacks_openat2(errno) => {
            let root = openat(CWD, "/", flags | OFlags::CLOEXEC, Mode::empty())?;
            open_component_by_component(root.as_fd(), beneath_root, flags)
        }
        opened => opened,
    }
}

/// Opens `path` below `folder`. The path can neither leave the folder nor pass through a link.
pub(crate) fn path_beneath(
    folder: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
) -> Result<OwnedFd, Errno> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    match open_with_openat2(folder, path, flags) {
        Err(errno) if lacks_openat2(errno) => open_component_by_component(folder, path, flags),
        opened => opened,
    }
}

/// Whether an error means an old kernel, or a seccomp filter that does not know `openat2`.
fn lacks_openat2(errno: Errno) -> bool {
    matches!(errno, Errno::NOSYS | Errno::PERM)
}

fn open_with_openat2(folder: BorrowedFd<'_>, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    retry_openat2(folder, path, flags, resolve)
}

fn retry_openat2(
    folder: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
    resolve: ResolveFlags,
) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::CLOEXEC;
    let mut opened = Err(Errno::AGAIN);
    for _ in 0..MAX_ATTEMPTS {
        opened = openat2(folder, path, flags, Mode::empty(), resolve);
        if !matches!(opened, Err(Errno::AGAIN | Errno::INTR)) {
            break;
        }
    }
    opened
}

fn open_component_by_component(
    folder: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
) -> Result<OwnedFd, Errno> {
    let directory_flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut current = openat(folder, ".", directory_flags, Mode::empty())?;
    let mut components = path.components().peekable();
    while let Some(component) = components.next() {
        let name = match component {
            Component::Normal(name) => name,
            Component::CurDir => Path::new(".").as_os_str(),
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Err(Errno::XDEV);
            }
        };
        let flags = if components.peek().is_some() {
            directory_flags
        } else {
            flags | OFlags::NOFOLLOW | OFlags::CLOEXEC
        };
        current = match openat(&current, name, flags, Mode::empty()) {
            Ok(opened) => refuse_link(opened, flags)?,
            // This may be a link to a folder, or something that was a folder a moment ago.
            Err(Errno::NOTDIR) => {
                return Err(match type_of(&statat(&current, name, AtFlags::SYMLINK_NOFOLLOW)?) {
                    FileType::Symlink | FileType::Directory => Errno::LOOP,
                    _ => Errno::NOTDIR,
                });
            }
            Err(errno) => return Err(errno),
        };
    }
    Ok(current)
}

/// Returns an error if the link itself was opened, which `O_PATH` allows.
fn refuse_link(opened: OwnedFd, flags: OFlags) -> Result<OwnedFd, Errno> {
    if flags.contains(OFlags::PATH) && type_of(&fstat(&opened)?) == FileType::Symlink {
        return Err(Errno::LOOP);
    }
    Ok(opened)
}

fn stat_regular_file(opened: &OwnedFd) -> Result<Stat, MachineError> {
    let stat = fstat(opened).map_err(machine_error)?;
    match kind_of_type(type_of(&stat)) {
        Some(FileKind::File) => Ok(stat),
        Some(other) => Err(MachineError::NotAFile(other)),
        None => Err(MachineError::PathChanged),
    }
}

#[cfg(test)]
mod tests;
