//! Starts the two helper processes of a confined program.
//!
//! ```text
//! relay     outside; ends as soon as the program ends, and in the same way
//!  init     inside; makes file system calls for the program (the broker), reaps orphans, and ends when none is left
//!   program
//! ```
//!
//! In a PID namespace of its own, init is the process with id 1. Signals have other default effects on this process, so
//! the program cannot be in its place.

use std::ffi::CStr;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use helve_core::process::SandboxPlan;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, socketpair,
};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, WaitOptions, set_parent_process_death_signal};

use super::broker::{self, WaitingPipes};
use super::mounts::NamespaceOwner;
use super::rights::{self, KeptCapabilities};
use super::{DenialListener, PidNamespace, syscalls, with_context};

/// Process name of the relay and of init.
pub const SANDBOX_HELPER: &CStr = c"helve-sandbox";

/// How long the broker waits before it tries again to open a named pipe whose other end is not open.
const PIPE_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 2_000_000 };

/// The program's connection to init.
pub(super) struct BrokerLink {
    to_init: OwnedFd,
    reports: OwnedFd,
}

/// Returns in a new process, which will execute the program. This process becomes the relay. It is the only one that
/// Landlock does not restrict.
pub(super) fn continue_inside(
    pids: PidNamespace,
    owner: NamespaceOwner,
    plan: &SandboxPlan,
) -> io::Result<BrokerLink> {
    let (status, reporter) = pipe_with(PipeFlags::CLOEXEC)?;
    if syscalls::fork().map_err(|err| with_context("starting a process", err))?.is_some() {
        drop(reporter);
        relay(&status)
    }
    drop(status);
    // Until the program has ended, init is killed when the relay ends.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    match pids {
        PidNamespace::Own => {
            let flags =
                MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC | MountFlags::RDONLY;
            mount("proc", "/proc", "proc", flags, None)
                .map_err(|err| with_context("mounting /proc", err))?;
        }
        // In a PID namespace of its own, init becomes the parent of orphans anyway.
        PidNamespace::Shared => {
            rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        }
    }
    rights::drop_capabilities(owner, KeptCapabilities::OfBroker)?;
    rights::restrict(plan)?;
    let (to_init, from_program) =
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    let (reports, reports_sender) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    match syscalls::fork().map_err(|err| with_context("starting a process", err))? {
        Some(program) => {
            drop((to_init, reports));
            init(InitHandles { program, reporter, from_program, reports_sender }, plan)
        }
        None => Ok(BrokerLink { to_init, reports }),
    }
}

impl BrokerLink {
    /// Gives the broker the handle on which the kernel reports calls.
    pub(super) fn hand_over(self, listener: &OwnedFd) -> io::Result<DenialListener> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let handles = [listener.as_fd()];
        control.push(SendAncillaryMessage::ScmRights(&handles));
        let bytes = [IoSlice::new(b"l")];
        rustix::net::sendmsg(&self.to_init, &bytes, &mut control, SendFlags::NOSIGNAL)
            .map_err(|err| with_context("starting the broker", err))?;
        Ok(self.reports.into())
    }
}

/// Waits for the end of the program and ends in the same way.
fn relay(status: &OwnedFd) -> ! {
    prepare_helper(&[status.as_fd()]);
    // When the process that watches over the program is killed, so is the program.
    set_parent_process_death_signal(Some(Signal::KILL)).unwrap_or_default();
    let mut bytes = [0; 4];
    loop {
        match rustix::io::read(status, &mut bytes) {
            Ok(4) => syscalls::exit_like(i32::from_ne_bytes(bytes)),
            Err(Errno::INTR) => {}
            // Init was killed, and every process of the namespace with it.
            Ok(_) | Err(_) => syscalls::exit_like(Signal::KILL.as_raw()),
        }
    }
}

/// What init needs.
struct InitHandles {
    program: Pid,
    /// For the program's exit status.
    reporter: OwnedFd,
    from_program: OwnedFd,
    /// For the kinds of denied calls.
    reports_sender: OwnedFd,
}

/// Makes calls for the processes inside and reaps them, until there are none.
fn init(handles: InitHandles, plan: &SandboxPlan) -> ! {
    let InitHandles { program, reporter, from_program, reports_sender } = handles;
    prepare_helper(&[reporter.as_fd(), from_program.as_fd(), reports_sender.as_fd()]);
    // The permissions of new files are computed from those of the caller.
    rustix::process::umask(rustix::fs::Mode::empty());
    let Ok(signals) = syscalls::child_signals() else { syscalls::exit(1) };
    let mut reporter = Some(reporter);
    let listener = receive_listener(&from_program);
    drop(from_program);
    let pipes = match listener.map(|listener| broker::start(listener, plan, reports_sender)) {
        None => None,
        Some(Ok(pipes)) => Some(pipes),
        Some(Err(_)) => syscalls::exit(1),
    };
    while reap(program, &mut reporter) == Children::Some {
        wait(&signals, pipes.as_deref());
    }
    syscalls::exit(0)
}

/// Receives the handle on which the kernel reports calls. `None` if the program failed before, or needs no broker.
fn receive_listener(from_program: &OwnedFd) -> Option<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut bytes = [IoSliceMut::new(&mut byte)];
    rustix::io::retry_on_intr(|| {
        rustix::net::recvmsg(from_program, &mut bytes, &mut control, RecvFlags::CMSG_CLOEXEC)
    })
    .ok()?;
    control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut handles) => handles.next(),
        _ => None,
    })
}

/// Waits until a child has ended. Meanwhile, serves the calls that wait for the other end of a named pipe.
fn wait(signals: &OwnedFd, pipes: Option<&WaitingPipes>) {
    loop {
        let timeout = pipes.is_some_and(|pipes| !pipes.is_empty()).then_some(&PIPE_INTERVAL);
        let signals_only = || PollFd::new(signals, PollFlags::IN);
        let mut all = [signals_only(), signals_only()];
        if let Some(pipes) = pipes {
            all[1] = PollFd::from_borrowed_fd(pipes.added(), PollFlags::IN);
            pipes.retry();
        }
        poll(&mut all, timeout).unwrap_or_default();
        if !all[0].revents().is_empty() {
            return syscalls::drain(signals.as_fd());
        }
    }
}

/// Whether processes are left.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Children {
    None,
    Some,
}

/// Reaps ended processes, and reports how the program ended.
fn reap(program: Pid, reporter: &mut Option<OwnedFd>) -> Children {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid == program => {
                set_parent_process_death_signal(None).unwrap_or_default();
                if let Some(reporter) = reporter.take() {
                    rustix::io::write(&reporter, &status.as_raw().to_ne_bytes())
                        .unwrap_or_default();
                }
            }
            Ok(None) => return Children::Some,
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return Children::None,
        }
    }
}

/// Closes everything that only the program needs. Otherwise its output pipes would stay open after its processes ended.
fn prepare_helper(kept: &[BorrowedFd<'_>]) {
    syscalls::block_signals();
    syscalls::close_others(kept);
    // The current folder is still in the old mount, in which nothing is hidden.
    rustix::process::chdir("/").unwrap_or_default();
    rustix::thread::set_name(SANDBOX_HELPER).unwrap_or_default();
}
