//! Writing beside: new content under a temporary name, with the rights and attributes of the file it will replace.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Gid, Mode, Stat, Uid};
use rustix::io::Errno;

use super::locks::random;
use super::seen::{Identity, Seen, Stamp, each_block};
use super::surely;
use super::sys::Sys;
use super::types::FileMode;

const TRIES: usize = 16;
/// As much as Linux lets a file have.
const LONGEST_ATTRIBUTES: usize = 64 * 1024;
/// They vouch for the content, so they do not pass to other content; the kernel would drop them too.
const BOUND_TO_CONTENT: [&[u8]; 3] = [b"security.capability", b"security.ima", b"security.evm"];
const ACCESS_LIST: &CStr = c"system.posix_acl_access";
pub(super) const PERMISSIONS: u32 = 0o7777;
const SET_ID: u32 = 0o6000;

/// A file under a temporary name.
#[derive(Debug)]
pub(super) struct Staged {
    pub(super) name: CString,
    /// Open while the temporary name exists: its lock says that its owner lives.
    pub(super) file: OwnedFd,
    pub(super) identity: Identity,
    pub(super) stamp: Stamp,
    pub(super) mode: u32,
}

/// Where a new file gets its rights from.
pub(super) enum Rights<'a> {
    /// From the system, as for any new file.
    Usual,
    Like(&'a Seen),
}

pub(super) fn temporary_name() -> CString {
    let name = format!("{PREFIX}{:016x}{SUFFIX}", random());
    CString::new(name).unwrap_or_default()
}

const PREFIX: &str = ".helve-";
const SUFFIX: &str = ".tmp";

pub(super) fn is_temporary(name: &[u8]) -> bool {
    let digits =
        name.strip_prefix(PREFIX.as_bytes()).and_then(|rest| rest.strip_suffix(SUFFIX.as_bytes()));
    digits.is_some_and(|digits| digits.len() == 16 && digits.iter().all(u8::is_ascii_hexdigit))
}

/// Writes `bytes` under a temporary name and waits until they are on the disk.
pub(super) fn write(
    sys: &Sys,
    folder: BorrowedFd<'_>,
    bytes: &[u8],
    rights: Rights<'_>,
    mode: FileMode,
) -> Result<Staged, Errno> {
    let first_mode = match (&rights, mode) {
        (Rights::Usual, FileMode::Keep) => Mode::from_raw_mode(0o666),
        (Rights::Usual, FileMode::Set(_)) | (Rights::Like(_), _) => Mode::RUSR | Mode::WUSR,
    };
    let (name, file) = create(sys, folder, first_mode)?;
    let filled = fill(sys, &file, bytes, &rights, mode);
    finish(sys, folder, name, file, filled)
}

/// Gives the content of a file to a second, temporary name.
pub(super) fn link(
    sys: &Sys,
    from: (BorrowedFd<'_>, &CStr, &Seen),
    folder: BorrowedFd<'_>,
) -> Result<Staged, Errno> {
    let (from_folder, from_name, seen) = from;
    let name = temporary_name();
    match sys.link((from_folder, from_name), (folder, &name)) {
        Ok(()) => {
            let file = seen.file.try_clone().map_err(|_| Errno::MFILE);
            match file {
                Ok(file) => finish(sys, folder, name, file, Ok(())),
                Err(errno) => {
                    surely(|| sys.unlink(folder, &name))?;
                    Err(errno)
                }
            }
        }
        // Another file system, or one without links, or not ours to link.
        Err(Errno::XDEV | Errno::PERM | Errno::OPNOTSUPP | Errno::MLINK | Errno::NOSYS) => {
            copy(sys, folder, seen)
        }
        Err(errno) => Err(errno),
    }
}

/// Copies a file to a temporary name, with its rights.
pub(super) fn copy(sys: &Sys, folder: BorrowedFd<'_>, seen: &Seen) -> Result<Staged, Errno> {
    let (name, file) = create(sys, folder, Mode::RUSR | Mode::WUSR)?;
    let mut at = 0;
    let mut written = Ok(());
    let read = each_block(sys, &seen.file, |block| {
        if written.is_ok() {
            written = write_all(sys, &file, block, at);
            at += block.len() as u64;
        }
    });
    let filled =
        read.and(written).and_then(|()| dress(sys, &file, &Rights::Like(seen), FileMode::Keep));
    finish(sys, folder, name, file, filled)
}

fn create(sys: &Sys, folder: BorrowedFd<'_>, mode: Mode) -> Result<(CString, OwnedFd), Errno> {
    for _ in 0..TRIES {
        let name = temporary_name();
        let file = match sys.create(folder, &name, mode) {
            Ok(file) => file,
            Err(Errno::EXIST) => continue,
            Err(errno) => return Err(errno),
        };
        // Who sweeps takes the lock first: either it is ours before, or the file is gone.
        let locked = sys.lock(&file);
        match sys.stat(&file) {
            Ok(stat) if stat.st_nlink > 0 && locked != Err(Errno::WOULDBLOCK) => {
                return Ok((name, file));
            }
            Ok(_) => {}
            Err(errno) => {
                surely(|| sys.unlink(folder, &name))?;
                return Err(errno);
            }
        }
    }
    Err(Errno::EXIST)
}

fn fill(
    sys: &Sys,
    file: &OwnedFd,
    bytes: &[u8],
    rights: &Rights<'_>,
    mode: FileMode,
) -> Result<(), Errno> {
    write_all(sys, file, bytes, 0)?;
    dress(sys, file, rights, mode)
}

/// Gives a file owner, attributes and mode, in this order, because each can undo something of the next.
fn dress(sys: &Sys, file: &OwnedFd, rights: &Rights<'_>, mode: FileMode) -> Result<(), Errno> {
    let wanted = match (rights, mode) {
        (Rights::Usual, FileMode::Keep) => None,
        (_, FileMode::Set(mode)) => Some(mode & PERMISSIONS),
        (Rights::Like(seen), FileMode::Keep) => Some(seen.stat.st_mode & PERMISSIONS),
    };
    let mut given_away = false;
    if let Rights::Like(seen) = rights {
        given_away = keep_owner(sys, file, &seen.stat)?;
        keep_attributes(sys, &seen.file, file)?;
    }
    if let Some(mode) = wanted {
        // Running with the rights of its owner would now mean somebody else's.
        let mode = if given_away { mode & !SET_ID } else { mode };
        sys.set_mode(file, Mode::from_raw_mode(mode))?;
    }
    sys.sync(file)
}

/// Keeps user and group where that is permitted; tells whether it was not.
fn keep_owner(sys: &Sys, file: &OwnedFd, old: &Stat) -> Result<bool, Errno> {
    let new = sys.stat(file)?;
    if (new.st_uid, new.st_gid) == (old.st_uid, old.st_gid) {
        return Ok(false);
    }
    let (user, group) = (Uid::from_raw(old.st_uid), Gid::from_raw(old.st_gid));
    let kept = sys.set_owner(file, Some(user), Some(group)).is_ok();
    // One's own groups are often permitted where the user is not.
    Ok(!kept && (sys.set_owner(file, None, Some(group)).is_err() || new.st_uid != old.st_uid))
}

fn keep_attributes(sys: &Sys, from: &OwnedFd, to: &OwnedFd) -> Result<(), Errno> {
    let mut names = vec![0; LONGEST_ATTRIBUTES];
    let length = match sys.attributes(from, &mut names) {
        Ok(length) => length,
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::PERM | Errno::ACCESS) => 0,
        Err(errno) => return Err(errno),
    };
    let mut value = Vec::new();
    let mut has_list = false;
    for name in names[..length].split_inclusive(|byte| *byte == 0) {
        let Ok(name) = CStr::from_bytes_with_nul(name) else { continue };
        has_list |= name == ACCESS_LIST;
        if BOUND_TO_CONTENT.contains(&name.to_bytes()) {
            continue;
        }
        value.resize(LONGEST_ATTRIBUTES, 0);
        let kept = sys
            .attribute(from, name, &mut value)
            .and_then(|length| sys.set_attribute(to, name, &value[..length]));
        match kept {
            Ok(()) => {}
            // Not permitted, or gone meanwhile.
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::PERM | Errno::ACCESS | Errno::NODATA) => {}
            Err(errno) => return Err(errno),
        }
    }
    if !has_list {
        // A folder may give new files a list of its own, which the old one did not have.
        sys.remove_attribute(to, ACCESS_LIST).unwrap_or(());
    }
    Ok(())
}

pub(super) fn write_all(sys: &Sys, file: impl AsFd, bytes: &[u8], from: u64) -> Result<(), Errno> {
    let mut written = 0;
    while written < bytes.len() {
        match sys.write(&file, &bytes[written..], from + written as u64)? {
            0 => return Err(Errno::IO),
            count => written += count,
        }
    }
    Ok(())
}

/// The staged file, or none at all.
fn finish(
    sys: &Sys,
    folder: BorrowedFd<'_>,
    name: CString,
    file: OwnedFd,
    filled: Result<(), Errno>,
) -> Result<Staged, Errno> {
    match filled.and_then(|()| sys.stat(&file)) {
        Ok(stat) => {
            let (identity, stamp) = (Identity::of(&stat), Stamp::of(&stat));
            Ok(Staged { name, file, identity, stamp, mode: stat.st_mode & PERMISSIONS })
        }
        Err(errno) => {
            surely(|| sys.unlink(folder, &name))?;
            Err(errno)
        }
    }
}
