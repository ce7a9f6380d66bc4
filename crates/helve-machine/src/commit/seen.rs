//! What was at a place before a commit touched it.

use std::ffi::CStr;
use std::os::fd::{BorrowedFd, OwnedFd};

use helve_core::machine::Kind;
use helve_core::{MachineError, Place};
use rustix::fs::{OFlags, Stat};
use rustix::io::Errno;

use super::sys::Sys;
use super::types::{CommitError, ContentHash};
use crate::errors::{kind, machine_error, type_of};

const BLOCK: usize = 256 * 1024;
const ANYBODY_WRITES: u32 = 0o222;
const OWNER_WRITES: u32 = 0o200;

/// A file as it was when it was compared.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) file: OwnedFd,
    pub(super) stat: Stat,
    pub(super) hash: ContentHash,
}

/// Which file a name leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Identity {
    device: u64,
    inode: u64,
}

/// Whether a file was written to; its own renaming does not change this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    size: i64,
    modified: (i64, u64),
}

impl Identity {
    pub(super) fn of(stat: &Stat) -> Self {
        Self { device: stat.st_dev, inode: stat.st_ino }
    }
}

impl Stamp {
    pub(super) fn of(stat: &Stat) -> Self {
        Self { size: stat.st_size, modified: (stat.st_mtime, stat.st_mtime_nsec) }
    }
}

impl Seen {
    pub(super) fn is_still(&self, stat: &Stat) -> bool {
        Identity::of(&self.stat) == Identity::of(stat) && Stamp::of(&self.stat) == Stamp::of(stat)
    }

    /// The whole content, which must still be what was hashed.
    pub(super) fn content(&self, sys: &Sys) -> Result<Option<Vec<u8>>, Errno> {
        let mut bytes = Vec::new();
        each_block(sys, &self.file, |block| bytes.extend_from_slice(block))?;
        Ok((ContentHash::of(&bytes) == self.hash).then_some(bytes))
    }
}

/// Looks at a regular file that may be replaced; `None` if nothing is there.
pub(super) fn look(
    sys: &Sys,
    folder: BorrowedFd<'_>,
    name: &CStr,
    at: &Place,
) -> Result<Option<Seen>, CommitError> {
    let fail = |errno: Errno| refuse(at, machine_error(errno));
    let listed = match sys.stat_at(folder, name) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(fail(errno)),
    };
    check_kind(&listed, at)?;
    check_writable(sys, folder, name, &listed, at)?;
    let file = sys.open(folder, name, OFlags::RDONLY).map_err(fail)?;
    let stat = sys.stat(&file).map_err(fail)?;
    check_kind(&stat, at)?;
    // Held while the file has a temporary name, so that nobody sweeps it away. Who locks it otherwise keeps it, and is not disturbed.
    sys.lock(&file).unwrap_or(());
    let hash = hash(sys, &file).map_err(fail)?;
    Ok(Some(Seen { file, stat, hash }))
}

fn refuse(at: &Place, why: MachineError) -> CommitError {
    CommitError::Failed { at: at.clone(), why }
}

fn check_kind(stat: &Stat, at: &Place) -> Result<(), CommitError> {
    match kind(type_of(stat)) {
        Some(Kind::File) => Ok(()),
        Some(other) => Err(refuse(at, MachineError::NotAFile(other))),
        None => Err(refuse(at, MachineError::Moved)),
    }
}

/// Root may write anything, but a file that nobody may write was meant to stay as it is.
fn check_writable(
    sys: &Sys,
    folder: BorrowedFd<'_>,
    name: &CStr,
    stat: &Stat,
    at: &Place,
) -> Result<(), CommitError> {
    let is_own = stat.st_uid == rustix::process::geteuid().as_raw();
    let is_closed =
        stat.st_mode & ANYBODY_WRITES == 0 || (is_own && stat.st_mode & OWNER_WRITES == 0);
    match sys.may_write(folder, name) {
        Ok(()) if !is_closed => Ok(()),
        Ok(()) | Err(Errno::ACCESS | Errno::PERM | Errno::ROFS) => {
            Err(CommitError::ReadOnly { at: at.clone() })
        }
        Err(errno) => Err(refuse(at, machine_error(errno))),
    }
}

fn hash(sys: &Sys, file: &OwnedFd) -> Result<ContentHash, Errno> {
    let mut hasher = blake3::Hasher::new();
    each_block(sys, file, |block| {
        hasher.update(block);
    })?;
    Ok(ContentHash(*hasher.finalize().as_bytes()))
}

/// Calls `take` with the content of a file, from its start to its end.
pub(super) fn each_block(
    sys: &Sys,
    file: &OwnedFd,
    mut take: impl FnMut(&[u8]),
) -> Result<(), Errno> {
    let size = usize::try_from(sys.stat(file)?.st_size).unwrap_or(BLOCK);
    // One byte more than there should be: a short read is the end, without another call.
    let mut buffer = vec![0; size.saturating_add(1).min(BLOCK)];
    let mut at = 0;
    loop {
        let count = sys.read(file, &mut buffer, at)?;
        take(&buffer[..count]);
        at += count as u64;
        if count < buffer.len() {
            return Ok(());
        }
    }
}
