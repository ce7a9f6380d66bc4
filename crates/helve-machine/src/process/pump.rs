//! Reads a program's output, removes escape sequences, redacts secrets, keeps the start and the end in
//! memory and writes all of it to a file.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use helve_core::process::OutputPolicy;
use helve_text::redact::Redactor;
use helve_text::terminal::TerminalFilter;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tokio::io::unix::AsyncFd;

use super::program::Program;
use super::spool::SpoolWriter;

/// Maximum size of one read.
const READ_BYTES: usize = 256 * 1024;

/// A read of this size indicates a program that writes continuously.
const FULL_READ_BYTES: usize = 64 * 1024;

/// Capacity of the pipe, large enough that reader and writer rarely wait for each other.
pub(super) const PIPE_BYTES: usize = 1024 * 1024;

/// How long the blocking thread waits for more output before reading becomes asynchronous again.
const SILENCE_TIMEOUT: Duration = Duration::from_millis(20);

/// Maximum time the blocking thread reads in one turn.
const MAX_TURN: Duration = Duration::from_millis(40);

pub(super) struct Pump {
    output_fd: Arc<AsyncFd<OwnedFd>>,
    filter: TerminalFilter,
    redactor: Option<Redactor>,
    spool: SpoolWriter,
    /// Reused buffers: the raw bytes, without escape sequences, and without secrets.
    raw: Vec<u8>,
    cleaned: Vec<u8>,
    redacted: Vec<u8>,
    /// When something was last received.
    last_received: Instant,
    program: Arc<Program>,
}

/// The result of one read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReadOutcome {
    Data,
    /// The read was large: more is probably waiting.
    Full,
    Empty,
    End,
}

impl Pump {
    pub(super) fn new(
        output_fd: Arc<AsyncFd<OwnedFd>>,
        policy: &OutputPolicy,
        program: Arc<Program>,
    ) -> Self {
        let redactor = (!policy.secrets.is_empty()).then(|| Redactor::new(&policy.secrets));
        Pump {
            output_fd,
            filter: TerminalFilter::new(),
            redactor,
            spool: SpoolWriter::new(policy.spool.clone()),
            raw: Vec::new(),
            cleaned: Vec::new(),
            redacted: Vec::new(),
            last_received: Instant::now(),
            program,
        }
    }

    /// Runs until the output ends. Continuous output is read on a blocking thread.
    pub(super) async fn run(mut self) {
        loop {
            match self.next().await {
                ReadOutcome::Data | ReadOutcome::Empty => {}
                ReadOutcome::End => return,
                ReadOutcome::Full => {
                    let busy = tokio::task::spawn_blocking(move || self.read_blocking());
                    match busy.await {
                        Ok((_, ReadOutcome::End)) => return,
                        Ok((pump, ReadOutcome::Data | ReadOutcome::Full | ReadOutcome::Empty)) => {
                            self = pump
                        }
                        // The runtime is shutting down.
                        Err(_) => return,
                    }
                }
            }
        }
    }

    async fn next(&mut self) -> ReadOutcome {
        let (output_fd, program) = (self.output_fd.clone(), self.program.clone());
        tokio::select! {
            ready = output_fd.readable() => {
                let Ok(mut ready) = ready else { return ReadOutcome::End };
                let outcome = self.read_once();
                if outcome == ReadOutcome::Empty {
                    ready.clear_ready();
                }
                outcome
            }
            // The incomplete line may be a question that waits for an answer.
            () = program.wait_until_quiet(self.last_received), if !self.filter.pending().is_empty() => {
                self.cleaned.clear();
                self.filter.flush(&mut self.cleaned);
                self.process();
                self.program.end_read(0, self.last_received, self.filter.pending());
                ReadOutcome::Empty
            }
        }
    }

    fn read_blocking(mut self) -> (Self, ReadOutcome) {
        let began = Instant::now();
        while began.elapsed() < MAX_TURN {
            match self.read_once() {
                ReadOutcome::Data | ReadOutcome::Full => {}
                ReadOutcome::End => return (self, ReadOutcome::End),
                ReadOutcome::Empty => {
                    let mut polled = [PollFd::new(self.output_fd.get_ref(), PollFlags::IN)];
                    let timeout = Timespec::try_from(SILENCE_TIMEOUT).ok();
                    if !poll(&mut polled, timeout.as_ref()).is_ok_and(|ready| ready > 0) {
                        return (self, ReadOutcome::Empty);
                    }
                }
            }
        }
        (self, ReadOutcome::Full)
    }

    fn read_once(&mut self) -> ReadOutcome {
        self.raw.clear();
        self.raw.reserve(READ_BYTES);
        self.program.begin_read();
        let output_fd = self.output_fd.get_ref();
        let read = rustix::io::read(output_fd, rustix::buffer::spare_capacity(&mut self.raw));
        let outcome = match read {
            Ok(1..) => {
                self.last_received = Instant::now();
                self.cleaned.clear();
                self.filter.push(&self.raw, &mut self.cleaned);
                self.process();
                if self.raw.len() >= FULL_READ_BYTES {
                    ReadOutcome::Full
                } else {
                    ReadOutcome::Data
                }
            }
            Err(Errno::AGAIN | Errno::INTR) => ReadOutcome::Empty,
            // A terminal returns an error once no process has it open.
            Ok(0) | Err(_) => ReadOutcome::End,
        };
        self.program.end_read(self.raw.len(), self.last_received, self.filter.pending());
        outcome
    }

    /// Redacts and stores the cleaned bytes.
    fn process(&mut self) {
        let Some(redactor) = &mut self.redactor else { return self.store(OutputStage::Cleaned) };
        self.redacted.clear();
        redactor.push(&self.cleaned, &mut self.redacted);
        self.store(OutputStage::Redacted);
    }

    fn store(&mut self, stage: OutputStage) {
        let bytes = match stage {
            OutputStage::Cleaned => &self.cleaned,
            OutputStage::Redacted => &self.redacted,
        };
        self.spool.push(bytes);
        let redacted = self.redactor.as_ref().map_or(0, Redactor::replacement_count);
        self.program.add_output(bytes, self.spool.spooled(), redacted);
    }
}

#[derive(Clone, Copy)]
enum OutputStage {
    Cleaned,
    Redacted,
}

impl Drop for Pump {
    /// Flushes bytes that were held back because their meaning depended on the bytes after them.
    fn drop(&mut self) {
        self.cleaned.clear();
        self.filter.finish(&mut self.cleaned);
        self.process();
        if let Some(redactor) = &mut self.redactor {
            self.redacted.clear();
            redactor.finish(&mut self.redacted);
            self.store(OutputStage::Redacted);
        }
        self.program.complete_output();
    }
}

/// Enlarges a pipe beyond the system's default.
pub(super) fn enlarge_pipe(pipe: &OwnedFd) -> io::Result<usize> {
    Ok(rustix::pipe::fcntl_setpipe_size(pipe, PIPE_BYTES)?)
}
