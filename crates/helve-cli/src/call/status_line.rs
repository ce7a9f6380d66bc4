//! The status line of `helve call`: how long the call has been running, and its last progress.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use helve::{EventDelivery, EventKind, Subscription};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

use crate::output;

/// How often the elapsed time is updated. A call that ends before that has no status line unless it reports progress.
const UPDATE_INTERVAL: Duration = Duration::from_secs(1);

/// Shows the status of a call on standard error until [`StatusLine::remove`]. For terminals only.
pub(super) struct StatusLine {
    task: JoinHandle<()>,
    is_shown: Arc<AtomicBool>,
}

impl StatusLine {
    pub(super) fn show(events: Subscription) -> Self {
        let is_shown = Arc::new(AtomicBool::new(false));
        let task = tokio::spawn(show_status(events, is_shown.clone()));
        Self { task, is_shown }
    }

    pub(super) async fn remove(self) {
        self.task.abort();
        // Waits, so that nothing is drawn after the line was removed.
        self.task.await.ok();
        if self.is_shown.load(Ordering::Relaxed) {
            output::status("");
        }
    }
}

async fn show_status(mut events: Subscription, is_shown: Arc<AtomicBool>) {
    let mut status = StatusText::default();
    let mut ticks = interval(UPDATE_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        tokio::select! {
            delivery = events.next() => match delivery {
                Some(EventDelivery::Event(event)) => status.update(event.kind, Instant::now()),
                Some(EventDelivery::Missed(_)) => {}
                None => return,
            },
            _ = ticks.tick() => {}
        }
        if let Some(text) = status.text(Instant::now()) {
            is_shown.store(true, Ordering::Relaxed);
            output::status(&text);
        }
    }
}

/// What the status line is made of.
#[derive(Default)]
struct StatusText {
    /// When the tool started, or a person answered last.
    running_since: Option<Instant>,
    /// Number of questions that a person has not answered yet.
    open_questions: usize,
    progress: String,
}

impl StatusText {
    fn update(&mut self, event: EventKind, now: Instant) {
        match event {
            EventKind::Running { .. } => {
                self.running_since.get_or_insert(now);
            }
            EventKind::Progress(progress) => {
                if let Some(text) = progress.text {
                    self.progress = text;
                }
            }
            EventKind::Asked { .. } => self.open_questions += 1,
            EventKind::Answered { .. } => {
                self.open_questions = self.open_questions.saturating_sub(1);
                self.running_since = Some(now);
            }
            EventKind::Started { .. } | EventKind::Edited { .. } | EventKind::Finished(_) => {}
        }
    }

    /// Returns what to show; `None` if the screen belongs to a question, or there is nothing to say yet.
    fn text(&self, now: Instant) -> Option<String> {
        let elapsed = now.saturating_duration_since(self.running_since?);
        if self.open_questions > 0 {
            return None;
        }
        let last = self.progress.lines().rev().find(|line| !line.trim().is_empty());
        match (last, elapsed < UPDATE_INTERVAL) {
            (None, true) => None,
            (Some(last), true) => Some(last.into()),
            (last, false) => {
                Some(format!("{}  {}", output::elapsed(elapsed), last.unwrap_or("running")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use helve::Progress;
    use serde_json::Value;

    use super::*;

    fn check(events: &[(u64, EventKind)], expected: Expect) {
        let start = Instant::now();
        let mut status = StatusText::default();
        let mut shown = String::new();
        for (seconds, event) in events {
            let now = start + Duration::from_secs(*seconds);
            status.update(event.clone(), now);
            for later in [0, 3, 75] {
                let text = status.text(now + Duration::from_secs(later));
                shown.push_str(&format!("{seconds}+{later}: {}\n", text.as_deref().unwrap_or("-")));
            }
        }
        expected.assert_eq(&shown);
    }

    fn running() -> EventKind {
        EventKind::Running { input: Value::Null.into() }
    }

    fn progress(text: &str) -> EventKind {
        EventKind::Progress(Progress::text(text))
    }

    #[test]
    fn a_silent_call_shows_how_long_it_runs() {
        check(
            &[(0, running())],
            expect![[r#"
                0+0: -
                0+3: 3 s  running
                0+75: 1 min 15 s  running
            "#]],
        );
    }

    #[test]
    fn the_last_line_of_output_is_shown_with_the_time() {
        check(
            &[(0, running()), (10, progress("one\ntwo\n\n"))],
            expect![[r#"
                0+0: -
                0+3: 3 s  running
                0+75: 1 min 15 s  running
                10+0: 10 s  two
                10+3: 13 s  two
                10+75: 1 min 25 s  two
            "#]],
        );
    }

    #[test]
    fn nothing_is_drawn_over_a_question() {
        check(
            &[
                (0, running()),
                (1, EventKind::Asked { summary: "bash".into() }),
                (20, EventKind::Answered { yes: true }),
            ],
            expect![[r#"
                0+0: -
                0+3: 3 s  running
                0+75: 1 min 15 s  running
                1+0: -
                1+3: -
                1+75: -
                20+0: -
                20+3: 3 s  running
                20+75: 1 min 15 s  running
            "#]],
        );
    }
}
