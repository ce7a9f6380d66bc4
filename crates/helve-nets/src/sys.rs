//! System calls of the tracer. All unsafe code of this crate is here.
#![expect(unsafe_code, reason = "namespaces and seccomp listeners have no safe interface")]

use std::ffi::{CStr, CString};
use std::io;
use std::mem::{offset_of, size_of, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::{null, null_mut};

use libc::{c_int, c_long, pid_t};

/// An intercepted system call that waits for an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingSyscall {
    id: u64,
    /// The thread, in our PID namespace.
    pub thread: pid_t,
    pub number: c_long,
    pub arguments: [u64; 6],
}

fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn check_long(result: c_long) -> io::Result<c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Forks. Returns 0 in the child.
///
/// The process must have only one thread. Otherwise, most functions would be unsafe to call in the child.
pub(crate) fn fork() -> io::Result<pid_t> {
    // SAFETY: no other thread exists that could hold a lock; the tracer starts none.
    check(unsafe { libc::fork() })
}

pub(crate) fn exit(code: c_int) -> ! {
    // SAFETY: ends the process without running any exit handlers.
    unsafe { libc::_exit(code) }
}

pub(crate) fn kill(process: pid_t) {
    // SAFETY: takes no pointers. The call fails only if the process has ended.
    unsafe { libc::kill(process, libc::SIGKILL) };
}

/// Makes the kernel kill this process when its parent ends.
pub(crate) fn die_with_parent() -> io::Result<()> {
    // SAFETY: takes no pointers.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) }).map(drop)
}

pub(crate) enum WaitResult {
    Ended(pid_t),
    NoneEnded,
    NoChildren,
}

/// Waits for the child `which` to end, or for any child if it is -1.
pub(crate) fn wait(which: pid_t, mode: WaitMode) -> WaitResult {
    let options = match mode {
        WaitMode::Block => 0,
        WaitMode::NoHang => libc::WNOHANG,
    };
    // SAFETY: no status is requested, so no memory is passed.
    match unsafe { libc::waitpid(which, null_mut(), options) } {
        0 => WaitResult::NoneEnded,
        -1 => WaitResult::NoChildren,
        ended => WaitResult::Ended(ended),
    }
}

#[derive(Clone, Copy)]
pub(crate) enum WaitMode {
    Block,
    NoHang,
}

pub(crate) fn is_root() -> bool {
    // SAFETY: cannot fail, accesses no memory.
    unsafe { libc::geteuid() == 0 }
}

pub(crate) fn ids() -> (u32, u32) {
    // SAFETY: cannot fail, accesses no memory.
    unsafe { (libc::geteuid(), libc::getegid()) }
}

/// Changes the user and group permanently, and drops all other groups.
pub(crate) fn become_user(id: u32) -> io::Result<()> {
    // SAFETY: takes numbers and an empty list.
    unsafe {
        check(libc::setgroups(0, null()))?;
        check(libc::setresgid(id, id, id))?;
        check(libc::setresuid(id, id, id))?;
        // After a change of user, a process cannot open its own files in /proc unless it is dumpable.
        check(libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0))?;
    }
    Ok(())
}

/// Enters new namespaces. The PID namespace applies to the next child.
pub(crate) fn unshare_namespaces() -> io::Result<()> {
    let flags = libc::CLONE_NEWUSER
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWNET
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS;
    // SAFETY: takes no pointers; the process has one thread.
    check(unsafe { libc::unshare(flags) }).map(drop)
}

/// Mounts a file system of this kind at `at`. Without a kind, makes the directory or file `from` visible at `at`, with
/// everything below it.
pub(crate) fn mount(from: &str, at: &str, kind: Option<&str>) -> io::Result<()> {
    let (from, at) = (CString::new(from)?, CString::new(at)?);
    let kind_text = kind.map(CString::new).transpose()?;
    let (kind, flags) = match &kind_text {
        Some(kind) => (kind.as_ptr(), libc::MS_NOSUID | libc::MS_NODEV),
        None => (null(), libc::MS_BIND | libc::MS_REC),
    };
    // SAFETY: every pointer is a string that lives until the call returns.
    check(unsafe { libc::mount(from.as_ptr(), at.as_ptr(), kind, flags, null()) }).map(drop)
}

/// Makes later mounts invisible outside this mount namespace.
pub(crate) fn make_mounts_private() -> io::Result<()> {
    let flags = libc::MS_REC | libc::MS_PRIVATE;
    // SAFETY: constant strings, no data.
    check(unsafe { libc::mount(null(), c"/".as_ptr(), null(), flags, null()) }).map(drop)
}

/// Makes everything mounted at or below a path read-only.
pub(crate) fn make_read_only(at: &str) -> io::Result<()> {
    let at = CString::new(at)?;
    let attributes = libc::mount_attr {
        attr_set: libc::MOUNT_ATTR_RDONLY,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    // SAFETY: the string and the structure live until the call returns, and the size is the structure's.
    check_long(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            at.as_ptr(),
            libc::AT_RECURSIVE,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    })
    .map(drop)
}

pub(crate) fn change_root(to: &str) -> io::Result<()> {
    let to = CString::new(to)?;
    // SAFETY: the string lives until the calls return.
    unsafe {
        check(libc::chroot(to.as_ptr()))?;
        check(libc::chdir(c"/".as_ptr())).map(drop)
    }
}

/// Limits the CPU time of this process, in seconds, and the size of files, in bytes. Its children inherit the limits.
pub(crate) fn set_resource_limits(seconds: u64, bytes: u64) -> io::Result<()> {
    for (resource, max) in
        [(libc::RLIMIT_CPU, seconds), (libc::RLIMIT_FSIZE, bytes), (libc::RLIMIT_CORE, 0)]
    {
        let limit = libc::rlimit { rlim_cur: max, rlim_max: max };
        // SAFETY: the structure lives until the call returns.
        check(unsafe { libc::setrlimit(resource, &raw const limit) })?;
    }
    Ok(())
}

/// Connects the standard streams to the null device and starts a session without a terminal.
pub(crate) fn redirect_streams_to_null(null_device: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: takes no pointers; the standard streams are not used by this process afterwards.
    unsafe {
        for stream in 0..=2 {
            check(libc::dup2(null_device.as_raw_fd(), stream))?;
        }
        // `setsid` fails only for the leader of a group, which a new process is not.
        libc::setsid();
    }
    Ok(())
}

/// Makes the kernel suspend each of these system calls of this process and its children. Returns the descriptor from
/// which suspended calls are received and resumed.
pub(crate) fn install_syscall_listener(calls: &[c_long]) -> io::Result<OwnedFd> {
    let filter = filter(calls);
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len()).map_err(io::Error::other)?,
        filter: filter.as_ptr().cast_mut(),
    };
    // SAFETY: the program and its instructions live until the call returns; the kernel copies and checks them. The
    // number returned is a new descriptor without another owner.
    unsafe {
        check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
        let listener = check_long(libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            &raw const program,
        ))?;
        Ok(OwnedFd::from_raw_fd(RawFd::try_from(listener).map_err(io::Error::other)?))
    }
}

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xC000_00B7;

/// Returns a seccomp program that reports these system calls to the listener and allows all others.
fn filter(calls: &[c_long]) -> Vec<libc::sock_filter> {
    let step = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    let load = |at| step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, at);
    let answer = |what| step(libc::BPF_RET | libc::BPF_K, 0, 0, what);
    let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let mut steps = vec![
        load(offset_of!(libc::seccomp_data, arch) as u32),
        // System calls of another architecture have other numbers, and nothing here needs them.
        step(equal, 1, 0, ARCHITECTURE),
        answer(libc::SECCOMP_RET_KILL_PROCESS),
        load(offset_of!(libc::seccomp_data, nr) as u32),
    ];
    for call in calls {
        steps.push(step(equal, 0, 1, *call as u32));
        steps.push(answer(libc::SECCOMP_RET_USER_NOTIF));
    }
    steps.push(answer(libc::SECCOMP_RET_ALLOW));
    steps
}

/// Returns the next intercepted system call.
pub(crate) fn receive(listener: BorrowedFd<'_>) -> io::Result<PendingSyscall> {
    // SAFETY: the structure contains only numbers, so zero is a valid value. The kernel requires zeros and fills it in.
    unsafe {
        let mut notification: libc::seccomp_notif = zeroed();
        check(libc::ioctl(
            listener.as_raw_fd(),
            libc::SECCOMP_IOCTL_NOTIF_RECV,
            &raw mut notification,
        ))?;
        Ok(PendingSyscall {
            id: notification.id,
            thread: notification.pid as pid_t,
            number: c_long::from(notification.data.nr),
            arguments: notification.data.args,
        })
    }
}

/// Lets an intercepted system call continue.
pub(crate) fn resume(listener: BorrowedFd<'_>, syscall: &PendingSyscall) {
    let mut answer = libc::seccomp_notif_resp {
        id: syscall.id,
        val: 0,
        error: 0,
        flags: libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32,
    };
    // SAFETY: the structure lives until the call returns. It fails only if the process was killed in the meantime.
    unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut answer) };
}

/// Reads a C string from the memory of another process.
pub(crate) fn read_c_string(process: pid_t, at: u64) -> Option<Vec<u8>> {
    const PAGE: u64 = 4096;
    let mut text = Vec::new();
    let mut at = at;
    while text.len() < libc::PATH_MAX as usize {
        // One call reads at most to the end of a page, because the next page may not be mapped.
        let length = (PAGE - at % PAGE) as usize;
        let mut page = [0_u8; PAGE as usize];
        let local = libc::iovec { iov_base: page.as_mut_ptr().cast(), iov_len: length };
        let remote = libc::iovec { iov_base: at as *mut _, iov_len: length };
        // SAFETY: `local` is our own buffer of at least that length; the kernel checks the other side.
        let read = unsafe {
            libc::process_vm_readv(process, &raw const local, 1, &raw const remote, 1, 0)
        };
        let read = usize::try_from(read).ok().filter(|read| *read > 0)?;
        match page[..read].iter().position(|byte| *byte == 0) {
            Some(end) => {
                text.extend_from_slice(&page[..end]);
                return Some(text);
            }
            None => text.extend_from_slice(&page[..read]),
        }
        at += read as u64;
    }
    None
}

/// Reads bytes from the memory of another process.
pub(crate) fn read_bytes<const N: usize>(process: pid_t, at: u64) -> Option<[u8; N]> {
    let mut bytes = [0_u8; N];
    let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: N };
    let remote = libc::iovec { iov_base: at as *mut _, iov_len: N };
    // SAFETY: `local` is our own buffer of that length; the kernel checks the other side.
    let read =
        unsafe { libc::process_vm_readv(process, &raw const local, 1, &raw const remote, 1, 0) };
    (read == N as isize).then_some(bytes)
}

/// Returns a socket pair over which a descriptor can be passed.
pub(crate) fn socket_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: the kernel fills two descriptors, which have no other owner.
    unsafe {
        check(libc::socketpair(
            libc::AF_UNIX,
            libc::SOCK_STREAM | libc::SOCK_CLOEXEC,
            0,
            ends.as_mut_ptr(),
        ))?;
        Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])))
    }
}

/// Buffer for one descriptor in a control message, aligned as the kernel requires.
#[repr(align(8))]
struct Control([u8; 64]);

/// Returns the header of a message with one byte and room for one descriptor.
fn message(data: &mut libc::iovec, control: &mut Control) -> libc::msghdr {
    // SAFETY: the structure is plain numbers and pointers, for which zero is valid.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_iov = data;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    // SAFETY: computes a number.
    message.msg_controllen = unsafe { libc::CMSG_SPACE(size_of::<RawFd>() as u32) } as _;
    message
}

pub(crate) fn send_descriptor(
    socket: BorrowedFd<'_>,
    descriptor: BorrowedFd<'_>,
) -> io::Result<()> {
    let mut byte = [1_u8];
    let mut part = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    let mut control = Control([0; 64]);
    let message = message(&mut part, &mut control);
    // SAFETY: the control buffer has room for one descriptor, so the first header exists and its data fits.
    unsafe {
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(size_of::<RawFd>() as u32) as _;
        libc::CMSG_DATA(header).cast::<RawFd>().write_unaligned(descriptor.as_raw_fd());
        check_long(libc::sendmsg(socket.as_raw_fd(), &raw const message, 0) as c_long).map(drop)
    }
}

/// Receives a descriptor. Fails if the other end is closed without sending one.
pub(crate) fn receive_descriptor(socket: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let mut byte = [0_u8];
    let mut part = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    let mut control = Control([0; 64]);
    let mut message = message(&mut part, &mut control);
    // SAFETY: the kernel fills the buffers within their sizes; a header is only read if it exists, and the descriptor
    // in it is new and has no other owner.
    unsafe {
        let read = check_long(libc::recvmsg(
            socket.as_raw_fd(),
            &raw mut message,
            libc::MSG_CMSG_CLOEXEC,
        ) as c_long)?;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        if read == 0 || header.is_null() || (*header).cmsg_type != libc::SCM_RIGHTS {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let sent = libc::CMSG_DATA(header).cast::<RawFd>().read_unaligned();
        Ok(OwnedFd::from_raw_fd(sent))
    }
}

/// Waits until a descriptor is readable or closed, or until the timeout. Returns one flag per descriptor.
pub(crate) fn poll<const N: usize>(
    descriptors: [BorrowedFd<'_>; N],
    milliseconds: c_int,
) -> [bool; N] {
    let mut polled = descriptors.map(|descriptor| libc::pollfd {
        fd: descriptor.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    });
    // SAFETY: the array has N elements. An interrupted call leaves them unchanged, so that none counts as readable.
    unsafe { libc::poll(polled.as_mut_ptr(), N as _, milliseconds) };
    polled.map(|entry| entry.revents != 0)
}

/// Returns the CPU time of this thread.
pub(crate) fn cpu_time() -> std::time::Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is ours; the clock exists since Linux 2.6.12. On failure it stays zero.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    let (seconds, rest) = (time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs());
    std::time::Duration::from_secs(seconds) + std::time::Duration::from_nanos(rest)
}

/// Replaces this process with a program. Returns only on failure.
pub(crate) fn execute(program: &CStr, arguments: &[CString], environment: &[CString]) -> io::Error {
    let list = |texts: &[CString]| -> Vec<_> {
        texts.iter().map(|text| text.as_ptr()).chain([null()]).collect()
    };
    let (arguments, environment) = (list(arguments), list(environment));
    // SAFETY: both lists end with a null pointer, and their strings outlive the call.
    unsafe { libc::execve(program.as_ptr(), arguments.as_ptr(), environment.as_ptr()) };
    io::Error::last_os_error()
}
