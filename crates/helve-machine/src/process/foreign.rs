//! Programs that other Helves of the same user run, known by their records.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bytes::Bytes;
use helve_core::process::{
    Met, Output, Process, ProcessError, ProcessId, State, Until, Watch, Watched,
};
use memchr::memmem;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, pidfd_send_signal};

use super::kept::{cut_begin, whole_end};
use super::records::{self, Record, Warden};
use super::tree::{self, Left, Life};
use super::{blocking, port, spool};

/// Nobody tells when something changes, so it is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// How long a warden may take to end its tree before it is done from outside.
const ENDING: Duration = Duration::from_secs(3);

/// How long the end of a program may take to be written down.
const SETTLING: Duration = Duration::from_millis(500);

/// How much of each end of the output is told.
const END: u64 = 32 * 1024;

/// How much is searched at once for a text.
const PIECE: u64 = 256 * 1024;

pub(super) fn find(folder: &Path, id: &ProcessId) -> Result<Record, ProcessError> {
    Record::read(folder, id).ok_or(ProcessError::Unknown)
}

/// As it is now.
pub(super) fn look(record: &Record) -> Process {
    let warden = if record.is_over { None } else { record.warden() };
    let state = match (&warden, record.state) {
        (None, State::Running) => State::Lost,
        (Some(_) | None, state) => state,
    };
    let program = Pid::from_raw(record.program);
    let life = warden.map_or_else(Life::default, |warden| tree::life(warden.pid, program));
    let took = record.took.unwrap_or_else(|| records::now().saturating_sub(record.began));
    Process {
        id: record.id.clone(),
        about: record.about.clone(),
        state,
        children: life.children,
        waits: life.waits,
        worked: life.worked,
        took: Duration::from_millis(took),
        said: said(record),
        is_terminal: record.is_terminal,
        is_foreign: true,
        withheld: Vec::new(),
        spool: record.spool.clone(),
    }
}

fn said(record: &Record) -> u64 {
    record.spool.as_deref().map_or(0, spool::length)
}

pub(super) fn output(record: &Record) -> Output {
    let bytes = said(record);
    let read = |from, to| match &record.spool {
        Some(path) => spool::read(path, from, to).unwrap_or_default(),
        None => Vec::new(),
    };
    let (head, tail) = match bytes <= 2 * END {
        true => (read(0, bytes), Vec::new()),
        false => (read(0, END), read(bytes - END, bytes)),
    };
    let head = Bytes::copy_from_slice(if tail.is_empty() { &head } else { whole_end(&head) });
    let tail = Bytes::copy_from_slice(&tail[cut_begin(&tail)..]);
    Output {
        left_out: bytes.saturating_sub((head.len() + tail.len()) as u64),
        head,
        tail,
        lines: record.spool.as_deref().map_or(0, |path| spool::lines(path, bytes)),
        bytes,
        spooled: record.spool.clone().map(|path| (path, bytes)),
        redacted: 0,
    }
}

pub(super) fn signal(record: &Record, signals: &[Signal]) -> Result<(), ProcessError> {
    let warden = record.warden().ok_or(ProcessError::Ended)?;
    let told = tree::signal(warden.pid, signals);
    if told.is_empty() { Err(ProcessError::Ended) } else { Ok(()) }
}

/// Asks the warden; where that does not help, does its work.
pub(super) fn end(record: &Record) -> Result<usize, ProcessError> {
    match record.warden() {
        Some(warden) => end_warden(&warden),
        None => Err(ProcessError::Ended),
    }
}

pub(super) fn end_warden(warden: &Warden) -> Result<usize, ProcessError> {
    let count = tree::count(warden.pid);
    // It may have been stopped by what it watches over.
    for signal in [Signal::TERM, Signal::CONT] {
        // It fails where the warden has just ended.
        pidfd_send_signal(&warden.handle, signal).ok();
    }
    if wait(warden, ENDING) == Left::None {
        return Ok(count);
    }
    let ended = tree::end(warden.pid, |most| wait(warden, most));
    pidfd_send_signal(&warden.handle, Signal::KILL).ok();
    match wait(warden, ENDING) {
        Left::None => Ok(ended.max(count)),
        Left::Some => Err(ProcessError::Other("the system does not let go of it".into())),
    }
}

/// A warden ends when nothing lives beneath it.
fn wait(warden: &Warden, most: Duration) -> Left {
    let mut one = [PollFd::new(&warden.handle, PollFlags::IN)];
    let most = Timespec::try_from(most).ok();
    match poll(&mut one, most.as_ref()) {
        Ok(1..) => Left::None,
        Ok(0) | Err(_) => Left::Some,
    }
}

pub(super) async fn watch(
    folder: PathBuf,
    record: Record,
    want: Watch,
) -> Result<Watched, ProcessError> {
    let deadline = Instant::now().checked_add(want.deadline);
    let mut search = Search { folder, record, want, searched: 0, gone: None };
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let (again, watched) = blocking(move || {
            let watched = search.look(left == Some(Duration::ZERO));
            (search, watched)
        })
        .await?;
        search = again;
        match watched {
            Some(watched) => return Ok(watched),
            None => tokio::time::sleep(left.map_or(LOOK, |left| left.min(LOOK))).await,
        }
    }
}

struct Search {
    folder: PathBuf,
    record: Record,
    want: Watch,
    /// How far the output was searched for a text.
    searched: u64,
    /// When it was first seen that nothing lives.
    gone: Option<Instant>,
}

impl Search {
    /// What is to be told, if it is time.
    fn look(&mut self, is_late: bool) -> Option<Watched> {
        // A record that is gone is of a program that is gone, and how it ended is not known.
        let read = Record::read(&self.folder, &self.record.id);
        let is_recorded = read.is_some();
        self.record = read.unwrap_or_else(|| self.record.clone());
        let process = look(&self.record);
        let is_over = self.record.is_over || self.record.warden().is_none();
        if is_over && !self.record.is_over && is_recorded && !is_late {
            // Whoever runs it is about to write down how it ended, unless it was killed itself.
            let settled = self.gone.get_or_insert_with(Instant::now).elapsed() > SETTLING;
            if !settled {
                return None;
            }
        }
        let met = match self.is_met(&process, is_over) {
            true => Met::Yes,
            false if is_over => Met::Never,
            false if is_late => Met::Deadline,
            false => return None,
        };
        let (from, window) = (self.want.from, self.want.window(process.said));
        let begin = window.start;
        let mut text = self.read(begin, window.end);
        let cut = if begin > from { cut_begin(&text) } else { 0 };
        text.drain(..cut);
        if !is_over || window.end < process.said {
            text.truncate(whole_end(&text).len());
        }
        let begin = begin + cut as u64;
        let (left_out, next) = (begin - from.min(begin), begin + text.len() as u64);
        Some(Watched { text: text.into(), left_out, next, met, process })
    }

    fn is_met(&mut self, process: &Process, is_over: bool) -> bool {
        match &self.want.until {
            Until::Now => true,
            Until::Ended => process.state != State::Running,
            Until::AllEnded => is_over,
            Until::Port(number) => {
                self.record.warden().is_some_and(|warden| port::is_open(warden.pid, *number))
            }
            Until::Text(text) => {
                let finder = memmem::Finder::new(text).into_owned();
                self.finds(&finder, process.said)
            }
        }
    }

    fn finds(&mut self, finder: &memmem::Finder<'_>, said: u64) -> bool {
        let overlap = finder.needle().len().saturating_sub(1) as u64;
        self.searched = self.searched.max(self.want.from);
        while self.searched < said {
            let begin = self.searched.saturating_sub(overlap).max(self.want.from);
            let end = said.min(self.searched + PIECE);
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
