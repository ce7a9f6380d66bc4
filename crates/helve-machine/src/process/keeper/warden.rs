//! A warden: the subreaper of one program at a time, which tells Helve how it ends and ends it with Helve.

use std::os::fd::OwnedFd;
use std::time::Duration;

use helve_core::process::{State, Withheld};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getppid};

use super::sprout::{self, Started};
use super::{wait, wait_for_signal};
use crate::confine::{self, DenialListener, Placeholders};
use crate::process::sys;
use crate::process::tree::{self, Left};
use crate::process::wire::{self, Answer, Failure, MOST_ORDER, Order, Step, Word};

pub(super) struct Warden {
    helve: OwnedFd,
    signals: OwnedFd,
    keeper: Option<Pid>,
}

/// How long a Helve that was killed may take until all that it held is let go.
const GONE: Duration = Duration::from_secs(1);

/// Whether it can watch over another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Order,
    Leave,
}

impl Warden {
    /// Makes a warden of this process.
    pub(super) fn new(helve: OwnedFd) -> Result<Self, Errno> {
        rustix::thread::set_name(tree::WARDEN)?;
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        sys::default_signals();
        Ok(Warden { helve, signals: sys::signals()?, keeper: getppid() })
    }

    /// Returns when nothing lives that it watched over, and Helve wants no more of it.
    pub(super) fn serve(&self) -> Result<(), Errno> {
        while let Some((order, output)) = self.order()? {
            let started = start(&order, &output);
            // Nobody but the program may hold what it writes to.
            drop((order, output));
            self.say(&Answer::encode(started.as_ref().map(|(started, _)| started.pid)));
            if let Ok((started, held)) = started
                && Watching::new(self, started, held).watch()? == Next::Leave
            {
                break;
            }
        }
        Ok(())
    }

    /// What is to be executed, and the handle that its output goes to. Nothing where Helve is gone.
    fn order(&self) -> Result<Option<(Order, OwnedFd)>, Errno> {
        loop {
            let news = wait(&self.helve, &self.signals, None)?;
            if news.signalled && sys::told(&self.signals).asked_to_end {
                return Ok(None);
            }
            if news.readable {
                // What it would leave behind if it were killed, only its keeper can end.
                if self.is_alone() {
                    return Ok(None);
                }
                let order = receive(&self.helve);
                if let Err(error) = &order {
                    self.say(&Answer::encode(Err(&Failure::of(Step::Order, *error))));
                }
                return order;
            }
        }
    }

    fn is_alone(&self) -> bool {
        getppid() != self.keeper
    }

    /// Whether Helve is gone, and not only wants the program to end.
    fn is_left(&self) -> bool {
        let mut helve = [PollFd::new(&self.helve, PollFlags::empty())];
        let looked = poll(&mut helve, Some(&Timespec::default()));
        looked.is_ok() && helve[0].revents().contains(PollFlags::HUP)
    }

    fn say(&self, bytes: &[u8]) {
        // Nobody may be there to hear it; there is room for these few bytes.
        wire::send(&self.helve, bytes, &[]).ok();
    }
}

/// Starts a program, and holds what its confinement needs: Helve does, too, but may be killed.
fn start(order: &Order, output: &OwnedFd) -> Result<(Started, Placeholders), Failure> {
    let held = order.confine.as_ref().map(confine::create_placeholders).transpose();
    let held = held.map_err(|error| Failure::not_confined(&error))?;
    Ok((sprout::start(order, output)?, held.unwrap_or_default()))
}

fn receive(helve: &OwnedFd) -> Result<Option<(Order, OwnedFd)>, Errno> {
    let mut handles = Vec::new();
    let mut bytes = vec![0; 4];
    let mut filled = 0;
    while filled < bytes.len() {
        match wire::receive(helve, &mut bytes[filled..], &mut handles) {
            Ok(0) => return Ok(None),
            Ok(count) => filled += count,
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error),
        }
        if filled == 4 && bytes.len() == 4 {
            let length = [bytes[0], bytes[1], bytes[2], bytes[3]];
            let length = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
            if length > MOST_ORDER {
                return Err(Errno::TOOBIG);
            }
            bytes.resize(4 + length, 0);
        }
    }
    let order = Order::decode(&bytes[4..]).ok_or(Errno::BADMSG)?;
    Ok(Some((order, handles.pop().ok_or(Errno::BADMSG)?)))
}

struct Watching<'a> {
    warden: &'a Warden,
    shell: Pid,
    held: Placeholders,
    /// Until nothing lives that it hears of.
    listener: Option<DenialListener>,
    /// What the program was told that it does not get.
    withheld: Vec<Withheld>,
    /// What is to be said, so that it goes in one piece.
    said: Vec<u8>,
}

impl<'a> Watching<'a> {
    fn new(warden: &'a Warden, started: Started, held: Placeholders) -> Self {
        let Started { pid: shell, listener } = started;
        Watching { warden, shell, held, listener, withheld: Vec::new(), said: Vec::new() }
    }

    fn watch(mut self) -> Result<Next, Errno> {
        let Warden { helve, signals, .. } = self.warden;
        loop {
            let news = wait(helve, signals, self.listener.as_ref())?;
            self.hear(news.listener);
            let told = if news.signalled { sys::told(signals) } else { sys::Told::default() };
            if news.signalled && self.reap() == Left::None {
                self.all_ended(0);
                let leaves = told.asked_to_end || self.warden.is_alone();
                return Ok(if leaves { Next::Leave } else { Next::Order });
            }
            // Helve says nothing while a program runs: what comes is that it closed its side.
            if news.readable || told.asked_to_end {
                if let Some(keeper) = getppid() {
                    // What it watches over may have stopped it, and then it would stay for ever.
                    rustix::process::kill_process(keeper, Signal::CONT).ok();
                }
                let me = rustix::process::getpid();
                let ended = tree::end(me, |most| self.reap_within(most));
                self.all_ended(ended);
                return Ok(Next::Leave);
            }
            self.say();
        }
    }

    /// Takes note of what is refused, which waits for this.
    fn hear(&mut self, came: PollFlags) {
        let Some(listener) = self.listener.take_if(|_| !came.is_empty()) else { return };
        if !came.contains(PollFlags::IN) {
            return;
        }
        // Where even this fails, all that it would have told of fails from now on.
        let Ok(refused) = listener.deny_next() else { return };
        self.listener = Some(listener);
        if let Some(what) = refused.filter(|it| !self.withheld.contains(it)) {
            self.withheld.push(what);
            self.said.extend(Word::Withheld(what).encode());
        }
    }

    fn reap_within(&mut self, most: Duration) -> Left {
        if self.reap() == Left::None {
            return Left::None;
        }
        // If even this fails, the next look is soon.
        if wait_for_signal(&self.warden.signals, most).is_ok() {
            sys::told(&self.warden.signals);
        }
        self.reap()
    }

    fn reap(&mut self) -> Left {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.shell => {
                    self.said.extend(Word::Ended(state(status)).encode());
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return Left::Some,
                Err(_) => return Left::None,
            }
        }
    }

    fn all_ended(&mut self, ended: usize) {
        // Before it is told, for then Helve lets go. One that is gone may take a moment to be gone in all.
        let patience = if self.warden.is_left() { GONE } else { Duration::ZERO };
        std::mem::take(&mut self.held).remove_within(patience);
        self.said.extend(Word::AllEnded(u32::try_from(ended).unwrap_or(u32::MAX)).encode());
        self.say();
    }

    fn say(&mut self) {
        if !self.said.is_empty() {
            self.warden.say(&self.said);
            self.said.clear();
        }
    }
}

fn state(status: WaitStatus) -> State {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => State::Exited(code),
        (None, Some(signal)) => State::Killed(signal),
        (None, None) => State::Lost,
    }
}
