//! The thread whose call is suspended: its memory, folders and ids.

use std::cell::OnceCell;
use std::ffi::CStr;
use std::os::fd::OwnedFd;

use rustix::fs::{CWD, Mode, OFlags, fstat, openat};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use crate::confine::syscalls;

pub(super) struct Caller {
    thread: i32,
    status: OnceCell<CallerStatus>,
}

/// The relevant lines of `/proc/PID/status`.
pub(super) struct CallerStatus(String);

/// Whom a thread accesses files as.
pub(super) struct FileIds {
    pub(super) user: u32,
    pub(super) group: u32,
    pub(super) groups: Vec<u32>,
}

/// The longest path that the kernel accepts, with its end.
const MAX_PATH: usize = 4096;

impl Caller {
    /// If the thread is killed in the meantime, its id may belong to another thread in the same sandbox.
    pub(super) fn new(thread: i32) -> Self {
        Caller { thread, status: OnceCell::new() }
    }

    /// Opens a file in the caller's folder in `/proc`.
    fn open(&self, name: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let path = format!("/proc/{}/{name}", self.thread);
        openat(CWD, path, flags | OFlags::CLOEXEC, Mode::empty())
    }

    /// Reads a path from its memory.
    pub(super) fn path(&self, address: u64) -> Result<Vec<u8>, Errno> {
        let mut buffer = vec![0; MAX_PATH];
        let count = syscalls::read_memory(self.thread, address, &mut buffer)
            .map_err(|err| Errno::from_io_error(&err).unwrap_or(Errno::FAULT))?;
        buffer.truncate(count);
        match CStr::from_bytes_until_nul(&buffer) {
            Ok(path) => Ok(path.to_bytes().to_vec()),
            Err(_) if count == MAX_PATH => Err(Errno::NAMETOOLONG),
            Err(_) => Err(Errno::FAULT),
        }
    }

    /// Opens the folder that relative paths start from, given the number of a handle in the caller.
    pub(super) fn base(&self, handle: i32) -> Result<OwnedFd, Errno> {
        let name = if handle == libc::AT_FDCWD { "cwd".into() } else { format!("fd/{handle}") };
        match self.open(&name, OFlags::PATH) {
            Err(Errno::NOENT) if handle != libc::AT_FDCWD => Err(Errno::BADF),
            result => result,
        }
    }

    /// Returns the caller's own handle of its controlling terminal, which this process cannot open.
    pub(super) fn terminal(&self) -> Result<OwnedFd, Errno> {
        let file = self.open("stat", OFlags::RDONLY)?;
        let mut buffer = [0; 1024];
        let count = rustix::io::read(&file, &mut buffer)?;
        let text = String::from_utf8_lossy(&buffer[..count]);
        // The name may contain blanks and parentheses. The terminal is the fifth field after it.
        let fields = text.rsplit_once(')').map_or("", |(_, rest)| rest);
        let terminal: i32 =
            fields.split_whitespace().nth(4).and_then(|it| it.parse().ok()).ok_or(Errno::NXIO)?;
        let process = Pid::from_raw(i32::try_from(self.status()?.process()?).unwrap_or(0));
        let process = pidfd_open(process.ok_or(Errno::SRCH)?, PidfdFlags::empty())?;
        for number in 0..3 {
            let Ok(handle) = pidfd_getfd(&process, number, PidfdGetfdFlags::empty()) else {
                continue;
            };
            // The kernel encodes the number of the device in 32 bits here.
            let device = fstat(&handle)?.st_rdev;
            if terminal != 0 && i32::try_from(device) == Ok(terminal) {
                return Ok(handle);
            }
        }
        Err(Errno::NXIO)
    }

    pub(super) fn thread(&self) -> i32 {
        self.thread
    }

    /// Reads its status once.
    pub(super) fn status(&self) -> Result<&CallerStatus, Errno> {
        if self.status.get().is_none() {
            let mut buffer = [0; 4096];
            let count = rustix::io::read(self.open("status", OFlags::RDONLY)?, &mut buffer)?;
            let text = String::from_utf8_lossy(&buffer[..count]).into_owned();
            self.status.set(CallerStatus(text)).unwrap_or_default();
        }
        self.status.get().ok_or(Errno::SRCH)
    }
}

impl CallerStatus {
    fn line(&self, name: &str) -> &str {
        let mut lines = self.0.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap_or_default()
    }

    /// The permissions that new files do not get.
    pub(super) fn umask(&self) -> u32 {
        u32::from_str_radix(self.line("Umask").trim(), 8).unwrap_or(0o077)
    }

    /// The process that the thread belongs to.
    pub(super) fn process(&self) -> Result<u32, Errno> {
        self.line("Tgid").trim().parse().map_err(|_| Errno::SRCH)
    }

    pub(super) fn ids(&self) -> FileIds {
        let numbers = |name| self.line(name).split_whitespace().filter_map(|it| it.parse().ok());
        // The fourth id is the one for files. An id that cannot be read is one without rights.
        const NOBODY: u32 = 65534;
        FileIds {
            user: numbers("Uid").nth(3).unwrap_or(NOBODY),
            group: numbers("Gid").nth(3).unwrap_or(NOBODY),
            groups: numbers("Groups").collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::CallerStatus;

    #[test]
    fn the_status_of_a_thread() {
        let text = "Name:\tUmask\nUmask:\t0027\nTgid:\t12\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\nGroups:\t9 10 \n";
        let status = CallerStatus(text.into());
        let ids = status.ids();
        assert_eq!((status.umask(), status.process()), (0o027, Ok(12)));
        assert_eq!((ids.user, ids.group, ids.groups), (4, 8, vec![9, 10]));
        let ids = CallerStatus(String::new()).ids();
        assert_eq!((ids.user, ids.group, ids.groups), (65534, 65534, vec![]));
    }
}
