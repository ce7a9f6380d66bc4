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
