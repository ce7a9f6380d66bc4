//! All system calls of a commit in one place, so that tests can make any of them fail.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{
    self, Access, AtFlags, CWD, FlockOperation, Gid, Mode, OFlags, RawDir, RenameFlags, Stat, Uid,
    XattrFlags,
};
use rustix::io::Errno;

use crate::open;

/// How many times an interrupted call is attempted.
const MAX_ATTEMPTS: usize = 64;

const BUFFER_BYTES: usize = 32 * 1024;

type Result<T> = std::result::Result<T, Errno>;
type DirFd<'a> = BorrowedFd<'a>;

#[derive(Clone, Debug, Default)]
pub(crate) struct Syscalls {
    #[cfg(any(test, feature = "faults"))]
    pub(crate) faults: super::faults::InjectedFaults,
}

impl Syscalls {
    fn call<T>(&self, name: &'static str, mut call: impl FnMut() -> Result<T>) -> Result<T> {
        for _ in 0..MAX_ATTEMPTS {
            let result = match self.fault(name) {
                Some(errno) => Err(errno),
                None => call(),
            };
            match result {
                Err(Errno::INTR) => {}
                result => return result,
            }
        }
        Err(Errno::INTR)
    }

    #[cfg(not(any(test, feature = "faults")))]
    #[expect(clippy::unused_self, reason = "only tests have faults")]
    pub(crate) fn fault(&self, _: &'static str) -> Option<Errno> {
        None
    }

    #[cfg(any(test, feature = "faults"))]
    pub(crate) fn fault(&self, name: &'static str) -> Option<Errno> {
        self.faults.fault_in(name)
    }

    pub(super) fn open_anchor(&self, path: &Path) -> Result<OwnedFd> {
        self.call("open_anchor", || open::open_anchor(path))
    }

    pub(super) fn open_beneath(
        &self,
        folder: DirFd<'_>,
        path: &Path,
        flags: OFlags,
    ) -> Result<OwnedFd> {
        self.call("open_beneath", || open::path_beneath(folder, path, flags))
    }

    /// Opens a file in a folder; a link is refused.
    pub(super) fn open(&self, folder: DirFd<'_>, name: &CStr, flags: OFlags) -> Result<OwnedFd> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        self.call("open", || fs::openat(folder, name, flags, Mode::empty()))
    }

    /// Creates a new file for reading and writing.
    pub(super) fn create(&self, folder: DirFd<'_>, name: &CStr, mode: Mode) -> Result<OwnedFd> {
        let flags =
            OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        self.call("create", || fs::openat(folder, name, flags, mode))
    }

    pub(super) fn open_lock(&self, path: &Path) -> Result<OwnedFd> {
        // Opened for reading only: enough for a lock, and permitted even if root created the file.
        let flags =
            OFlags::CREATE | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        self.call("open_lock", || fs::openat(CWD, path, flags, Mode::from_raw_mode(0o644)))
    }

    pub(super) fn make_private_folder(&self, path: &Path) -> Result<()> {
        self.call("make_private_folder", || fs::mkdirat(CWD, path, Mode::RWXU))
    }

    pub(super) fn make_folder(&self, folder: DirFd<'_>, name: &CStr) -> Result<()> {
        self.call("make_folder", || fs::mkdirat(folder, name, Mode::from_raw_mode(0o777)))
    }

    pub(super) fn remove_folder(&self, folder: DirFd<'_>, name: &CStr) -> Result<()> {
        self.call("remove_folder", || fs::unlinkat(folder, name, AtFlags::REMOVEDIR))
    }

    pub(super) fn unlink(&self, folder: DirFd<'_>, name: &CStr) -> Result<()> {
        self.call("unlink", || fs::unlinkat(folder, name, AtFlags::empty()))
    }

    pub(super) fn link(&self, from: (DirFd<'_>, &CStr), to: (DirFd<'_>, &CStr)) -> Result<()> {
        self.call("link", || fs::linkat(from.0, from.1, to.0, to.1, AtFlags::empty()))
    }

    pub(super) fn read_link(&self, folder: DirFd<'_>, name: &CStr) -> Result<CString> {
        self.call("read_link", || fs::readlinkat(folder, name, Vec::new()))
    }

    pub(super) fn make_link(&self, target: &CStr, folder: DirFd<'_>, name: &CStr) -> Result<()> {
        self.call("make_link", || fs::symlinkat(target, folder, name))
    }

    pub(super) fn rename(&self, folder: DirFd<'_>, from: &CStr, to: &CStr) -> Result<()> {
        self.call("rename", || fs::renameat(folder, from, folder, to))
    }

    /// Renames a file; fails if `to` exists.
    pub(super) fn rename_to_new(&self, folder: DirFd<'_>, from: &CStr, to: &CStr) -> Result<()> {
        let call = || fs::renameat_with(folder, from, folder, to, RenameFlags::NOREPLACE);
        self.call("rename_to_new", call)
    }

    pub(super) fn exchange(&self, folder: DirFd<'_>, one: &CStr, other: &CStr) -> Result<()> {
        let call = || fs::renameat_with(folder, one, folder, other, RenameFlags::EXCHANGE);
        self.call("exchange", call)
    }

    pub(super) fn stat(&self, file: impl AsFd) -> Result<Stat> {
        self.call("stat", || fs::fstat(&file))
    }

    pub(super) fn stat_at(&self, folder: DirFd<'_>, name: &CStr) -> Result<Stat> {
        self.call("stat_at", || fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW))
    }

    /// Checks that this process may write to the file.
    pub(super) fn may_write(&self, folder: DirFd<'_>, name: &CStr) -> Result<()> {
        self.call("may_write", || fs::accessat(folder, name, Access::WRITE_OK, AtFlags::EACCESS))
    }

    pub(super) fn read(&self, file: impl AsFd, buffer: &mut [u8], at: u64) -> Result<usize> {
        self.call("read", || rustix::io::pread(&file, &mut *buffer, at))
    }

    pub(super) fn write(&self, file: impl AsFd, bytes: &[u8], at: u64) -> Result<usize> {
        self.call("write", || rustix::io::pwrite(&file, bytes, at))
    }

    pub(super) fn truncate(&self, file: impl AsFd, length: u64) -> Result<()> {
        self.call("truncate", || fs::ftruncate(&file, length))
    }

    pub(super) fn sync(&self, file: impl AsFd) -> Result<()> {
        self.call("sync", || fs::fsync(&file))
    }

    /// Starts writing a file to disk, without waiting. Only speeds up the sync that must follow, which also reports any
    /// error of the disk.
    pub(super) fn start_writeback(&self, file: impl AsFd) {
        let file = file.as_fd().as_raw_fd();
        // SAFETY: The call takes numbers only, and the descriptor is open.
        #[expect(unsafe_code, reason = "rustix has no wrapper for this call")]
        unsafe {
            libc::sync_file_range(file, 0, 0, libc::SYNC_FILE_RANGE_WRITE);
        }
    }

    pub(super) fn set_mode(&self, file: impl AsFd, mode: Mode) -> Result<()> {
        self.call("set_mode", || fs::fchmod(&file, mode))
    }

    pub(super) fn set_owner(
        &self,
        file: impl AsFd,
        user: Option<Uid>,
        group: Option<Gid>,
    ) -> Result<()> {
        self.call("set_owner", || fs::fchown(&file, user, group))
    }

    pub(super) fn list_xattrs(&self, file: impl AsFd, names: &mut [u8]) -> Result<usize> {
        self.call("list_xattrs", || fs::flistxattr(&file, &mut *names))
    }

    pub(super) fn get_xattr(
        &self,
        file: impl AsFd,
        name: &CStr,
        value: &mut [u8],
    ) -> Result<usize> {
        self.call("get_xattr", || fs::fgetxattr(&file, name, &mut *value))
    }

    pub(super) fn set_xattr(&self, file: impl AsFd, name: &CStr, value: &[u8]) -> Result<()> {
        self.call("set_xattr", || fs::fsetxattr(&file, name, value, XattrFlags::empty()))
    }

    pub(super) fn remove_xattr(&self, file: impl AsFd, name: &CStr) -> Result<()> {
        self.call("remove_xattr", || fs::fremovexattr(&file, name))
    }

    /// Calls `visit` with up to `max` names of a folder. The handle must not have been used for listing before.
    pub(super) fn names(
        &self,
        folder: DirFd<'_>,
        max: usize,
        mut visit: impl FnMut(&CStr),
    ) -> Result<()> {
        let mut buffer = Vec::with_capacity(BUFFER_BYTES);
        self.call("names", || {
            let mut names = RawDir::new(folder, buffer.spare_capacity_mut());
            for _ in 0..max {
                match names.next() {
                    Some(entry) => visit(entry?.file_name()),
                    None => break,
                }
            }
            Ok(())
        })
    }

    /// Tries to lock a file of the lock folder, without waiting.
    pub(super) fn try_lock_path(&self, file: impl AsFd) -> Result<()> {
        self.call("try_lock_path", || fs::flock(&file, FlockOperation::NonBlockingLockExclusive))
    }

    /// Tries to lock a data file, without waiting. While it is locked, a sweep by another process does not remove the
    /// file.
    pub(super) fn try_lock_data(&self, file: impl AsFd) -> Result<()> {
        self.call("try_lock_data", || fs::flock(&file, FlockOperation::NonBlockingLockExclusive))
    }
}
