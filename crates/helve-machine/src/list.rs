//! The names in a folder, in memory that depends on how many are wanted.

use std::collections::BinaryHeap;
use std::ffi::{CStr, CString, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;

use helve_core::machine::{Entry, Kind, Listing};
use helve_core::{MachineError, Place};
use rustix::fs::{AtFlags, FileType, RawDir, RawMode, statat};
use rustix::io::Errno;

use crate::errors::{failed, kind, type_of};
use crate::hop::Stop;
use crate::open;

const BUFFER: usize = 64 * 1024;
/// Names between two looks at the stop flag.
const STRIDE: u64 = 1024;

pub(crate) fn list(at: &Place, most: usize, stop: &Stop) -> Result<Listing, MachineError> {
    let folder = open::folder(at)?;
    let (first, total) = smallest(&folder, most, stop)?;
    let left_out = total - first.len() as u64;
    let mut entries = Vec::with_capacity(first.len());
    for (name, shown_as) in first {
        if (entries.len() as u64).is_multiple_of(STRIDE) {
            stop.check()?;
        }
        // Gone since it was listed: told as it was then.
        let (kind, is_link) = match final_kind(&folder, &name, shown_as) {
            Some(found) => found,
            None => (kind(shown_as).unwrap_or(Kind::DeadLink), kind(shown_as).is_none()),
        };
        entries.push(Entry { name: OsString::from_vec(name.into_bytes()), kind, is_link });
    }
    Ok(Listing { entries, left_out })
}

/// The `most` smallest names, in order, and how many there are in all.
fn smallest(
    folder: &OwnedFd,
    most: usize,
    stop: &Stop,
) -> Result<(Vec<(CString, FileType)>, u64), MachineError> {
    let mut buffer = Vec::with_capacity(BUFFER);
    let mut names = RawDir::new(folder, buffer.spare_capacity_mut());
    let mut kept: BinaryHeap<(CString, RawMode)> = BinaryHeap::new();
    let mut total = 0u64;
    while let Some(entry) = names.next() {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        if total.is_multiple_of(STRIDE) {
            stop.check()?;
        }
        total += 1;
        if kept.len() < most {
            kept.push((name.to_owned(), entry.file_type().as_raw_mode()));
        } else if let Some(mut largest) = kept.peek_mut()
            && name < largest.0.as_c_str()
        {
            *largest = (name.to_owned(), entry.file_type().as_raw_mode());
        }
    }
    let kept = kept
        .into_sorted_vec()
        .into_iter()
        .map(|(name, mode)| (name, FileType::from_raw_mode(mode)))
        .collect();
    Ok((kept, total))
}

/// What a name leads to, and whether through a link; some file systems do not tell the type with the name.
fn final_kind(folder: &OwnedFd, name: &CStr, listed: FileType) -> Option<(Kind, bool)> {
    let of = match listed {
        FileType::Unknown => type_of(&statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?),
        known => known,
    };
    if let Some(kind) = kind(of) {
        return Some((kind, false));
    }
    let found = match statat(folder, name, AtFlags::empty()) {
        Ok(stat) => kind(type_of(&stat))?,
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Kind::DeadLink,
        // It leads where this process may not look.
        Err(_) => Kind::Other,
    };
    Some((found, true))
}

#[cfg(test)]
mod tests;
