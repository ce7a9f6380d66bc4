//! The task that monitors a program: receives the events of its warden (the process that watches over it) and maintains
//! its record.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use helve_core::process::ProcessState;
use tokio::net::UnixStream;

use super::{LiveHandles, Program, ProgramStatus, WardenUse};
use crate::process::keeper_client::WardenLink;
use crate::process::pump::{PIPE_BYTES, Pump};
use crate::process::records::{self, ProgramRecord};
use crate::process::tree::ProcStat;
use crate::process::wire::WardenEvent;
use crate::process::{blocking, keeper};

/// How long the output must be silent after the program itself has ended to count as complete.
const SILENCE_TIMEOUT: Duration = Duration::from_millis(50);

/// How long to wait for such a silence while other processes keep writing.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(500);

/// Poll interval after [`DRAIN_TIMEOUT`].
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Pause before the second search for orphans: a program that kills its warden may kill the keeper shortly afterwards.
const KEEPER_KILL_DELAY: Duration = Duration::from_millis(200);

/// A program that ends sooner gets no record.
const RECORD_DELAY: Duration = Duration::from_millis(100);

/// Where and how long other Helve processes can find a program.
#[derive(Clone, Debug)]
pub(in crate::process) struct RecordSettings {
    pub(in crate::process) folder: PathBuf,
    pub(in crate::process) lifetime: RecordLifetime,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::process) enum RecordLifetime {
    WhileRunning,
    /// Kept after the end, so that other Helve processes learn how it ended.
    Retained,
}

impl Program {
    /// Runs until all processes of the program have ended and its output was received. Returns the warden
    /// if it can watch over another program.
    pub(in crate::process) async fn monitor(
        self: Arc<Self>,
        pump: Pump,
        settings: RecordSettings,
    ) -> Option<WardenLink> {
        let receiving = async {
            self.receive_events().await;
            let raw_bytes = self.received.lock().raw_bytes;
            let mut status = self.status();
            // A process outside the tree may hold the other end of the pipe forever.
            loop {
                let complete = status.wait_for(|status| status.is_output_complete);
                if tokio::time::timeout(DRAIN_TIMEOUT, complete).await.is_ok()
                    || self.has_emptied_pipe_since(raw_bytes)
                {
                    break;
                }
            }
        };
        let pumping = pump.run();
        let (mut receiving, mut pumping) = (Box::pin(receiving), Box::pin(pumping));
        let work = async {
            tokio::select! {
                () = &mut pumping => { receiving.await; }
                () = &mut receiving => {}
            }
        };
        let closing = async {
            work.await;
            // Output of processes that cannot be reached is ignored.
            self.complete_output();
            self.release_warden()
        };
        let (warden, (), ()) = tokio::join!(closing, self.drain(), self.maintain_record(settings));
        self.status.send_modify(|status| status.has_monitor_ended = true);
        warden
    }

    fn release_warden(&self) -> Option<WardenLink> {
        let LiveHandles { link, warden, .. } = self.live.lock().take()?;
        // A confined program could change its warden's limits, which the next program would inherit.
        let is_confined = self.status.borrow().is_confined;
        let link = Arc::into_inner(link).filter(|_| warden == WardenUse::Idle && !is_confined)?;
        Some(WardenLink { pid: self.warden, link })
    }

    /// Waits until other Helve processes can find the program.
    pub(in crate::process) async fn wait_until_recorded(&self) {
        self.status().wait_for(|status| status.is_recorded).await.ok();
    }

    /// Waits until the monitor of the program has ended.
    pub(in crate::process) async fn wait_until_monitor_ended(&self) {
        self.status().wait_for(|status| status.has_monitor_ended).await.ok();
    }

    /// Maintains the record of a program that keeps running.
    async fn maintain_record(&self, settings: RecordSettings) {
        let mut status = self.status();
        if settings.lifetime == RecordLifetime::WhileRunning {
            let ended = status.wait_for(ProgramStatus::is_fully_ended);
            if tokio::time::timeout(RECORD_DELAY, ended).await.is_ok() {
                return;
            }
        }
        let started = self.warden_started();
        loop {
            let now = *status.borrow_and_update();
            let folder = settings.folder.clone();
            if now.is_fully_ended() && settings.lifetime == RecordLifetime::WhileRunning {
                let id = self.id.clone();
                blocking(move || records::remove(&folder, &id)).await.ok();
                return;
            }
            let record = self.as_record(&now, started);
            // Without a record other Helve processes do not find the program; it runs anyway.
            blocking(move || record.write(&folder).ok()).await.ok();
            self.status.send_modify(|status| status.is_recorded = true);
            let changed =
                |status: &ProgramStatus| status.state != now.state || status.is_fully_ended();
            if now.is_fully_ended() || status.wait_for(changed).await.is_err() {
                return;
            }
        }
    }

    pub(in crate::process) fn record_now(&self) -> ProgramRecord {
        let started = self.warden_started();
        self.as_record(&self.status.borrow(), started)
    }

    /// Returns the start time of the warden, which together with its process id identifies it.
    fn warden_started(&self) -> u64 {
        self.pin_warden().and_then(ProcStat::of).map_or(0, |stat| stat.started)
    }

    fn as_record(&self, status: &ProgramStatus, started: u64) -> ProgramRecord {
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        ProgramRecord {
            id: self.id.clone(),
            about: self.about.clone(),
            warden: self.warden.as_raw_nonzero().get(),
            warden_started: started,
            boot: records::boot_id(),
            program: self.pid.map_or(0, |pid| pid.as_raw_nonzero().get()),
            program_started_ms: records::monotonic_ms()
                .saturating_sub(milliseconds(self.began.elapsed())),
            spool: self.spool.clone(),
            is_terminal: self.is_terminal,
            state: status.state,
            duration_ms: status.ended.map(|ended| milliseconds(ended.duration_since(self.began))),
            has_all_ended: status.is_fully_ended(),
        }
    }

    async fn receive_events(&self) {
        let link = self.live.lock().as_ref().map(|live| live.link.clone());
        if let Some(link) = link {
            self.read_events(&link).await;
        }
        if !self.has_all_ended() {
            // The warden was killed. Its keeper, which ends what wardens leave behind, may have been killed too.
            for pause in [Duration::ZERO, KEEPER_KILL_DELAY] {
                tokio::time::sleep(pause).await;
                blocking(keeper::end_orphans).await.ok();
            }
            self.set_all_ended(0);
        }
    }

    async fn read_events(&self, link: &UnixStream) {
        let mut bytes = Vec::new();
        loop {
            let mut buffer = [0; 4 * WardenEvent::SIZE];
            match link.try_read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => bytes.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    if link.readable().await.is_err() {
                        break;
                    }
                    continue;
                }
                Err(_) => break,
            }
            while let Some((event, rest)) = bytes.split_first_chunk() {
                if let Some(event) = WardenEvent::decode(*event) {
                    self.handle(event);
                }
                bytes = rest.to_vec();
            }
            if self.has_all_ended() {
                break;
            }
        }
    }

    fn handle(&self, event: WardenEvent) {
        match event {
            WardenEvent::CallDenied(denial) => self.received.lock().denied_calls.push(denial),
            WardenEvent::Ended(state) => self.status.send_modify(|status| {
                status.state = state;
                status.ended = Some(Instant::now());
            }),
            WardenEvent::AllEnded(count) => {
                self.set_all_ended(count);
                // After this event the warden has nothing left to do.
                if let Some(live) = &mut *self.live.lock()
                    && live.warden == WardenUse::Busy
                {
                    live.warden = WardenUse::Idle;
                }
            }
        }
    }

    fn set_all_ended(&self, count: u32) {
        self.status.send_modify(|status| {
            status.killed_at_end = Some(count);
            if status.state == ProcessState::Running {
                status.state = ProcessState::Lost;
                status.ended = Some(Instant::now());
            }
        });
    }

    /// Waits until the program's own output is complete, even if other processes hold its pipe.
    async fn drain(&self) {
        let mut status = self.status();
        let Ok(ended) =
            status.wait_for(|status| status.ended.is_some()).await.map(|status| status.ended)
        else {
            return;
        };
        let (ended, raw_bytes) =
            (ended.unwrap_or_else(Instant::now), self.received.lock().raw_bytes);
        loop {
            let (last_received, has_partial_line) = {
                let received = self.received.lock();
                (received.last_received, received.has_partial_line)
            };
            let due = match has_partial_line {
                true => ended + DRAIN_TIMEOUT,
                false => (last_received.max(ended) + SILENCE_TIMEOUT).min(ended + DRAIN_TIMEOUT),
            };
            let now = Instant::now();
            if now >= due && self.has_emptied_pipe_since(raw_bytes) {
                break;
            }
            let closed = status.wait_for(ProgramStatus::may_report_end);
            let next = due.min(now + SILENCE_TIMEOUT).max(now + POLL_INTERVAL);
            if tokio::time::timeout_at(next.into(), closed).await.is_ok() {
                break;
            }
        }
        self.status.send_modify(|status| status.is_own_output_complete = true);
    }

    /// Whether the bytes that were in the pipe when `raw_bytes` had been received have been received, too: the pipe is
    /// empty, or as many bytes as it can hold have arrived since.
    fn has_emptied_pipe_since(&self, raw_bytes: u64) -> bool {
        let output_fd = self.live.lock().as_ref().map(|live| live.output_fd.clone());
        let has_unread = output_fd.is_some_and(|output_fd| {
            rustix::io::ioctl_fionread(output_fd.get_ref()).is_ok_and(|waiting| waiting > 0)
        });
        let received = self.received.lock();
        received.raw_bytes - raw_bytes >= PIPE_BYTES as u64 || (!has_unread && !received.is_reading)
    }
}
