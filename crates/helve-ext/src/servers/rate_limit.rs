//! Limits how many messages per second are read from a server.

use std::time::Duration;

use tokio::time::Instant;

/// Maximum number of messages per window.
const MAX_MESSAGES: u32 = 1_000;
const WINDOW: Duration = Duration::from_secs(1);

/// Counts the messages of the current window.
pub(super) struct RateLimit {
    window_start: Instant,
    count: u32,
}

impl Default for RateLimit {
    fn default() -> Self {
        Self { window_start: Instant::now(), count: 0 }
    }
}

impl RateLimit {
    pub(super) fn record_message(&mut self) {
        self.count = self.count.saturating_add(1);
    }

    /// Waits until another message may be read. Cancel safe.
    pub(super) async fn wait(&mut self) {
        let now = Instant::now();
        if now.duration_since(self.window_start) >= WINDOW {
            (self.window_start, self.count) = (now, 0);
        }
        if self.count >= MAX_MESSAGES {
            tokio::time::sleep_until(self.window_start + WINDOW).await;
            (self.window_start, self.count) = (Instant::now(), 0);
        }
    }
}
