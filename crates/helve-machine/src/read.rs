//! Reads a whole file, up to a maximum size.

use bytes::Bytes;
use helve_core::commit::ContentHash;
use helve_core::machine::FileContent;
use helve_core::{MachineError, Place};
use rustix::io::{Errno, read};

use crate::blocking::Cancellation;
use crate::errors::machine_error;
use crate::open;

/// Maximum number of bytes read between two cancellation checks.
const BLOCK_BYTES: usize = 1024 * 1024;

/// Returns the target of a symbolic link; `None` if there is no link at this place.
pub(crate) fn read_link(at: &Place) -> Result<Option<Bytes>, MachineError> {
    let (Some(parent), Some(name)) = (at.beneath.parent(), at.beneath.file_name()) else {
        return Ok(None);
    };
    let folder = Place { anchor: at.anchor.clone(), beneath: parent.into() };
    let folder = match open::folder(&folder) {
        Ok(folder) => folder,
        Err(MachineError::NotFound | MachineError::NotAFolder) => return Ok(None),
        Err(error) => return Err(error),
    };
    match rustix::fs::readlinkat(&folder, name, Vec::new()) {
        Ok(target) => Ok(Some(Bytes::from(target.into_bytes()))),
        Err(Errno::INVAL | Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(errno) => Err(machine_error(errno)),
    }
}

pub(crate) fn read_file(
    at: &Place,
    max: u64,
    cancellation: &Cancellation,
) -> Result<FileContent, MachineError> {
    let (file, stat) = open::file(at)?;
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    if size > max {
        return Err(MachineError::TooLarge { size, limit: max });
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0) + 1);
    let mut filled = 0;
    loop {
        cancellation.check()?;
        // Checked again, because a file may grow while it is read, or not report its size.
        if filled as u64 > max {
            return Err(MachineError::TooLarge { size: filled as u64, limit: max });
        }
        if filled == bytes.len() {
            let growth = bytes.capacity().saturating_sub(filled).clamp(1, BLOCK_BYTES);
            bytes.resize(filled + growth, 0);
        }
        match read(&file, &mut bytes[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(machine_error(errno)),
        }
    }
    bytes.truncate(filled);
    let hash = ContentHash::of(&bytes);
    Ok(FileContent { bytes: Bytes::from(bytes), mode: stat.st_mode & 0o7777, hash })
}
