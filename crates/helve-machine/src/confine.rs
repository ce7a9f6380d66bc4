//! Sandboxes a process: restricts what it may write, connect to and interfere with.
//!
//! Three mechanisms are combined, because each has gaps:
//! - Private namespaces. In that of mounts, everything is read-only except the writable folders. Protected paths inside
//!   these are read-only mounts again, and hidden paths are covered. `/dev` has only harmless devices, and terminals and
//!   shared memory of its own. This also prevents `chmod` and `utime`, which Landlock does not. Memory that
//!   processes share by System V IPC and, where possible, process ids are private too.
//! - Landlock prevents writing to devices, tracing or signalling processes outside the sandbox, and connecting to
//!   abstract sockets.
//! - seccomp prevents network sockets, and the system calls that could undo the other two mechanisms.
//!
//! An unprivileged user gets the mount namespace through a user namespace. If any of the three is unavailable, nothing
//! is confined and the reason is reported.

#![expect(
    clippy::disallowed_methods,
    reason = "a process changes its own view of the file system before it executes a program"
)]

#[cfg(target_os = "linux")]
mod devices;
#[cfg(target_os = "linux")]
mod filter;
#[cfg(target_os = "linux")]
mod listener;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(target_os = "linux")]
mod pids;
#[cfg(target_os = "linux")]
mod placeholders;
#[cfg(target_os = "linux")]
mod probe;
#[cfg(target_os = "linux")]
mod rights;
#[cfg(target_os = "linux")]
mod syscalls;

#[cfg(target_os = "linux")]
pub use listener::DenialListener;
#[cfg(target_os = "linux")]
pub use pids::SANDBOX_HELPER;
#[cfg(target_os = "linux")]
pub use placeholders::{Placeholders, create_placeholders};
#[cfg(target_os = "linux")]
pub use probe::probe;

use std::io;

use helve_core::process::SandboxPlan;

/// Whether denied system calls of a confined process are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DenialReports {
    Off,
    /// Through the listener that [`EnteredNamespaces::restrict`] returns. Each reported call blocks until the listener answers it; once the
    /// listener is dropped, such calls fail.
    Listener,
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
/// Call it in a single-threaded process, after setting the current folder. Missing `protected` paths need placeholders
/// ([`create_placeholders`]). After an error the process may be partially confined and must exit.
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
    /// With an own PID namespace, continues in a new process, whose end this process only waits for. Fails if the system
    /// does not allow a `/proc` for the namespace; then [`PidNamespace::Shared`] may work.
    pub fn enter_pid_namespace(&self) -> io::Result<()> {
        match self.pids {
            PidNamespace::Own => pids::continue_inside(),
            PidNamespace::Shared => Ok(()),
        }
    }

    /// Restricts this process and its future children permanently. Returns the listener for denied calls, if requested;
    /// `None` if another listener exists already. Execute the program after this.
    pub fn restrict(
        self,
        plan: &SandboxPlan,
        reports: DenialReports,
    ) -> io::Result<Option<DenialListener>> {
        let folder = &self.folder;
        // The process is still in the folder of the old mount. Enter the folder again to reach the new mount.
        std::env::set_current_dir(folder)
            .map_err(|err| with_context(&format!("returning to {}", folder.display()), err))?;
        rights::drop_capabilities(self.owner)?;
        rights::restrict(plan)?;
        filter::install(plan.network, self.pids, reports)
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
    DenialListener, EnteredNamespaces, Placeholders, SANDBOX_HELPER, create_placeholders,
    enter_namespaces, probe,
};
