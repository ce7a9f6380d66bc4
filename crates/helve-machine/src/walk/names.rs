//! The names in one folder, read at once into memory that is used again.

use std::ffi::CStr;
use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, FileType, RawDir, statat};
use rustix::io::Errno;

use super::rules::Signs;
use super::stop::Stop;
use crate::errors::type_of;

const BUFFER: usize = 64 * 1024;
/// Names between two looks at the stop sign.
const STRIDE: usize = 1024;

#[derive(Default)]
pub(super) struct Names {
    /// The names, each with its final NUL.
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    buffer: Vec<u8>,
    pub(super) signs: Signs,
}

#[derive(Clone, Copy)]
pub(super) struct Entry {
    start: usize,
    end: usize,
    pub(super) kind: FileType,
}

impl Names {
    /// Reads a folder. What was read before an error or the stop sign stays.
    pub(super) fn read(&mut self, folder: BorrowedFd<'_>, stop: &Stop) -> Result<(), Errno> {
        self.bytes.clear();
        self.entries.clear();
        self.signs = Signs::default();
        self.buffer.clear();
        self.buffer.reserve(BUFFER);
        let mut listed = RawDir::new(folder, self.buffer.spare_capacity_mut());
        while let Some(entry) = listed.next() {
            let entry = entry?;
            let name = entry.file_name();
            let bytes = name.to_bytes();
            if matches!(bytes, b"." | b"..") {
                continue;
            }
            self.signs.note(bytes);
            let kind = match entry.file_type() {
                // Some file systems do not tell it with the name; what is gone again is told as nothing.
                FileType::Unknown => match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => type_of(&stat),
                    Err(_) => continue,
                },
                kind => kind,
            };
            let start = self.bytes.len();
            self.bytes.extend_from_slice(name.to_bytes_with_nul());
            self.entries.push(Entry { start, end: self.bytes.len(), kind });
            if self.entries.len().is_multiple_of(STRIDE) && stop.is_reached() {
                break;
            }
        }
        Ok(())
    }

    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The name without its NUL.
    pub(super) fn bytes(&self, entry: Entry) -> &[u8] {
        &self.bytes[entry.start..entry.end - 1]
    }

    pub(super) fn name(&self, entry: Entry) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes[entry.start..entry.end]).unwrap_or_default()
    }
}
