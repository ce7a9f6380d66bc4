//! The state of one program that was started. A warden is the process that watches over it.

mod monitor;

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use helve_core::process::{
    DeniedCall, OutputPolicy, Process, ProcessId, ProcessInfo, ProcessOutput, ProcessState, Spawn,
    Stdin,
};
use parking_lot::Mutex;
use rustix::net::Shutdown;
use rustix::process::Pid;
use tokio::io::unix::AsyncFd;
use tokio::net::UnixStream;
use tokio::sync::watch;

pub(super) use monitor::{RecordLifetime, RecordSettings};

use super::keeper_client::WardenLink;
use super::output_buffer::OutputBuffer;
use super::tree;

/// How long an incomplete line is held back. Until then a line that overwrites it, such as a progress bar,
/// replaces it. The time is shorter at a terminal, where the line may be a question.
const LINE_TIMEOUT: Duration = Duration::from_secs(2);
const LINE_TIMEOUT_AT_TERMINAL: Duration = Duration::from_millis(100);
const LINE_TIMEOUT_AFTER_END: Duration = Duration::from_millis(30);

#[derive(Debug)]
pub(super) struct Program {
    pub(super) id: ProcessId,
    pub(super) about: ProcessInfo,
    warden: Pid,
    /// `None` if the warden was killed before it reported the pid.
    pid: Option<Pid>,
    pub(super) spool: Option<PathBuf>,
    pub(super) began: Instant,
    pub(super) is_terminal: bool,
    received: Mutex<ReceivedOutput>,
    status: watch::Sender<ProgramStatus>,
    /// Length of the output. Separate from the status, because it changes so often that only tasks waiting for it
    /// should wake up.
    output_length: watch::Sender<u64>,
    /// `None` once everything has ended, so that a remembered program holds no file descriptors.
    live: Mutex<Option<LiveHandles>>,
}

/// The output received so far.
#[derive(Debug)]
struct ReceivedOutput {
    buffer: OutputBuffer,
    /// How many bytes of it are in the spool file.
    spooled: u64,
    /// When something was last received.
    last_received: Instant,
    /// Number of raw bytes received, before escape sequences were removed.
    raw_bytes: u64,
    /// Whether bytes may have been read that are not in the buffer yet.
    is_reading: bool,
    /// Whether an incomplete line is held back.
    has_partial_line: bool,
    denied_calls: Vec<DeniedCall>,
}

#[derive(Debug)]
struct LiveHandles {
    link: Arc<UnixStream>,
    warden: WardenUse,
    /// Where the program's output is read: the read end of a pipe, or the controlling side of a terminal, which also
    /// takes input.
    output_fd: Arc<AsyncFd<OwnedFd>>,
}

/// Whether a warden can be used for another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WardenUse {
    /// It still watches over this program.
    Busy,
    /// It can watch over another program.
    Idle,
    /// It must not be reused: a caller knows its process id, and would mistake another program for this one.
    Pinned,
}

/// The part of a program's state that changes while it runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProgramStatus {
    pub(super) state: ProcessState,
    ended: Option<Instant>,
    /// Whether the program itself writes nothing more. Processes that it started may.
    pub(super) is_own_output_complete: bool,
    pub(super) is_output_complete: bool,
    /// Whether the program is confined. The placeholder files that its sandbox created in the workspace are removed
    /// before its end is reported.
    is_confined: bool,
    /// Set when all processes of the program have ended: how many of them had to be killed.
    pub(super) killed_at_end: Option<u32>,
    /// Whether other Helve processes can find the program.
    is_recorded: bool,
    /// Whether the monitor task, which also maintains the record, has ended.
    has_monitor_ended: bool,
}

impl ProgramStatus {
    /// Whether the program itself has ended and everything that it wrote was received. Processes that it started may
    /// keep running and writing; waiting for them could take forever.
    pub(super) fn has_ended(&self) -> bool {
        self.state != ProcessState::Running
            && (self.is_own_output_complete || self.may_report_end())
    }

    /// Whether the output is complete and the placeholders are removed.
    fn may_report_end(&self) -> bool {
        self.is_output_complete && (!self.is_confined || self.killed_at_end.is_some())
    }

    /// Whether the monitor of the program has ended.
    pub(super) fn has_monitor_ended(&self) -> bool {
        self.has_monitor_ended
    }

    /// Whether all processes have ended and the whole output was received.
    pub(super) fn is_fully_ended(&self) -> bool {
        self.killed_at_end.is_some() && self.is_output_complete
    }
}

impl Program {
    pub(super) fn new(
        id: ProcessId,
        (warden, pid): (WardenLink, Option<Pid>),
        spawn: &Spawn,
        output_fd: Arc<AsyncFd<OwnedFd>>,
    ) -> Arc<Program> {
        let now = Instant::now();
        let status = ProgramStatus {
            state: ProcessState::Running,
            ended: None,
            is_own_output_complete: false,
            is_output_complete: false,
            is_confined: spawn.sandbox.is_some(),
            killed_at_end: None,
            is_recorded: false,
            has_monitor_ended: false,
        };
        let OutputPolicy { head, tail, spool, secrets: _ } = &spawn.output;
        Arc::new(Program {
            id,
            about: spawn.about.clone(),
            warden: warden.pid,
            pid,
            spool: spool.as_ref().map(|spool| spool.path.clone()),
            began: now,
            is_terminal: matches!(spawn.stdin, Stdin::Terminal { .. }),
            received: Mutex::new(ReceivedOutput {
                buffer: OutputBuffer::new(*head, *tail),
                spooled: 0,
                last_received: now,
                raw_bytes: 0,
                is_reading: false,
                has_partial_line: false,
                denied_calls: Vec::new(),
            }),
            status: watch::Sender::new(status),
            output_length: watch::Sender::new(0),
            live: Mutex::new(Some(LiveHandles {
                link: Arc::new(warden.link),
                warden: WardenUse::Busy,
                output_fd,
            })),
        })
    }

    pub(super) fn status(&self) -> watch::Receiver<ProgramStatus> {
        self.status.subscribe()
    }

    /// Adds output. `spooled` and `redacted` are totals.
    pub(super) fn add_output(&self, bytes: &[u8], spooled: u64, redacted: u64) {
        if bytes.is_empty() {
            return;
        }
        let length = {
            let mut received = self.received.lock();
            received.buffer.push(bytes);
            received.buffer.redacted = redacted;
            received.spooled = spooled;
            received.buffer.total
        };
        self.output_length.send_replace(length);
    }

    /// Subscribes to the length of the output.
    pub(super) fn output_length(&self) -> watch::Receiver<u64> {
        self.output_length.subscribe()
    }

    /// Records that bytes are about to be read from the pipe.
    pub(super) fn begin_read(&self) {
        self.received.lock().is_reading = true;
    }

    /// Records that `bytes` bytes were read and buffered; `pending` is the part that is held back.
    pub(super) fn end_read(&self, bytes: usize, at: Instant, pending: &[u8]) {
        let mut received = self.received.lock();
        received.is_reading = false;
        received.has_partial_line = !pending.is_empty();
        if bytes > 0 {
            received.last_received = at;
            received.raw_bytes += bytes as u64;
        }
    }

    /// Waits until nothing was received for so long that the held-back line counts as complete.
    pub(super) async fn wait_until_quiet(&self, last_received: Instant) {
        let mut status = self.status();
        loop {
            let has_ended = status.borrow_and_update().ended.is_some();
            let timeout = match (has_ended, self.is_terminal) {
                (true, _) => LINE_TIMEOUT_AFTER_END,
                (false, true) => LINE_TIMEOUT_AT_TERMINAL,
                (false, false) => LINE_TIMEOUT,
            };
            let changed = status.wait_for(|status| status.ended.is_some() != has_ended);
            if !matches!(
                tokio::time::timeout_at((last_received + timeout).into(), changed).await,
                Ok(Ok(_))
            ) {
                return;
            }
        }
    }

    pub(super) fn complete_output(&self) {
        self.status.send_modify(|status| status.is_output_complete = true);
    }

    /// Returns a range of the output, if it is in memory.
    pub(super) fn in_memory(&self, from: u64, to: u64) -> Option<Vec<u8>> {
        self.received.lock().buffer.range(from, to)
    }

    /// How many bytes of the output are in memory.
    pub(super) fn in_memory_bytes(&self) -> usize {
        self.received.lock().buffer.bytes()
    }

    /// Returns the parts of a range that are in memory: one from the head and one from the tail.
    pub(super) fn pieces(&self, from: u64, to: u64) -> [Vec<u8>; 2] {
        self.received.lock().buffer.pieces(from, to)
    }

    /// Returns the newest bytes in memory and their offset.
    pub(super) fn newest(&self) -> (u64, Vec<u8>) {
        self.received.lock().buffer.newest()
    }

    /// Returns the spool file and how many bytes of the output it holds.
    pub(super) fn spooled(&self) -> Option<(PathBuf, u64)> {
        self.spool.clone().map(|path| (path, self.received.lock().spooled))
    }

    pub(super) fn output(&self) -> ProcessOutput {
        let received = self.received.lock();
        let ends = received.buffer.ends();
        ProcessOutput {
            head: ends.head,
            left_out: ends.left_out,
            tail: ends.tail,
            lines: received.buffer.lines(),
            bytes: received.buffer.total,
            spooled: self.spool.clone().map(|path| (path, received.spooled)),
            redacted: received.buffer.redacted,
        }
    }

    /// Describes the program as it is now. Reads `/proc` unless everything has ended.
    pub(super) fn describe(&self) -> Process {
        let status = *self.status.borrow();
        let snapshot =
            self.with_warden(|warden| tree::snapshot(warden, self.pid)).unwrap_or_default();
        Process {
            id: self.id.clone(),
            about: self.about.clone(),
            state: status.state,
            children: snapshot.children,
            waiting_for_input: snapshot.waiting_for_input,
            cpu_time: snapshot.cpu_time,
            elapsed: status.ended.unwrap_or_else(Instant::now).duration_since(self.began),
            output_bytes: *self.output_length.borrow(),
            is_terminal: self.is_terminal,
            is_foreign: false,
            denied_calls: self.received.lock().denied_calls.clone(),
            spool: self.spool.clone(),
        }
    }

    /// Calls `inspect` with the warden. `None` if everything has ended: the warden may have another program by then.
    pub(super) fn with_warden<T>(&self, inspect: impl FnOnce(Pid) -> T) -> Option<T> {
        if self.has_all_ended() {
            return None;
        }
        let result = inspect(self.warden);
        (!self.has_all_ended()).then_some(result)
    }

    /// Returns the warden's process id, and prevents the warden from being reused for another program. `None` if
    /// everything has ended.
    pub(super) fn pin_warden(&self) -> Option<Pid> {
        let mut live = self.live.lock();
        live.as_mut()?.warden = WardenUse::Pinned;
        (!self.has_all_ended()).then_some(self.warden)
    }

    /// Whether all its processes have ended.
    pub(super) fn has_all_ended(&self) -> bool {
        self.status.borrow().killed_at_end.is_some()
    }

    /// Asks the warden to end all processes.
    pub(super) fn ask_to_end(&self) {
        if let Some(live) = &mut *self.live.lock() {
            live.warden = WardenUse::Pinned;
            // Fails if the warden is gone, and then there is nothing to end.
            rustix::net::shutdown(&live.link, Shutdown::Write).ok();
        }
    }

    /// Returns the terminal to type into, while the program is alive.
    pub(super) fn terminal(&self) -> Option<Arc<AsyncFd<OwnedFd>>> {
        let live = self.live.lock();
        live.as_ref().filter(|_| self.is_terminal).map(|live| live.output_fd.clone())
    }
}
