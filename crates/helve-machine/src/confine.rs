//! Sandboxes a process: restricts what it may write, connect to and interfere with.
//!
//! Three mechanisms are combined, because each has gaps:
//! - Private namespaces. In that of mounts, everything is read-only except the writable folders. Protected paths inside
//!   these are read-only mounts again, and hidden paths are covered. `/dev` has only harmless devices, and terminals and
//!   shared memory of its own. This also prevents `chmod` and `utime`, which Landlock does not. Memory that
//!   processes share by System V IPC and, where possible, process ids are private too.
//! - Landlock prevents writing to devices, tracing or signalling processes outside the sandbox, and connecting to
//!   abstract sockets.
//! - seccomp prevents network sockets, and the system calls that could undo the other two mechanisms. Calls that create or
//!   write files are made by a broker, which refuses some names at any depth.
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
pub use placeholders::{Placeholders, create_placeholders, without_watch};
#[cfg(target_os = "linux")]
pub use probe::probe;

use std::io;

use helve_core::process::SandboxPlan;

/// Which system calls of a confined process are watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallWatch {
    /// Those that are denied, and those that change files: a broker makes them and refuses protected names.
    Files,
    /// Those that are denied, if the system can report them.
    Denials,
    /// None. The plan must be one of [`without_watch`], because missing names are not protected.
    Off,
}

impl CallWatch {
    /// What a plan needs.
    pub fn for_plan(plan: &SandboxPlan) -> CallWatch {
        match plan.guarded.is_empty() && plan.protected.is_empty() {
            true => CallWatch::Denials,
            false => CallWatch::Files,
        }
    }
}

/// Which processes a confined process can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PidNamespace {
    /// Only those of its own sandbox.
    Own,
    /// All. It cannot signal, trace or change others either way.
    Shared,
}

/// A process that has entered the namespaces of a plan, and is not restricted otherwise yet.
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
    /// Continues in a new process, whose end this process only waits for. Between the two is a third one, the broker. Fails
    /// if the system does not allow a `/proc` for a PID namespace; then [`PidNamespace::Shared`] may work.
    pub fn start_helpers(self, plan: &SandboxPlan) -> io::Result<HelpedProcess> {
        let link = helpers::continue_inside(self.pids, self.owner, plan)?;
        Ok(HelpedProcess { entered: self, link })
    }
}

/// A process with a broker.
#[cfg(target_os = "linux")]
pub struct HelpedProcess {
    entered: EnteredNamespaces,
    link: helpers::BrokerLink,
}

/// What [`HelpedProcess::restrict`] achieved.
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub enum Restricted {
    /// Calls are watched, and denials reported.
    Watched(DenialListener),
    /// The process is restricted, but calls are not watched.
    Unwatched,
}

#[cfg(target_os = "linux")]
impl HelpedProcess {
    /// Restricts this process and its future children permanently. Execute the program after this. If the calls that
    /// [`CallWatch::Files`] needs cannot be watched, the program must not be executed.
    pub fn restrict(self, plan: &SandboxPlan, watch: CallWatch) -> io::Result<Restricted> {
        let EnteredNamespaces { owner, pids, folder } = &self.entered;
        // The process is still in the folder of the old mount. Enter the folder again to reach the new mount.
        std::env::set_current_dir(folder)
            .map_err(|err| with_context(&format!("returning to {}", folder.display()), err))?;
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
    DenialListener, EnteredNamespaces, HelpedProcess, Placeholders, Restricted, SANDBOX_HELPER,
    create_placeholders, enter_namespaces, probe, without_watch,
};
