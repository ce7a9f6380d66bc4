//! Capabilities given up, and Landlock.

use std::io;
use std::path::{Path, PathBuf};

use helve_core::process::Confine;
use landlock::{
    ABI, Access, AccessFs, BitFlags, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetStatus, Scope,
};
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::named;
use super::view::Owner;

/// The administrator keeps what changes files of other users, since some work in folders that are not theirs.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::KILL);

/// What is not held now can never be had again: setuid programs and file capabilities give nothing from here on.
pub(super) fn drop_capabilities(owner: Owner) -> io::Result<()> {
    use rustix::thread::{
        capabilities, clear_ambient_capability_set, set_capabilities, set_no_new_privs,
    };
    let wanted = match owner {
        Owner::Administrator => KEPT,
        Owner::User => CapabilitySet::empty(),
    };
    let drop = || -> Result<(), rustix::io::Errno> {
        set_no_new_privs(true)?;
        clear_ambient_capability_set()?;
        let kept = capabilities(None)?.permitted & wanted;
        let inheritable = CapabilitySet::empty();
        set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable })
    };
    drop().map_err(|err| named("giving up capabilities", err))
}

/// The version whose rights are asked for where the kernel has them.
const NEWEST: ABI = ABI::V9;

/// Devices that are written to without harm.
const DEVICES: [&str; 8] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
];

pub(super) fn restrict(plan: &Confine) -> io::Result<()> {
    let status =
        landlock(plan).map_err(|err| named("setting up Landlock", io::Error::other(err)))?;
    match status {
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
        RulesetStatus::NotEnforced => Err(io::Error::other("the kernel has no Landlock")),
    }
}

fn landlock(plan: &Confine) -> Result<RulesetStatus, Box<dyn std::error::Error + Send + Sync>> {
    // Terminals are steered by such calls, and those that do harm need a capability.
    let writing = AccessFs::from_write(NEWEST) & !BitFlags::from(AccessFs::IoctlDev);
    let shared = PathBuf::from("/dev/shm");
    let mut rules =
        Ruleset::default().handle_access(writing)?.scope(Scope::from_all(NEWEST))?.create()?;
    for folder in plan.writable.iter().chain(shared.is_dir().then_some(&shared)) {
        rules = rules.add_rule(PathBeneath::new(PathFd::new(folder)?, writing))?;
    }
    for device in DEVICES.iter().filter(|device| Path::new(device).exists()) {
        let rights = AccessFs::WriteFile | AccessFs::Truncate;
        rules = rules.add_rule(PathBeneath::new(PathFd::new(device)?, rights))?;
    }
    Ok(rules.restrict_self()?.ruleset)
}
