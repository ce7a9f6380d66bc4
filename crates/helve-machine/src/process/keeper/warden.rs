//! A warden: the subreaper of one program, which tells Helve how it ends and ends it with Helve.

use std::os::fd::OwnedFd;
use std::time::Duration;

use helve_core::process::State;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};

use super::{sprout, wait, wait_for_signal};
use crate::process::sys::{self, Forked};
use crate::process::tree::{self, Left};
use crate::process::wire::Word;

pub(super) struct Warden {
    pub(super) helve: OwnedFd,
    /// For the program-to-be.
    pub(super) program: OwnedFd,
}

impl Warden {
    /// Returns when nothing of the tree lives; in the program-to-be only where it did not become the program.
    pub(super) fn watch(self) -> Result<(), Errno> {
        rustix::thread::set_name(tree::WARDEN)?;
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        let Warden { helve, program } = self;
        let shell = match sys::fork()? {
            Forked::Child => {
                drop(helve);
                return sprout::become_program(&program);
            }
            Forked::Parent(pid) => pid,
        };
        drop(program);
        Watching { helve, signals: sys::signals()?, shell, said: Vec::new() }.watch()
    }
}

struct Watching {
    helve: OwnedFd,
    signals: OwnedFd,
    shell: Pid,
    /// What is to be said, so that it goes in one piece.
    said: Vec<u8>,
}

impl Watching {
    fn watch(mut self) -> Result<(), Errno> {
        loop {
            let news = wait(&self.helve, &self.signals, None)?;
            let told = if news.signalled { sys::told(&self.signals) } else { sys::Told::default() };
            if news.signalled && self.reap() == Left::None {
                return self.leave(0);
            }
            // Helve never says anything here: what comes is that it closed its side.
            if news.readable || told.asked_to_end {
                if let Some(keeper) = rustix::process::getppid() {
                    // What it watches over may have stopped it, and then it would stay for ever.
                    rustix::process::kill_process(keeper, Signal::CONT).ok();
                }
                let me = rustix::process::getpid();
                let ended = tree::end(me, |most| self.reap_within(most));
                return self.leave(ended);
            }
            self.say();
        }
    }

    fn reap_within(&mut self, most: Duration) -> Left {
        if self.reap() == Left::None {
            return Left::None;
        }
        // If even this fails, the next look is soon.
        if wait_for_signal(&self.signals, most).is_ok() {
            sys::told(&self.signals);
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

    fn leave(&mut self, ended: usize) -> Result<(), Errno> {
        self.said.extend(Word::AllEnded(u32::try_from(ended).unwrap_or(u32::MAX)).encode());
        self.say();
        Ok(())
    }

    fn say(&mut self) {
        // Nobody may be there to hear it; there is room for these few bytes.
        if !self.said.is_empty() {
            crate::process::wire::send(&self.helve, &self.said, &[]).ok();
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
