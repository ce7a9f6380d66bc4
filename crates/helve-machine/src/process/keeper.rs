//! The keeper: a process of one thread that makes wardens, and ends what they leave behind.
//!
//! Helve starts it before the first program. Each warden is the subreaper of one program at a time:
//! whatever that starts stays beneath it, also what leaves its group or its parents. Helve talks to
//! wardens directly; when it is gone, whichever way, each warden ends its tree. Should a program kill
//! its warden, the keeper inherits the tree and ends it.

mod bound;
mod sprout;
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

pub(super) use bound::{end_lost, support as bounds_processes};

use bound::Bound;
use warden::Warden;

use super::detached::{self, DETACHED};
use super::sys::{self, Forked};
use super::{tree, wire};
use crate::confine::DenialListener;

/// How long wardens may take to end their trees when Helve is gone.
const PATIENCE: Duration = Duration::from_secs(3);

/// Runs a keeper to its end. To be called before anything else of the process has begun.
pub fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        // Nobody hears it: Helve sees that the socket is closed.
        Err(_) => ExitCode::FAILURE,
    }
}

/// Returns in every process that is made of this one: the launcher, the keeper, the wardens.
fn run() -> Result<(), Errno> {
    if !tree::is_single_threaded() {
        return Err(Errno::NOTSUP);
    }
    sys::close_inherited();
    // Whoever started Helve may have ignored some, and then nobody would hear of children that end.
    sys::default_signals();
    let helve = take_standard_input()?;
    // Helve waits for the launcher only, so the keeper is nobody's child to forget.
    match sys::fork()? {
        Forked::Parent(_) => return Ok(()),
        Forked::Child => {}
    }
    rustix::process::setsid()?;
    rustix::process::chdir("/")?;
    if std::env::args_os().any(|argument| argument == DETACHED) {
        return detached::run(helve);
    }
    rustix::thread::set_name(tree::KEEPER)?;
    let bound = Bound::set();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    sys::block_signals()?;
    Keeper { helve, signals: sys::signals()?, wardens: HashSet::new(), bound }.keep()
}

/// Leaves `/dev/null` in its place.
fn take_standard_input() -> Result<OwnedFd, Errno> {
    let taken = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let nothing = rustix::fs::open("/dev/null", flags, Mode::empty())?;
    rustix::stdio::dup2_stdin(&nothing)?;
    Ok(taken)
}

struct Keeper {
    helve: OwnedFd,
    signals: OwnedFd,
    wardens: HashSet<Pid>,
    bound: Bound,
}

impl Keeper {
    fn keep(mut self) -> Result<(), Errno> {
        loop {
            let news = wait(&self.helve, &self.signals, None)?;
            if news.signalled {
                let told = sys::told(&self.signals);
                self.reap();
                if told.asked_to_end {
                    return self.end();
                }
            }
            if news.readable {
                let mut byte = [0];
                match rustix::io::read(&self.helve, &mut byte) {
                    Ok(1) if byte == [wire::WANT_WARDEN] => {}
                    Err(Errno::INTR | Errno::AGAIN) => continue,
                    // Helve is gone.
                    Ok(_) | Err(_) => return self.end(),
                }
                match self.warden() {
                    Ok(Side::Warden(helve)) => {
                        // It holds nothing of the keeper, or Helve would not see that one is gone.
                        drop(self);
                        return Warden::new(helve)?.serve();
                    }
                    Ok(Side::Keeper) => {}
                    Err(error) => self.answer(-error.raw_os_error(), &[])?,
                }
            }
        }
    }

    fn warden(&mut self) -> Result<Side, Errno> {
        let (helve, warden) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        match sys::fork()? {
            Forked::Child => Ok(Side::Warden(warden)),
            Forked::Parent(pid) => {
                self.wardens.insert(pid);
                self.answer(pid.as_raw_nonzero().get(), &[helve.as_fd()])?;
                Ok(Side::Keeper)
            }
        }
    }

    fn answer(&self, number: i32, handles: &[std::os::fd::BorrowedFd<'_>]) -> Result<(), Errno> {
        match wire::send(&self.helve, &number.to_le_bytes(), handles) {
            // Helve went in this moment: the next look at the socket tells.
            Ok(_) | Err(Errno::PIPE | Errno::CONNRESET) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Takes note of wardens that ended, and ends what a killed one left behind.
    fn reap(&mut self) {
        let mut left_behind = false;
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
            left_behind |= self.wardens.remove(&pid) && status.exit_status() != Some(0);
        }
        if left_behind {
            tree::kill_children(|pid| self.wardens.contains(&pid));
        }
    }

    /// The wardens see that Helve is gone, too, and end their trees. What they leave is ended here.
    fn end(mut self) -> Result<(), Errno> {
        let began = Instant::now();
        loop {
            self.reap();
            let left = PATIENCE.saturating_sub(began.elapsed());
            if self.wardens.is_empty() || left.is_zero() {
                break;
            }
            wait_for_signal(&self.signals, left)?;
            sys::told(&self.signals);
        }
        tree::kill_children(|_| false);
        self.bound.empty();
        self.bound.lift();
        Ok(())
    }
}

/// Which process this is, once a warden has been made.
enum Side {
    Keeper,
    /// With its socket to Helve.
    Warden(OwnedFd),
}

/// What there is to look at.
#[derive(Clone, Copy, Debug)]
struct News {
    readable: bool,
    signalled: bool,
    /// What came of a listener, nothing where there is none.
    listener: PollFlags,
}

fn wait(
    helve: &OwnedFd,
    signals: &OwnedFd,
    listener: Option<&DenialListener>,
) -> Result<News, Errno> {
    let mut all = vec![
        PollFd::new(helve, PollFlags::IN | PollFlags::RDHUP),
        PollFd::new(signals, PollFlags::IN),
    ];
    all.extend(listener.map(|listener| PollFd::new(listener, PollFlags::IN)));
    match poll(&mut all, None) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error),
    }
    let came = |at: usize| all.get(at).map_or(PollFlags::empty(), PollFd::revents);
    Ok(News { readable: !came(0).is_empty(), signalled: !came(1).is_empty(), listener: came(2) })
}

fn wait_for_signal(signals: &OwnedFd, most: Duration) -> Result<(), Errno> {
    let mut one = [PollFd::new(signals, PollFlags::IN)];
    let most = Timespec::try_from(most).ok();
    match poll(&mut one, most.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error),
    }
}
