//! Measurements of a server under load: latencies, memory growth, open file handles.

use std::fs;
use std::time::{Duration, Instant};

use crate::process::{peak_memory, resident_memory};

/// Measures how much the memory of a process grows.
pub(super) struct MemoryGrowth {
    process: u32,
    start: f64,
}

impl MemoryGrowth {
    pub(super) fn start(process: u32) -> Result<MemoryGrowth, String> {
        Ok(MemoryGrowth { process, start: resident_memory(process)? })
    }

    /// Reports the memory at the start, at its peak and now. It is an error if the peak is more than `limit` MiB above
    /// the start.
    pub(super) fn check(&self, limit: f64) -> Result<String, String> {
        let (peak, now) = (peak_memory(self.process)?, resident_memory(self.process)?);
        let report = format!("memory: {:.1} MiB, peak {peak:.1}, now {now:.1}", self.start);
        if peak > self.start + limit { Err(format!("{report}: too much")) } else { Ok(report) }
    }
}

pub(super) fn count_handles(process: u32) -> Result<usize, String> {
    let path = format!("/proc/{process}/fd");
    Ok(fs::read_dir(&path).map_err(|error| format!("{path}: {error}"))?.count())
}

/// Waits until a process has at most `max` file handles, and returns how many it has then or at the timeout.
pub(super) fn wait_for_handles(
    process: u32,
    max: usize,
    timeout: Duration,
) -> Result<usize, String> {
    let start = Instant::now();
    loop {
        let count = count_handles(process)?;
        if count <= max || start.elapsed() > timeout {
            return Ok(count);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[derive(Default)]
pub(super) struct Latencies(Vec<Duration>);

impl Latencies {
    pub(super) fn add(&mut self, latency: Duration) {
        self.0.push(latency);
    }

    pub(super) fn extend(&mut self, other: Latencies) {
        self.0.extend(other.0);
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the latency that the given share of calls (0 to 1) does not exceed.
    pub(super) fn quantile(&mut self, share: f64) -> Duration {
        self.0.sort_unstable();
        let index = (self.0.len() as f64 * share) as usize;
        self.0.get(index.min(self.0.len().saturating_sub(1))).copied().unwrap_or_default()
    }

    pub(super) fn report(&mut self) -> String {
        let milliseconds = |latency: Duration| latency.as_secs_f64() * 1000.0;
        format!(
            "median {:.2} ms, p99 {:.2} ms, slowest {:.1} ms",
            milliseconds(self.quantile(0.5)),
            milliseconds(self.quantile(0.99)),
            milliseconds(self.quantile(1.0)),
        )
    }
}
