//! The signal that ends a walk, because its result is no longer needed or its deadline has passed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Tells a walk to stop. The walk checks it between bounded steps.
#[derive(Clone)]
pub(crate) struct StopSignal {
    dropped: Arc<AtomicBool>,
    /// `None` if it is too far ahead for an `Instant`.
    deadline: Option<Instant>,
}

impl StopSignal {
    pub(crate) fn new(dropped: Arc<AtomicBool>, after: Duration) -> Self {
        Self { dropped, deadline: Instant::now().checked_add(after) }
    }

    /// Returns the same signal with a deadline that is at most `after` from now.
    pub(crate) fn with_shorter_deadline(&self, after: Duration) -> Self {
        let new_deadline = Instant::now().checked_add(after);
        let deadline = match (self.deadline, new_deadline) {
            (Some(old), Some(new)) => Some(old.min(new)),
            (old, new) => old.or(new),
        };
        Self { dropped: self.dropped.clone(), deadline }
    }

    pub(crate) fn should_stop(&self) -> bool {
        self.is_dropped() || self.is_expired()
    }

    pub(crate) fn is_dropped(&self) -> bool {
        self.dropped.load(Ordering::Relaxed)
    }

    pub(crate) fn is_expired(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }
}
