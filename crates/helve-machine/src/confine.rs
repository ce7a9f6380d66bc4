//! Keeping a program from writing, connecting and meddling where it must not.
//!
//! Three means together, because each leaves something open:
//! - a mount namespace of its own, in which everything is read-only but the writable folders, and the protected paths in
//!   those are read-only mounts again. It also stops `chmod` and `utime`, which Landlock does not. It says nothing about
//!   devices;
//! - Landlock, which stops writing to devices, tracing and signalling processes outside, and abstract sockets;
//! - seccomp, which stops sockets, and the calls with which the other two could be undone.
//!
//! An ordinary user gets the mount namespace through a user namespace. Where any of the three is not to be had, nothing is
//! confined and the reason is told.

#![expect(
    clippy::disallowed_methods,
    reason = "here a process changes what it sees of the files before it becomes a program"
)]

#[cfg(target_os = "linux")]
mod calls;
#[cfg(target_os = "linux")]
mod filter;
#[cfg(target_os = "linux")]
mod hold;
#[cfg(target_os = "linux")]
mod listener;
#[cfg(target_os = "linux")]
mod probe;
#[cfg(target_os = "linux")]
mod rights;
#[cfg(target_os = "linux")]
mod view;

#[cfg(target_os = "linux")]
pub use hold::{Held, hold};
#[cfg(target_os = "linux")]
pub use listener::Listener;
#[cfg(target_os = "linux")]
pub use probe::probe;

use std::io;

use helve_core::process::Confine;

/// Who is told of what a confined program asks for and does not get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Telling {
    Nobody,
    /// Whoever holds what [`apply`] answers with. The program waits until it is answered; when nobody holds it any more,
    /// all that would have been told fails.
    Listener,
}

/// Confines this process and all that it will start, for good. Answers with who is to be told, unless nobody is, or
/// somebody else is told already.
///
/// To be called in a process of one thread, before it becomes the program, with its folder set. What of `protected` is
/// not there must be held ([`hold`]). On an error the process may be half confined: it must end.
#[cfg(target_os = "linux")]
pub fn apply(plan: &Confine, telling: Telling) -> io::Result<Option<Listener>> {
    let folder = std::env::current_dir().map_err(|err| named("finding the current folder", err))?;
    let owner = view::enter()?;
    view::build(plan)?;
    // What was open is the folder as it was, before anything was mounted on it.
    std::env::set_current_dir(&folder)
        .map_err(|err| named(&format!("returning to {}", folder.display()), err))?;
    rights::drop_capabilities(owner)?;
    rights::restrict(plan)?;
    filter::install(plan.network, telling)
}

/// An error that says what was being done.
#[cfg(target_os = "linux")]
fn named(what: &str, err: impl Into<io::Error>) -> io::Error {
    let err = err.into();
    io::Error::new(err.kind(), format!("{what}: {err}"))
}

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(not(target_os = "linux"))]
pub use elsewhere::{Held, Listener, apply, hold, probe};
