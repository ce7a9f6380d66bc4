//! System calls that none of our dependencies wrap.

#![expect(
    unsafe_code,
    reason = "these system calls have no safe wrapper; all arguments outlive the call"
)]

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::thread::UnshareFlags;
use seccompiler::sock_filter;

/// Makes a mount and all mounts below it read-only; other attributes are kept.
pub(super) fn make_read_only(tree: BorrowedFd<'_>) -> io::Result<()> {
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
            libc::AT_EMPTY_PATH | libc::AT_RECURSIVE,
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

/// Installs a filter that suspends calls, and returns the handle on which the kernel reports them.
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
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
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

/// Makes a suspended call fail with an error.
pub(super) fn deny_call(listener: BorrowedFd<'_>, id: u64, error: libc::c_int) -> io::Result<()> {
    let mut result = libc::seccomp_notif_resp { id, val: 0, error: -error, flags: 0 };
    // SAFETY: the kernel reads the structure, which outlives the call.
    let sent = unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut result)
    };
    if sent == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
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
