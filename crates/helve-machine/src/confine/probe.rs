//! Detects which kinds of confinement this machine supports.

use std::fs;
use std::io;
use std::sync::OnceLock;

use helve_core::process::{SandboxSupport, Support};
use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::thread::UnshareFlags;

use super::mounts::{IdMaps, NamespaceOwner};
use super::{PidNamespace, syscalls};

/// Returns what is supported. Tried once and cached.
pub fn probe() -> SandboxSupport {
    static FOUND: OnceLock<SandboxSupport> = OnceLock::new();
    FOUND.get_or_init(detect).clone()
}

/// The first Landlock version that supports renames between folders.
const MIN_LANDLOCK_VERSION: u32 = 2;

fn detect() -> SandboxSupport {
    let (processes, memory) =
        (Support::No("not checked".into()), Support::No("not checked".into()));
    match describe_mechanisms() {
        Ok(mechanisms) => SandboxSupport {
            writes: Support::Yes(mechanisms.clone()),
            protected: Support::Yes(mechanisms.clone()),
            network: Support::Yes(mechanisms),
            processes,
            memory,
        },
        Err(why) => {
            let no = || Support::No(why.clone());
            SandboxSupport { writes: no(), protected: no(), network: no(), processes, memory }
        }
    }
}

/// Describes the mechanisms, or returns why one of them is missing. All three are needed, because each alone has gaps.
fn describe_mechanisms() -> Result<String, String> {
    let version = syscalls::landlock_version().map_err(|err| {
        format!("the kernel does not support Landlock ({err}): Linux 5.19 with `landlock` in its `lsm=` list is needed")
    })?;
    if version < MIN_LANDLOCK_VERSION {
        return Err(format!(
            "the kernel has Landlock version {version}, but {MIN_LANDLOCK_VERSION} is needed"
        ));
    }
    if !syscalls::has_seccomp() {
        return Err("the kernel does not support seccomp filters".into());
    }
    let namespace = match namespace_owner() {
        Ok(NamespaceOwner::Root) => "a mount namespace",
        Ok(NamespaceOwner::UserNamespace) => "a mount namespace in a user namespace",
        Err(err) => return Err(explain_failure(&err)),
    };
    Ok(format!("{namespace}, Landlock {version}, seccomp"))
}

/// Finds out by trial which kind of mount namespace can be created.
fn namespace_owner() -> io::Result<NamespaceOwner> {
    let ids = IdMaps::of_this_process();
    // A child reports only success or failure, not which kind worked, so each kind gets its own child.
    let as_root = || syscalls::unshare(UnshareFlags::NEWNS).and_then(|()| make_mounts_private());
    if syscalls::try_in_child(as_root).is_ok() {
        return Ok(NamespaceOwner::Root);
    }
    syscalls::try_in_child(move || {
        ids.enter_namespaces(PidNamespace::Own).and_then(|_| make_mounts_private())
    })?;
    Ok(NamespaceOwner::UserNamespace)
}

fn make_mounts_private() -> io::Result<()> {
    Ok(mount_change(c"/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?)
}

/// Kernel settings that disable user namespaces, with the disabling value.
const DISABLING_SETTINGS: [(&str, &str); 3] = [
    ("kernel/apparmor_restrict_unprivileged_userns", "1"),
    ("kernel/unprivileged_userns_clone", "0"),
    ("user/max_user_namespaces", "0"),
];

fn explain_failure(err: &io::Error) -> String {
    let is_set = |(name, value): &&(&str, &str)| {
        fs::read_to_string(format!("/proc/sys/{name}"))
            .is_ok_and(|content| content.trim() == *value)
    };
    match DISABLING_SETTINGS.iter().find(is_set) {
        Some((name, value)) => {
            let name = name.replace('/', ".");
            format!(
                "a mount namespace cannot be created ({err}) because of the kernel setting {name} = {value}"
            )
        }
        None => format!(
            "a mount namespace cannot be created ({err}); if Helve runs in a container, start the container with permission to create one"
        ),
    }
}
