//! One name that a commit changes: installs the new state, rolls it back, cleans up.

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use bytes::Bytes;
use helve_core::{MachineError, Place};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::existing::{ExistingFile, FileIdentity, each_block, has_content};
use super::folders::FolderId;
use super::retry;
use super::stage::{self, PERMISSIONS, StagedFile, temporary_name, write_all};
use super::sys::Syscalls;
use super::{ExpectedContent, FileMode, NotRolledBack};
use crate::errors::machine_error;

#[derive(Debug)]
pub(super) struct CommitTarget<'a> {
    pub(super) at: &'a Place,
    pub(super) folder: FolderId,
    pub(super) name: CString,
    pub(super) expect: &'a ExpectedContent,
    /// The file that existed when the commit began.
    pub(super) existing: Option<ExistingFile>,
    pub(super) new_state: NewState<'a>,
    pub(super) progress: TargetProgress,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum NewState<'a> {
    /// A new file. Takes its permissions from the existing file of target number `permissions_of`, if set, else from
    /// the file it replaces.
    Content {
        bytes: &'a Bytes,
        mode: FileMode,
        permissions_of: Option<usize>,
    },
    /// The same file, overwritten.
    InPlace {
        bytes: &'a Bytes,
        mode: FileMode,
    },
    /// The existing file of the target with this index, which is moved here.
    MovedFrom(usize),
    /// A symbolic link.
    Link {
        target: &'a Bytes,
    },
    Absent,
}

/// What was done so far; enough to roll back at any point.
#[derive(Debug, Default)]
pub(super) struct TargetProgress {
    /// The new file. Its temporary name exists until `is_installed`.
    pub(super) staged: Option<StagedFile>,
    /// The temporary name of the old file.
    backup: Option<CString>,
    /// The handle of the backup. Its lock shows other processes that the owner is alive.
    backup_file: Option<OwnedFd>,
    is_installed: bool,
    overwritten: Option<OverwrittenFile>,
}

/// A file that was overwritten, and its old content.
#[derive(Debug)]
struct OverwrittenFile {
    file: OwnedFd,
    old: Vec<u8>,
}

/// Why a target could not be installed.
#[derive(Debug)]
pub(super) enum InstallError {
    /// Another process changed the file after it was compared.
    ChangedConcurrently,
    /// The old content was not recorded, so no file may change.
    NotRecorded,
    Failed(MachineError),
}

impl From<Errno> for InstallError {
    fn from(errno: Errno) -> Self {
        Self::Failed(machine_error(errno))
    }
}

/// Errors of file systems that do not support a kind of rename.
const UNSUPPORTED: [Errno; 3] = [Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP];

impl CommitTarget<'_> {
    /// Installs the new state. A file that is created or replaced is renamed into place, so that it is never missing or
    /// partly written. `InPlace` overwrites the file and is not atomic.
    pub(super) fn install(
        &mut self,
        sys: &Syscalls,
        folder: BorrowedFd<'_>,
    ) -> Result<(), InstallError> {
        match (self.new_state, self.existing.is_some()) {
            (NewState::InPlace { bytes, mode }, _) => self.overwrite(sys, folder, bytes, mode),
            (NewState::Absent, false) => Ok(()),
            (NewState::Absent, true) => self.install_removal(sys, folder),
            (NewState::Content { .. } | NewState::MovedFrom(_) | NewState::Link { .. }, false) => {
                self.install_new(sys, folder)
            }
            (NewState::Content { .. } | NewState::MovedFrom(_) | NewState::Link { .. }, true) => {
                self.replace(sys, folder)
            }
        }
    }

    /// Returns the permission bits of the new state; `None` if the file is removed.
    pub(super) fn mode(&self) -> Option<u32> {
        let old = self.existing.as_ref().map(|existing| existing.stat.st_mode & PERMISSIONS);
        match self.new_state {
            NewState::Content { .. } | NewState::MovedFrom(_) | NewState::Link { .. } => {
                self.progress.staged.as_ref().map(|staged| staged.mode)
            }
            NewState::InPlace { mode: FileMode::Set(mode), .. } => Some(mode & PERMISSIONS),
            NewState::InPlace { mode: FileMode::Keep, .. } => old,
            NewState::Absent => None,
        }
    }

    fn install_new(&mut self, sys: &Syscalls, folder: BorrowedFd<'_>) -> Result<(), InstallError> {
        let Some(staged) = &self.progress.staged else { return Ok(()) };
        match sys.rename_to_new(folder, &staged.name, &self.name) {
            Err(errno) if UNSUPPORTED.contains(&errno) => self.install_new_by_link(sys, folder)?,
            Err(Errno::EXIST) => return Err(InstallError::ChangedConcurrently),
            renamed => renamed?,
        }
        self.progress.is_installed = true;
        Ok(())
    }

    fn install_new_by_link(
        &mut self,
        sys: &Syscalls,
        folder: BorrowedFd<'_>,
    ) -> Result<(), InstallError> {
        let Some(staged) = &self.progress.staged else { return Ok(()) };
        match sys.link((folder, &staged.name), (folder, &self.name)) {
            Ok(()) => {
                // If this fails, a later commit sweeps it.
                retry(|| sys.unlink(folder, &staged.name)).unwrap_or(());
                Ok(())
            }
            Err(Errno::EXIST) => Err(InstallError::ChangedConcurrently),
            Err(_) => match sys.stat_at(folder, &self.name) {
                Err(Errno::NOENT) => Ok(sys.rename(folder, &staged.name, &self.name)?),
                Ok(_) => Err(InstallError::ChangedConcurrently),
                Err(errno) => Err(errno.into()),
            },
        }
    }

    fn replace(&mut self, sys: &Syscalls, folder: BorrowedFd<'_>) -> Result<(), InstallError> {
        let Some(staged) = &self.progress.staged else { return Ok(()) };
        let temporary = staged.name.clone();
        match sys.exchange(folder, &temporary, &self.name) {
            Ok(()) => {
                self.progress.backup = Some(temporary);
                self.progress.is_installed = true;
                self.check_backup(sys, folder)
            }
            Err(Errno::NOENT) => Err(InstallError::ChangedConcurrently),
            Err(errno) if UNSUPPORTED.contains(&errno) => {
                self.back_up(sys, folder)?;
                sys.rename(folder, &temporary, &self.name)?;
                self.progress.is_installed = true;
                Ok(())
            }
            Err(errno) => Err(errno.into()),
        }
    }

    /// Links or copies the old file to a temporary name.
    fn back_up(&mut self, sys: &Syscalls, folder: BorrowedFd<'_>) -> Result<(), InstallError> {
        let Some(existing) = &self.existing else { return Ok(()) };
        let backup = stage::link(sys, (folder, &self.name, existing), folder)?;
        self.progress.backup = Some(backup.name);
        self.progress.backup_file = Some(backup.file);
        match sys.stat_at(folder, &self.name) {
            Ok(stat) if existing.is_unchanged(&stat) => Ok(()),
            Ok(_) | Err(Errno::NOENT) => Err(InstallError::ChangedConcurrently),
            Err(errno) => Err(errno.into()),
        }
    }

    fn install_removal(
        &mut self,
        sys: &Syscalls,
        folder: BorrowedFd<'_>,
    ) -> Result<(), InstallError> {
        let backup = temporary_name();
        match sys.rename(folder, &self.name, &backup) {
            Err(Errno::NOENT) => return Err(InstallError::ChangedConcurrently),
            renamed => renamed?,
        }
        self.progress.backup = Some(backup);
        self.progress.is_installed = true;
        self.check_backup(sys, folder)
    }

    /// Checks that the file that was moved away is the one that was compared, unchanged.
    fn check_backup(&self, sys: &Syscalls, folder: BorrowedFd<'_>) -> Result<(), InstallError> {
        let (Some(existing), Some(backup)) = (&self.existing, &self.progress.backup) else {
            return Ok(());
        };
        if existing.is_unchanged(&sys.stat_at(folder, backup)?) {
            Ok(())
        } else {
            Err(InstallError::ChangedConcurrently)
        }
    }

    fn overwrite(
        &mut self,
        sys: &Syscalls,
        folder: BorrowedFd<'_>,
        bytes: &Bytes,
        mode: FileMode,
    ) -> Result<(), InstallError> {
        let Some(existing) = &self.existing else { return Ok(()) };
        let file = sys.open(folder, &self.name, OFlags::RDWR)?;
        if !existing.is_unchanged(&sys.stat(&file)?) {
            return Err(InstallError::ChangedConcurrently);
        }
        let mut old = Vec::new();
        each_block(sys, &existing.file, existing.size(), |block| old.extend_from_slice(block))?;
        if !matches!(self.expect, ExpectedContent::File(expected) if *expected == old) {
            return Err(InstallError::ChangedConcurrently);
        }
        let written = self.progress.overwritten.insert(OverwrittenFile { file, old });
        written.write_content(sys, bytes)?;
        if let FileMode::Set(mode) = mode {
            sys.set_mode(&written.file, Mode::from_raw_mode(mode & PERMISSIONS))?;
        }
        Ok(())
    }

    /// Checks that the existing file has the expected content.
    pub(super) fn check_expected(&self, sys: &Syscalls) -> Result<(), InstallError> {
        match (self.expect, &self.existing) {
            (ExpectedContent::File(expected), Some(existing))
                if !has_content(sys, &existing.file, expected)? =>
            {
                Err(InstallError::ChangedConcurrently)
            }
            // Links and missing files were compared when the target was planned.
            (ExpectedContent::File(_) | ExpectedContent::Link(_) | ExpectedContent::Absent, _) => {
                Ok(())
            }
        }
    }

    /// Reads back the staged content and syncs it.
    pub(super) fn verify_and_sync_staged(&self, sys: &Syscalls) -> Result<(), InstallError> {
        let (NewState::Content { bytes, .. }, Some(staged)) =
            (self.new_state, &self.progress.staged)
        else {
            return Ok(());
        };
        if staged.verify_and_sync(sys, bytes)? { Ok(()) } else { Err(differs()) }
    }

    /// Reads back the content of a file that was overwritten.
    pub(super) fn verify_overwritten(&self, sys: &Syscalls) -> Result<(), InstallError> {
        let (NewState::InPlace { bytes, .. }, Some(written)) =
            (self.new_state, &self.progress.overwritten)
        else {
            return Ok(());
        };
        if has_content(sys, &written.file, bytes)? { Ok(()) } else { Err(differs()) }
    }

    /// Restores the old state. Anything that another process put there since is left alone.
    pub(super) fn roll_back(
        &mut self,
        sys: &Syscalls,
        folder: BorrowedFd<'_>,
    ) -> Result<(), NotRolledBack> {
        let progress = std::mem::take(&mut self.progress);
        let restored = match (&progress.overwritten, progress.is_installed, &progress.backup) {
            (Some(written), _, _) => self.write_back(sys, written),
            (None, true, backup) => {
                self.restore(sys, folder, progress.staged.as_ref(), backup.as_ref())
            }
            (None, false, _) => Ok(()),
        };
        if !progress.is_installed {
            // If this fails, a later commit sweeps them.
            for name in progress.staged.iter().map(|staged| &staged.name).chain(&progress.backup) {
                retry(|| sys.unlink(folder, name)).unwrap_or(());
            }
        }
        restored.map_err(|_| self.leftover(sys, folder, progress.backup))
    }

    fn restore(
        &self,
        sys: &Syscalls,
        folder: BorrowedFd<'_>,
        staged: Option<&StagedFile>,
        backup: Option<&CString>,
    ) -> Result<(), Errno> {
        // Nothing of another process may be overwritten or removed. If there is neither a file nor a backup, nothing
        // needs to be restored.
        let may_restore = match retry(|| sys.stat_at(folder, &self.name)) {
            Ok(stat) => staged.is_some_and(|staged| staged.identity == FileIdentity::of(&stat)),
            Err(Errno::NOENT) => backup.is_some(),
            Err(errno) => return Err(errno),
        };
        match (backup, may_restore) {
            (Some(backup), true) => retry(|| sys.rename(folder, backup, &self.name)),
            (Some(backup), false) => retry(|| sys.unlink(folder, backup)),
            (None, true) => retry(|| sys.unlink(folder, &self.name)),
            (None, false) => Ok(()),
        }
    }

    fn write_back(&self, sys: &Syscalls, written: &OverwrittenFile) -> Result<(), Errno> {
        retry(|| written.write_content(sys, &written.old))?;
        match &self.existing {
            Some(existing) => retry(|| {
                sys.set_mode(
                    &written.file,
                    Mode::from_raw_mode(existing.stat.st_mode & PERMISSIONS),
                )
            }),
            None => Ok(()),
        }
    }

    /// Renames the backup so that it is not swept, and returns where it is.
    fn leftover(
        &self,
        sys: &Syscalls,
        folder: BorrowedFd<'_>,
        backup: Option<CString>,
    ) -> NotRolledBack {
        let old = backup.map(|backup| {
            let renamed = leftover_name(&backup);
            let name = if sys.rename(folder, &backup, &renamed).is_ok() { renamed } else { backup };
            let name = OsStr::from_bytes(name.as_bytes());
            self.at.path().with_file_name(name)
        });
        NotRolledBack { changed: self.at.path(), old }
    }

    /// Removes the old file. A failure is ignored: a later commit sweeps it.
    pub(super) fn clean_up(&self, sys: &Syscalls, folder: BorrowedFd<'_>) {
        if let Some(backup) = &self.progress.backup {
            retry(|| sys.unlink(folder, backup)).unwrap_or(());
        }
    }
}

impl OverwrittenFile {
    fn write_content(&self, sys: &Syscalls, bytes: &[u8]) -> Result<(), Errno> {
        write_all(sys, &self.file, bytes, 0)?;
        sys.truncate(&self.file, bytes.len() as u64)?;
        sys.sync(&self.file)
    }
}

fn differs() -> InstallError {
    let why = "the content read back differs from what was written";
    InstallError::Failed(MachineError::Other(why.into()))
}

/// Returns a name for a backup that cannot be restored. Sweeps do not remove it.
fn leftover_name(temporary: &CStr) -> CString {
    let mut name = temporary.to_bytes().to_vec();
    name.extend_from_slice(b".old");
    CString::new(name).unwrap_or_default()
}
