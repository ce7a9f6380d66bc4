//! How fast a server may talk: beyond that it is not read, and waits.

use std::time::Duration;

use tokio::time::Instant;

/// The most messages in a second.
const MOST: u32 = 1_000;
const WINDOW: Duration = Duration::from_secs(1);

/// Counts messages.
pub(super) struct Pace {
    began: Instant,
    count: u32,
}

impl Default for Pace {
    fn default() -> Self {
        Self { began: Instant::now(), count: 0 }
    }
}

impl Pace {
    /// One more message.
    pub(super) fn count(&mut self) {
        self.count = self.count.saturating_add(1);
    }

    /// Waits until another may be read. Dropping the future loses nothing.
    pub(super) async fn wait(&mut self) {
        let now = Instant::now();
        if now.duration_since(self.began) >= WINDOW {
            (self.began, self.count) = (now, 0);
        }
        if self.count >= MOST {
            tokio::time::sleep_until(self.began + WINDOW).await;
            (self.began, self.count) = (Instant::now(), 0);
        }
    }
}
