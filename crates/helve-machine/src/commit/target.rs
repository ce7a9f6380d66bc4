//! One name that a commit changes: putting new content there, taking it back, clearing up.

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use bytes::Bytes;
use helve_core::{MachineError, Place};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::folders::FolderId;
use super::seen::{Identity, Seen, Stamp, each_block};
use super::stage::{self, PERMISSIONS, Staged, temporary_name, write_all};
use super::surely;
use super::sys::Sys;
use super::types::{FileMode, Left};
use crate::errors::machine_error;

#[derive(Debug)]
pub(super) struct Target<'a> {
    pub(super) at: &'a Place,
    pub(super) folder: FolderId,
    pub(super) name: CString,
    /// What was there when the commit began.
    pub(super) there: Option<Seen>,
    pub(super) wanted: Wanted<'a>,
    pub(super) progress: Progress,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Wanted<'a> {
    /// A new file, with the rights of the one in another target, or of the one that is there.
    Content {
        bytes: &'a Bytes,
        mode: FileMode,
        rights_of: Option<usize>,
    },
    /// The same file with other bytes.
    InPlace {
        bytes: &'a Bytes,
        mode: FileMode,
    },
    /// The file of another target.
    FileOf(usize),
    Nothing,
}

/// How far a target has come; enough to take it back at any point.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// The new file. Its temporary name exists until `is_installed`.
    pub(super) staged: Option<Staged>,
    /// Where the old file went.
    backup: Option<CString>,
    /// The backup, if it is a file of its own: its lock says that its owner lives.
    copy: Option<OwnedFd>,
    is_installed: bool,
    overwritten: Option<Overwritten>,
}

/// A file that was written in place, and what it held.
#[derive(Debug)]
struct Overwritten {
    file: OwnedFd,
    old: Vec<u8>,
}

/// Why a target could not be brought into place.
#[derive(Debug)]
pub(super) enum Trouble {
    /// Somebody else changed the file after it was compared.
    Interfered,
    Failed(MachineError),
}

impl From<Errno> for Trouble {
    fn from(errno: Errno) -> Self {
        Self::Failed(machine_error(errno))
    }
}

/// What a file system says that cannot do something special with names.
const CANNOT: [Errno; 3] = [Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP];

impl Target<'_> {
    /// Brings the new state under the name, in one step that leaves no moment without a file.
    pub(super) fn install(&mut self, sys: &Sys, folder: BorrowedFd<'_>) -> Result<(), Trouble> {
        match (self.wanted, self.there.is_some()) {
            (Wanted::InPlace { bytes, mode }, _) => self.overwrite(sys, folder, bytes, mode),
            (Wanted::Nothing, false) => Ok(()),
            (Wanted::Nothing, true) => self.take_away(sys, folder),
            (Wanted::Content { .. } | Wanted::FileOf(_), false) => self.put_new(sys, folder),
            (Wanted::Content { .. } | Wanted::FileOf(_), true) => self.replace(sys, folder),
        }
    }

    /// The permission bits that the new state has; `None` where it is none.
    pub(super) fn mode(&self) -> Option<u32> {
        let old = self.there.as_ref().map(|seen| seen.stat.st_mode & PERMISSIONS);
        match self.wanted {
            Wanted::Content { .. } | Wanted::FileOf(_) => {
                self.progress.staged.as_ref().map(|staged| staged.mode)
            }
            Wanted::InPlace { mode: FileMode::Set(mode), .. } => Some(mode & PERMISSIONS),
            Wanted::InPlace { mode: FileMode::Keep, .. } => old,
            Wanted::Nothing => None,
        }
    }

    fn put_new(&mut self, sys: &Sys, folder: BorrowedFd<'_>) -> Result<(), Trouble> {
        let Some(staged) = &self.progress.staged else { return Ok(()) };
        match sys.rename_to_new(folder, &staged.name, &self.name) {
            Err(errno) if CANNOT.contains(&errno) => self.put_new_by_link(sys, folder)?,
            Err(Errno::EXIST) => return Err(Trouble::Interfered),
            renamed => renamed?,
        }
        self.progress.is_installed = true;
        Ok(())
    }

    fn put_new_by_link(&mut self, sys: &Sys, folder: BorrowedFd<'_>) -> Result<(), Trouble> {
        let Some(staged) = &self.progress.staged else { return Ok(()) };
        match sys.link((folder, &staged.name), (folder, &self.name)) {
            Ok(()) => {
                // If this fails the next commit sweeps it.
                surely(|| sys.unlink(folder, &staged.name)).unwrap_or(());
                Ok(())
            }
            Err(Errno::EXIST) => Err(Trouble::Interfered),
            Err(_) => match sys.stat_at(folder, &self.name) {
                Err(Errno::NOENT) => Ok(sys.rename(folder, &staged.name, &self.name)?),
                Ok(_) => Err(Trouble::Interfered),
                Err(errno) => Err(errno.into()),
            },
        }
    }

    fn replace(&mut self, sys: &Sys, folder: BorrowedFd<'_>) -> Result<(), Trouble> {
        let Some(staged) = &self.progress.staged else { return Ok(()) };
        let temporary = staged.name.clone();
        match sys.exchange(folder, &temporary, &self.name) {
            Ok(()) => {
                self.progress.backup = Some(temporary);
                self.progress.is_installed = true;
                self.check_backup(sys, folder)
            }
            Err(Errno::NOENT) => Err(Trouble::Interfered),
            Err(errno) if CANNOT.contains(&errno) => {
                self.back_up(sys, folder)?;
                sys.rename(folder, &temporary, &self.name)?;
                self.progress.is_installed = true;
                Ok(())
            }
            Err(errno) => Err(errno.into()),
        }
    }

    /// Gives the old file a second name, or copies it.
    fn back_up(&mut self, sys: &Sys, folder: BorrowedFd<'_>) -> Result<(), Trouble> {
        let Some(seen) = &self.there else { return Ok(()) };
        let backup = stage::link(sys, (folder, &self.name, seen), folder)?;
        self.progress.backup = Some(backup.name);
        self.progress.copy = Some(backup.file);
        match sys.stat_at(folder, &self.name) {
            Ok(stat) if seen.is_still(&stat) => Ok(()),
            Ok(_) | Err(Errno::NOENT) => Err(Trouble::Interfered),
            Err(errno) => Err(errno.into()),
        }
    }

    fn take_away(&mut self, sys: &Sys, folder: BorrowedFd<'_>) -> Result<(), Trouble> {
        let backup = temporary_name();
        match sys.rename(folder, &self.name, &backup) {
            Err(Errno::NOENT) => return Err(Trouble::Interfered),
            renamed => renamed?,
        }
        self.progress.backup = Some(backup);
        self.progress.is_installed = true;
        self.check_backup(sys, folder)
    }

    /// Whether the file that was moved out of the way is the one that was compared, unchanged.
    fn check_backup(&self, sys: &Sys, folder: BorrowedFd<'_>) -> Result<(), Trouble> {
        let (Some(seen), Some(backup)) = (&self.there, &self.progress.backup) else {
            return Ok(());
        };
        if seen.is_still(&sys.stat_at(folder, backup)?) { Ok(()) } else { Err(Trouble::Interfered) }
    }

    fn overwrite(
        &mut self,
        sys: &Sys,
        folder: BorrowedFd<'_>,
        bytes: &Bytes,
        mode: FileMode,
    ) -> Result<(), Trouble> {
        let Some(seen) = &self.there else { return Ok(()) };
        let file = sys.open(folder, &self.name, OFlags::RDWR)?;
        if !seen.is_still(&sys.stat(&file)?) {
            return Err(Trouble::Interfered);
        }
        let Some(old) = seen.content(sys)? else { return Err(Trouble::Interfered) };
        let written = self.progress.overwritten.insert(Overwritten { file, old });
        written.fill(sys, bytes)?;
        if let FileMode::Set(mode) = mode {
            sys.set_mode(&written.file, Mode::from_raw_mode(mode & PERMISSIONS))?;
        }
        Ok(())
    }

    /// Reads back what was written. Content that somebody else wrote since is theirs, and no fault.
    pub(super) fn verify(&self, sys: &Sys) -> Result<(), Trouble> {
        let (bytes, file, stamp) = match (self.wanted, &self.progress) {
            (Wanted::Content { bytes, .. }, Progress { staged: Some(staged), .. }) => {
                (bytes, &staged.file, Some(staged.stamp))
            }
            (Wanted::InPlace { bytes, .. }, Progress { overwritten: Some(written), .. }) => {
                (bytes, &written.file, None)
            }
            (
                Wanted::Content { .. }
                | Wanted::InPlace { .. }
                | Wanted::FileOf(_)
                | Wanted::Nothing,
                _,
            ) => return Ok(()),
        };
        let mut rest: &[u8] = bytes;
        let mut is_same = true;
        each_block(sys, file, |block| match rest.strip_prefix(block) {
            Some(after) => rest = after,
            None => is_same = false,
        })?;
        let is_ours = match stamp {
            Some(stamp) => Stamp::of(&sys.stat(file)?) == stamp,
            None => true,
        };
        if is_ours && !(is_same && rest.is_empty()) {
            let why = "what was read back is not what was written";
            return Err(Trouble::Failed(MachineError::Other(why.into())));
        }
        Ok(())
    }

    /// Restores what was there. Nothing that somebody else put there since is touched.
    pub(super) fn take_back(&mut self, sys: &Sys, folder: BorrowedFd<'_>) -> Result<(), Left> {
        let progress = std::mem::take(&mut self.progress);
        let restored = match (&progress.overwritten, progress.is_installed, &progress.backup) {
            (Some(written), _, _) => self.write_back(sys, written),
            (None, true, backup) => {
                self.restore(sys, folder, progress.staged.as_ref(), backup.as_ref())
            }
            (None, false, _) => Ok(()),
        };
        if !progress.is_installed {
            // If this fails the next commit sweeps them.
            for name in progress.staged.iter().map(|staged| &staged.name).chain(&progress.backup) {
                surely(|| sys.unlink(folder, name)).unwrap_or(());
            }
        }
        restored.map_err(|_| self.left(sys, folder, progress.backup))
    }

    fn restore(
        &self,
        sys: &Sys,
        folder: BorrowedFd<'_>,
        staged: Option<&Staged>,
        backup: Option<&CString>,
    ) -> Result<(), Errno> {
        let is_free = match surely(|| sys.stat_at(folder, &self.name)) {
            Ok(stat) => staged.is_some_and(|staged| staged.identity == Identity::of(&stat)),
            Err(Errno::NOENT) => backup.is_some(),
            Err(errno) => return Err(errno),
        };
        match (backup, is_free) {
            (Some(backup), true) => surely(|| sys.rename(folder, backup, &self.name)),
            (Some(backup), false) => surely(|| sys.unlink(folder, backup)),
            (None, true) => surely(|| sys.unlink(folder, &self.name)),
            (None, false) => Ok(()),
        }
    }

    fn write_back(&self, sys: &Sys, written: &Overwritten) -> Result<(), Errno> {
        surely(|| written.fill(sys, &written.old))?;
        match &self.there {
            Some(seen) => surely(|| {
                sys.set_mode(&written.file, Mode::from_raw_mode(seen.stat.st_mode & PERMISSIONS))
            }),
            None => Ok(()),
        }
    }

    /// Keeps the old content from being swept, and says where it is.
    fn left(&self, sys: &Sys, folder: BorrowedFd<'_>, backup: Option<CString>) -> Left {
        let old = backup.map(|backup| {
            let kept = kept_name(&backup);
            let name = if sys.rename(folder, &backup, &kept).is_ok() { kept } else { backup };
            let name = OsStr::from_bytes(name.as_bytes());
            self.at.path().with_file_name(name)
        });
        Left { changed: self.at.path(), old }
    }

    /// Drops the old file. It is no failure of the commit if that cannot be done now: the next one sweeps it.
    pub(super) fn clear_up(&self, sys: &Sys, folder: BorrowedFd<'_>) {
        if let Some(backup) = &self.progress.backup {
            surely(|| sys.unlink(folder, backup)).unwrap_or(());
        }
    }
}

impl Overwritten {
    fn fill(&self, sys: &Sys, bytes: &[u8]) -> Result<(), Errno> {
        write_all(sys, &self.file, bytes, 0)?;
        sys.truncate(&self.file, bytes.len() as u64)?;
        sys.sync(&self.file)
    }
}

/// A name that is not swept.
fn kept_name(temporary: &CStr) -> CString {
    let mut name = temporary.to_bytes().to_vec();
    name.extend_from_slice(b".old");
    CString::new(name).unwrap_or_default()
}
