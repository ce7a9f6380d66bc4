//! Makes file system calls on behalf of a confined program, and refuses those that the plan refuses by name.
//!
//! Whether a call is allowed depends on a path in the program's memory. If the kernel made the call after a check,
//! another thread could change the path in between. So the kernel suspends the call, and this process makes it in place
//! of the program: it reads the path once, opens the folder, checks the name, and changes the entry in the folder that
//! it opened. The program gets the result. This process lives in the same namespaces and has the same rights to files
//! as the program.

mod caller;
mod git_index;
mod links;
mod operations;
mod pipes;
mod places;
mod serve;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use helve_core::confine::NameGuard;
use helve_core::process::{DeniedCall, SandboxPlan};
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::{filter, listener, syscalls};
use caller::{Caller, KnownThreads};
use links::LinkedFiles;
use pipes::WaitingOpen;

pub(super) use pipes::WaitingPipes;

/// The arguments of a suspended call.
type Arguments = [u64; 6];

/// Makes the calls of one confined program.
struct Broker {
    answers: Arc<Answers>,
    plan: SandboxPlan,
    guard: NameGuard,
    links: LinkedFiles,
    threads: KnownThreads,
    /// Where denials are reported.
    reports: OwnedFd,
    /// The kinds of denials reported so far.
    reported: Vec<DeniedCall>,
    pipes: Arc<WaitingPipes>,
    is_root: bool,
    own_groups: Vec<u32>,
}

/// Starts threads that make the calls that the kernel reports. The caller has to retry the result's calls from time to
/// time.
pub(super) fn start(
    listener: OwnedFd,
    plan: &SandboxPlan,
    reports: OwnedFd,
) -> io::Result<Arc<WaitingPipes>> {
    syscalls::wake_at_once(listener.as_fd());
    let answers = Arc::new(Answers { listener });
    let pipes = Arc::new(WaitingPipes::new(Arc::clone(&answers))?);
    let own_groups = rustix::process::getgroups().unwrap_or_default();
    let broker = Broker {
        answers,
        plan: plan.clone(),
        guard: NameGuard::new(plan),
        links: LinkedFiles::default(),
        threads: KnownThreads::default(),
        reports,
        reported: Vec::new(),
        pipes: Arc::clone(&pipes),
        is_root: rustix::process::geteuid().is_root(),
        own_groups: own_groups.into_iter().map(|group| group.as_raw()).collect(),
    };
    serve::start(broker)?;
    Ok(pipes)
}

/// Whether there may be more calls.
enum Progress {
    Answered,
    /// No process uses the filter any more.
    Ended,
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

impl Broker {
    /// Waits for the next suspended call and answers it.
    fn answer_next(&mut self) -> io::Result<Progress> {
        let call = match syscalls::receive_call(self.answers.listener.as_fd()) {
            Err(err) if err.raw_os_error() == Some(libc::EINTR) => return Ok(Progress::Answered),
            // The calling process is gone. It may have been the last one.
            Err(err) if err.raw_os_error() == Some(libc::ENOENT) => {
                return Ok(match syscalls::is_hung_up(self.answers.listener.as_fd()) {
                    true => Progress::Ended,
                    false => Progress::Answered,
                });
            }
            result => result?,
        };
        self.answer_call(&call)?;
        Ok(Progress::Answered)
    }

    fn answer_call(&mut self, call: &libc::seccomp_notif) -> io::Result<()> {
        let number = libc::c_long::from(call.data.nr);
        if let Some(denied) = listener::denied_call(number) {
            self.report(denied);
            return self.answers.send(call.id, Err(Errno::PERM));
        }
        if filter::CHANGING_CREDENTIALS.contains(&number) {
            self.threads.expect_change();
            return self.answers.let_continue(call.id);
        }
        match self.perform(call, number) {
            Ok(CallResult::Done) => self.answers.send(call.id, Ok(())),
            Ok(CallResult::Handle { handle, close_on_exec }) => {
                self.answers.send_handle(call.id, &handle, close_on_exec)
            }
            Ok(CallResult::Wait { pipe, flags }) => {
                self.pipes.add(WaitingOpen { id: call.id, pipe, flags });
                Ok(())
            }
            Err(error) => {
                if let CallError::Refused(denied) = error {
                    self.report(denied);
                }
                self.answers.send(call.id, Err(error.errno()))
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

    /// Reports a kind of denial once.
    fn report(&mut self, denied: DeniedCall) {
        if !self.reported.contains(&denied) {
            self.reported.push(denied);
            // The receiver may be gone.
            rustix::io::write(&self.reports, &[listener::encode(denied)]).unwrap_or_default();
        }
    }
}

/// Answers suspended calls.
struct Answers {
    listener: OwnedFd,
}

impl Answers {
    fn send(&self, id: u64, result: Result<(), Errno>) -> io::Result<()> {
        ignore_gone(syscalls::answer_call(self.listener.as_fd(), id, result))
    }

    fn let_continue(&self, id: u64) -> io::Result<()> {
        ignore_gone(syscalls::let_call_continue(self.listener.as_fd(), id))
    }

    fn send_handle(&self, id: u64, handle: &OwnedFd, close_on_exec: bool) -> io::Result<()> {
        let listener = self.listener.as_fd();
        match syscalls::answer_with_handle(listener, id, handle.as_fd(), close_on_exec) {
            Ok(()) => Ok(()),
            // For example, the program has too many open files.
            Err(err) => self.send(id, Err(Errno::from_io_error(&err).unwrap_or(Errno::MFILE))),
        }
    }

    fn is_suspended(&self, id: u64) -> bool {
        syscalls::is_suspended(self.listener.as_fd(), id)
    }
}

/// A call whose process is gone needs no answer.
fn ignore_gone(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(err) if err.raw_os_error() == Some(libc::ENOENT) => Ok(()),
        result => result,
    }
}
