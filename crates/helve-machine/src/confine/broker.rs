//! Makes file system calls on behalf of a confined program, and refuses those that the plan refuses by name.
//!
//! Whether a call is allowed depends on a path in the program's memory. If the kernel made the call after a check, another
//! thread could change the path in between. So the kernel suspends the call, and this process makes it in place of the
//! program: it reads the path once, opens the folder, checks the name, and changes the entry in the folder that it opened. The
//! program gets the result. This process lives in the same namespaces and has the same rights to files as the program.

mod caller;
mod links;
mod operations;
mod places;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use helve_core::confine::NameGuard;
use helve_core::process::{DeniedCall, SandboxPlan};
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::{filter, listener, syscalls};
use caller::{Caller, KnownThreads};
use links::LinkedFiles;

/// The arguments of a suspended call.
type Arguments = [u64; 6];

/// Makes the calls of one confined program.
pub(super) struct Broker<'p> {
    listener: OwnedFd,
    plan: &'p SandboxPlan,
    guard: NameGuard,
    links: LinkedFiles,
    threads: KnownThreads,
    /// Where denials are reported.
    reports: OwnedFd,
    /// The kinds of denials reported so far.
    reported: Vec<DeniedCall>,
    /// Calls that wait until somebody opens the other end of a named pipe.
    waiting: Vec<WaitingOpen>,
    is_root: bool,
    own_groups: Vec<u32>,
}

/// The result of a call.
enum CallResult {
    Done,
    /// A handle for the program.
    Handle {
        handle: OwnedFd,
        close_on_exec: bool,
    },
    /// A named pipe whose other end nobody has opened yet.
    Wait {
        pipe: OwnedFd,
        flags: OFlags,
    },
}

/// A call that opens a named pipe.
struct WaitingOpen {
    id: u64,
    /// Open for reading if the program wants to read. Otherwise it only refers to the pipe.
    pipe: OwnedFd,
    flags: OFlags,
}

/// Why a call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallError {
    System(Errno),
    /// The plan refuses it.
    Refused(DeniedCall),
}

impl From<Errno> for CallError {
    fn from(error: Errno) -> Self {
        CallError::System(error)
    }
}

impl CallError {
    fn errno(self) -> Errno {
        match self {
            CallError::System(error) => error,
            // The same error as for a path that is mounted read-only.
            CallError::Refused(_) => Errno::ROFS,
        }
    }
}

impl<'p> Broker<'p> {
    pub(super) fn new(listener: OwnedFd, plan: &'p SandboxPlan, reports: OwnedFd) -> Self {
        let own_groups = rustix::process::getgroups().unwrap_or_default();
        syscalls::wake_at_once(listener.as_fd());
        Broker {
            listener,
            plan,
            guard: NameGuard::new(plan),
            links: LinkedFiles::default(),
            threads: KnownThreads::default(),
            reports,
            reported: Vec::new(),
            waiting: Vec::new(),
            is_root: rustix::process::geteuid().is_root(),
            own_groups: own_groups.into_iter().map(|group| group.as_raw()).collect(),
        }
    }

    pub(super) fn listener(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// Whether a call waits until somebody opens the other end of a named pipe.
    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Answers the next suspended call. Call it when the listener is readable.
    pub(super) fn answer_next(&mut self) -> io::Result<()> {
        let call = match syscalls::receive_call(self.listener.as_fd()) {
            // The calling process is gone.
            Err(err) if matches!(err.raw_os_error(), Some(libc::ENOENT | libc::EINTR)) => {
                return Ok(());
            }
            result => result?,
        };
        let number = libc::c_long::from(call.data.nr);
        if let Some(denied) = listener::denied_call(number) {
            self.report(denied);
            return self.answer(call.id, Err(Errno::PERM));
        }
        if filter::CHANGING_STATUS.contains(&number) {
            self.threads.expect_change();
            return ignore_gone(syscalls::let_call_continue(self.listener.as_fd(), call.id));
        }
        match self.perform(&call, number) {
            Ok(CallResult::Done) => self.answer(call.id, Ok(())),
            Ok(CallResult::Handle { handle, close_on_exec }) => {
                self.answer_with_handle(call.id, &handle, close_on_exec)
            }
            Ok(CallResult::Wait { pipe, flags }) => {
                self.waiting.push(WaitingOpen { id: call.id, pipe, flags });
                Ok(())
            }
            Err(error) => {
                if let CallError::Refused(denied) = error {
                    self.report(denied);
                }
                self.answer(call.id, Err(error.errno()))
            }
        }
    }

    fn perform(&self, call: &libc::seccomp_notif, number: i64) -> Result<CallResult, CallError> {
        let thread = i32::try_from(call.pid).map_err(|_| Errno::SRCH)?;
        let caller = Caller::new(thread, &self.threads);
        // A process that started as root may have become another user.
        let status = if self.is_root { Some(caller.status()?) } else { None };
        let ids = status.as_ref().map(|status| &status.ids);
        let other = ids.filter(|ids| ids.user != 0 || ids.group != 0);
        if let Some(ids) = other {
            syscalls::set_file_ids(ids.user, ids.group, &ids.groups);
        }
        let result = self.make_call(&caller, number, &call.data.args);
        if other.is_some() {
            syscalls::set_file_ids(0, rustix::process::getegid().as_raw(), &self.own_groups);
        }
        result
    }

    /// Tries again to open the named pipes whose other end somebody may have opened by now.
    pub(super) fn retry_waiting(&mut self) {
        for open in std::mem::take(&mut self.waiting) {
            if !syscalls::is_suspended(self.listener.as_fd(), open.id) {
                continue;
            }
            let answered = match operations::open_waiting_pipe(&open.pipe, open.flags) {
                Err(Errno::NXIO) => {
                    self.waiting.push(open);
                    continue;
                }
                Ok(handle) => {
                    let close_on_exec = open.flags.contains(OFlags::CLOEXEC);
                    self.answer_with_handle(open.id, &handle, close_on_exec)
                }
                Err(error) => self.answer(open.id, Err(error)),
            };
            // The calling process may be gone.
            answered.unwrap_or_default();
        }
    }

    fn answer(&self, id: u64, result: Result<(), Errno>) -> io::Result<()> {
        ignore_gone(syscalls::answer_call(self.listener.as_fd(), id, result))
    }

    fn answer_with_handle(&self, id: u64, handle: &OwnedFd, close_on_exec: bool) -> io::Result<()> {
        let listener = self.listener.as_fd();
        match syscalls::answer_with_handle(listener, id, handle.as_fd(), close_on_exec) {
            Ok(()) => Ok(()),
            // For example, the program has too many open files.
            Err(err) => self.answer(id, Err(Errno::from_io_error(&err).unwrap_or(Errno::MFILE))),
        }
    }

    /// Reports a kind of denial once.
    fn report(&mut self, denied: DeniedCall) {
        if !self.reported.contains(&denied) {
            self.reported.push(denied);
            // The receiver may be gone.
            rustix::io::write(&self.reports, &[listener::encode(denied)]).unwrap_or_default();
        }
    }
}

/// A call whose process is gone needs no answer.
fn ignore_gone(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(err) if err.raw_os_error() == Some(libc::ENOENT) => Ok(()),
        result => result,
    }
}
