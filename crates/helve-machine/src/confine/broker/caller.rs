//! The thread whose call is suspended: its memory, folders and ids.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::CStr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, Mode, OFlags, fstat, openat};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use crate::confine::syscalls;

pub(super) struct Caller<'a> {
    thread: i32,
    known: &'a KnownThreads,
}

/// What the kernel says about a thread in `/proc/PID/status`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ThreadStatus {
    /// The permissions that new files do not get.
    pub(super) umask: u32,
    /// The process that the thread belongs to.
    pub(super) process: u32,
    /// The user and the groups that the thread accesses files as.
    pub(super) ids: FileIds,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct FileIds {
    pub(super) user: u32,
    pub(super) group: u32,
    pub(super) groups: Vec<u32>,
}

/// The status of threads that made a call a short time ago. Reading it takes longer than most calls.
#[derive(Default)]
pub(super) struct KnownThreads(RefCell<KnownStatuses>);

#[derive(Default)]
struct KnownStatuses {
    threads: HashMap<i32, (Instant, Arc<ThreadStatus>)>,
    /// When a thread last announced that it changes its status.
    changed: Option<Instant>,
}

/// How long a status is used. In this time, the kernel does not give the id of an ended thread to another one: it first
/// uses all other ids.
const STATUS_LIFETIME: Duration = Duration::from_millis(100);
/// How long after an announced change no status is remembered, because the change may not have happened yet.
const CHANGE_TIME: Duration = Duration::from_millis(10);
const MAX_KNOWN: usize = 1_000;

impl KnownThreads {
    /// Forgets everything: a thread is about to change its umask or ids, which others may share.
    pub(super) fn expect_change(&self) {
        let mut statuses = self.0.borrow_mut();
        statuses.threads.clear();
        statuses.changed = Some(Instant::now());
    }

    fn get(&self, thread: i32) -> Option<Arc<ThreadStatus>> {
        let statuses = self.0.borrow();
        let (read_at, status) = statuses.threads.get(&thread)?;
        (read_at.elapsed() < STATUS_LIFETIME).then(|| Arc::clone(status))
    }

    fn remember(&self, thread: i32, read_at: Instant, status: &Arc<ThreadStatus>) {
        let mut statuses = self.0.borrow_mut();
        if statuses.changed.is_some_and(|changed| read_at < changed + CHANGE_TIME) {
            return;
        }
        if statuses.threads.len() >= MAX_KNOWN {
            statuses.threads.clear();
        }
        statuses.threads.insert(thread, (read_at, Arc::clone(status)));
    }
}

/// Maximum length of a path that the kernel accepts, including the NUL at its end.
const MAX_PATH: usize = 4096;
/// Most paths are shorter than this.
const FIRST_READ: usize = 256;

impl<'a> Caller<'a> {
    /// If the thread is killed in the meantime, its id may belong to another thread in the same sandbox.
    pub(super) fn new(thread: i32, known: &'a KnownThreads) -> Self {
        Caller { thread, known }
    }

    /// Opens a file in the caller's folder in `/proc`.
    fn open(&self, name: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let path = format!("/proc/{}/{name}", self.thread);
        openat(CWD, path, flags | OFlags::CLOEXEC, Mode::empty())
    }

    /// Reads a path from the caller's memory.
    pub(super) fn path(&self, address: u64) -> Result<Vec<u8>, Errno> {
        let mut buffer = Vec::new();
        let mut length = 0;
        // The page after the end of the path may not be mapped, so each page is read on its own.
        while length < MAX_PATH {
            let start = address.checked_add(length as u64).ok_or(Errno::FAULT)?;
            let limit = if length == 0 { FIRST_READ } else { MAX_PATH };
            let end = (length + syscalls::bytes_to_page_end(start)).min(limit);
            buffer.resize(end, 0);
            let part = &mut buffer[length..end];
            let count = syscalls::read_memory(self.thread, start, part)
                .map_err(|err| Errno::from_io_error(&err).unwrap_or(Errno::FAULT))?;
            if let Ok(rest) = CStr::from_bytes_until_nul(&part[..count]) {
                length += rest.count_bytes();
                buffer.truncate(length);
                return Ok(buffer);
            }
            if count < part.len() {
                return Err(Errno::FAULT);
            }
            length = end;
        }
        Err(Errno::NAMETOOLONG)
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
        let process = Pid::from_raw(i32::try_from(self.status()?.process).unwrap_or(0));
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

    pub(super) fn status(&self) -> Result<Arc<ThreadStatus>, Errno> {
        if let Some(known) = self.known.get(self.thread) {
            return Ok(known);
        }
        let read_at = Instant::now();
        let mut buffer = [0; 4096];
        let count = rustix::io::read(self.open("status", OFlags::RDONLY)?, &mut buffer)?;
        let status = Arc::new(ThreadStatus::parse(&String::from_utf8_lossy(&buffer[..count]))?);
        self.known.remember(self.thread, read_at, &status);
        Ok(status)
    }
}

impl ThreadStatus {
    fn parse(text: &str) -> Result<Self, Errno> {
        let line = |name: &str| {
            let mut lines = text.lines();
            lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap_or_default()
        };
        let numbers = |name| line(name).split_whitespace().filter_map(|it| it.parse().ok());
        // If an id or the umask cannot be read, one without rights is used.
        const NOBODY: u32 = 65534;
        Ok(ThreadStatus {
            umask: u32::from_str_radix(line("Umask").trim(), 8).unwrap_or(0o077),
            process: line("Tgid").trim().parse().map_err(|_| Errno::SRCH)?,
            ids: FileIds {
                // The fourth id is the one for files.
                user: numbers("Uid").nth(3).unwrap_or(NOBODY),
                group: numbers("Gid").nth(3).unwrap_or(NOBODY),
                groups: numbers("Groups").collect(),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Instant;

    use rustix::io::Errno;

    use super::{CHANGE_TIME, FileIds, KnownThreads, STATUS_LIFETIME, ThreadStatus};

    #[test]
    fn the_status_of_a_thread() {
        let text = "Name:\tUmask\nUmask:\t0027\nTgid:\t12\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\nGroups:\t9 10 \n";
        let ids = FileIds { user: 4, group: 8, groups: vec![9, 10] };
        assert_eq!(ThreadStatus::parse(text), Ok(ThreadStatus { umask: 0o027, process: 12, ids }));
        let ids = FileIds { user: 65534, group: 65534, groups: vec![] };
        let status = ThreadStatus { umask: 0o077, process: 1, ids };
        assert_eq!(ThreadStatus::parse("Tgid:\t1\n"), Ok(status));
        assert_eq!(ThreadStatus::parse(""), Err(Errno::SRCH));
    }

    #[test]
    fn a_status_is_forgotten_before_it_changes_or_becomes_old() {
        let known = KnownThreads::default();
        let status = Arc::new(ThreadStatus::parse("Tgid:\t1\n").unwrap());
        let now = Instant::now();
        known.remember(1, now, &status);
        assert_eq!(known.get(1), Some(Arc::clone(&status)));
        known.expect_change();
        assert_eq!(known.get(1), None);
        // The thread may not have changed it yet.
        known.remember(1, Instant::now(), &status);
        assert_eq!(known.get(1), None);
        known.remember(1, Instant::now() + CHANGE_TIME, &status);
        assert_eq!(known.get(1), Some(Arc::clone(&status)));
        let known = KnownThreads::default();
        known.remember(1, now.checked_sub(STATUS_LIFETIME).unwrap(), &status);
        assert_eq!(known.get(1), None);
    }
}
