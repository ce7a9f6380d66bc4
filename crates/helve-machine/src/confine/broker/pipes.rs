//! Calls that open a named pipe and wait until somebody opens its other end.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::{Answers, operations};
use crate::confine::syscalls;

/// A call that opens a named pipe.
pub(super) struct WaitingOpen {
    pub(super) id: u64,
    /// Open for reading if the program wants to read, otherwise an `O_PATH` handle.
    pub(super) pipe: OwnedFd,
    pub(super) flags: OFlags,
}

/// The calls that wait.
pub(in crate::confine) struct WaitingPipes {
    answers: Arc<Answers>,
    calls: Mutex<Vec<WaitingOpen>>,
    /// Becomes readable when a call is added.
    added: OwnedFd,
}

impl WaitingPipes {
    pub(super) fn new(answers: Arc<Answers>) -> io::Result<Self> {
        let added = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(WaitingPipes { answers, calls: Mutex::default(), added })
    }

    pub(super) fn add(&self, call: WaitingOpen) {
        self.lock().push(call);
        rustix::io::write(&self.added, &1_u64.to_ne_bytes()).unwrap_or_default();
    }

    /// A handle that becomes readable when a call is added.
    pub(in crate::confine) fn added(&self) -> BorrowedFd<'_> {
        self.added.as_fd()
    }

    pub(in crate::confine) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Tries again to open the pipes whose other end somebody may have opened by now.
    pub(in crate::confine) fn retry(&self) {
        syscalls::drain(self.added());
        let mut calls = self.lock();
        for open in std::mem::take(&mut *calls) {
            if !self.answers.is_suspended(open.id) {
                continue;
            }
            let answered = match operations::open_waiting_pipe(&open.pipe, open.flags) {
                Err(Errno::NXIO) => {
                    calls.push(open);
                    continue;
                }
                Ok(handle) => {
                    let close_on_exec = open.flags.contains(OFlags::CLOEXEC);
                    self.answers.send_handle(open.id, &handle, close_on_exec)
                }
                Err(error) => self.answers.send(open.id, Err(error)),
            };
            // The calling process may be gone.
            answered.unwrap_or_default();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<WaitingOpen>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
