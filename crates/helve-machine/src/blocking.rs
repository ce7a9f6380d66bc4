//! Runs blocking work on another thread and cancels it when its result is no longer needed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use helve_core::{BoxFuture, MachineError};

/// Tells blocking work to stop: it was cancelled or it took too long. The work checks it between bounded steps.
pub(crate) struct Cancellation {
    cancelled: Arc<AtomicBool>,
    began: Instant,
    timeout: Duration,
}

/// How long work may run past its timeout before it counts as hung, for example on a file system that does not answer.
const GRACE: Duration = Duration::from_millis(500);

impl Cancellation {
    #[cfg(test)]
    pub(crate) fn never() -> Self {
        Self::after(Duration::MAX)
    }

    /// For work that nobody cancels, but that may not take too long.
    pub(crate) fn after(timeout: Duration) -> Self {
        Self { cancelled: Arc::default(), began: Instant::now(), timeout }
    }

    pub(crate) fn check(&self) -> Result<(), MachineError> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(MachineError::Other("the operation was cancelled".into()));
        }
        if self.began.elapsed() >= self.timeout {
            return Err(MachineError::TimedOut(self.timeout));
        }
        Ok(())
    }
}

/// Runs `work` on a blocking thread. Dropping the future cancels it; work that hangs beyond its timeout is abandoned.
pub(crate) fn run_blocking<'a, T: Send + 'static>(
    timeout: Duration,
    work: impl FnOnce(&Cancellation) -> Result<T, MachineError> + Send + 'static,
) -> BoxFuture<'a, Result<T, MachineError>> {
    let cancelled = Arc::new(AtomicBool::new(false));
    let stop = Cancellation { cancelled: cancelled.clone(), began: Instant::now(), timeout };
    Box::pin(async move {
        let _cancel_on_drop = CancelOnDrop(cancelled);
        let work = tokio::task::spawn_blocking(move || {
            stop.check()?;
            work(&stop)
        });
        match tokio::time::timeout(timeout.saturating_add(GRACE), work).await {
            Ok(joined) => {
                joined.unwrap_or_else(|failed| Err(MachineError::Other(failed.to_string())))
            }
            Err(_) => Err(MachineError::TimedOut(timeout)),
        }
    })
}

struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::fixture::run;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn dropping_the_future_stops_the_work() {
        let (sender, receiver) = mpsc::channel();
        run(async {
            let started = Arc::new(AtomicBool::new(false));
            let started_inside = started.clone();
            let mut working = run_blocking(LONG, move |stop| {
                started_inside.store(true, Ordering::Relaxed);
                let ended = loop {
                    if let Err(ended) = stop.check() {
                        break ended;
                    }
                    std::thread::yield_now();
                };
                sender.send(ended).map_err(|error| MachineError::Other(error.to_string()))
            });
            // Poll once to start the work, then drop the future.
            let first = std::future::poll_fn(|context| {
                std::task::Poll::Ready(working.as_mut().poll(context))
            })
            .await;
            assert!(first.is_pending());
            while !started.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            drop(working);
        });
        assert_eq!(receiver.recv(), Ok(MachineError::Other("the operation was cancelled".into())));
    }

    #[test]
    fn an_expired_timeout_is_reported_before_the_work_begins() {
        let result = run(run_blocking(Duration::ZERO, |_| -> Result<(), MachineError> {
            panic!("the work began")
        }));
        assert_eq!(result, Err(MachineError::TimedOut(Duration::ZERO)));
    }

    #[test]
    fn a_hanging_system_call_is_abandoned_and_other_work_continues() {
        let (release, released) = mpsc::channel::<()>();
        run(async {
            let timeout = Duration::from_millis(50);
            let hung = run_blocking(timeout, move |_| {
                released.recv().map_err(|error| MachineError::Other(error.to_string()))
            });
            let other = run_blocking(LONG, |_| Ok("done"));
            let (hung, other) = tokio::join!(hung, other);
            assert_eq!((hung, other), (Err(MachineError::TimedOut(timeout)), Ok("done")));
            release.send(()).unwrap();
        });
    }

    #[test]
    fn a_panic_is_an_error() {
        let result = run(run_blocking(LONG, |_| -> Result<(), MachineError> { panic!("broken") }));
        assert!(matches!(result, Err(MachineError::Other(why)) if why.contains("panic")));
    }
}
