//! What the kernel says about a process while it is tortured.

use std::fs;
use std::time::{Duration, Instant};

/// Memory in MiB: before, at its highest, and after.
pub(super) struct Memory {
    process: u32,
    base: f64,
}

impl Memory {
    pub(super) fn of(process: u32) -> Result<Memory, String> {
        Ok(Memory { process, base: resident(process)? })
    }

    /// Says what it came to; an error if it ever was more than `most` MiB above where it began.
    pub(super) fn judged(&self, most: f64) -> Result<String, String> {
        let (peak, now) = (field(self.process, "VmHWM:")?, resident(self.process)?);
        let said = format!("memory {:.1}, at most {peak:.1}, then {now:.1} MiB", self.base);
        if peak > self.base + most { Err(format!("{said}: too much")) } else { Ok(said) }
    }
}

/// What a process holds now, in MiB.
pub(super) fn resident(process: u32) -> Result<f64, String> {
    field(process, "VmRSS:")
}

fn field(process: u32, name: &str) -> Result<f64, String> {
    let path = format!("/proc/{process}/status");
    let status = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kibibytes =
        line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok());
    kibibytes.map(|kibibytes| kibibytes / 1024.0).ok_or_else(|| format!("{path} has no {name}"))
}

/// How many file handles a process has open.
pub(super) fn handles(process: u32) -> Result<usize, String> {
    let path = format!("/proc/{process}/fd");
    Ok(fs::read_dir(&path).map_err(|error| format!("{path}: {error}"))?.count())
}

/// Waits until a process has no more handles than `most`; how many it has by then.
pub(super) fn handles_back_to(process: u32, most: usize, limit: Duration) -> Result<usize, String> {
    let start = Instant::now();
    loop {
        let now = handles(process)?;
        if now <= most || start.elapsed() > limit {
            return Ok(now);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Times of calls, sorted when they are read.
#[derive(Default)]
pub(super) struct Times(Vec<Duration>);

impl Times {
    pub(super) fn add(&mut self, time: Duration) {
        self.0.push(time);
    }

    pub(super) fn extend(&mut self, other: Times) {
        self.0.extend(other.0);
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// The time that this share of them does not exceed.
    pub(super) fn at(&mut self, share: f64) -> Duration {
        self.0.sort_unstable();
        let index = (self.0.len() as f64 * share) as usize;
        self.0.get(index.min(self.0.len().saturating_sub(1))).copied().unwrap_or_default()
    }

    pub(super) fn said(&mut self) -> String {
        let milliseconds = |time: Duration| time.as_secs_f64() * 1000.0;
        format!(
            "median {:.2} ms, p99 {:.2} ms, slowest {:.1} ms",
            milliseconds(self.at(0.5)),
            milliseconds(self.at(0.99)),
            milliseconds(self.at(1.0)),
        )
    }
}
