//! What the system's error numbers mean to a caller.

use helve_core::MachineError;
use helve_core::machine::Kind;
use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

/// An error number in the words of [`MachineError`]. Opening never follows links, so a link on the way means that it came later.
pub(crate) fn failed(errno: Errno) -> MachineError {
    match errno {
        Errno::NOENT => MachineError::NotFound,
        Errno::ACCESS | Errno::PERM => MachineError::NotPermitted,
        Errno::NOTDIR => MachineError::NotAFolder,
        Errno::ISDIR => MachineError::NotAFile(Kind::Folder),
        Errno::LOOP | Errno::XDEV | Errno::AGAIN | Errno::STALE => MachineError::Moved,
        Errno::MFILE | Errno::NFILE => MachineError::TooManyOpen,
        Errno::NAMETOOLONG => MachineError::Other("the name is too long".into()),
        Errno::NXIO => MachineError::NotAFile(Kind::Other),
        other => MachineError::Other(std::io::Error::from(other).to_string()),
    }
}

pub(crate) fn type_of(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// What is shown of a file type; `None` for a link, which is never shown as itself.
pub(crate) fn kind(of: FileType) -> Option<Kind> {
    match of {
        FileType::RegularFile => Some(Kind::File),
        FileType::Directory => Some(Kind::Folder),
        FileType::Symlink => None,
        FileType::Fifo => Some(Kind::Fifo),
        FileType::Socket => Some(Kind::Socket),
        FileType::CharacterDevice | FileType::BlockDevice => Some(Kind::Device),
        FileType::Unknown => Some(Kind::Other),
    }
}
