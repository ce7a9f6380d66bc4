//! Drops capabilities and applies Landlock.

use std::io;
use std::path::{Path, PathBuf};

use helve_core::process::{SandboxLimits, SandboxPlan};
use landlock::{
    ABI, Access, AccessFs, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetStatus, Scope,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::devices::{HARMLESS_DEVICES, SHARED_MEMORY, TERMINALS};
use super::mounts::NamespaceOwner;
use super::with_context;

/// The capabilities that root keeps. Most of them are kept for access to files of other users, because people who work
/// as root also work in folders of other users.
const KEPT_BY_ROOT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::KILL);

/// Whose capabilities are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeptCapabilities {
    OfProgram,
    /// The broker also reads paths from the memory of processes, even if they do not allow it.
    OfBroker,
}

/// Drops capabilities permanently: setuid programs and file capabilities no longer grant any.
pub(super) fn drop_capabilities(owner: NamespaceOwner, kept: KeptCapabilities) -> io::Result<()> {
    use rustix::thread::{
        capabilities, clear_ambient_capability_set, set_capabilities, set_no_new_privs,
    };
    let allowed = match owner {
        NamespaceOwner::Root => KEPT_BY_ROOT,
        NamespaceOwner::UserNamespace => CapabilitySet::empty(),
    };
    let allowed = match kept {
        KeptCapabilities::OfProgram => allowed,
        KeptCapabilities::OfBroker => allowed | CapabilitySet::SYS_PTRACE,
    };
    let drop_all = || -> Result<(), rustix::io::Errno> {
        set_no_new_privs(true)?;
        clear_ambient_capability_set()?;
        let kept = capabilities(None)?.permitted & allowed;
        let inheritable = CapabilitySet::empty();
        set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable })
    };
    drop_all().map_err(|err| with_context("dropping capabilities", err))
}

/// Sets the limits of each process. Limits that are already stricter are kept.
pub(super) fn limit(limits: SandboxLimits) -> io::Result<()> {
    let SandboxLimits { memory, processes, file_size } = limits;
    for (resource, limit) in
        [(Resource::Data, memory), (Resource::Nproc, processes), (Resource::Fsize, file_size)]
    {
        let Some(limit) = limit else { continue };
        let maximum = getrlimit(resource).maximum.map_or(limit, |maximum| maximum.min(limit));
        let new = Rlimit { current: Some(maximum), maximum: Some(maximum) };
        setrlimit(resource, new).map_err(|err| with_context("setting limits", err))?;
    }
    Ok(())
}

/// The Landlock version whose rights are requested, as far as the kernel supports them.
const LANDLOCK_ABI: ABI = ABI::V9;

pub(super) fn restrict(plan: &SandboxPlan) -> io::Result<()> {
    let status =
        landlock(plan).map_err(|err| with_context("setting up Landlock", io::Error::other(err)))?;
    match status {
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
        RulesetStatus::NotEnforced => Err(io::Error::other("the kernel does not support Landlock")),
    }
}

/// Keeps this process and its children from signalling and tracing the broker, by moving them into an inner Landlock
/// domain.
pub(super) fn separate_from_broker() -> io::Result<()> {
    let separate = || -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        // The ruleset handles no access to files, because it would deny all access that it does not allow explicitly.
        let rules = Ruleset::default().scope(Scope::from_all(LANDLOCK_ABI))?;
        rules.create()?.restrict_self()?;
        Ok(())
    };
    separate().map_err(|err| with_context("setting up Landlock", io::Error::other(err)))
}

fn landlock(plan: &SandboxPlan) -> Result<RulesetStatus, Box<dyn std::error::Error + Send + Sync>> {
    // `ioctl` on devices stays allowed: terminals need it, and its harmful requests need a capability. Truncating files
    // is prevented by read-only mounts alone: Landlock would check every file that is opened for reading, with all
    // folders around it, because it may be truncated later.
    let write_access =
        AccessFs::from_write(LANDLOCK_ABI) & !(AccessFs::IoctlDev | AccessFs::Truncate);
    let mut rules = Ruleset::default()
        .handle_access(write_access)?
        .scope(Scope::from_all(LANDLOCK_ABI))?
        .create()?;
    let copied = plan.copied.iter().map(|copied| copied.folder.as_path());
    let copied = copied.filter(|folder| folder.is_dir());
    let writable = plan.writable.iter().map(PathBuf::as_path).chain(copied);
    for folder in writable.chain([Path::new(SHARED_MEMORY)]) {
        rules = rules.add_rule(PathBeneath::new(PathFd::new(folder)?, write_access))?;
    }
    let devices = HARMLESS_DEVICES.iter().chain(&[TERMINALS]);
    for device in devices.filter(|device| Path::new(device).exists()) {
        rules = rules.add_rule(PathBeneath::new(PathFd::new(device)?, AccessFs::WriteFile))?;
    }
    Ok(rules.restrict_self()?.ruleset)
}
