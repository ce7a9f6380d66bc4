//! What confinement this machine gives.

use std::fs;
use std::io;
use std::sync::OnceLock;

use helve_core::process::{Confinement, Support};
use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::thread::UnshareFlags;

use super::calls;
use super::view::{Ids, Owner};

/// Looked at once, by trying.
pub fn probe() -> Confinement {
    static FOUND: OnceLock<Confinement> = OnceLock::new();
    FOUND.get_or_init(look).clone()
}

/// From this version on Landlock knows renames between folders.
const OLDEST_LANDLOCK: u32 = 2;

fn look() -> Confinement {
    let processes = Support::No("not looked at".into());
    match means() {
        Ok(means) => Confinement {
            writes: Support::Yes(means.clone()),
            protected: Support::Yes(means.clone()),
            network: Support::Yes(means),
            processes,
        },
        Err(why) => {
            let no = || Support::No(why.clone());
            Confinement { writes: no(), protected: no(), network: no(), processes }
        }
    }
}

/// All three or none: each alone leaves something open.
fn means() -> Result<String, String> {
    let version = calls::landlock_version().map_err(|err| {
        format!("the kernel has no Landlock ({err}): it needs Linux 5.19 with `landlock` in its `lsm=` list")
    })?;
    if version < OLDEST_LANDLOCK {
        return Err(format!(
            "the kernel's Landlock is version {version}, and {OLDEST_LANDLOCK} is needed"
        ));
    }
    if !calls::has_seccomp() {
        return Err("the kernel has no seccomp filters".into());
    }
    let namespace = match namespace() {
        Ok(Owner::Administrator) => "a mount namespace",
        Ok(Owner::User) => "a mount namespace in a user namespace",
        Err(err) => return Err(no_namespace(&err)),
    };
    Ok(format!("{namespace}, Landlock {version}, seccomp"))
}

/// Whose mount namespace can be had.
fn namespace() -> io::Result<Owner> {
    let ids = Ids::own();
    // The child can tell only how it ended, so each owner is a trial of its own.
    let administrator = || calls::unshare(UnshareFlags::NEWNS).and_then(|()| keep_to_ourselves());
    if calls::try_in_child(administrator).is_ok() {
        return Ok(Owner::Administrator);
    }
    calls::try_in_child(move || ids.enter().and_then(|_| keep_to_ourselves()))?;
    Ok(Owner::User)
}

fn keep_to_ourselves() -> io::Result<()> {
    Ok(mount_change(c"/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?)
}

/// Switches that forbid user namespaces, and how they stand when they do.
const SWITCHES: [(&str, &str); 3] = [
    ("kernel/apparmor_restrict_unprivileged_userns", "1"),
    ("kernel/unprivileged_userns_clone", "0"),
    ("user/max_user_namespaces", "0"),
];

fn no_namespace(err: &io::Error) -> String {
    let forbids = |(name, value): &&(&str, &str)| {
        fs::read_to_string(format!("/proc/sys/{name}")).is_ok_and(|it| it.trim() == *value)
    };
    match SWITCHES.iter().find(forbids) {
        Some((name, value)) => {
            let name = name.replace('/', ".");
            format!(
                "no mount namespace can be made ({err}), because of the setting {name} = {value}"
            )
        }
        None => format!(
            "no mount namespace can be made ({err}); in a container it must be allowed from outside"
        ),
    }
}
