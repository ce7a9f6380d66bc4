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

use super::{Listener, Telling, calls, named};

/// The step with which a filter decides.
const RETURN: u16 = 0x06;

type Fault = Box<dyn std::error::Error + Send + Sync>;

pub(super) fn install(network: Network, telling: Telling) -> io::Result<Option<Listener>> {
    let install = || -> Result<Option<Listener>, Fault> {
        apply_filter(&missing()?)?;
        #[cfg(target_arch = "x86_64")]
        apply_filter(&second_numbering())?;
        apply_filter(&refused(network)?)?;
        let told = told(network)?;
        if telling == Telling::Listener
            && let Ok(listener) = calls::listen(&holding_up(&told))
        {
            return Ok(Some(listener.into()));
        }
        // There can be one listener only, and who runs this machine may have it.
        apply_filter(&told)?;
        Ok(None)
    };
    install().map_err(|err| named("filtering system calls", io::Error::other(err)))
}

/// Never, and told of: looking into other processes.
const TRACING: [libc::c_long; 3] =
    [libc::SYS_ptrace, libc::SYS_process_vm_readv, libc::SYS_process_vm_writev];

/// What has to do with the network. Others are asked for in passing, by programs that can do without.
const NETWORKS: [libc::c_int; 2] = [libc::AF_INET, libc::AF_INET6];

/// Never: other processes, mounts and namespaces, the kernel itself, and what goes around the other rules.
const NEVER: [libc::c_long; 42] = [
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
            let others = NETWORKS.iter().chain(&[libc::AF_UNIX]);
            let others: Result<_, Fault> = others.map(|it| domain(*it, Ne)).collect();
            rules.insert(libc::SYS_socket, vec![SeccompRule::new(others?)?]);
            // A local socket leads to services that have the network. Pairs need no connecting.
            rules.insert(libc::SYS_connect, Vec::new());
            rules.insert(libc::SYS_sendto, vec![only(4, Qword, Ne, 0)?]);
        }
    }
    program(rules, libc::EPERM)
}

/// What is refused, too, and may be told.
fn told(network: Network) -> Result<BpfProgram, Fault> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        TRACING.into_iter().map(|call| (call, Vec::new())).collect();
    match network {
        Network::On => {}
        Network::Off => {
            let each = NETWORKS.iter().map(|it| Ok(SeccompRule::new(vec![domain(*it, Eq)?])?));
            rules.insert(libc::SYS_socket, each.collect::<Result<_, Fault>>()?);
        }
    }
    program(rules, libc::EPERM)
}

/// The same, where each call waits until somebody has answered it.
fn holding_up(program: &BpfProgram) -> BpfProgram {
    let refusing = libc::SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs();
    let step = |step: &sock_filter| match step {
        sock_filter { code: RETURN, k, .. } if *k == refusing => {
            sock_filter { k: libc::SECCOMP_RET_USER_NOTIF, ..step.clone() }
        }
        _ => step.clone(),
    };
    program.iter().map(step).collect()
}

/// What a socket is for.
fn domain(
    domain: libc::c_int,
    operator: seccompiler::SeccompCmpOp,
) -> Result<SeccompCondition, Fault> {
    Ok(SeccompCondition::new(0, Dword, operator, u64::try_from(domain)?)?)
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
    const HIGH_BIT: u32 = 0x4000_0000;
    let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    vec![
        step(LOAD, 0, 0, 0),
        step(JUMP_IF_AT_LEAST, 0, 1, HIGH_BIT),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs()),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ]
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::{Network, Telling, calls, install};

    #[test]
    fn where_somebody_listens_already_it_is_refused_all_the_same() {
        let tried = calls::try_in_child(|| {
            let first = install(Network::Off, Telling::Listener)?;
            let second = install(Network::Off, Telling::Listener)?;
            let socket = std::net::UdpSocket::bind("127.0.0.1:0").map_err(|err| err.raw_os_error());
            match socket {
                Err(Some(libc::EPERM)) if first.is_some() && second.is_none() => Ok(()),
                Ok(_) | Err(_) => Err(io::Error::from_raw_os_error(libc::EINVAL)),
            }
        });
        assert!(tried.is_ok(), "{tried:?}");
    }
}
