//! The seccomp filters of a confined process.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;

use helve_core::process::Network;
use seccompiler::SeccompCmpArgLen::{Dword, Qword};
use seccompiler::SeccompCmpOp::{Eq, MaskedEq, Ne};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
    apply_filter, sock_filter,
};

use super::{CallWatch, PidNamespace, syscalls, with_context};

/// The BPF instruction that returns a filter's decision.
const RETURN: u16 = 0x06;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Installs the filters. Returns the handle on which the kernel reports suspended calls, if calls are watched. Only one
/// such handle can exist, and a container runtime around us may have it already. Then the result is `None`, and calls
/// that change files are not filtered.
pub(super) fn install(
    network: Network,
    pids: PidNamespace,
    watch: CallWatch,
) -> io::Result<Option<OwnedFd>> {
    let install = || -> Result<Option<OwnedFd>, BoxError> {
        apply_filter(&unavailable_filter(watch)?)?;
        #[cfg(target_arch = "x86_64")]
        apply_filter(&x32_filter())?;
        apply_filter(&denied_filter(network, pids)?)?;
        if watch != CallWatch::Off {
            let suspended = with_notifications(&reported_filter(network, watch)?);
            if let Ok(listener) = syscalls::install_listener(&suspended) {
                return Ok(Some(listener));
            }
        }
        apply_filter(&reported_filter(network, CallWatch::Off)?)?;
        Ok(None)
    };
    install().map_err(|err| with_context("filtering system calls", io::Error::other(err)))
}

/// Calls that create, rename or truncate files by path. The broker makes them.
const CHANGING_FILES: [libc::c_long; 6] = [
    libc::SYS_mkdirat,
    libc::SYS_mknodat,
    libc::SYS_symlinkat,
    libc::SYS_linkat,
    libc::SYS_renameat2,
    libc::SYS_truncate,
];

/// Older forms of these calls.
#[cfg(target_arch = "x86_64")]
const CHANGING_FILES_OLD: [libc::c_long; 7] = [
    libc::SYS_creat,
    libc::SYS_mkdir,
    libc::SYS_mknod,
    libc::SYS_symlink,
    libc::SYS_link,
    libc::SYS_rename,
    libc::SYS_renameat,
];
#[cfg(target_arch = "aarch64")]
const CHANGING_FILES_OLD: [libc::c_long; 1] = [libc::SYS_renameat];

/// Calls that change the umask or the ids of a thread, which the broker must know. The thread makes them itself.
pub(super) const CHANGING_CREDENTIALS: [libc::c_long; 10] = [
    libc::SYS_umask,
    libc::SYS_setuid,
    libc::SYS_setreuid,
    libc::SYS_setresuid,
    libc::SYS_setfsuid,
    libc::SYS_setgid,
    libc::SYS_setregid,
    libc::SYS_setresgid,
    libc::SYS_setfsgid,
    libc::SYS_setgroups,
];

/// Calls that open files, with the position of their flags.
#[cfg(target_arch = "x86_64")]
const OPENING: [(libc::c_long, u8); 2] = [(libc::SYS_open, 1), (libc::SYS_openat, 2)];
#[cfg(target_arch = "aarch64")]
const OPENING: [(libc::c_long, u8); 1] = [(libc::SYS_openat, 2)];

/// Each of these flags lets a call change a file.
const WRITING: [libc::c_int; 4] = [libc::O_WRONLY, libc::O_RDWR, libc::O_CREAT, libc::O_TRUNC];

/// Always denied and reported: calls that access other processes.
const TRACING: [libc::c_long; 3] =
    [libc::SYS_ptrace, libc::SYS_process_vm_readv, libc::SYS_process_vm_writev];

/// Socket families whose denial is reported. Other families are often tried by programs that work without them.
const NETWORK_FAMILIES: [libc::c_int; 2] = [libc::AF_INET, libc::AF_INET6];

/// Always denied: calls on other processes, mounts, namespaces and the kernel, and calls that bypass the other rules.
const ALWAYS_DENIED: [libc::c_long; 44] = [
    OPEN_TREE_ATTR,
    FILE_SETATTR,
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
    // CLONE_NEWTIME, which libc does not define on every target.
    0x80,
];

/// Commands of `fcntl` that are denied. A lease makes other processes wait when they open the file, and F_NOTIFY
/// watches a folder.
const DENIED_FILE_COMMANDS: [libc::c_int; 2] = [libc::F_SETLEASE, libc::F_NOTIFY];

/// Requests of `ioctl` that are denied.
const DENIED_REQUESTS: [u64; 10] = [
    // TIOCSTI and TIOCLINUX inject input into a terminal or control a console.
    0x5412,
    0x541c,
    // These create files or folders with any name: BTRFS_IOC_SNAP_CREATE, BTRFS_IOC_SUBVOL_CREATE, their second
    // versions, BCH_IOCTL_SUBVOLUME_CREATE and OCFS2_IOC_REFLINK.
    0x5000_9401,
    0x5000_940e,
    0x5000_9417,
    0x5000_9418,
    0x4020_bc10,
    0x4018_6f04,
    // FS_IOC_SETFLAGS and FS_IOC_FSSETXATTR can make a folder ignore case.
    0x4008_6602,
    0x401c_5820,
];

/// `open_tree_attr` and `file_setattr`, which libc does not define on every target. Their numbers are the same on all.
const OPEN_TREE_ATTR: libc::c_long = 467;
const FILE_SETATTR: libc::c_long = 469;

fn denied_filter(network: Network, pids: PidNamespace) -> Result<BpfProgram, BoxError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        ALWAYS_DENIED.into_iter().map(|call| (call, Vec::new())).collect();
    let mut unshare = Vec::new();
    let mut clone = Vec::new();
    for flag in NAMESPACES {
        let flag = u64::try_from(flag)?;
        unshare.push(rule_on_argument(0, Dword, MaskedEq(flag), flag)?);
        // The lowest byte of `clone`'s flags is a signal number, which overlaps with CLONE_NEWTIME.
        if flag > 0xff {
            clone.push(rule_on_argument(0, Dword, MaskedEq(flag), flag)?);
        }
    }
    rules.insert(libc::SYS_unshare, unshare);
    rules.insert(libc::SYS_clone, clone);
    let requests: Result<_, BoxError> =
        DENIED_REQUESTS.iter().map(|request| rule_on_argument(1, Dword, Eq, *request)).collect();
    rules.insert(libc::SYS_ioctl, requests?);
    let commands: Result<_, BoxError> = DENIED_FILE_COMMANDS
        .iter()
        .map(|command| rule_on_argument(1, Dword, Eq, u64::try_from(*command)?))
        .collect();
    rules.insert(libc::SYS_fcntl, commands?);
    match network {
        Network::On => {}
        Network::Off => {
            // Denies every family except these. `reported_filter` denies the network families.
            let exceptions = NETWORK_FAMILIES.iter().chain(&[libc::AF_UNIX]);
            let conditions: Result<_, BoxError> =
                exceptions.map(|family| family_condition(*family, Ne)).collect();
            rules.insert(libc::SYS_socket, vec![SeccompRule::new(conditions?)?]);
            // A local socket may lead to a service with network access. Socket pairs work without `connect`.
            rules.insert(libc::SYS_connect, Vec::new());
            rules.insert(libc::SYS_sendto, vec![rule_on_argument(4, Qword, Ne, 0)?]);
            // The address of `sendmsg` is in memory, which a filter cannot read. Only datagram sockets use it, so local
            // datagram sockets cannot be created. Neither can raw ones, which Linux treats as datagram sockets.
            for kind in [libc::SOCK_DGRAM, libc::SOCK_RAW] {
                let local = || family_condition(libc::AF_UNIX, Eq);
                let of_kind = SeccompCondition::new(1, Dword, MaskedEq(0xf), u64::try_from(kind)?)?;
                let rule = SeccompRule::new(vec![local()?, of_kind])?;
                rules.entry(libc::SYS_socket).or_default().push(rule.clone());
                rules.entry(libc::SYS_socketpair).or_default().push(rule);
            }
        }
    }
    match pids {
        PidNamespace::Own => {}
        PidNamespace::Shared => {
            for (call, argument) in FOREIGN_PROCESS {
                let rule = rule_on_argument(argument, Dword, Ne, 0)?;
                rules.entry(call).or_default().push(rule);
            }
            for call in [libc::SYS_setpriority, libc::SYS_ioprio_set] {
                // The first argument selects a process, a group or a user; only "process" is allowed.
                let process = u64::from(call == libc::SYS_ioprio_set);
                rules.entry(call).or_default().push(rule_on_argument(0, Dword, Ne, process)?);
            }
        }
    }
    compile(rules, libc::EPERM)
}

/// Calls that change the limits or the scheduling of a process, with the position of its id. In a shared PID namespace
/// only the id 0, which is the calling process, is allowed.
const FOREIGN_PROCESS: [(libc::c_long, u8); 7] = [
    (libc::SYS_prlimit64, 0),
    (libc::SYS_sched_setaffinity, 0),
    (libc::SYS_sched_setscheduler, 0),
    (libc::SYS_sched_setparam, 0),
    (libc::SYS_sched_setattr, 0),
    (libc::SYS_setpriority, 1),
    (libc::SYS_ioprio_set, 1),
];

/// The filter for calls whose denial is reported, and for those that the broker makes.
fn reported_filter(network: Network, watch: CallWatch) -> Result<BpfProgram, BoxError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        TRACING.into_iter().map(|call| (call, Vec::new())).collect();
    match network {
        Network::On => {}
        Network::Off => {
            let each = NETWORK_FAMILIES
                .iter()
                .map(|family| Ok(SeccompRule::new(vec![family_condition(*family, Eq)?])?));
            rules.insert(libc::SYS_socket, each.collect::<Result<_, BoxError>>()?);
        }
    }
    if watch == CallWatch::Files {
        let calls =
            CHANGING_FILES.into_iter().chain(CHANGING_FILES_OLD).chain(CHANGING_CREDENTIALS);
        rules.extend(calls.map(|call| (call, Vec::new())));
        for (call, flags_at) in OPENING {
            let writes = |flag: libc::c_int| {
                let flag = u64::from(flag.unsigned_abs());
                rule_on_argument(flags_at, Dword, MaskedEq(flag), flag)
            };
            rules.insert(call, WRITING.into_iter().map(writes).collect::<Result<_, BoxError>>()?);
        }
    }
    compile(rules, libc::EPERM)
}

/// Changes a filter so that each denied call is suspended until the listener answers it.
fn with_notifications(program: &BpfProgram) -> BpfProgram {
    let deny = libc::SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs();
    let step = |step: &sock_filter| match step {
        sock_filter { code: RETURN, k, .. } if *k == deny => {
            sock_filter { k: libc::SECCOMP_RET_USER_NOTIF, ..step.clone() }
        }
        _ => step.clone(),
    };
    program.iter().map(step).collect()
}

/// A condition on the address family of `socket`.
fn family_condition(
    family: libc::c_int,
    operator: seccompiler::SeccompCmpOp,
) -> Result<SeccompCondition, BoxError> {
    Ok(SeccompCondition::new(0, Dword, operator, u64::try_from(family)?)?)
}

/// Makes `clone3` and `openat2` unavailable: their flags are in memory, which a filter cannot read. Programs fall back
/// to `clone` and `openat`.
fn unavailable_filter(watch: CallWatch) -> Result<BpfProgram, BoxError> {
    let mut rules = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    if watch == CallWatch::Files {
        rules.insert(libc::SYS_openat2, Vec::new());
    }
    compile(rules, libc::ENOSYS)
}

fn compile(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    error: libc::c_int,
) -> Result<BpfProgram, BoxError> {
    let target: TargetArch = std::env::consts::ARCH.try_into()?;
    let errno = SeccompAction::Errno(u32::try_from(error)?);
    Ok(SeccompFilter::new(rules, SeccompAction::Allow, errno, target)?.try_into()?)
}

fn rule_on_argument(
    argument: u8,
    length: seccompiler::SeccompCmpArgLen,
    operator: seccompiler::SeccompCmpOp,
    value: u64,
) -> Result<SeccompRule, BoxError> {
    Ok(SeccompRule::new(vec![SeccompCondition::new(argument, length, operator, value)?])?)
}

/// Denies the x32 system calls, whose numbers have a high bit that the other filters do not match.
#[cfg(target_arch = "x86_64")]
fn x32_filter() -> BpfProgram {
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

    use super::{CallWatch, Network, PidNamespace, install, syscalls};

    #[test]
    fn calls_are_denied_even_if_another_listener_exists() {
        let result = syscalls::try_in_child(|| {
            let first = install(Network::Off, PidNamespace::Shared, CallWatch::Denials)?;
            let second = install(Network::Off, PidNamespace::Shared, CallWatch::Denials)?;
            let socket = std::net::UdpSocket::bind("127.0.0.1:0").map_err(|err| err.raw_os_error());
            match socket {
                Err(Some(libc::EPERM)) if first.is_some() && second.is_none() => Ok(()),
                Ok(_) | Err(_) => Err(io::Error::from_raw_os_error(libc::EINVAL)),
            }
        });
        assert!(result.is_ok(), "{result:?}");
    }
}
