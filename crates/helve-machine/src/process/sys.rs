//! The system calls that have no safe form elsewhere. Outside of confinement, all unsafe code of this crate is here.
#![expect(
    unsafe_code,
    reason = "fork, clone, exec, stacks, signal masks and inherited handles have no safe form"
)]

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
    Ok(child(pid)?.map_or(Forked::Child, Forked::Parent))
}

/// The child, where this is not the child itself.
fn child(pid: libc::pid_t) -> Result<Option<Pid>, Errno> {
    if pid < 0 { Err(last_error()) } else { Ok(Pid::from_raw(pid)) }
}

/// Whose memory a process works in until it becomes a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Memory {
    /// Its parent's, which waits. Nothing is copied, and nothing has to be torn down again.
    Shared,
    /// A copy. The system wants this of who leaves its namespaces.
    Own,
}

/// Starts a process that acts, and ends if it has not become a program by then. Only for a process
/// that has a single thread. Where memory is shared, what the act allocates and does not free stays,
/// it must not panic, and this process hears nothing until the act is over.
pub(super) fn start(memory: Memory, mut act: impl FnMut()) -> Result<Pid, Errno> {
    match memory {
        Memory::Shared => start_in_place(&mut act),
        Memory::Own => match fork()? {
            Forked::Parent(pid) => Ok(pid),
            Forked::Child => {
                act();
                // SAFETY: nothing that this process shares with its parent is undone.
                unsafe { libc::_exit(1) }
            }
        },
    }
}

fn start_in_place(mut act: &mut dyn FnMut()) -> Result<Pid, Errno> {
    extern "C" fn begin(act: *mut libc::c_void) -> libc::c_int {
        // SAFETY: it is the pointer that is handed to `clone` below, to something that outlives the call.
        let act = unsafe { &mut *act.cast::<&mut dyn FnMut()>() };
        act();
        1
    }
    let stack = Stack::new()?;
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: the child has a stack of its own, and this process does nothing before the child has
    // become a program or ended, so that no memory is used by both. There are no other threads.
    let pid = unsafe { libc::clone(begin, stack.top(), flags, (&raw mut act).cast()) };
    child(pid)?.ok_or(Errno::CHILD)
}

/// Memory for a process that works in that of another.
struct Stack(*mut libc::c_void);

impl Stack {
    const SIZE: usize = 256 * 1024;
    /// Its lowest part: who goes beyond the rest meets the system, and not somebody's values.
    const GUARD: usize = 64 * 1024;

    fn new() -> Result<Stack, Errno> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, which nobody else uses.
        let start = unsafe { libc::mmap(ptr::null_mut(), Self::SIZE, access, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(last_error());
        }
        let stack = Stack(start);
        // SAFETY: the beginning of that mapping.
        check(unsafe { libc::mprotect(start, Self::GUARD, libc::PROT_NONE) })?;
        Ok(stack)
    }

    /// Where it begins: it grows downwards.
    fn top(&self) -> *mut libc::c_void {
        self.0.wrapping_byte_add(Self::SIZE)
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: the mapping of `new`, which nobody points into any more.
        unsafe { libc::munmap(self.0, Self::SIZE) };
    }
}

/// Texts as the system wants them when a program is executed.
pub(super) struct Texts {
    /// Null-terminated, into `_texts`.
    pointers: Vec<*const libc::c_char>,
    _texts: Vec<CString>,
}

impl From<Vec<CString>> for Texts {
    fn from(texts: Vec<CString>) -> Self {
        let pointers = texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect();
        Texts { pointers, _texts: texts }
    }
}

/// Becomes another program. Returns only if that failed. Allocates nothing.
pub(super) fn exec(program: &CStr, arguments: &Texts, environment: &Texts) -> Errno {
    let (arguments, environment) = (arguments.pointers.as_ptr(), environment.pointers.as_ptr());
    // SAFETY: both lists end with a null pointer, and what they point to outlives the call.
    unsafe { libc::execve(program.as_ptr(), arguments, environment) };
    last_error()
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

/// Lets every signal do what it does by default, here and in what is started.
pub(super) fn default_signals() {
    for signal in 1..=LAST_SIGNAL {
        // SAFETY: no handler is installed. Numbers that cannot be set fail without effect.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Lets every signal through.
pub(super) fn unblock_signals() -> Result<(), Errno> {
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
