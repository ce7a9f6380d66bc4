//! Maps `errno` values and file types to the machine's own types.

use helve_core::MachineError;
use helve_core::machine::FileKind;
use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

/// Converts an error number to a [`MachineError`]. Files are opened without following links, so `ELOOP` means that a
/// link was put there after the path had been resolved.
pub(crate) fn machine_error(errno: Errno) -> MachineError {
    match errno {
        Errno::NOENT => MachineError::NotFound,
        Errno::ACCESS | Errno::PERM => MachineError::NotPermitted,
        Errno::NOTDIR => MachineError::NotAFolder,
        Errno::ISDIR => MachineError::NotAFile(FileKind::Folder),
        Errno::LOOP | Errno::XDEV | Errno::AGAIN | Errno::STALE => MachineError::PathChanged,
        Errno::MFILE | Errno::NFILE => MachineError::TooManyOpenFiles,
        Errno::NAMETOOLONG => MachineError::Other("the name is too long".into()),
        Errno::NXIO => MachineError::NotAFile(FileKind::Other),
        other => MachineError::Other(std::io::Error::from(other).to_string()),
    }
}

pub(crate) fn type_of(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// Converts a file type to a [`FileKind`]; `None` for a symbolic link, which is never shown as itself.
pub(crate) fn kind_of_type(file_type: FileType) -> Option<FileKind> {
    match file_type {
        FileType::RegularFile => Some(FileKind::File),
        FileType::Directory => Some(FileKind::Folder),
        FileType::Symlink => None,
        FileType::Fifo => Some(FileKind::Fifo),
        FileType::Socket => Some(FileKind::Socket),
        FileType::CharacterDevice | FileType::BlockDevice => Some(FileKind::Device),
        FileType::Unknown => Some(FileKind::Other),
    }
}
