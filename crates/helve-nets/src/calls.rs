//! The system calls by which a program acts on files or starts programs, and where their arguments name a file.

use libc::c_long;

use crate::event::What;

/// Where a call names a file.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Named {
    /// The argument with the text; relative to the current folder.
    Path(usize),
    /// The argument with the folder; the text is the next one, and without a text it is the folder itself.
    At(usize),
    Descriptor(usize),
    /// The argument with a network address.
    Address(usize),
}

/// What a call does to the file.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Does {
    Always(What),
    /// The argument with the flags of `open` says.
    Flags(usize),
    /// The same, in a structure that the argument points to.
    FlagsBehind(usize),
}

pub(crate) struct Call {
    pub number: c_long,
    pub does: Does,
    pub names: &'static [Named],
}

pub(crate) fn find(number: c_long) -> Option<&'static Call> {
    CALLS.iter().chain(OLD).find(|call| call.number == number)
}

pub(crate) fn numbers() -> Vec<c_long> {
    CALLS.iter().chain(OLD).map(|call| call.number).collect()
}

const fn call(number: c_long, does: Does, names: &'static [Named]) -> Call {
    Call { number, does, names }
}

const EXECUTES: Does = Does::Always(What::Execute);
const WRITES: Does = Does::Always(What::Write);

const CALLS: &[Call] = &[
    call(libc::SYS_execve, EXECUTES, &[Named::Path(0)]),
    call(libc::SYS_execveat, EXECUTES, &[Named::At(0)]),
    call(libc::SYS_openat, Does::Flags(2), &[Named::At(0)]),
    call(libc::SYS_openat2, Does::FlagsBehind(2), &[Named::At(0)]),
    call(libc::SYS_unlinkat, WRITES, &[Named::At(0)]),
    call(libc::SYS_renameat2, WRITES, &[Named::At(0), Named::At(2)]),
    call(libc::SYS_linkat, WRITES, &[Named::At(2)]),
    call(libc::SYS_symlinkat, WRITES, &[Named::At(1)]),
    call(libc::SYS_mkdirat, Does::Always(What::MakeFolder), &[Named::At(0)]),
    call(libc::SYS_mknodat, WRITES, &[Named::At(0)]),
    call(libc::SYS_truncate, WRITES, &[Named::Path(0)]),
    call(libc::SYS_fchmod, WRITES, &[Named::Descriptor(0)]),
    call(libc::SYS_fchmodat, WRITES, &[Named::At(0)]),
    call(libc::SYS_fchmodat2, WRITES, &[Named::At(0)]),
    call(libc::SYS_fchown, WRITES, &[Named::Descriptor(0)]),
    call(libc::SYS_fchownat, WRITES, &[Named::At(0)]),
    call(libc::SYS_utimensat, WRITES, &[Named::At(0)]),
    call(libc::SYS_setxattr, WRITES, &[Named::Path(0)]),
    call(libc::SYS_lsetxattr, WRITES, &[Named::Path(0)]),
    call(libc::SYS_fsetxattr, WRITES, &[Named::Descriptor(0)]),
    call(libc::SYS_removexattr, WRITES, &[Named::Path(0)]),
    call(libc::SYS_lremovexattr, WRITES, &[Named::Path(0)]),
    call(libc::SYS_fremovexattr, WRITES, &[Named::Descriptor(0)]),
    call(libc::SYS_mount, WRITES, &[Named::Path(1)]),
    call(libc::SYS_connect, Does::Always(What::Connect), &[Named::Address(1)]),
    call(libc::SYS_bind, Does::Always(What::Connect), &[Named::Address(1)]),
];

/// Calls that newer architectures left out.
#[cfg(target_arch = "x86_64")]
const OLD: &[Call] = &[
    call(libc::SYS_open, Does::Flags(1), &[Named::Path(0)]),
    call(libc::SYS_creat, WRITES, &[Named::Path(0)]),
    call(libc::SYS_unlink, WRITES, &[Named::Path(0)]),
    call(libc::SYS_rmdir, WRITES, &[Named::Path(0)]),
    call(libc::SYS_rename, WRITES, &[Named::Path(0), Named::Path(1)]),
    call(libc::SYS_renameat, WRITES, &[Named::At(0), Named::At(2)]),
    call(libc::SYS_link, WRITES, &[Named::Path(1)]),
    call(libc::SYS_symlink, WRITES, &[Named::Path(1)]),
    call(libc::SYS_mkdir, Does::Always(What::MakeFolder), &[Named::Path(0)]),
    call(libc::SYS_mknod, WRITES, &[Named::Path(0)]),
    call(libc::SYS_chmod, WRITES, &[Named::Path(0)]),
    call(libc::SYS_chown, WRITES, &[Named::Path(0)]),
    call(libc::SYS_lchown, WRITES, &[Named::Path(0)]),
    call(libc::SYS_utime, WRITES, &[Named::Path(0)]),
    call(libc::SYS_utimes, WRITES, &[Named::Path(0)]),
    call(libc::SYS_futimesat, WRITES, &[Named::At(0)]),
];
#[cfg(not(target_arch = "x86_64"))]
const OLD: &[Call] = &[call(libc::SYS_renameat, WRITES, &[Named::At(0), Named::At(2)])];
