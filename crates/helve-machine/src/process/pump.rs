//! Takes in what a program says: makes it plain, keeps its ends, spools the whole.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use helve_core::process::Keep;
use helve_text::redact::Redactor;
use helve_text::terminal::Plain;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tokio::io::unix::AsyncFd;

use super::program::Program;
use super::spool::Spooling;

/// Read at once.
const BUFFER: usize = 256 * 1024;

/// So much at once comes from a program that goes on talking.
const FULL: usize = 64 * 1024;

/// A pipe holds so much, so that neither side waits for the other all the time.
pub(super) const PIPE: usize = 1024 * 1024;

/// How long a thread of its own waits for more before it gives the reading back.
const SILENCE: Duration = Duration::from_millis(20);

/// And how long it reads at most before it does.
const TURN: Duration = Duration::from_millis(40);

pub(super) struct Pump {
    source: Arc<AsyncFd<OwnedFd>>,
    plain: Plain,
    redactor: Option<Redactor>,
    spooling: Spooling,
    /// Used again and again: as it came, made plain, and without secrets.
    came: Vec<u8>,
    cleaned: Vec<u8>,
    redacted: Vec<u8>,
    /// When something last came.
    heard: Instant,
    program: Arc<Program>,
}

/// What a look at the source brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Took {
    Some,
    /// There may be more at once.
    Full,
    Nothing,
    End,
}

impl Pump {
    pub(super) fn new(source: Arc<AsyncFd<OwnedFd>>, keep: &Keep, program: Arc<Program>) -> Self {
        let redactor = (!keep.secrets.is_empty()).then(|| Redactor::new(&keep.secrets));
        Pump {
            source,
            plain: Plain::new(),
            redactor,
            spooling: Spooling::new(keep.spool.clone()),
            came: Vec::new(),
            cleaned: Vec::new(),
            redacted: Vec::new(),
            heard: Instant::now(),
            program,
        }
    }

    /// Until there is no more. Where a lot comes it is read on a thread that may block.
    pub(super) async fn run(mut self) {
        loop {
            match self.next().await {
                Took::Some | Took::Nothing => {}
                Took::End => return,
                Took::Full => {
                    let busy = tokio::task::spawn_blocking(move || self.while_busy());
                    match busy.await {
                        Ok((_, Took::End)) => return,
                        Ok((pump, Took::Some | Took::Full | Took::Nothing)) => self = pump,
                        // The runtime is shutting down.
                        Err(_) => return,
                    }
                }
            }
        }
    }

    async fn next(&mut self) -> Took {
        let (source, program) = (self.source.clone(), self.program.clone());
        tokio::select! {
            ready = source.readable() => {
                let Ok(mut ready) = ready else { return Took::End };
                let took = self.once();
                if took == Took::Nothing {
                    ready.clear_ready();
                }
                took
            }
            // A question, perhaps, that waits for its answer on the same line.
            () = program.quiet(self.heard), if !self.plain.pending().is_empty() => {
                self.cleaned.clear();
                self.plain.flush(&mut self.cleaned);
                self.pass_on();
                self.program.took(0, self.heard, self.plain.pending());
                Took::Nothing
            }
        }
    }

    fn while_busy(mut self) -> (Self, Took) {
        let began = Instant::now();
        while began.elapsed() < TURN {
            match self.once() {
                Took::Some | Took::Full => {}
                Took::End => return (self, Took::End),
                Took::Nothing => {
                    let mut source = [PollFd::new(self.source.get_ref(), PollFlags::IN)];
                    let silence = Timespec::try_from(SILENCE).ok();
                    if !poll(&mut source, silence.as_ref()).is_ok_and(|ready| ready > 0) {
                        return (self, Took::Nothing);
                    }
                }
            }
        }
        (self, Took::Full)
    }

    fn once(&mut self) -> Took {
        self.came.clear();
        self.came.reserve(BUFFER);
        self.program.takes();
        let source = self.source.get_ref();
        let read = rustix::io::read(source, rustix::buffer::spare_capacity(&mut self.came));
        let took = match read {
            Ok(1..) => {
                self.heard = Instant::now();
                self.cleaned.clear();
                self.plain.push(&self.came, &mut self.cleaned);
                self.pass_on();
                if self.came.len() >= FULL { Took::Full } else { Took::Some }
            }
            Err(Errno::AGAIN | Errno::INTR) => Took::Nothing,
            // A terminal answers with an error when nobody has it open any more.
            Ok(0) | Err(_) => Took::End,
        };
        self.program.took(self.came.len(), self.heard, self.plain.pending());
        took
    }

    /// Redacts and keeps what was made plain.
    fn pass_on(&mut self) {
        let Some(redactor) = &mut self.redactor else { return self.keep(Stage::Cleaned) };
        self.redacted.clear();
        redactor.push(&self.cleaned, &mut self.redacted);
        self.keep(Stage::Redacted);
    }

    fn keep(&mut self, stage: Stage) {
        let bytes = match stage {
            Stage::Cleaned => &self.cleaned,
            Stage::Redacted => &self.redacted,
        };
        self.spooling.push(bytes);
        let redacted = self.redactor.as_ref().map_or(0, Redactor::replaced);
        self.program.said(bytes, self.spooling.spooled(), redacted);
    }
}

#[derive(Clone, Copy)]
enum Stage {
    Cleaned,
    Redacted,
}

impl Drop for Pump {
    /// What was held back because its meaning depended on what follows is passed on: nothing follows.
    fn drop(&mut self) {
        self.cleaned.clear();
        self.plain.finish(&mut self.cleaned);
        self.pass_on();
        if let Some(redactor) = &mut self.redactor {
            self.redacted.clear();
            redactor.finish(&mut self.redacted);
            self.keep(Stage::Redacted);
        }
        self.program.said_all();
    }
}

/// So that a pipe holds more than the system gives it at first. It works with less.
pub(super) fn widen(pipe: &OwnedFd) -> io::Result<usize> {
    Ok(rustix::pipe::fcntl_setpipe_size(pipe, PIPE)?)
}
