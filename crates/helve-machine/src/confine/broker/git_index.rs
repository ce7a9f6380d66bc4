//! Replaces the index of a repository by a copy of what the program has prepared, after checking its content.
//!
//! The program may still have the prepared file open, and could change it after a check. So the broker reads it once,
//! and what it has read becomes the index.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;

use helve_core::confine::is_harmless_index;
use helve_core::process::DeniedCall;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RenameFlags, Stat, Timespec, Timestamps, fchmod, fstat,
    futimens, openat, renameat, statat, unlinkat,
};
use rustix::io::Errno;

use super::CallError;
use super::places::Place;

/// Maximum size of an index.
const MAX_SIZE: u64 = 512 << 20;
/// Maximum size of the settings of a repository.
const MAX_SETTINGS: u64 = 1 << 20;
/// The name of the copy before it becomes the index. Only the broker uses it, for one call at a time.
const TEMPORARY: &str = "index.sandbox.lock";

/// The content of a future index.
pub(super) struct NewIndex {
    bytes: Vec<u8>,
    status: Stat,
}

impl NewIndex {
    /// Reads the file that is about to become an index. `None` if it is not a file: then it cannot be an index.
    pub(super) fn read(from: &Place) -> Result<Option<NewIndex>, Errno> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat(&from.folder, &from.name, flags, Mode::empty()) {
            Err(Errno::NOENT | Errno::LOOP | Errno::NXIO) => return Ok(None),
            result => result?,
        };
        let status = fstat(&file)?;
        if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
            return Ok(None);
        }
        let bytes = read_up_to(file, MAX_SIZE)?.ok_or(Errno::FBIG)?;
        Ok(Some(NewIndex { bytes, status }))
    }

    /// Makes a copy the index, and removes the file that the program has prepared.
    pub(super) fn replace(
        &self,
        from: &Place,
        to: &Place,
        flags: RenameFlags,
    ) -> Result<(), CallError> {
        if !is_harmless_index(&self.bytes, id_length(to)) {
            return Err(CallError::Refused(DeniedCall::Protected));
        }
        let exists = statat(&to.folder, &to.name, AtFlags::SYMLINK_NOFOLLOW).is_ok();
        if flags.contains(RenameFlags::NOREPLACE) && exists {
            return Err(Errno::EXIST.into());
        }
        // A program that was killed may have left one.
        unlinkat(&to.folder, TEMPORARY, AtFlags::empty()).unwrap_or_default();
        let replaced = self
            .write(to)
            .and_then(|()| renameat(&to.folder, TEMPORARY, &to.folder, to.call_name()));
        if let Err(error) = replaced {
            unlinkat(&to.folder, TEMPORARY, AtFlags::empty()).unwrap_or_default();
            return Err(error.into());
        }
        Ok(unlinkat(&from.folder, &from.name, AtFlags::empty())?)
    }

    fn write(&self, to: &Place) -> Result<(), Errno> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = File::from(openat(&to.folder, TEMPORARY, flags, Mode::RUSR | Mode::WUSR)?);
        (&file).write_all(&self.bytes).map_err(|err| errno(&err))?;
        fchmod(&file, Mode::from_raw_mode(self.status.st_mode))?;
        // Git compares the time with those of the files in the index.
        let time = Timespec {
            tv_sec: self.status.st_mtime,
            tv_nsec: self.status.st_mtime_nsec.cast_signed(),
        };
        futimens(&file, &Timestamps { last_access: time, last_modification: time })
    }
}

/// Returns the length of an object id in the repository whose git folder contains this index.
fn id_length(index: &Place) -> usize {
    const SHA1: usize = 20;
    const SHA256: usize = 32;
    // In a linked worktree, the settings are those of the repository.
    let mut settings = ["config", "../../config"].into_iter().filter_map(|path| {
        let file = openat(
            &index.folder,
            path,
            OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .ok()?;
        read_up_to(file, MAX_SETTINGS).ok()?
    });
    let text = settings.next().unwrap_or_default().to_ascii_lowercase();
    let is_sha256 = text.split(|byte| *byte == b'\n').any(|line| {
        line.trim_ascii_start().starts_with(b"objectformat")
            && line.trim_ascii_end().ends_with(b"sha256")
    });
    if is_sha256 { SHA256 } else { SHA1 }
}

/// Reads a file; `None` if it is longer than this.
fn read_up_to(file: OwnedFd, limit: u64) -> Result<Option<Vec<u8>>, Errno> {
    let mut bytes = Vec::new();
    File::from(file).take(limit + 1).read_to_end(&mut bytes).map_err(|err| errno(&err))?;
    Ok((bytes.len() as u64 <= limit).then_some(bytes))
}

fn errno(err: &std::io::Error) -> Errno {
    Errno::from_io_error(err).unwrap_or(Errno::IO)
}
