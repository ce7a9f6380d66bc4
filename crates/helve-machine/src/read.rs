//! Reads a whole file, up to a maximum size.

use bytes::Bytes;
use helve_core::machine::FileContent;
use helve_core::{MachineError, Place};
use rustix::buffer::spare_capacity;
use rustix::io::{Errno, read};

use crate::blocking::Cancellation;
use crate::errors::machine_error;
use crate::open;

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
    loop {
        cancellation.check()?;
        // Checked again, because a file may grow while it is read, or not report its size.
        if bytes.len() as u64 > max {
            return Err(MachineError::TooLarge { size: bytes.len() as u64, limit: max });
        }
        bytes.reserve(1);
        match read(&file, spare_capacity(&mut bytes)) {
            Ok(0) => break,
            Ok(_) => {}
            Err(Errno::INTR) => {}
            Err(errno) => return Err(machine_error(errno)),
        }
    }
    Ok(FileContent { bytes: Bytes::from(bytes), mode: stat.st_mode & 0o7777 })
}
