//! The keeper: a single-threaded process that forks wardens and ends what they leave behind.
//!
//! Helve starts it before the first program. A warden is the subreaper of one program at a time: every
//! descendant of the program stays beneath it, even if it leaves its process group or session. Helve talks
//! to wardens directly; when Helve exits or is killed, each warden ends its tree. If a program kills its
//! warden, the keeper inherits the tree and ends it.

mod child;
mod process_limit;
mod warden;

use std::collections::HashSet;
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Pid, WaitOptions};

pub(super) use process_limit::{
    end_orphans, memory_support as memory_limit_support, support as process_limit_support,
};

use process_limit::ProcessLimit;
use warden::Warden;

use super::detached::{self, DETACHED};
use super::sys::{self, ForkResult};
use super::{tree, wire};
use crate::confine::DenialListener;

/// How long wardens may take to end their trees after Helve is gone.
const WARDENS_TIMEOUT: Duration = Duration::from_secs(3);

/// Runs a keeper until it ends. Call it first thing in `main`.
pub fn main() -> ExitCode {
    match run_until_end() {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// Runs a keeper and returns the exit code of the process.
pub(super) fn run_until_end() -> i32 {
    // Nobody reads an error message; Helve notices that the socket is closed.
    i32::from(run().is_err())
}

/// Returns once in each of these processes: this one (the launcher), the keeper that it forks, and each warden that the
/// keeper forks.
fn run() -> Result<(), Errno> {
    if !tree::is_single_threaded() {
        return Err(Errno::NOTSUP);
    }
    sys::close_inherited();
    // Helve may have been started with SIGCHLD ignored; ends of children would not be reported.
    sys::default_signals();
    let helve_socket = take_standard_input()?;
    // Helve waits for the launcher only, so the keeper does not become a zombie of Helve.
    match sys::fork()? {
        ForkResult::Parent(_) => return Ok(()),
        ForkResult::Child => {}
    }
    rustix::process::setsid()?;
    rustix::process::chdir("/")?;
    if std::env::args_os().any(|argument| argument == DETACHED) {
        return detached::run(helve_socket);
    }
    rustix::thread::set_name(tree::KEEPER)?;
    let limit = ProcessLimit::set();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    sys::block_signals()?;
    Keeper { helve_socket, signals: sys::open_signal_handle()?, wardens: HashSet::new(), limit }
        .serve()
}

/// Takes over standard input and replaces it with `/dev/null`.
fn take_standard_input() -> Result<OwnedFd, Errno> {
    let input = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let null = rustix::fs::open("/dev/null", flags, Mode::empty())?;
    rustix::stdio::dup2_stdin(&null)?;
    Ok(input)
}

struct Keeper {
    helve_socket: OwnedFd,
    signals: OwnedFd,
    wardens: HashSet<Pid>,
    limit: ProcessLimit,
}

impl Keeper {
    fn serve(mut self) -> Result<(), Errno> {
        loop {
            let events = wait(&self.helve_socket, &self.signals, None)?;
            if events.signalled {
                let signals = sys::drain_signals(&self.signals);
                self.reap();
                if signals.asked_to_end {
                    return self.end();
                }
            }
            if events.readable {
                let mut byte = [0];
                match rustix::io::read(&self.helve_socket, &mut byte) {
                    Ok(1) if byte == [wire::REQUEST_WARDEN] => {}
                    Err(Errno::INTR | Errno::AGAIN) => continue,
                    // Helve is gone.
                    Ok(_) | Err(_) => return self.end(),
                }
                match self.fork_warden() {
                    Ok(ForkSide::Warden(socket)) => {
                        // The warden must not hold the keeper's socket, or Helve would not notice the keeper's end.
                        drop(self);
                        return Warden::new(socket)?.serve();
                    }
                    Ok(ForkSide::Keeper) => {}
                    Err(error) => self.answer(-error.raw_os_error(), &[])?,
                }
            }
        }
    }

    fn fork_warden(&mut self) -> Result<ForkSide, Errno> {
        let (helve_end, warden_end) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        match sys::fork()? {
            ForkResult::Child => Ok(ForkSide::Warden(warden_end)),
            ForkResult::Parent(pid) => {
                self.wardens.insert(pid);
                self.answer(pid.as_raw_nonzero().get(), &[helve_end.as_fd()])?;
                Ok(ForkSide::Keeper)
            }
        }
    }

    fn answer(&self, number: i32, handles: &[std::os::fd::BorrowedFd<'_>]) -> Result<(), Errno> {
        match wire::send(&self.helve_socket, &number.to_le_bytes(), handles) {
            // Helve has just gone; the next poll notices that.
            Ok(_) | Err(Errno::PIPE | Errno::CONNRESET) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Reaps wardens that ended, and kills the processes that a killed warden left behind.
    fn reap(&mut self) {
        let mut was_killed = false;
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
            was_killed |= self.wardens.remove(&pid) && status.exit_status() != Some(0);
        }
        if was_killed {
            tree::kill_children(|pid| self.wardens.contains(&pid));
        }
    }

    /// Waits for the wardens, which also notice that Helve is gone and end their trees. The rest is ended here.
    fn end(mut self) -> Result<(), Errno> {
        let began = Instant::now();
        loop {
            self.reap();
            let remaining = WARDENS_TIMEOUT.saturating_sub(began.elapsed());
            if self.wardens.is_empty() || remaining.is_zero() {
                break;
            }
            wait_for_signal(&self.signals, remaining)?;
            sys::drain_signals(&self.signals);
        }
        tree::kill_children(|_| false);
        self.limit.kill_members();
        self.limit.remove();
        Ok(())
    }
}

/// Which process this is after forking a warden.
enum ForkSide {
    Keeper,
    /// The warden, with its socket to Helve.
    Warden(OwnedFd),
}

/// Which handles are ready.
#[derive(Clone, Copy, Debug)]
struct PollEvents {
    readable: bool,
    signalled: bool,
    /// The events of the listener for denied calls; empty without one.
    listener: PollFlags,
}

fn wait(
    helve: &OwnedFd,
    signals: &OwnedFd,
    listener: Option<&DenialListener>,
) -> Result<PollEvents, Errno> {
    let mut all = vec![
        PollFd::new(helve, PollFlags::IN | PollFlags::RDHUP),
        PollFd::new(signals, PollFlags::IN),
    ];
    all.extend(listener.map(|listener| PollFd::new(listener, PollFlags::IN)));
    match poll(&mut all, None) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error),
    }
    let events_at = |at: usize| all.get(at).map_or(PollFlags::empty(), PollFd::revents);
    Ok(PollEvents {
        readable: !events_at(0).is_empty(),
        signalled: !events_at(1).is_empty(),
        listener: events_at(2),
    })
}

fn wait_for_signal(signals: &OwnedFd, timeout: Duration) -> Result<(), Errno> {
    let mut polled = [PollFd::new(signals, PollFlags::IN)];
    let timeout = Timespec::try_from(timeout).ok();
    match poll(&mut polled, timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error),
    }
}
