//! Decides whether a server is ready, from the status and the progress that it reports.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

/// How long to wait for the first status of a server that is known to send one.
const FIRST_STATUS: Duration = Duration::from_secs(10);
/// A server that has been loading for this long counts as ready.
const MAX_LOADING: Duration = Duration::from_secs(300);
/// Work whose progress was not reported for this long no longer makes the server count as busy. Some servers report a
/// lasting problem as progress that never ends.
const MAX_PROGRESS_SILENCE: Duration = Duration::from_secs(15);
/// Maximum number of progress tokens that are remembered.
const MAX_TOKENS: usize = 1_000;

/// The status and the progress that a server has reported.
#[derive(Debug, Default)]
pub(crate) struct Readiness {
    status: ServerStatus,
    /// For each progress token, when the server last reported it.
    progress: HashMap<String, Instant>,
    /// Number of times that the server went from busy to ready.
    finished_count: u64,
}

/// The last `experimental/serverStatus` of a server.
#[derive(Clone, Copy, Debug, Default)]
enum ServerStatus {
    /// The server does not send its status. Only its progress is known.
    #[default]
    Unknown,
    /// The server has not sent its first status yet.
    Expected {
        since: Instant,
    },
    Loading {
        since: Instant,
    },
    Ready,
}

impl Readiness {
    /// Records that the server will report its readiness with `experimental/serverStatus`.
    pub(crate) fn expect_readiness_report(&mut self) {
        if let ServerStatus::Unknown = self.status {
            self.status = ServerStatus::Expected { since: Instant::now() };
        }
    }

    /// Records the field `quiescent` of a status: whether the server has loaded everything.
    pub(crate) fn set_status(&mut self, is_quiescent: bool) {
        let was_busy = self.busy_until().is_some();
        self.status = match (is_quiescent, self.status) {
            (true, _) => ServerStatus::Ready,
            (false, loading @ ServerStatus::Loading { .. }) => loading,
            (false, _) => ServerStatus::Loading { since: Instant::now() },
        };
        self.count_finished(was_busy);
    }

    /// Records a `$/progress` notification. Its kind is `begin`, `report` or `end`.
    pub(crate) fn set_progress(&mut self, token: String, kind: &str) {
        let was_busy = self.busy_until().is_some();
        let has_room = self.progress.len() < MAX_TOKENS || self.progress.contains_key(&token);
        match kind {
            "begin" | "report" if has_room => {
                self.progress.insert(token, Instant::now());
            }
            "end" => {
                self.progress.remove(&token);
            }
            _ => {}
        }
        self.count_finished(was_busy);
    }

    fn count_finished(&mut self, was_busy: bool) {
        if was_busy && self.busy_until().is_none() {
            self.finished_count += 1;
        }
    }

    /// Returns the number of times that the server went from busy to ready.
    pub(crate) fn finished_count(&self) -> u64 {
        self.finished_count
    }

    /// Returns until when a busy server counts as busy if it reports no further progress; `None` if it is not busy.
    ///
    /// If the status is known, progress is ignored: servers also report progress of work that does not affect their
    /// answers.
    pub(crate) fn busy_until(&self) -> Option<Instant> {
        let until = match self.status {
            ServerStatus::Ready => None,
            ServerStatus::Loading { since } => Some(since + MAX_LOADING),
            ServerStatus::Expected { since } => Some(since + FIRST_STATUS),
            ServerStatus::Unknown => {
                self.progress.values().max().map(|last| *last + MAX_PROGRESS_SILENCE)
            }
        };
        until.filter(|until| *until > Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each row: the messages of a server, for how many more seconds the server then counts as busy, and how often it
    /// finished something.
    #[tokio::test(start_paused = true)]
    async fn progress_counts_only_without_a_status() {
        for (messages, expected, finished_count) in [
            ("", None, 0),
            ("begin", Some(15), 0),
            ("report", Some(15), 0),
            ("begin wait report", Some(15), 0),
            ("begin wait", Some(5), 0),
            ("begin wait wait", None, 0),
            ("begin end", None, 1),
            ("begin other end", Some(15), 0),
            ("begin other end end", Some(15), 0),
            ("expect", Some(10), 0),
            ("expect wait", None, 0),
            ("expect loading", Some(300), 0),
            ("loading wait loading", Some(290), 0),
            ("loading ready", None, 1),
            ("begin ready", None, 1),
            ("ready begin", None, 0),
            ("ready loading", Some(300), 0),
            ("ready expect", None, 0),
        ] {
            let mut readiness = Readiness::default();
            for word in messages.split(' ') {
                match word {
                    "expect" => readiness.expect_readiness_report(),
                    "loading" => readiness.set_status(false),
                    "ready" => readiness.set_status(true),
                    "other" => readiness.set_progress("other".into(), "begin"),
                    "wait" => tokio::time::advance(Duration::from_secs(10)).await,
                    kind => readiness.set_progress("token".into(), kind),
                }
            }
            let seconds = readiness.busy_until().map(|until| (until - Instant::now()).as_secs());
            let found = (seconds, readiness.finished_count());
            assert_eq!(found, (expected, finished_count), "{messages}");
        }
    }
}
