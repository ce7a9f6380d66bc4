//! Moves a process into a PID namespace, in which it cannot name the processes outside.
//!
//! The first process of a PID namespace has unusual rules about signals, so the program is not the first but the second
//! one:
//!
//! ```text
//! relay     in the old namespace; ends as soon as the program ends, and in the same way
//!  init     the first process of the namespace; reaps orphans, and ends when none is left
//!   program
//! ```

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::mount::{MountFlags, mount};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, WaitOptions, set_parent_process_death_signal};

use super::{syscalls, with_context};

/// Process name of the relay and of init.
pub const SANDBOX_HELPER: &CStr = c"helve-sandbox";

/// Continues in a new process, which is the second one of the PID namespace that this process has created for its
/// children. This process only waits for it.
pub(super) fn continue_inside() -> io::Result<()> {
    let (status, reporter) = pipe_with(PipeFlags::CLOEXEC)?;
    if syscalls::fork().map_err(|err| with_context("starting a process", err))?.is_some() {
        drop(reporter);
        relay(&status)
    }
    drop(status);
    // Init ends with the relay, until the program has ended.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC | MountFlags::RDONLY;
    mount("proc", "/proc", "proc", flags, None)
        .map_err(|err| with_context("mounting /proc", err))?;
    match syscalls::fork().map_err(|err| with_context("starting a process", err))? {
        Some(program) => init(program, reporter),
        None => Ok(()),
    }
}

/// Waits for the end of the program and ends in the same way.
fn relay(status: &OwnedFd) -> ! {
    prepare_helper(status);
    // When the process that watches over the program is killed, so is the program.
    set_parent_process_death_signal(Some(Signal::KILL)).unwrap_or_default();
    let mut bytes = [0; 4];
    loop {
        match rustix::io::read(status, &mut bytes) {
            Ok(4) => syscalls::exit_like(i32::from_ne_bytes(bytes)),
            Err(rustix::io::Errno::INTR) => {}
            // Init was killed, and every process of the namespace with it.
            Ok(_) | Err(_) => syscalls::exit_like(Signal::KILL.as_raw()),
        }
    }
}

/// Reaps the processes of the namespace until there are none.
fn init(program: Pid, reporter: OwnedFd) -> ! {
    prepare_helper(&reporter);
    let mut reporter = Some(reporter);
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == program => {
                set_parent_process_death_signal(None).unwrap_or_default();
                if let Some(reporter) = reporter.take() {
                    rustix::io::write(&reporter, &status.as_raw().to_ne_bytes())
                        .unwrap_or_default();
                }
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => syscalls::exit(0),
        }
    }
}

/// Gives up everything that only the program needs. In particular its output must end with its processes.
fn prepare_helper(kept: &OwnedFd) {
    syscalls::block_signals();
    syscalls::close_others(kept.as_fd());
    rustix::thread::set_name(SANDBOX_HELPER).unwrap_or_default();
}
