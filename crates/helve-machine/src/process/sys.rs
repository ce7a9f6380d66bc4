//! System calls without a safe wrapper elsewhere. Apart from confinement and one call of commits, all unsafe code of
//! this crate is here.
#![expect(
    unsafe_code,
    reason = "fork, clone, exec, stacks, signal masks and inherited handles have no safe wrapper"
)]

use std::ffi::{CStr, CString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{FromRawFd, OwnedFd};
use std::ptr;

use rustix::io::Errno;
use rustix::process::Pid;
use tokio::io::unix::AsyncFd;

/// The highest signal number.
const LAST_SIGNAL: i32 = 64;

/// Which side of a fork this is.
pub(super) enum ForkResult {
    Child,
    Parent(Pid),
}

/// Forks this process. Only for a single-threaded process.
pub(super) fn fork() -> Result<ForkResult, Errno> {
    // SAFETY: the process is single-threaded, so no other thread can hold a lock or be in the middle of an
    // operation. `keeper::main`, which starts the process that watches over programs, checks this.
    let pid = unsafe { libc::fork() };
    Ok(child(pid)?.map_or(ForkResult::Child, ForkResult::Parent))
}

/// Returns the child's id in the parent, and `None` in the child.
fn child(pid: libc::pid_t) -> Result<Option<Pid>, Errno> {
    if pid < 0 { Err(last_error()) } else { Ok(Pid::from_raw(pid)) }
}

/// The memory that a child uses until it executes a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChildMemory {
    /// The memory of its parent, as after `vfork`. The parent is suspended, and nothing is copied.
    Shared,
    /// A copy, as after `fork`. Required for a child that enters new namespaces.
    Own,
}

/// Starts a child process that runs `act`, which normally executes a program. If `act` returns, the child exits.
///
/// Only for a single-threaded process. With shared memory, the parent is suspended until the child executes a program
/// or exits. Then `act` must not panic, and memory that it allocates and does not free leaks into the parent.
pub(super) fn start(memory: ChildMemory, mut act: impl FnMut()) -> Result<Pid, Errno> {
    match memory {
        ChildMemory::Shared => start_in_shared_memory(&mut act),
        ChildMemory::Own => match fork()? {
            ForkResult::Parent(pid) => Ok(pid),
            ForkResult::Child => {
                act();
                // SAFETY: `_exit` runs no handlers and flushes no buffers shared with the parent.
                unsafe { libc::_exit(1) }
            }
        },
    }
}

fn start_in_shared_memory(mut act: &mut dyn FnMut()) -> Result<Pid, Errno> {
    extern "C" fn begin(act: *mut libc::c_void) -> libc::c_int {
        // SAFETY: this is the pointer passed to `clone` below; what it points to outlives the call.
        let act = unsafe { &mut *act.cast::<&mut dyn FnMut()>() };
        act();
        1
    }
    let stack = Stack::new()?;
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: the child has its own stack, and this process is suspended until the child has executed a
    // program or exited, so that the two never use memory at the same time. There are no other threads.
    let pid = unsafe { libc::clone(begin, stack.top(), flags, (&raw mut act).cast()) };
    child(pid)?.ok_or(Errno::CHILD)
}

/// The stack of a child that shares its parent's memory.
struct Stack(*mut libc::c_void);

impl Stack {
    const SIZE: usize = 256 * 1024;
    /// Size of the inaccessible lowest part, so that a stack overflow faults.
    const GUARD: usize = 64 * 1024;

    fn new() -> Result<Stack, Errno> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: creates a new mapping.
        let start = unsafe { libc::mmap(ptr::null_mut(), Self::SIZE, access, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(last_error());
        }
        let stack = Stack(start);
        // SAFETY: the range is the beginning of that mapping.
        check(unsafe { libc::mprotect(start, Self::GUARD, libc::PROT_NONE) })?;
        Ok(stack)
    }

    /// The initial stack pointer; the stack grows downwards.
    fn top(&self) -> *mut libc::c_void {
        self.0.wrapping_byte_add(Self::SIZE)
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: the mapping was created in `new`, and nothing points into it any more.
        unsafe { libc::munmap(self.0, Self::SIZE) };
    }
}

/// A null-terminated array of C strings, as `execve` expects it.
pub(super) struct CStringArray {
    /// Null-terminated, into `_texts`.
    pointers: Vec<*const libc::c_char>,
    _texts: Vec<CString>,
}

impl From<Vec<CString>> for CStringArray {
    fn from(texts: Vec<CString>) -> Self {
        let pointers = texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect();
        CStringArray { pointers, _texts: texts }
    }
}

/// Executes a program in this process. Returns only on failure. Does not allocate.
pub(super) fn exec(program: &CStr, arguments: &CStringArray, environment: &CStringArray) -> Errno {
    let (arguments, environment) = (arguments.pointers.as_ptr(), environment.pointers.as_ptr());
    // SAFETY: both arrays end with a null pointer, and their strings outlive the call.
    unsafe { libc::execve(program.as_ptr(), arguments, environment) };
    last_error()
}

/// Blocks all signals.
pub(super) fn block_signals() -> Result<(), Errno> {
    let mut all = MaybeUninit::uninit();
    // SAFETY: `sigfillset` initializes the set, which is then only read.
    let blocked = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, all.as_ptr(), ptr::null_mut())
    };
    check(blocked)
}

/// Returns a handle that is readable when a child has ended, or when this process is asked to end.
pub(super) fn open_signal_handle() -> Result<OwnedFd, Errno> {
    let mut watched = MaybeUninit::uninit();
    // SAFETY: `sigemptyset` initializes the set before it is used. The handle is new, so nobody else owns it.
    unsafe {
        libc::sigemptyset(watched.as_mut_ptr());
        for signal in [libc::SIGCHLD, libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
            libc::sigaddset(watched.as_mut_ptr(), signal);
        }
        let handle = libc::signalfd(-1, watched.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        if handle < 0 { Err(last_error()) } else { Ok(OwnedFd::from_raw_fd(handle)) }
    }
}

/// Which signals arrived on the handle of [`open_signal_handle`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SignalEvents {
    pub(super) asked_to_end: bool,
}

/// Reads all pending signals from the handle of [`open_signal_handle`].
pub(super) fn drain_signals(signals: &OwnedFd) -> SignalEvents {
    const SIZE: usize = size_of::<libc::signalfd_siginfo>();
    let mut events = SignalEvents::default();
    let mut buffer = [0_u8; SIZE];
    while rustix::io::read(signals, &mut buffer).is_ok_and(|read| read == SIZE) {
        // The signal number is the first field.
        let number = u32::from_ne_bytes([buffer[0], buffer[1], buffer[2], buffer[3]]);
        events.asked_to_end |= i32::try_from(number) != Ok(libc::SIGCHLD);
    }
    events
}

/// Resets all signals to their default action, here and in future children.
pub(super) fn default_signals() {
    for signal in 1..=LAST_SIGNAL {
        // SAFETY: no handler is installed. Signals that cannot be changed fail without effect.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Unblocks all signals.
pub(super) fn unblock_signals() -> Result<(), Errno> {
    let mut empty = MaybeUninit::uninit();
    // SAFETY: `sigemptyset` initializes the set, which is then only read.
    let unblocked = unsafe {
        libc::sigemptyset(empty.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, empty.as_ptr(), ptr::null_mut())
    };
    check(unblocked)
}

/// Closes all inherited handles except the three standard ones.
pub(super) fn close_inherited() {
    // SAFETY: called before this process has opened anything, so nobody owns the closed handles.
    // On kernels without the call the inherited handles stay open.
    unsafe { libc::close_range(3, libc::c_uint::MAX, 0) };
}

/// Registers a handle with the runtime, so that its readiness can be awaited.
pub(super) fn register_async(handle: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` refers to the same open file for its whole life, and `AsyncFd` owns it.
    unsafe { AsyncFd::register(handle) }.map_err(io::Error::from)
}

fn check(result: libc::c_int) -> Result<(), Errno> {
    if result == 0 { Ok(()) } else { Err(last_error()) }
}

fn last_error() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// Runs before `main` of every program that contains this crate. If the program was started as a keeper, it becomes
/// one, so that a program which embeds the library needs no keeper beside it.
#[cfg(target_env = "gnu")]
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn(libc::c_int, *const *const libc::c_char) = {
    extern "C" fn before_main(count: libc::c_int, arguments: *const *const libc::c_char) {
        if count < 2 || arguments.is_null() {
            return;
        }
        // SAFETY: the C library passes `main`'s arguments: `count` pointers to strings that end with a zero byte.
        let first = unsafe { CStr::from_ptr(*arguments.add(1)) };
        if first.to_bytes() == super::keeper_client::EMBEDDED_KEEPER.as_bytes() {
            let code = super::keeper::run_until_end();
            // SAFETY: `_exit` runs no handlers of the program, whose `main` never ran.
            unsafe { libc::_exit(code) }
        }
    }
    before_main
};

/// Whether this code is part of the program itself, and not of a library that the program loaded.
#[cfg(target_env = "gnu")]
pub(super) fn is_in_main_program() -> bool {
    let base = |address: *const libc::c_void| {
        let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
        // SAFETY: `dladdr` only looks the address up, and fills `info` if it returns nonzero.
        (unsafe { libc::dladdr(address, info.as_mut_ptr()) } != 0)
            // SAFETY: see above.
            .then(|| unsafe { info.assume_init() }.dli_fbase)
    };
    // SAFETY: this reads a value that the kernel passed to the process.
    let program_headers = unsafe { libc::getauxval(libc::AT_PHDR) };
    let main_program = base(ptr::with_exposed_provenance(program_headers as usize));
    main_program.is_some() && main_program == base((&raw const BEFORE_MAIN).cast())
}

#[cfg(not(target_env = "gnu"))]
pub(super) fn is_in_main_program() -> bool {
    // Other C libraries do not pass the arguments to code that runs before `main`.
    false
}
