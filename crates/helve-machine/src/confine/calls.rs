//! System calls that no crate of ours wraps.

#![expect(
    unsafe_code,
    reason = "each call is here because nothing safe makes it; arguments live through the call"
)]

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::thread::UnshareFlags;
use seccompiler::sock_filter;

/// Makes a mount and all mounts below it read-only; what they are already stays.
pub(super) fn make_read_only(tree: BorrowedFd<'_>) -> io::Result<()> {
    let attributes = libc::mount_attr {
        attr_set: libc::MOUNT_ATTR_RDONLY,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    let none: &CStr = c"";
    // SAFETY: the string and the structure outlive the call, and the size is the structure's.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            none.as_ptr(),
            libc::AT_EMPTY_PATH | libc::AT_RECURSIVE,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Which version of Landlock the kernel has.
pub(super) fn landlock_version() -> io::Result<u32> {
    const VERSION: u32 = 1;
    // SAFETY: with this flag the kernel wants no structure, and reads none.
    let answer = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0_usize, VERSION)
    };
    u32::try_from(answer).map_err(|_| io::Error::last_os_error())
}

/// Whether filters of system calls can be had.
pub(super) fn has_seccomp() -> bool {
    const GET_ACTION_AVAIL: u32 = 2;
    let action = libc::SECCOMP_RET_ERRNO;
    // SAFETY: the kernel reads the one number that is pointed to.
    let answer =
        unsafe { libc::syscall(libc::SYS_seccomp, GET_ACTION_AVAIL, 0_u32, &raw const action) };
    answer == 0
}

/// Installs a filter that holds calls up; answers with where the system tells of them.
pub(super) fn listen(filter: &[sock_filter]) -> io::Result<OwnedFd> {
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len()).map_err(io::Error::other)?,
        filter: filter.as_ptr().cast_mut().cast(),
    };
    // SAFETY: the kernel copies the filter, which is laid out as it wants it, and writes nothing. The handle is new.
    unsafe {
        let answer = libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            &raw const program,
        );
        match libc::c_int::try_from(answer) {
            Ok(handle @ 0..) => Ok(OwnedFd::from_raw_fd(handle)),
            Ok(_) | Err(_) => Err(io::Error::last_os_error()),
        }
    }
}

/// The next call that is held up.
pub(super) fn held_up(listener: BorrowedFd<'_>) -> io::Result<libc::seccomp_notif> {
    let data = libc::seccomp_data { nr: 0, arch: 0, instruction_pointer: 0, args: [0; 6] };
    let mut call = libc::seccomp_notif { id: 0, pid: 0, flags: 0, data };
    // SAFETY: the kernel fills the structure, which outlives the call.
    let answer =
        unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut call) };
    if answer == 0 { Ok(call) } else { Err(io::Error::last_os_error()) }
}

/// Lets a call that is held up fail.
pub(super) fn fail(listener: BorrowedFd<'_>, id: u64, error: libc::c_int) -> io::Result<()> {
    let mut answer = libc::seccomp_notif_resp { id, val: 0, error: -error, flags: 0 };
    // SAFETY: the kernel reads the structure, which outlives the call.
    let taken = unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut answer)
    };
    if taken == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Leaves the namespaces of the parent. Only in a process of one thread.
pub(super) fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: open files are not unshared, so that no thread loses a descriptor it counts on.
    Ok(unsafe { rustix::thread::unshare_unsafe(flags) }?)
}

/// Runs a trial in a child that ends without becoming a program.
pub(super) fn try_in_child(
    trial: impl Fn() -> io::Result<()> + Send + Sync + 'static,
) -> io::Result<()> {
    use std::os::unix::process::CommandExt;
    const WENT_WELL: i32 = libc::ECANCELED;

    let mut child = std::process::Command::new("/");
    let trial = move || match trial() {
        Ok(()) => Err(io::Error::from_raw_os_error(WENT_WELL)),
        Err(err) => Err(err),
    };
    // SAFETY: the trial makes system calls and neither allocates nor locks, as its callers see to.
    unsafe { child.pre_exec(trial) };
    match child.spawn() {
        Err(err) if err.raw_os_error() == Some(WENT_WELL) => Ok(()),
        Err(err) => Err(err),
        Ok(_) => Err(io::Error::other("a trial that always ends in an error did not")),
    }
}
