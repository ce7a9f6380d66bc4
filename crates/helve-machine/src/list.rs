//! Lists the entries of a folder. Memory use depends on how many are requested, not on how many there are.

use std::collections::BinaryHeap;
use std::ffi::{CStr, CString, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;

use helve_core::machine::{DirListing, FileKind, ListedEntry};
use helve_core::{MachineError, Place};
use rustix::fs::{AtFlags, FileType, RawDir, RawMode, statat};
use rustix::io::Errno;

use crate::blocking::Cancellation;
use crate::errors::{kind_of_type, machine_error, type_of};
use crate::open;

const BUFFER_BYTES: usize = 64 * 1024;
/// Number of names between two cancellation checks.
const CHECK_INTERVAL: u64 = 1024;

pub(crate) fn list(
    at: &Place,
    max: usize,
    cancellation: &Cancellation,
) -> Result<DirListing, MachineError> {
    let folder = open::folder(at)?;
    let (first, total) = smallest(&folder, max, cancellation)?;
    let left_out = total - first.len() as u64;
    let mut entries = Vec::with_capacity(first.len());
    for (name, listed_type) in first {
        if (entries.len() as u64).is_multiple_of(CHECK_INTERVAL) {
            cancellation.check()?;
        }
        // If the entry has vanished since it was listed, report the type that was listed.
        let (kind, is_link) = match kind_after_links(&folder, &name, listed_type) {
            Some(found) => found,
            None => match kind_of_type(listed_type) {
                Some(kind) => (kind, false),
                None => (FileKind::UnfollowedLink, true),
            },
        };
        entries.push(ListedEntry { name: OsString::from_vec(name.into_bytes()), kind, is_link });
    }
    Ok(DirListing { entries, left_out })
}

/// Returns the `max` smallest names in order, and the total number of names.
fn smallest(
    folder: &OwnedFd,
    max: usize,
    cancellation: &Cancellation,
) -> Result<(Vec<(CString, FileType)>, u64), MachineError> {
    let mut buffer = Vec::with_capacity(BUFFER_BYTES);
    let mut names = RawDir::new(folder, buffer.spare_capacity_mut());
    let mut smallest_names: BinaryHeap<(CString, RawMode)> = BinaryHeap::new();
    let mut total = 0u64;
    while let Some(entry) = names.next() {
        let entry = entry.map_err(machine_error)?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        if total.is_multiple_of(CHECK_INTERVAL) {
            cancellation.check()?;
        }
        total += 1;
        if smallest_names.len() < max {
            smallest_names.push((name.to_owned(), entry.file_type().as_raw_mode()));
        } else if let Some(mut largest) = smallest_names.peek_mut()
            && name < largest.0.as_c_str()
        {
            *largest = (name.to_owned(), entry.file_type().as_raw_mode());
        }
    }
    let smallest_names = smallest_names
        .into_sorted_vec()
        .into_iter()
        .map(|(name, mode)| (name, FileType::from_raw_mode(mode)))
        .collect();
    Ok((smallest_names, total))
}

/// Returns what a name refers to and whether it is a link. Some file systems do not list the type with the name.
fn kind_after_links(folder: &OwnedFd, name: &CStr, listed: FileType) -> Option<(FileKind, bool)> {
    let file_type = match listed {
        FileType::Unknown => type_of(&statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?),
        known => known,
    };
    if let Some(kind) = kind_of_type(file_type) {
        return Some((kind, false));
    }
    let found = match statat(folder, name, AtFlags::empty()) {
        Ok(stat) => kind_of_type(type_of(&stat))?,
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => FileKind::UnfollowedLink,
        // This process is not allowed to access the target.
        Err(_) => FileKind::Other,
    };
    Some((found, true))
}

#[cfg(test)]
mod tests;
