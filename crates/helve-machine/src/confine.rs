//! Sandboxes a process: restricts what it may write, connect to and interfere with.
//!
//! Three mechanisms are combined, because each has gaps:
//! - Private namespaces. In the mount namespace, everything is read-only except the writable folders. Protected paths
//!   inside these are mounted read-only, and hidden paths are covered by empty mounts. `/dev` has only harmless
//!   devices, and its own terminals and shared memory. Read-only mounts also prevent `chmod` and `utime`, which
//!   Landlock does not. System V IPC and, where possible, process ids have private namespaces too.
//! - Landlock prevents writing to devices, tracing or signalling processes outside the sandbox, and connecting to
//!   abstract sockets.
//! - seccomp prevents network sockets, and the system calls that could undo the other two mechanisms. Calls that create
//!   or write files are made by another process, the broker, which refuses names like `.git` at any depth.
//!
//! An unprivileged user gets the mount namespace through a user namespace. If any of the three is unavailable, nothing
//! is confined and the reason is reported.

#![expect(
    clippy::disallowed_methods,
    reason = "a process changes its own view of the file system before it executes a program"
)]

#[cfg(target_os = "linux")]
mod broker;
#[cfg(target_os = "linux")]
mod devices;
#[cfg(target_os = "linux")]
mod filter;
#[cfg(target_os = "linux")]
mod helpers;
#[cfg(target_os = "linux")]
mod listener;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(target_os = "linux")]
mod placeholders;
#[cfg(target_os = "linux")]
mod probe;
#[cfg(target_os = "linux")]
mod rights;
#[cfg(target_os = "linux")]
mod syscalls;

#[cfg(target_os = "linux")]
pub use helpers::SANDBOX_HELPER;
#[cfg(target_os = "linux")]
pub use listener::DenialListener;
#[cfg(target_os = "linux")]
pub use placeholders::{Placeholders, create_placeholders, plan_without_watch};
#[cfg(target_os = "linux")]
pub use probe::probe;

use std::io;

use helve_core::process::SandboxPlan;

/// Which system calls of a confined process are watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallWatch {
    /// Denied calls, and calls that change files. The broker makes the latter, and refuses protected names.
    Files,
    /// Denied calls, if the system can report them.
    Denials,
    /// No calls. Use this only with a plan from [`plan_without_watch`]: otherwise the program could create protected
    /// paths that do not exist yet.
    Off,
}

impl CallWatch {
    /// Returns what a plan needs.
    pub fn for_plan(plan: &SandboxPlan) -> CallWatch {
        match plan.guarded.is_empty() && plan.protected.is_empty() {
            true => CallWatch::Denials,
            false => CallWatch::Files,
        }
    }
}

/// Which processes a confined process can refer to by id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PidNamespace {
    /// Only those of its own sandbox.
    Own,
    /// All processes. Even so, it cannot signal, trace or change those outside its sandbox.
    Shared,
}

/// A process that has entered the namespaces of a plan, and has no other restrictions yet.
#[cfg(target_os = "linux")]
pub struct EnteredNamespaces {
    owner: mounts::NamespaceOwner,
    pids: PidNamespace,
    folder: std::path::PathBuf,
}

/// Moves this process into private namespaces with the mounts of a plan.
///
/// Call it in a single-threaded process, after setting the current folder. After an error the process may be partially
/// confined and must exit.
#[cfg(target_os = "linux")]
pub fn enter_namespaces(plan: &SandboxPlan, pids: PidNamespace) -> io::Result<EnteredNamespaces> {
    let folder =
        std::env::current_dir().map_err(|err| with_context("finding the current folder", err))?;
    let owner = mounts::enter_private_namespaces(pids)?;
    mounts::build(plan)?;
    Ok(EnteredNamespaces { owner, pids, folder })
}

#[cfg(target_os = "linux")]
impl EnteredNamespaces {
    /// Returns in a new process, a grandchild of this one. The process between them becomes the broker, and this
    /// process only waits for the new one to end. Fails if the system does not allow a `/proc` for a PID namespace;
    /// then [`PidNamespace::Shared`] may work.
    pub fn fork_with_helpers(self, plan: &SandboxPlan) -> io::Result<BrokeredProcess> {
        let link = helpers::continue_inside(self.pids, self.owner, plan)?;
        Ok(BrokeredProcess { entered: self, link })
    }
}

/// A process for which a broker can make the calls that change files.
#[cfg(target_os = "linux")]
pub struct BrokeredProcess {
    entered: EnteredNamespaces,
    link: helpers::BrokerLink,
}

/// The result of [`BrokeredProcess::restrict`].
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub enum Restricted {
    /// Calls are watched, and denials reported.
    Watched(DenialListener),
    /// The process is restricted, but calls are not watched.
    Unwatched,
}

#[cfg(target_os = "linux")]
impl BrokeredProcess {
    /// Restricts this process and its future children permanently. Execute the program after this, unless the result is
    /// [`Restricted::Unwatched`] and the plan needs [`CallWatch::Files`].
    pub fn restrict(self, plan: &SandboxPlan, watch: CallWatch) -> io::Result<Restricted> {
        let EnteredNamespaces { owner, pids, folder } = &self.entered;
        // The process is still in the folder of the old mount. Enter the folder again to reach the new mount.
        std::env::set_current_dir(folder)
            .map_err(|err| with_context(&format!("returning to {}", folder.display()), err))?;
        devices::reopen_null_handles()?;
        rights::drop_capabilities(*owner, rights::KeptCapabilities::OfProgram)?;
        rights::separate_from_broker()?;
        rights::limit(plan.limits)?;
        match filter::install(plan.network, *pids, watch)? {
            Some(listener) => Ok(Restricted::Watched(self.link.hand_over(&listener)?)),
            None => Ok(Restricted::Unwatched),
        }
    }
}

/// Prefixes an error with what was being done.
#[cfg(target_os = "linux")]
fn with_context(what: &str, err: impl Into<io::Error>) -> io::Error {
    let err = err.into();
    io::Error::new(err.kind(), format!("{what}: {err}"))
}

#[cfg(not(target_os = "linux"))]
mod unsupported;
#[cfg(not(target_os = "linux"))]
pub use unsupported::{
    BrokeredProcess, DenialListener, EnteredNamespaces, Placeholders, Restricted, SANDBOX_HELPER,
    create_placeholders, enter_namespaces, plan_without_watch, probe,
};
