//! A warden watches one program at a time, as the subreaper of its processes. It reports to Helve how the program
//! ended, and ends the program when Helve is gone. The keeper forks the wardens.

use std::os::fd::OwnedFd;
use std::time::Duration;

use helve_core::process::{DeniedCall, ProcessState};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getppid};

use super::child::{self, StartedProgram};
use super::process_limit::CommandGroup;
use super::{wait, wait_for_signal};
use crate::confine::{DenialListener, Placeholders};
use crate::process::keeper_client::ProgramHandles;
use crate::process::sys;
use crate::process::tree::{self, RemainingProcesses};
use crate::process::wire::{
    self, MAX_REQUEST_BYTES, StartFailure, StartReply, StartRequest, StartStep, WardenEvent,
};

pub(super) struct Warden {
    helve: OwnedFd,
    signals: OwnedFd,
    keeper: Option<Pid>,
}

/// How long the kernel may take to release the locks of a killed Helve.
const LOCK_RELEASE_TIMEOUT: Duration = Duration::from_secs(1);

/// What a warden does after its program has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AfterProgram {
    Serve,
    Exit,
}

impl Warden {
    /// Turns this process into a warden.
    pub(super) fn new(helve: OwnedFd) -> Result<Self, Errno> {
        rustix::thread::set_name(tree::WARDEN)?;
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        sys::default_signals();
        Ok(Warden { helve, signals: sys::open_signal_handle()?, keeper: getppid() })
    }

    /// Runs programs until Helve closes the connection.
    pub(super) fn serve(&self) -> Result<(), Errno> {
        while let Some((request, handles)) = self.next_request()? {
            let started = child::start(&request, &handles);
            // Only the program may hold the pipes it reads from and writes to.
            drop((request, handles));
            self.send(&StartReply::encode(started.as_ref().map(|started| started.pid)));
            if let Ok(started) = started
                && Supervision::new(self, started).watch()? == AfterProgram::Exit
            {
                break;
            }
        }
        Ok(())
    }

    /// Waits for the next request and the handles of the program. `None` if Helve is gone.
    fn next_request(&self) -> Result<Option<(StartRequest, ProgramHandles)>, Errno> {
        loop {
            let events = wait(&self.helve, &self.signals, None)?;
            if events.signalled && sys::drain_signals(&self.signals).asked_to_end {
                return Ok(None);
            }
            if events.readable {
                // Without its keeper nobody would end the program if this warden were killed.
                if self.has_lost_keeper() {
                    return Ok(None);
                }
                let request = receive(&self.helve);
                if let Err(error) = &request {
                    self.send(&StartReply::encode(Err(&StartFailure::of(
                        StartStep::Request,
                        *error,
                    ))));
                }
                return request;
            }
        }
    }

    fn has_lost_keeper(&self) -> bool {
        getppid() != self.keeper
    }

    /// Whether Helve has exited. Otherwise it only asked to end the program.
    fn is_helve_gone(&self) -> bool {
        let mut helve = [PollFd::new(&self.helve, PollFlags::empty())];
        let polled = poll(&mut helve, Some(&Timespec::default()));
        polled.is_ok() && helve[0].revents().contains(PollFlags::HUP)
    }

    fn send(&self, bytes: &[u8]) {
        // Helve may be gone. There is always room for these few bytes.
        wire::send(&self.helve, bytes, &[]).ok();
    }
}

fn receive(helve: &OwnedFd) -> Result<Option<(StartRequest, ProgramHandles)>, Errno> {
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
            if length > MAX_REQUEST_BYTES {
                return Err(Errno::TOOBIG);
            }
            bytes.resize(4 + length, 0);
        }
    }
    let request = StartRequest::decode(&bytes[4..]).ok_or(Errno::BADMSG)?;
    Ok(Some((request, ProgramHandles::from_received(handles).ok_or(Errno::BADMSG)?)))
}

struct Supervision<'a> {
    warden: &'a Warden,
    program: Pid,
    /// Removed before the end is reported.
    placeholders: Placeholders,
    /// Dropped when no process can use it any more.
    listener: Option<DenialListener>,
    /// Removed when all processes have ended.
    group: Option<CommandGroup>,
    /// The kinds of denials reported so far.
    denied_calls: Vec<DeniedCall>,
    /// Events to send, collected into one message.
    pending: Vec<u8>,
}

impl<'a> Supervision<'a> {
    fn new(warden: &'a Warden, started: StartedProgram) -> Self {
        let StartedProgram { pid: program, listener, placeholders, group } = started;
        let unwatched = WardenEvent::CallDenied(DeniedCall::GitFolders).encode();
        Supervision {
            warden,
            program,
            listener,
            pending: if placeholders.is_some() { unwatched.to_vec() } else { Vec::new() },
            placeholders: placeholders.unwrap_or_default(),
            denied_calls: Vec::new(),
            group,
        }
    }

    fn watch(mut self) -> Result<AfterProgram, Errno> {
        let Warden { helve, signals, .. } = self.warden;
        loop {
            let events = wait(helve, signals, self.listener.as_ref())?;
            self.read_denied_call(events.listener);
            let received_signals = if events.signalled {
                sys::drain_signals(signals)
            } else {
                sys::SignalEvents::default()
            };
            if events.signalled && self.reap() == RemainingProcesses::None {
                self.report_all_ended(0);
                let must_exit = received_signals.asked_to_end || self.warden.has_lost_keeper();
                return Ok(if must_exit { AfterProgram::Exit } else { AfterProgram::Serve });
            }
            // Helve sends nothing while a program runs, so readable means that it closed its side.
            if events.readable || received_signals.asked_to_end {
                if let Some(keeper) = getppid() {
                    // The program may have stopped the keeper, which would then never end.
                    rustix::process::kill_process(keeper, Signal::CONT).ok();
                }
                let me = rustix::process::getpid();
                let ended = tree::end(me, |timeout| self.reap_within(timeout));
                self.report_all_ended(ended);
                return Ok(AfterProgram::Exit);
            }
            self.send();
        }
    }

    /// Records a denied call.
    fn read_denied_call(&mut self, listener_events: PollFlags) {
        let Some(listener) = self.listener.take_if(|_| !listener_events.is_empty()) else { return };
        // If this fails, or all processes have ended, nothing more is reported.
        let Ok(Some(denied)) = listener.next_denied() else { return };
        self.listener = Some(listener);
        if !self.denied_calls.contains(&denied) {
            self.denied_calls.push(denied);
            self.pending.extend(WardenEvent::CallDenied(denied).encode());
        }
    }

    fn reap_within(&mut self, timeout: Duration) -> RemainingProcesses {
        if self.reap() == RemainingProcesses::None {
            return RemainingProcesses::None;
        }
        // If this fails, reaping is simply tried again.
        if wait_for_signal(&self.warden.signals, timeout).is_ok() {
            sys::drain_signals(&self.warden.signals);
        }
        self.reap()
    }

    fn reap(&mut self) -> RemainingProcesses {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.program => {
                    self.pending.extend(WardenEvent::Ended(state(status)).encode());
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return RemainingProcesses::Some,
                Err(_) => return RemainingProcesses::None,
            }
        }
    }

    fn report_all_ended(&mut self, ended: usize) {
        // If Helve was killed, other programs end now too, and their locks on shared placeholders may be released a
        // moment later.
        let timeout =
            if self.warden.is_helve_gone() { LOCK_RELEASE_TIMEOUT } else { Duration::ZERO };
        std::mem::take(&mut self.placeholders).remove_within(timeout);
        self.group = None;
        self.pending
            .extend(WardenEvent::AllEnded(u32::try_from(ended).unwrap_or(u32::MAX)).encode());
        self.send();
    }

    fn send(&mut self) {
        if !self.pending.is_empty() {
            self.warden.send(&self.pending);
            self.pending.clear();
        }
    }
}

fn state(status: WaitStatus) -> ProcessState {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => ProcessState::Exited(code),
        (None, Some(signal)) => ProcessState::Killed(signal),
        (None, None) => ProcessState::Lost,
    }
}
