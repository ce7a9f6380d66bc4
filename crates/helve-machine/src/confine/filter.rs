//! System calls that a confined program does not get.

use std::collections::BTreeMap;
use std::io;

use helve_core::process::Network;
use seccompiler::SeccompCmpArgLen::{Dword, Qword};
use seccompiler::SeccompCmpOp::{Eq, MaskedEq, Ne};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
    apply_filter, sock_filter,
};

use super::named;

type Fault = Box<dyn std::error::Error + Send + Sync>;

pub(super) fn install(network: Network) -> io::Result<()> {
    let install = || -> Result<(), Fault> {
        apply_filter(&missing()?)?;
        #[cfg(target_arch = "x86_64")]
        apply_filter(&second_numbering())?;
        Ok(apply_filter(&refused(network)?)?)
    };
    install().map_err(|err| named("filtering system calls", io::Error::other(err)))
}

/// Never: other processes, mounts and namespaces, the kernel itself, and what goes around the other rules.
const NEVER: [libc::c_long; 45] = [
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_mount_setattr,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
];

const NAMESPACES: [libc::c_int; 8] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
    // New time namespaces, which the C library does not name everywhere.
    0x80,
];

/// Types into a terminal as if a person did, or steers a console.
const TERMINAL_TRICKS: [u64; 2] = [0x5412, 0x541c];

fn refused(network: Network) -> Result<BpfProgram, Fault> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        NEVER.into_iter().map(|call| (call, Vec::new())).collect();
    let mut unshare = Vec::new();
    let mut clone = Vec::new();
    for flag in NAMESPACES {
        let flag = u64::try_from(flag)?;
        unshare.push(only(0, Dword, MaskedEq(flag), flag)?);
        // The lowest byte of this call's flags is a signal, which would be taken for a time namespace.
        if flag > 0xff {
            clone.push(only(0, Dword, MaskedEq(flag), flag)?);
        }
    }
    rules.insert(libc::SYS_unshare, unshare);
    rules.insert(libc::SYS_clone, clone);
    let tricks: Result<_, Fault> =
        TERMINAL_TRICKS.iter().map(|trick| only(1, Dword, Eq, *trick)).collect();
    rules.insert(libc::SYS_ioctl, tricks?);
    match network {
        Network::On => {}
        Network::Off => {
            let local = u64::try_from(libc::AF_UNIX)?;
            rules.insert(libc::SYS_socket, vec![only(0, Dword, Ne, local)?]);
            // A local socket leads to services that have the network. Pairs need no connecting.
            rules.insert(libc::SYS_connect, Vec::new());
            rules.insert(libc::SYS_sendto, vec![only(4, Qword, Ne, 0)?]);
        }
    }
    program(rules, libc::EPERM)
}

/// Calls whose flags lie in memory, where a filter cannot look; programs that find them missing use the older ones.
fn missing() -> Result<BpfProgram, Fault> {
    program(BTreeMap::from([(libc::SYS_clone3, Vec::new())]), libc::ENOSYS)
}

fn program(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    error: libc::c_int,
) -> Result<BpfProgram, Fault> {
    let here: TargetArch = std::env::consts::ARCH.try_into()?;
    let errno = SeccompAction::Errno(u32::try_from(error)?);
    Ok(SeccompFilter::new(rules, SeccompAction::Allow, errno, here)?.try_into()?)
}

fn only(
    argument: u8,
    length: seccompiler::SeccompCmpArgLen,
    operator: seccompiler::SeccompCmpOp,
    value: u64,
) -> Result<SeccompRule, Fault> {
    Ok(SeccompRule::new(vec![SeccompCondition::new(argument, length, operator, value)?])?)
}

/// The same calls under numbers with a high bit (x32), which the rules above would not know.
#[cfg(target_arch = "x86_64")]
fn second_numbering() -> BpfProgram {
    const LOAD: u16 = 0x20;
    const JUMP_IF_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const HIGH_BIT: u32 = 0x4000_0000;
    let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    vec![
        step(LOAD, 0, 0, 0),
        step(JUMP_IF_AT_LEAST, 0, 1, HIGH_BIT),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs()),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ]
}
