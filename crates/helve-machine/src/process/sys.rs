//! The system calls that have no safe form elsewhere. All unsafe code of this crate is here.
#![expect(unsafe_code, reason = "fork, exec, signal masks and inherited handles have no safe form")]

use std::ffi::{CStr, CString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{FromRawFd, OwnedFd};
use std::ptr;

use rustix::io::Errno;
use rustix::process::Pid;
use tokio::io::unix::AsyncFd;

/// Signals are numbered from 1 to this one.
const LAST_SIGNAL: i32 = 64;

/// Which side of a fork this is.
pub(super) enum Forked {
    Child,
    Parent(Pid),
}

/// Splits this process in two. Only for a process that has a single thread.
pub(super) fn fork() -> Result<Forked, Errno> {
    // SAFETY: a child of a process with one thread is whole: nobody else held a lock or was in the
    // middle of anything. `keeper::main` refuses to go on where there are more threads.
    let pid = unsafe { libc::fork() };
    match Pid::from_raw(pid) {
        None => Ok(Forked::Child),
        Some(pid) if pid.as_raw_nonzero().get() > 0 => Ok(Forked::Parent(pid)),
        Some(_) => Err(last_error()),
    }
}

/// Becomes another program. Returns only if that failed.
pub(super) fn exec(program: &CStr, arguments: &[CString], environment: &[CString]) -> Errno {
    let arguments = null_terminated(arguments);
    let environment = null_terminated(environment);
    // SAFETY: both lists end with a null pointer, and what they point to outlives the call.
    unsafe { libc::execve(program.as_ptr(), arguments.as_ptr(), environment.as_ptr()) };
    last_error()
}

fn null_terminated(texts: &[CString]) -> Vec<*const libc::c_char> {
    texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
}

/// Holds back every signal that can be held back.
pub(super) fn block_signals() -> Result<(), Errno> {
    let mut all = MaybeUninit::uninit();
    // SAFETY: `sigfillset` fills the set, which is then only read.
    let blocked = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, all.as_ptr(), ptr::null_mut())
    };
    check(blocked)
}

/// A handle that can be read when a child has ended, or when this process is asked to end.
pub(super) fn signals() -> Result<OwnedFd, Errno> {
    let mut some = MaybeUninit::uninit();
    // SAFETY: `sigemptyset` fills the set before it is used. The handle is new, so nobody else owns it.
    unsafe {
        libc::sigemptyset(some.as_mut_ptr());
        for signal in [libc::SIGCHLD, libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
            libc::sigaddset(some.as_mut_ptr(), signal);
        }
        let handle = libc::signalfd(-1, some.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        if handle < 0 { Err(last_error()) } else { Ok(OwnedFd::from_raw_fd(handle)) }
    }
}

/// What [`signals`] had to tell.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Told {
    pub(super) asked_to_end: bool,
}

/// Empties the handle of [`signals`].
pub(super) fn told(signals: &OwnedFd) -> Told {
    const SIZE: usize = size_of::<libc::signalfd_siginfo>();
    let mut told = Told::default();
    let mut buffer = [0_u8; SIZE];
    while rustix::io::read(signals, &mut buffer).is_ok_and(|read| read == SIZE) {
        // The number of the signal is the first field.
        let number = u32::from_ne_bytes([buffer[0], buffer[1], buffer[2], buffer[3]]);
        told.asked_to_end |= i32::try_from(number) != Ok(libc::SIGCHLD);
    }
    told
}

/// Lets every signal through, and lets it do what it does by default.
pub(super) fn default_signals() -> Result<(), Errno> {
    for signal in 1..=LAST_SIGNAL {
        // SAFETY: no handler is installed. Numbers that cannot be set fail without effect.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    let mut none = MaybeUninit::uninit();
    // SAFETY: `sigemptyset` fills the set, which is then only read.
    let unblocked = unsafe {
        libc::sigemptyset(none.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), ptr::null_mut())
    };
    check(unblocked)
}

/// Closes whatever this process was started with beyond the three standard handles.
pub(super) fn close_inherited() {
    // SAFETY: to be called before this process has opened anything, so nobody owns what is closed.
    // Where the system does not know the call, what is inherited stays open.
    unsafe { libc::close_range(3, libc::c_uint::MAX, 0) };
}

/// A handle whose readiness can be awaited.
pub(super) fn awaitable(handle: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is the same open file for as long as it lives, and `AsyncFd` owns it.
    unsafe { AsyncFd::register(handle) }.map_err(io::Error::from)
}

fn check(result: libc::c_int) -> Result<(), Errno> {
    if result == 0 { Ok(()) } else { Err(last_error()) }
}

fn last_error() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)
}
