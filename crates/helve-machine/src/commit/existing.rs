//! The file at a place before a commit changes it.

use std::ffi::{CStr, CString};
use std::os::fd::{BorrowedFd, OwnedFd};

use helve_core::machine::FileKind;
use helve_core::{MachineError, Place};
use rustix::fs::{FileType, OFlags, Stat};
use rustix::io::Errno;

use super::sys::Syscalls;
use super::{CommitError, ContentHash};
use crate::errors::{kind_of_type, machine_error, type_of};

/// Small enough that the allocator reuses the memory of a buffer. A larger buffer would be mapped anew each time, and
/// every page of it would fault.
const BLOCK_BYTES: usize = 64 * 1024;
const WRITE_BITS: u32 = 0o222;
const OWNER_WRITE_BIT: u32 = 0o200;

/// A file as it was when its content was compared.
#[derive(Debug)]
pub(super) struct ExistingFile {
    pub(super) file: OwnedFd,
    pub(super) stat: Stat,
}

/// Identifies a file, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FileIdentity {
    device: u64,
    inode: u64,
}

/// Changes when the file is written to, but not when it is renamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileStamp {
    size: i64,
    modified: (i64, u64),
}

impl FileIdentity {
    pub(super) fn of(stat: &Stat) -> Self {
        Self { device: stat.st_dev, inode: stat.st_ino }
    }
}

impl FileStamp {
    pub(super) fn of(stat: &Stat) -> Self {
        Self { size: stat.st_size, modified: (stat.st_mtime, stat.st_mtime_nsec) }
    }
}

impl ExistingFile {
    /// The size that the file system reports, which is not always the length of the content.
    pub(super) fn size(&self) -> u64 {
        u64::try_from(self.stat.st_size).unwrap_or(0)
    }

    pub(super) fn is_unchanged(&self, stat: &Stat) -> bool {
        FileIdentity::of(&self.stat) == FileIdentity::of(stat)
            && FileStamp::of(&self.stat) == FileStamp::of(stat)
    }

    pub(super) fn hash(&self, sys: &Syscalls) -> Result<ContentHash, Errno> {
        let mut hasher = blake3::Hasher::new();
        each_block(sys, &self.file, self.size(), |block| {
            hasher.update(block);
        })?;
        Ok(ContentHash(*hasher.finalize().as_bytes()))
    }
}

/// Opens a symbolic link itself and reads its target; `None` if there is no link.
pub(super) fn inspect_link(
    sys: &Syscalls,
    folder: BorrowedFd<'_>,
    name: &CStr,
    at: &Place,
) -> Result<Option<(ExistingFile, CString)>, CommitError> {
    let error = |errno: Errno| failure(at, machine_error(errno));
    let target = match sys.read_link(folder, name) {
        Ok(target) => target,
        Err(Errno::NOENT | Errno::INVAL) => return Ok(None),
        Err(errno) => return Err(error(errno)),
    };
    let file = sys.open(folder, name, OFlags::PATH).map_err(error)?;
    let stat = sys.stat(&file).map_err(error)?;
    if type_of(&stat) != FileType::Symlink {
        return Ok(None);
    }
    Ok(Some((ExistingFile { file, stat }, target)))
}

/// Opens a regular file that may be replaced; `None` if the file does not exist.
pub(super) fn inspect(
    sys: &Syscalls,
    folder: BorrowedFd<'_>,
    name: &CStr,
    at: &Place,
) -> Result<Option<ExistingFile>, CommitError> {
    let error = |errno: Errno| failure(at, machine_error(errno));
    let listed = match sys.stat_at(folder, name) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(error(errno)),
    };
    check_kind(&listed, at)?;
    check_writable(sys, folder, name, &listed, at)?;
    let file = sys.open(folder, name, OFlags::RDONLY).map_err(error)?;
    let stat = sys.stat(&file).map_err(error)?;
    check_kind(&stat, at)?;
    // The lock keeps other processes from sweeping the file while it has a temporary name. A lock held by another
    // program is left alone.
    sys.try_lock_data(&file).unwrap_or(());
    Ok(Some(ExistingFile { file, stat }))
}

fn failure(at: &Place, why: MachineError) -> CommitError {
    CommitError::Failed { at: at.clone(), why }
}

fn check_kind(stat: &Stat, at: &Place) -> Result<(), CommitError> {
    match kind_of_type(type_of(stat)) {
        Some(FileKind::File) => Ok(()),
        Some(other) => Err(failure(at, MachineError::NotAFile(other))),
        None => Err(failure(at, MachineError::PathChanged)),
    }
}

/// Rejects read-only files. Root could write them, but a file without write permission is meant to stay unchanged.
fn check_writable(
    sys: &Syscalls,
    folder: BorrowedFd<'_>,
    name: &CStr,
    stat: &Stat,
    at: &Place,
) -> Result<(), CommitError> {
    let is_owner = stat.st_uid == rustix::process::geteuid().as_raw();
    let is_read_only =
        stat.st_mode & WRITE_BITS == 0 || (is_owner && stat.st_mode & OWNER_WRITE_BIT == 0);
    match sys.may_write(folder, name) {
        Ok(()) if !is_read_only => Ok(()),
        Ok(()) | Err(Errno::ACCESS | Errno::PERM | Errno::ROFS) => {
            Err(CommitError::ReadOnly { at: at.clone() })
        }
        Err(errno) => Err(failure(at, machine_error(errno))),
    }
}

/// Whether a file has exactly this content.
pub(super) fn has_content(sys: &Syscalls, file: &OwnedFd, expected: &[u8]) -> Result<bool, Errno> {
    let mut rest = expected;
    let mut is_same = true;
    each_block(sys, file, expected.len() as u64, |block| match rest.strip_prefix(block) {
        Some(remaining) => rest = remaining,
        None => is_same = false,
    })?;
    Ok(is_same && rest.is_empty())
}

/// Calls `visit` with each block of a file, from start to end. `size` is how long the file probably is.
pub(super) fn each_block(
    sys: &Syscalls,
    file: &OwnedFd,
    size: u64,
    mut visit: impl FnMut(&[u8]),
) -> Result<(), Errno> {
    let size = usize::try_from(size).unwrap_or(BLOCK_BYTES);
    // One byte more than the size, so that a short read marks the end without another call.
    let mut buffer = vec![0; size.saturating_add(1).min(BLOCK_BYTES)];
    let mut at = 0;
    loop {
        let count = sys.read(file, &mut buffer, at)?;
        visit(&buffer[..count]);
        at += count as u64;
        if count < buffer.len() {
            return Ok(());
        }
    }
}
