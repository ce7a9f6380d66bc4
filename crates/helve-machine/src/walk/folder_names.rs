//! Reads all names of one folder into a reusable buffer.

use std::ffi::CStr;
use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, FileType, RawDir, statat};
use rustix::io::Errno;

use super::ignore_rules::IgnoreMarkers;
use super::stop::StopSignal;
use crate::errors::type_of;

const BUFFER_BYTES: usize = 64 * 1024;
/// Number of names between two checks of the stop signal.
const CHECK_INTERVAL: usize = 1024;

#[derive(Default)]
pub(super) struct FolderNames {
    /// The names, each NUL-terminated.
    bytes: Vec<u8>,
    entries: Vec<NameEntry>,
    buffer: Vec<u8>,
    pub(super) markers: IgnoreMarkers,
}

#[derive(Clone, Copy)]
pub(super) struct NameEntry {
    start: usize,
    end: usize,
    pub(super) kind: FileType,
}

impl FolderNames {
    /// Reads a folder. Names read before an error or the stop signal are kept.
    pub(super) fn read(&mut self, folder: BorrowedFd<'_>, stop: &StopSignal) -> Result<(), Errno> {
        self.bytes.clear();
        self.entries.clear();
        self.markers = IgnoreMarkers::default();
        self.buffer.clear();
        self.buffer.reserve(BUFFER_BYTES);
        let mut listing = RawDir::new(folder, self.buffer.spare_capacity_mut());
        while let Some(entry) = listing.next() {
            let entry = entry?;
            let name = entry.file_name();
            let bytes = name.to_bytes();
            if matches!(bytes, b"." | b"..") {
                continue;
            }
            self.markers.add(bytes);
            let kind = match entry.file_type() {
                // Some file systems do not list the type with the name. An entry that has vanished is skipped.
                FileType::Unknown => match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => type_of(&stat),
                    Err(_) => continue,
                },
                kind => kind,
            };
            let start = self.bytes.len();
            self.bytes.extend_from_slice(name.to_bytes_with_nul());
            self.entries.push(NameEntry { start, end: self.bytes.len(), kind });
            if self.entries.len().is_multiple_of(CHECK_INTERVAL) && stop.should_stop() {
                break;
            }
        }
        Ok(())
    }

    pub(super) fn entries(&self) -> &[NameEntry] {
        &self.entries
    }

    /// Returns a name without its NUL.
    pub(super) fn bytes(&self, entry: NameEntry) -> &[u8] {
        &self.bytes[entry.start..entry.end - 1]
    }

    pub(super) fn name(&self, entry: NameEntry) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes[entry.start..entry.end]).unwrap_or_default()
    }
}
