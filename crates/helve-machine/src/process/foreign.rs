//! Programs run by other Helve processes of the same user, known by their records.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bytes::Bytes;
use helve_core::process::{
    Process, ProcessError, ProcessId, ProcessOutput, ProcessState, WaitCondition, WaitOutcome,
    WatchRequest, WatchResult,
};
use memchr::memmem;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, pidfd_send_signal};

use super::output_buffer::{partial_start_len, without_partial_end};
use super::records::{self, ProgramRecord, WardenHandle};
use super::tree::{self, RemainingProcesses, TreeSnapshot};
use super::{blocking, port, spool};

/// Poll interval, because nothing notifies this process of changes.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// How long a warden, the process that watches over one program, may take to end its tree before this process ends the
/// tree itself.
const WARDEN_TIMEOUT: Duration = Duration::from_secs(3);

/// How long to wait for the record of a program that has ended.
const RECORD_TIMEOUT: Duration = Duration::from_millis(500);

/// How many bytes of each end of the output are returned.
const EXCERPT_BYTES: u64 = 32 * 1024;

/// How many bytes are searched for a text at once.
const SEARCH_BYTES: u64 = 256 * 1024;

pub(super) fn find(folder: &Path, id: &ProcessId) -> Result<ProgramRecord, ProcessError> {
    ProgramRecord::read(folder, id).ok_or(ProcessError::Unknown)
}

/// Describes a program as it is now.
pub(super) fn describe(record: &ProgramRecord) -> Process {
    let warden = if record.has_all_ended { None } else { record.warden() };
    let state = match (&warden, record.state) {
        (None, ProcessState::Running) => ProcessState::Lost,
        (Some(_) | None, state) => state,
    };
    let program = Pid::from_raw(record.program);
    let snapshot =
        warden.map_or_else(TreeSnapshot::default, |warden| tree::snapshot(warden.pid, program));
    let duration_ms = record
        .duration_ms
        .unwrap_or_else(|| records::monotonic_ms().saturating_sub(record.program_started_ms));
    Process {
        id: record.id.clone(),
        about: record.about.clone(),
        state,
        children: snapshot.children,
        waiting_for_input: snapshot.waiting_for_input,
        cpu_time: snapshot.cpu_time,
        elapsed: Duration::from_millis(duration_ms),
        output_bytes: output_length(record),
        is_terminal: record.is_terminal,
        is_foreign: true,
        denied_calls: Vec::new(),
        spool: record.spool.clone(),
    }
}

fn output_length(record: &ProgramRecord) -> u64 {
    record.spool.as_deref().map_or(0, spool::length)
}

pub(super) fn output(record: &ProgramRecord) -> ProcessOutput {
    let bytes = output_length(record);
    let read = |from, to| match &record.spool {
        Some(path) => spool::read(path, from, to).unwrap_or_default(),
        None => Vec::new(),
    };
    let (head, tail) = match bytes <= 2 * EXCERPT_BYTES {
        true => (read(0, bytes), Vec::new()),
        false => (read(0, EXCERPT_BYTES), read(bytes - EXCERPT_BYTES, bytes)),
    };
    let head =
        Bytes::copy_from_slice(if tail.is_empty() { &head } else { without_partial_end(&head) });
    let tail = Bytes::copy_from_slice(&tail[partial_start_len(&tail)..]);
    ProcessOutput {
        left_out: bytes.saturating_sub((head.len() + tail.len()) as u64),
        head,
        tail,
        lines: record.spool.as_deref().map_or(0, |path| spool::lines(path, bytes)),
        bytes,
        spooled: record.spool.clone().map(|path| (path, bytes)),
        redacted: 0,
    }
}

pub(super) fn signal(record: &ProgramRecord, signals: &[Signal]) -> Result<(), ProcessError> {
    let warden = record.warden().ok_or(ProcessError::Ended)?;
    let signalled = tree::signal(warden.pid, signals);
    if signalled.is_empty() { Err(ProcessError::Ended) } else { Ok(()) }
}

/// Asks the warden to end the program, and ends it from here if the warden does not.
pub(super) fn end(record: &ProgramRecord) -> Result<usize, ProcessError> {
    match record.warden() {
        Some(warden) => end_warden(&warden),
        None => Err(ProcessError::Ended),
    }
}

pub(super) fn end_warden(warden: &WardenHandle) -> Result<usize, ProcessError> {
    let count = tree::count(warden.pid);
    // The program may have stopped its warden.
    for signal in [Signal::TERM, Signal::CONT] {
        // Fails if the warden has just ended.
        pidfd_send_signal(&warden.handle, signal).ok();
    }
    if wait(warden, WARDEN_TIMEOUT) == RemainingProcesses::None {
        return Ok(count);
    }
    let ended = tree::end(warden.pid, |timeout| wait(warden, timeout));
    pidfd_send_signal(&warden.handle, Signal::KILL).ok();
    match wait(warden, WARDEN_TIMEOUT) {
        RemainingProcesses::None => Ok(ended.max(count)),
        RemainingProcesses::Some => {
            Err(ProcessError::Other("the processes could not be killed".into()))
        }
    }
}

/// Waits for a warden, which ends when no process beneath it is left.
fn wait(warden: &WardenHandle, timeout: Duration) -> RemainingProcesses {
    let mut polled = [PollFd::new(&warden.handle, PollFlags::IN)];
    let timeout = Timespec::try_from(timeout).ok();
    match poll(&mut polled, timeout.as_ref()) {
        Ok(1..) => RemainingProcesses::None,
        Ok(0) | Err(_) => RemainingProcesses::Some,
    }
}

pub(super) async fn watch(
    folder: PathBuf,
    record: ProgramRecord,
    request: WatchRequest,
) -> Result<WatchResult, ProcessError> {
    let deadline = Instant::now().checked_add(request.timeout);
    let mut watching = ForeignWatch { folder, record, request, searched: 0, ended_at: None };
    loop {
        let remaining = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let (returned, watched) = blocking(move || {
            let watched = watching.check(remaining == Some(Duration::ZERO));
            (watching, watched)
        })
        .await?;
        watching = returned;
        match watched {
            Some(watched) => return Ok(watched),
            None => {
                tokio::time::sleep(
                    remaining.map_or(POLL_INTERVAL, |remaining| remaining.min(POLL_INTERVAL)),
                )
                .await
            }
        }
    }
}

struct ForeignWatch {
    folder: PathBuf,
    record: ProgramRecord,
    request: WatchRequest,
    /// How much of the output was searched for a text.
    searched: u64,
    /// When it was first noticed that no process is left.
    ended_at: Option<Instant>,
}

impl ForeignWatch {
    /// Returns the result if the condition is met or cannot be met any more.
    fn check(&mut self, is_expired: bool) -> Option<WatchResult> {
        // Without a record the program is gone too, and how it ended is unknown.
        let current = ProgramRecord::read(&self.folder, &self.record.id);
        let is_recorded = current.is_some();
        self.record = current.unwrap_or_else(|| self.record.clone());
        let process = describe(&self.record);
        let has_all_ended = self.record.has_all_ended || self.record.warden().is_none();
        if has_all_ended && !self.record.has_all_ended && is_recorded && !is_expired {
            // The Helve that runs it is about to record how it ended, unless it was killed too.
            let is_final =
                self.ended_at.get_or_insert_with(Instant::now).elapsed() > RECORD_TIMEOUT;
            if !is_final {
                return None;
            }
        }
        let outcome = match self.is_met(&process, has_all_ended) {
            true => WaitOutcome::Met,
            false if has_all_ended => WaitOutcome::Impossible,
            false if is_expired => WaitOutcome::TimedOut,
            false => return None,
        };
        let (from, window) = (self.request.from, self.request.window(process.output_bytes));
        let begin = window.start;
        let mut text = self.read(begin, window.end);
        let cut = if begin > from { partial_start_len(&text) } else { 0 };
        text.drain(..cut);
        if !has_all_ended || window.end < process.output_bytes {
            text.truncate(without_partial_end(&text).len());
        }
        let begin = begin + cut as u64;
        let (left_out, next) = (begin - from.min(begin), begin + text.len() as u64);
        Some(WatchResult { text: text.into(), left_out, next, outcome, process })
    }

    fn is_met(&mut self, process: &Process, has_all_ended: bool) -> bool {
        match &self.request.until {
            WaitCondition::Now => true,
            WaitCondition::Ended => process.state != ProcessState::Running,
            WaitCondition::AllEnded => has_all_ended,
            WaitCondition::Port(number) => {
                self.record.warden().is_some_and(|warden| port::is_open(warden.pid, *number))
            }
            WaitCondition::Text(text) => {
                let finder = memmem::Finder::new(text).into_owned();
                self.contains_text(&finder, process.output_bytes)
            }
        }
    }

    fn contains_text(&mut self, finder: &memmem::Finder<'_>, total: u64) -> bool {
        let overlap = finder.needle().len().saturating_sub(1) as u64;
        self.searched = self.searched.max(self.request.from);
        while self.searched < total {
            let begin = self.searched.saturating_sub(overlap).max(self.request.from);
            let end = total.min(self.searched + SEARCH_BYTES);
            if finder.find(&self.read(begin, end)).is_some() {
                return true;
            }
            self.searched = end;
        }
        finder.needle().is_empty()
    }

    fn read(&self, from: u64, to: u64) -> Vec<u8> {
        let path = self.record.spool.as_deref();
        path.and_then(|path| spool::read(path, from, to).ok()).unwrap_or_default()
    }
}
