//! The system calls that access files or start programs, and which of their arguments name a file.

use libc::c_long;

use crate::trace::Operation;

/// An argument of a system call that names a file. Arguments are identified by their index.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FileArgument {
    /// Index of the path, relative to the working directory.
    Path(usize),
    /// Index of the directory descriptor; the path is the next argument. If the path is null, the argument names the
    /// directory itself.
    At(usize),
    Descriptor(usize),
    /// Index of a network address.
    Address(usize),
}

/// What a system call does to the file.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CallEffect {
    Always(Operation),
    /// Index of the flags of `open`, which say whether the file is read or written.
    Flags(usize),
    /// Index of a pointer to a structure that starts with these flags.
    FlagsPointer(usize),
}

/// A system call, its effect, and its arguments that name files.
pub(crate) struct SyscallSpec {
    pub number: c_long,
    pub effect: CallEffect,
    pub files: &'static [FileArgument],
}

pub(crate) fn find(number: c_long) -> Option<&'static SyscallSpec> {
    CALLS.iter().chain(LEGACY_CALLS).find(|call| call.number == number)
}

pub(crate) fn numbers() -> Vec<c_long> {
    CALLS.iter().chain(LEGACY_CALLS).map(|call| call.number).collect()
}

const fn call(number: c_long, effect: CallEffect, files: &'static [FileArgument]) -> SyscallSpec {
    SyscallSpec { number, effect, files }
}

const EXECUTES: CallEffect = CallEffect::Always(Operation::Execute);
const WRITES: CallEffect = CallEffect::Always(Operation::Write);

const CALLS: &[SyscallSpec] = &[
    call(libc::SYS_execve, EXECUTES, &[FileArgument::Path(0)]),
    call(libc::SYS_execveat, EXECUTES, &[FileArgument::At(0)]),
    call(libc::SYS_openat, CallEffect::Flags(2), &[FileArgument::At(0)]),
    call(libc::SYS_openat2, CallEffect::FlagsPointer(2), &[FileArgument::At(0)]),
    call(libc::SYS_unlinkat, WRITES, &[FileArgument::At(0)]),
    call(libc::SYS_renameat2, WRITES, &[FileArgument::At(0), FileArgument::At(2)]),
    call(libc::SYS_linkat, WRITES, &[FileArgument::At(2)]),
    call(libc::SYS_symlinkat, WRITES, &[FileArgument::At(1)]),
    call(libc::SYS_mkdirat, CallEffect::Always(Operation::CreateFolder), &[FileArgument::At(0)]),
    call(libc::SYS_mknodat, WRITES, &[FileArgument::At(0)]),
    call(libc::SYS_truncate, WRITES, &[FileArgument::Path(0)]),
    call(libc::SYS_fchmod, WRITES, &[FileArgument::Descriptor(0)]),
    call(libc::SYS_fchmodat, WRITES, &[FileArgument::At(0)]),
    call(libc::SYS_fchmodat2, WRITES, &[FileArgument::At(0)]),
    call(libc::SYS_fchown, WRITES, &[FileArgument::Descriptor(0)]),
    call(libc::SYS_fchownat, WRITES, &[FileArgument::At(0)]),
    call(libc::SYS_utimensat, WRITES, &[FileArgument::At(0)]),
    call(libc::SYS_setxattr, WRITES, &[FileArgument::Path(0)]),
    call(libc::SYS_lsetxattr, WRITES, &[FileArgument::Path(0)]),
    call(libc::SYS_fsetxattr, WRITES, &[FileArgument::Descriptor(0)]),
    call(libc::SYS_removexattr, WRITES, &[FileArgument::Path(0)]),
    call(libc::SYS_lremovexattr, WRITES, &[FileArgument::Path(0)]),
    call(libc::SYS_fremovexattr, WRITES, &[FileArgument::Descriptor(0)]),
    call(libc::SYS_mount, WRITES, &[FileArgument::Path(1)]),
    call(
        libc::SYS_connect,
        CallEffect::Always(Operation::ConnectOrBind),
        &[FileArgument::Address(1)],
    ),
    call(libc::SYS_bind, CallEffect::Always(Operation::ConnectOrBind), &[FileArgument::Address(1)]),
];

/// System calls that newer architectures do not have.
#[cfg(target_arch = "x86_64")]
const LEGACY_CALLS: &[SyscallSpec] = &[
    call(libc::SYS_open, CallEffect::Flags(1), &[FileArgument::Path(0)]),
    call(libc::SYS_creat, WRITES, &[FileArgument::Path(0)]),
    call(libc::SYS_unlink, WRITES, &[FileArgument::Path(0)]),
    call(libc::SYS_rmdir, WRITES, &[FileArgument::Path(0)]),
    call(libc::SYS_rename, WRITES, &[FileArgument::Path(0), FileArgument::Path(1)]),
    call(libc::SYS_renameat, WRITES, &[FileArgument::At(0), FileArgument::At(2)]),
    call(libc::SYS_link, WRITES, &[FileArgument::Path(1)]),
    call(libc::SYS_symlink, WRITES, &[FileArgument::Path(1)]),
    call(libc::SYS_mkdir, CallEffect::Always(Operation::CreateFolder), &[FileArgument::Path(0)]),
    call(libc::SYS_mknod, WRITES, &[FileArgument::Path(0)]),
    call(libc::SYS_chmod, WRITES, &[FileArgument::Path(0)]),
    call(libc::SYS_chown, WRITES, &[FileArgument::Path(0)]),
    call(libc::SYS_lchown, WRITES, &[FileArgument::Path(0)]),
    call(libc::SYS_utime, WRITES, &[FileArgument::Path(0)]),
    call(libc::SYS_utimes, WRITES, &[FileArgument::Path(0)]),
    call(libc::SYS_futimesat, WRITES, &[FileArgument::At(0)]),
];
#[cfg(not(target_arch = "x86_64"))]
const LEGACY_CALLS: &[SyscallSpec] =
    &[call(libc::SYS_renameat, WRITES, &[FileArgument::At(0), FileArgument::At(2)])];
