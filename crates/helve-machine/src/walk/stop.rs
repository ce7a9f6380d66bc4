//! When a walk has to end: nobody waits for it any more, or its time is over.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// To be looked at between bounded steps.
#[derive(Clone)]
pub(crate) struct Stop {
    dropped: Arc<AtomicBool>,
    /// `None` where it lies too far ahead to be told.
    deadline: Option<Instant>,
}

impl Stop {
    pub(crate) fn new(dropped: Arc<AtomicBool>, after: Duration) -> Self {
        Self { dropped, deadline: Instant::now().checked_add(after) }
    }

    /// The same, with less time.
    pub(crate) fn sooner(&self, after: Duration) -> Self {
        let sooner = Instant::now().checked_add(after);
        let deadline = match (self.deadline, sooner) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        Self { dropped: self.dropped.clone(), deadline }
    }

    pub(crate) fn is_reached(&self) -> bool {
        self.is_dropped() || self.is_late()
    }

    pub(crate) fn is_dropped(&self) -> bool {
        self.dropped.load(Ordering::Relaxed)
    }

    pub(crate) fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }
}
