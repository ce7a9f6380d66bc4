//! Opening what lies beneath a judged folder, without following a link on the way.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path};

use helve_core::machine::Kind;
use helve_core::{MachineError, Place};
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, openat, openat2, statat,
};
use rustix::io::Errno;

use crate::errors::{failed, kind, type_of};

const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);
/// How often an open is tried again that the kernel could not finish because something was renamed meanwhile.
const TRIES: usize = 16;

/// Opens a regular file for reading. Nothing else is opened at all, since opening a FIFO or a device is an act of its own.
pub(crate) fn file(place: &Place) -> Result<(OwnedFd, Stat), MachineError> {
    let anchor = anchor(&place.anchor).map_err(failed)?;
    let looked_at = beneath(anchor.as_fd(), &place.beneath, OFlags::PATH).map_err(failed)?;
    regular(&looked_at)?;
    let opened = beneath(anchor.as_fd(), &place.beneath, READ).map_err(failed)?;
    let stat = regular(&opened)?;
    Ok((opened, stat))
}

/// Opens a folder for listing.
pub(crate) fn folder(place: &Place) -> Result<OwnedFd, MachineError> {
    let anchor = anchor(&place.anchor).map_err(failed)?;
    beneath(anchor.as_fd(), &place.beneath, READ | OFlags::DIRECTORY).map_err(failed)
}

/// The folder that was judged. Its path was canonical then, so a link in it came later.
pub(crate) fn anchor(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY;
    let root = openat(CWD, "/", flags | OFlags::CLOEXEC, Mode::empty())?;
    match path.strip_prefix("/") {
        Ok(path) => beneath(root.as_fd(), path, flags),
        Err(_) => Err(Errno::INVAL),
    }
}

/// Opens `path` below `folder`; it can neither leave it nor pass a link.
pub(crate) fn beneath(
    folder: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
) -> Result<OwnedFd, Errno> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    match at_once(folder, path, flags) {
        // An old kernel, or a filter that does not know the call.
        Err(Errno::NOSYS | Errno::PERM) => step_by_step(folder, path, flags),
        opened => opened,
    }
}

fn at_once(folder: BorrowedFd<'_>, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let flags = flags | OFlags::CLOEXEC;
    let mut opened = Err(Errno::AGAIN);
    for _ in 0..TRIES {
        opened = openat2(folder, path, flags, Mode::empty(), resolve);
        if !matches!(opened, Err(Errno::AGAIN | Errno::INTR)) {
            break;
        }
    }
    opened
}

fn step_by_step(folder: BorrowedFd<'_>, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let through = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut reached = openat(folder, ".", through, Mode::empty())?;
    let mut steps = path.components().peekable();
    while let Some(step) = steps.next() {
        let name = match step {
            Component::Normal(name) => name,
            Component::CurDir => Path::new(".").as_os_str(),
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Err(Errno::XDEV);
            }
        };
        let flags = if steps.peek().is_some() {
            through
        } else {
            flags | OFlags::NOFOLLOW | OFlags::CLOEXEC
        };
        reached = match openat(&reached, name, flags, Mode::empty()) {
            Ok(opened) => refuse_link(opened, flags)?,
            // What is not a folder may be a link to one, or was one a moment ago.
            Err(Errno::NOTDIR) => {
                return Err(match type_of(&statat(&reached, name, AtFlags::SYMLINK_NOFOLLOW)?) {
                    FileType::Symlink | FileType::Directory => Errno::LOOP,
                    _ => Errno::NOTDIR,
                });
            }
            Err(errno) => return Err(errno),
        };
    }
    Ok(reached)
}

/// With `O_PATH` a link at the end is opened as itself.
fn refuse_link(opened: OwnedFd, flags: OFlags) -> Result<OwnedFd, Errno> {
    if flags.contains(OFlags::PATH) && type_of(&fstat(&opened)?) == FileType::Symlink {
        return Err(Errno::LOOP);
    }
    Ok(opened)
}

fn regular(opened: &OwnedFd) -> Result<Stat, MachineError> {
    let stat = fstat(opened).map_err(failed)?;
    match kind(type_of(&stat)) {
        Some(Kind::File) => Ok(stat),
        Some(other) => Err(MachineError::NotAFile(other)),
        None => Err(MachineError::Moved),
    }
}

#[cfg(test)]
mod tests;
