//! Stages new content under a temporary name, with the rights and attributes of the file it will replace.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use helve_core::commit::LINK_MODE;
use rustix::fs::{Gid, Mode, OFlags, Stat, Uid};
use rustix::io::Errno;

use super::FileMode;
use super::existing::{ExistingFile, FileIdentity, each_block, has_content};
use super::locks::random;
use super::retry;
use super::sys::Syscalls;

const MAX_ATTEMPTS: usize = 16;
/// The Linux limit for the names or a value of extended attributes.
const MAX_ATTRIBUTE_BYTES: usize = 64 * 1024;
/// Enough for the attribute names of most files.
const USUAL_NAME_BYTES: usize = 256;
/// Extended attributes that certify the content. They are not copied to new content; the kernel would drop them too.
const BOUND_TO_CONTENT: [&[u8]; 3] = [b"security.capability", b"security.ima", b"security.evm"];
const POSIX_ACL: &CStr = c"system.posix_acl_access";
pub(super) const PERMISSIONS: u32 = 0o7777;
const SET_ID: u32 = 0o6000;

/// A file under a temporary name.
#[derive(Debug)]
pub(super) struct StagedFile {
    pub(super) name: CString,
    /// Stays open while the temporary name exists: the lock shows other processes that its owner is alive.
    pub(super) file: OwnedFd,
    pub(super) identity: FileIdentity,
    pub(super) mode: u32,
}

impl StagedFile {
    /// Reads back what was written, then syncs the file. Returns whether the content is what was written.
    pub(super) fn verify_and_sync(&self, sys: &Syscalls, written: &[u8]) -> Result<bool, Errno> {
        let is_same = has_content(sys, &self.file, written)?;
        sys.sync(&self.file)?;
        Ok(is_same)
    }
}

/// Where a new file gets its permissions from.
pub(super) enum FileRights<'a> {
    /// The defaults of the system, as for any new file.
    Default,
    CopiedFrom(&'a ExistingFile),
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

/// Content of at least this size is on its way to the disk while it is verified.
const MIN_WRITEBACK_BYTES: usize = 128 * 1024;

/// Writes `bytes` to a temporary file. Call [`StagedFile::verify_and_sync`] before the file is used.
pub(super) fn write(
    sys: &Syscalls,
    folder: BorrowedFd<'_>,
    bytes: &[u8],
    rights: FileRights<'_>,
    mode: FileMode,
) -> Result<StagedFile, Errno> {
    let first_mode = match (&rights, mode) {
        (FileRights::Default, FileMode::Keep) => Mode::from_raw_mode(0o666),
        (FileRights::Default, FileMode::Set(_)) | (FileRights::CopiedFrom(_), _) => {
            Mode::RUSR | Mode::WUSR
        }
    };
    let NewFile { name, file, stat } = create(sys, folder, first_mode)?;
    let prepared = write_all(sys, &file, bytes, 0).and_then(|()| {
        apply_metadata(sys, &file, &stat, &rights, mode)?;
        if bytes.len() >= MIN_WRITEBACK_BYTES {
            sys.start_writeback(&file);
        }
        Ok(())
    });
    finish(sys, folder, name, file, prepared)
}

/// Creates a symbolic link under a temporary name.
pub(super) fn make_link(
    sys: &Syscalls,
    folder: BorrowedFd<'_>,
    target: &[u8],
) -> Result<StagedFile, Errno> {
    let target = CString::new(target).map_err(|_| Errno::INVAL)?;
    let name = temporary_name();
    sys.make_link(&target, folder, &name)?;
    let file = sys.open(folder, &name, OFlags::PATH);
    let stat = file.and_then(|file| Ok((sys.stat(&file)?, file)));
    match stat {
        Ok((stat, file)) => {
            Ok(StagedFile { name, file, identity: FileIdentity::of(&stat), mode: LINK_MODE })
        }
        Err(errno) => {
            retry(|| sys.unlink(folder, &name))?;
            Err(errno)
        }
    }
}

/// Creates a second, temporary name for a file: a hard link where possible, else a copy.
pub(super) fn link(
    sys: &Syscalls,
    from: (BorrowedFd<'_>, &CStr, &ExistingFile),
    folder: BorrowedFd<'_>,
) -> Result<StagedFile, Errno> {
    let (from_folder, from_name, existing) = from;
    let name = temporary_name();
    match sys.link((from_folder, from_name), (folder, &name)) {
        Ok(()) => {
            let file = existing.file.try_clone().map_err(|_| Errno::MFILE);
            match file {
                Ok(file) => finish(sys, folder, name, file, Ok(())),
                Err(errno) => {
                    retry(|| sys.unlink(folder, &name))?;
                    Err(errno)
                }
            }
        }
        // Another file system, one without hard links, or a file we may not link.
        Err(Errno::XDEV | Errno::PERM | Errno::OPNOTSUPP | Errno::MLINK | Errno::NOSYS) => {
            copy(sys, folder, existing)
        }
        Err(errno) => Err(errno),
    }
}

/// Copies a file to a temporary name, with its permissions.
pub(super) fn copy(
    sys: &Syscalls,
    folder: BorrowedFd<'_>,
    existing: &ExistingFile,
) -> Result<StagedFile, Errno> {
    let NewFile { name, file, stat } = create(sys, folder, Mode::RUSR | Mode::WUSR)?;
    let mut at = 0;
    let mut written = Ok(());
    let read = each_block(sys, &existing.file, existing.size(), |block| {
        if written.is_ok() {
            written = write_all(sys, &file, block, at);
            at += block.len() as u64;
        }
    });
    let prepared = read.and(written).and_then(|()| {
        apply_metadata(sys, &file, &stat, &FileRights::CopiedFrom(existing), FileMode::Keep)?;
        sys.sync(&file)
    });
    finish(sys, folder, name, file, prepared)
}

/// A new, empty file under a temporary name.
struct NewFile {
    name: CString,
    file: OwnedFd,
    stat: Stat,
}

fn create(sys: &Syscalls, folder: BorrowedFd<'_>, mode: Mode) -> Result<NewFile, Errno> {
    for _ in 0..MAX_ATTEMPTS {
        let name = temporary_name();
        let file = match sys.create(folder, &name, mode) {
            Ok(file) => file,
            Err(Errno::EXIST) => continue,
            Err(errno) => return Err(errno),
        };
        // A sweeping process locks the file before removing it: either our lock comes first, or the file is gone.
        let locked = sys.try_lock_data(&file);
        match sys.stat(&file) {
            Ok(stat) if stat.st_nlink > 0 && locked != Err(Errno::WOULDBLOCK) => {
                return Ok(NewFile { name, file, stat });
            }
            Ok(_) => {}
            Err(errno) => {
                retry(|| sys.unlink(folder, &name))?;
                return Err(errno);
            }
        }
    }
    Err(Errno::EXIST)
}

/// Sets owner, attributes and mode. The order matters: changing the owner resets mode bits. `stat` is that of the new
/// file.
fn apply_metadata(
    sys: &Syscalls,
    file: &OwnedFd,
    stat: &Stat,
    rights: &FileRights<'_>,
    mode: FileMode,
) -> Result<(), Errno> {
    let mode_to_set = match (rights, mode) {
        (FileRights::Default, FileMode::Keep) => None,
        (_, FileMode::Set(mode)) => Some(mode & PERMISSIONS),
        (FileRights::CopiedFrom(existing), FileMode::Keep) => {
            Some(existing.stat.st_mode & PERMISSIONS)
        }
    };
    let mut owner_changed = false;
    if let FileRights::CopiedFrom(existing) = rights {
        owner_changed = copy_owner(sys, file, stat, &existing.stat);
        copy_xattrs(sys, &existing.file, file)?;
    }
    if let Some(mode) = mode_to_set {
        // Drop setuid and setgid: they would now grant the rights of another owner.
        let mode = if owner_changed { mode & !SET_ID } else { mode };
        sys.set_mode(file, Mode::from_raw_mode(mode))?;
    }
    Ok(())
}

/// Copies user and group where permitted. Returns whether the owner changed.
fn copy_owner(sys: &Syscalls, file: &OwnedFd, new: &Stat, old: &Stat) -> bool {
    if (new.st_uid, new.st_gid) == (old.st_uid, old.st_gid) {
        return false;
    }
    let (user, group) = (Uid::from_raw(old.st_uid), Gid::from_raw(old.st_gid));
    let is_copied = sys.set_owner(file, Some(user), Some(group)).is_ok();
    // Changing only the group is often permitted when changing the user is not.
    !is_copied && (sys.set_owner(file, None, Some(group)).is_err() || new.st_uid != old.st_uid)
}

fn copy_xattrs(sys: &Syscalls, from: &OwnedFd, to: &OwnedFd) -> Result<(), Errno> {
    let mut names = vec![0; USUAL_NAME_BYTES];
    let mut listed = sys.list_xattrs(from, &mut names);
    if listed == Err(Errno::RANGE) {
        names.resize(MAX_ATTRIBUTE_BYTES, 0);
        listed = sys.list_xattrs(from, &mut names);
    }
    let length = match listed {
        Ok(length) => length,
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::PERM | Errno::ACCESS) => 0,
        Err(errno) => return Err(errno),
    };
    let mut value = Vec::new();
    let mut has_acl = false;
    for name in names[..length].split_inclusive(|byte| *byte == 0) {
        let Ok(name) = CStr::from_bytes_with_nul(name) else { continue };
        has_acl |= name == POSIX_ACL;
        if BOUND_TO_CONTENT.contains(&name.to_bytes()) {
            continue;
        }
        value.resize(MAX_ATTRIBUTE_BYTES, 0);
        let copied = sys
            .get_xattr(from, name, &mut value)
            .and_then(|length| sys.set_xattr(to, name, &value[..length]));
        match copied {
            Ok(()) => {}
            // Not permitted, or removed concurrently.
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::PERM | Errno::ACCESS | Errno::NODATA) => {}
            Err(errno) => return Err(errno),
        }
    }
    if !has_acl {
        // The folder may have a default ACL, which the old file did not have.
        sys.remove_xattr(to, POSIX_ACL).unwrap_or(());
    }
    Ok(())
}

pub(super) fn write_all(
    sys: &Syscalls,
    file: impl AsFd,
    bytes: &[u8],
    from: u64,
) -> Result<(), Errno> {
    let mut written = 0;
    while written < bytes.len() {
        match sys.write(&file, &bytes[written..], from + written as u64)? {
            0 => return Err(Errno::IO),
            count => written += count,
        }
    }
    Ok(())
}

/// Returns the staged file, or removes it if preparing it failed.
fn finish(
    sys: &Syscalls,
    folder: BorrowedFd<'_>,
    name: CString,
    file: OwnedFd,
    prepared: Result<(), Errno>,
) -> Result<StagedFile, Errno> {
    match prepared.and_then(|()| sys.stat(&file)) {
        Ok(stat) => {
            let (identity, mode) = (FileIdentity::of(&stat), stat.st_mode & PERMISSIONS);
            Ok(StagedFile { name, file, identity, mode })
        }
        Err(errno) => {
            retry(|| sys.unlink(folder, &name))?;
            Err(errno)
        }
    }
}
