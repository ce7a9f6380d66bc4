//! Sandboxes a process: restricts what it may write, connect to and interfere with.
//!
//! Three mechanisms are combined, because each has gaps:
//! - A private mount namespace makes everything read-only except the writable folders. Protected paths inside these are
//!   read-only mounts again. This also prevents `chmod` and `utime`, which Landlock does not, but not writing to devices.
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
mod filter;
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
pub use listener::DenialListener;
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
    /// Through the listener that [`apply`] returns. Each reported call blocks until the listener answers it; once the
    /// listener is dropped, such calls fail.
    Listener,
}

/// Confines this process and its future children permanently. Returns the listener for denied calls, if requested;
/// `None` if another listener exists already.
///
/// Call it in a single-threaded process, after setting the current folder and before executing the program. Missing
/// `protected` paths need placeholders ([`create_placeholders`]). After an error the process may be partially confined
/// and must exit.
#[cfg(target_os = "linux")]
pub fn apply(plan: &SandboxPlan, reports: DenialReports) -> io::Result<Option<DenialListener>> {
    let folder =
        std::env::current_dir().map_err(|err| with_context("finding the current folder", err))?;
    let namespace_owner = mounts::enter_private_namespace()?;
    mounts::build(plan)?;
    // The process is still in the folder of the old mount. Enter the folder again to reach the new mount.
    std::env::set_current_dir(&folder)
        .map_err(|err| with_context(&format!("returning to {}", folder.display()), err))?;
    rights::drop_capabilities(namespace_owner)?;
    rights::restrict(plan)?;
    filter::install(plan.network, reports)
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
pub use unsupported::{DenialListener, Placeholders, apply, create_placeholders, probe};
