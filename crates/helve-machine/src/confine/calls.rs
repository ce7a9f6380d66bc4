//! System calls that no crate of ours wraps.

#![expect(
    unsafe_code,
    reason = "each call is here because nothing safe makes it; arguments live through the call"
)]

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::thread::UnshareFlags;

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
