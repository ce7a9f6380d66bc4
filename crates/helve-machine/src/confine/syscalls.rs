//! System calls that none of our dependencies wrap.

#![expect(
    unsafe_code,
    reason = "these system calls have no safe wrapper; all arguments outlive the call"
)]

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::process::Pid;
use rustix::thread::UnshareFlags;
use seccompiler::sock_filter;

/// Makes a mount and all mounts below it read-only; other attributes are kept.
pub(super) fn make_read_only(tree: BorrowedFd<'_>) -> io::Result<()> {
    set_read_only(tree, libc::AT_RECURSIVE)
}

/// Makes a mount read-only, but not the mounts below it.
pub(super) fn make_top_read_only(tree: BorrowedFd<'_>) -> io::Result<()> {
    set_read_only(tree, 0)
}

fn set_read_only(tree: BorrowedFd<'_>, flags: libc::c_int) -> io::Result<()> {
    let attributes = libc::mount_attr {
        attr_set: libc::MOUNT_ATTR_RDONLY,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    let empty_path: &CStr = c"";
    // SAFETY: the string and the structure outlive the call, and the size is the structure's.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            empty_path.as_ptr(),
            libc::AT_EMPTY_PATH | flags,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Returns the Landlock version of the kernel.
pub(super) fn landlock_version() -> io::Result<u32> {
    const VERSION: u32 = 1;
    // SAFETY: with this flag the kernel reads no structure.
    let result = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0_usize, VERSION)
    };
    u32::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Whether seccomp filters are available.
pub(super) fn has_seccomp() -> bool {
    const GET_ACTION_AVAIL: u32 = 2;
    let action = libc::SECCOMP_RET_ERRNO;
    // SAFETY: the kernel only reads the number that is pointed to.
    let result =
        unsafe { libc::syscall(libc::SYS_seccomp, GET_ACTION_AVAIL, 0_u32, &raw const action) };
    result == 0
}

/// Installs a filter that suspends calls, and returns the handle on which the kernel reports them. Once a call was
/// received from the handle, only a fatal signal interrupts it, so that it is never made twice.
pub(super) fn install_listener(filter: &[sock_filter]) -> io::Result<OwnedFd> {
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len()).map_err(io::Error::other)?,
        filter: filter.as_ptr().cast_mut().cast(),
    };
    // SAFETY: the kernel copies the filter, which has the layout it expects, and writes nothing. The handle is new.
    unsafe {
        let result = libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
            &raw const program,
        );
        match libc::c_int::try_from(result) {
            Ok(handle @ 0..) => Ok(OwnedFd::from_raw_fd(handle)),
            Ok(_) | Err(_) => Err(io::Error::last_os_error()),
        }
    }
}

/// Receives the next suspended call.
pub(super) fn receive_call(listener: BorrowedFd<'_>) -> io::Result<libc::seccomp_notif> {
    let data = libc::seccomp_data { nr: 0, arch: 0, instruction_pointer: 0, args: [0; 6] };
    let mut call = libc::seccomp_notif { id: 0, pid: 0, flags: 0, data };
    // SAFETY: the kernel fills the structure, which outlives the call.
    let result =
        unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut call) };
    if result == 0 { Ok(call) } else { Err(io::Error::last_os_error()) }
}

/// Answers a suspended call: it returns 0, or fails with an error.
pub(super) fn answer_call(
    listener: BorrowedFd<'_>,
    id: u64,
    result: Result<(), Errno>,
) -> io::Result<()> {
    let error = result.map_or_else(|error| -error.raw_os_error(), |()| 0);
    send_answer(listener, libc::seccomp_notif_resp { id, val: 0, error, flags: 0 })
}

/// Lets the calling thread make a suspended call itself. Only for calls whose arguments need no check, because the
/// thread may have changed what they point to.
pub(super) fn let_call_continue(listener: BorrowedFd<'_>, id: u64) -> io::Result<()> {
    let flags = u32::try_from(libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE).map_err(io::Error::other)?;
    send_answer(listener, libc::seccomp_notif_resp { id, val: 0, error: 0, flags })
}

fn send_answer(listener: BorrowedFd<'_>, mut response: libc::seccomp_notif_resp) -> io::Result<()> {
    // SAFETY: the kernel reads the structure, which outlives the call.
    let sent = unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut response)
    };
    if sent == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Answers a suspended call with a new handle in the calling process.
pub(super) fn answer_with_handle(
    listener: BorrowedFd<'_>,
    id: u64,
    handle: BorrowedFd<'_>,
    close_on_exec: bool,
) -> io::Result<()> {
    let request = libc::seccomp_notif_addfd {
        id,
        flags: u32::try_from(libc::SECCOMP_ADDFD_FLAG_SEND).map_err(io::Error::other)?,
        srcfd: u32::try_from(handle.as_raw_fd()).map_err(io::Error::other)?,
        newfd: 0,
        newfd_flags: if close_on_exec { libc::O_CLOEXEC.unsigned_abs() } else { 0 },
    };
    // SAFETY: the kernel reads the structure, which outlives the call.
    let added = unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ADDFD, &raw const request)
    };
    if added >= 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Makes the kernel run the listening process at once, on the CPU of the calling process. Linux before 6.6 does not
/// support this and is only slower.
pub(super) fn wake_at_once(listener: BorrowedFd<'_>) {
    const SYNC_WAKE_UP: libc::c_ulong = 1;
    // SAFETY: the argument is a number.
    unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS, SYNC_WAKE_UP);
    }
}

/// Whether no process uses the filter any more.
pub(super) fn is_hung_up(listener: BorrowedFd<'_>) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut state = [PollFd::from_borrowed_fd(listener, PollFlags::IN)];
    poll(&mut state, Some(&Timespec::default())).is_ok()
        && state[0].revents().contains(PollFlags::HUP)
}

/// Gives this thread the policy `SCHED_IDLE`: it runs when no other one needs the CPU.
pub(super) fn yield_to_all() -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the kernel reads the structure, which outlives the call.
    let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Whether a call is still suspended. If so, its thread id was not reused in the meantime.
pub(super) fn is_suspended(listener: BorrowedFd<'_>, id: u64) -> bool {
    // SAFETY: the kernel reads the number, which outlives the call.
    let result = unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &raw const id)
    };
    result == 0
}

/// The number of bytes from an address to the end of its page.
pub(super) fn bytes_to_page_end(address: u64) -> usize {
    // Pages are larger on some machines, and never smaller.
    const PAGE: usize = 4096;
    PAGE - usize::try_from(address).unwrap_or(0) % PAGE
}

/// Reads memory of another process, which must lie within one page. Returns the number of bytes.
pub(super) fn read_memory(thread: i32, address: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let start = usize::try_from(address).map_err(io::Error::other)?;
    let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let remote =
        libc::iovec { iov_base: std::ptr::without_provenance_mut(start), iov_len: buffer.len() };
    // SAFETY: the kernel writes into the buffer only; the address of the other process is not used here.
    let count =
        unsafe { libc::process_vm_readv(thread, &raw const local, 1, &raw const remote, 1, 0) };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

/// Sets the user and group that this thread accesses files as.
pub(super) fn set_file_ids(user: u32, group: u32, groups: &[u32]) {
    // SAFETY: the calls change only this process, and the kernel reads the list during the call.
    unsafe {
        // A switch to another user comes last, because that user may not be allowed to change groups.
        if user == 0 {
            libc::setfsuid(user);
        }
        libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr());
        libc::setfsgid(group);
        if user != 0 {
            libc::setfsuid(user);
        }
    }
}

/// Forks this process. Returns `None` in the child. Only for a single-threaded process.
pub(super) fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: the process is single-threaded, so no other thread can hold a lock.
    match unsafe { libc::fork() } {
        failed if failed < 0 => Err(io::Error::last_os_error()),
        pid => Ok(Pid::from_raw(pid)),
    }
}

/// Ends this process at once, without running exit handlers.
pub(super) fn exit(code: i32) -> ! {
    // SAFETY: `_exit` runs no handlers and flushes no buffers that a parent shares.
    unsafe { libc::_exit(code) }
}

/// Ends this process the way a waited-for child ended: with its exit code, or by the same signal without a core dump.
pub(super) fn exit_like(status: i32) -> ! {
    if libc::WIFSIGNALED(status) {
        let signal = libc::WTERMSIG(status);
        let no_core = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the structures outlive the calls, and no handler is installed.
        unsafe {
            libc::setrlimit(libc::RLIMIT_CORE, &raw const no_core);
            libc::signal(signal, libc::SIG_DFL);
            let mut set = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            libc::sigaddset(&raw mut set, signal);
            libc::sigprocmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
            libc::raise(signal);
        }
        exit(128 + signal);
    }
    exit(libc::WEXITSTATUS(status))
}

/// Blocks all signals.
pub(super) fn block_signals() {
    // SAFETY: `sigfillset` initializes the set, which is then only read.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
    }
}

/// Returns a handle that is readable when a child has ended. All signals must be blocked.
pub(super) fn child_signals() -> io::Result<OwnedFd> {
    // SAFETY: `sigemptyset` initializes the set, which is then only read. The handle is new.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        match libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
            handle @ 0.. => Ok(OwnedFd::from_raw_fd(handle)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Discards the data that can be read from a non-blocking handle.
pub(super) fn drain(handle: BorrowedFd<'_>) {
    let mut buffer = [0_u8; 1024];
    while rustix::io::read(handle, &mut buffer).is_ok_and(|count| count > 0) {}
}

/// Closes all handles except the three standard ones and `kept`.
pub(super) fn close_others(kept: &[BorrowedFd<'_>]) {
    let numbers = kept.iter().filter_map(|handle| libc::c_uint::try_from(handle.as_raw_fd()).ok());
    let mut kept: Vec<_> = numbers.filter(|number| *number >= 3).collect();
    kept.sort_unstable();
    let mut first = 3;
    for number in kept {
        if number > first {
            // SAFETY: callers never use the closed handles again; they only wait and exit.
            unsafe { libc::close_range(first, number - 1, 0) };
        }
        first = number + 1;
    }
    // SAFETY: as above.
    unsafe { libc::close_range(first, libc::c_uint::MAX, 0) };
}

/// Leaves the parent's namespaces. Only for a single-threaded process.
pub(super) fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: file descriptors are not unshared, so no thread loses one it relies on.
    Ok(unsafe { rustix::thread::unshare_unsafe(flags) }?)
}

/// Runs a trial in a child process that never executes a program.
pub(super) fn try_in_child(
    trial: impl Fn() -> io::Result<()> + Send + Sync + 'static,
) -> io::Result<()> {
    use std::os::unix::process::CommandExt;
    const SUCCESS: i32 = libc::ECANCELED;

    let mut child = std::process::Command::new("/");
    let trial = move || match trial() {
        Ok(()) => Err(io::Error::from_raw_os_error(SUCCESS)),
        Err(err) => Err(err),
    };
    // SAFETY: callers pass trials that only make system calls and neither allocate nor lock.
    unsafe { child.pre_exec(trial) };
    match child.spawn() {
        Err(err) if err.raw_os_error() == Some(SUCCESS) => Ok(()),
        Err(err) => Err(err),
        Ok(_) => Err(io::Error::other("the trial child started a program")),
    }
}
