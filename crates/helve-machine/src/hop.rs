//! One hop to a thread that may block, which stops when nobody waits for it any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use helve_core::{BoxFuture, MachineError};

/// Tells blocking work that it should end. To be checked between bounded steps.
pub(crate) struct Stop {
    raised: Arc<AtomicBool>,
    began: Instant,
    deadline: Option<Duration>,
}

impl Stop {
    #[cfg(test)]
    pub(crate) fn never() -> Self {
        Self { raised: Arc::default(), began: Instant::now(), deadline: None }
    }

    pub(crate) fn check(&self) -> Result<(), MachineError> {
        if self.raised.load(Ordering::Relaxed) {
            return Err(MachineError::Other("it was cancelled".into()));
        }
        match self.deadline {
            Some(deadline) if self.began.elapsed() >= deadline => {
                Err(MachineError::TimedOut(deadline))
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// How long the work may take.
pub(crate) enum Within {
    Deadline(Duration),
    Unbounded,
}

/// Runs `work` on a blocking thread. Dropping the future raises its [`Stop`].
pub(crate) fn hop<'a, T: Send + 'static>(
    within: Within,
    work: impl FnOnce(&Stop) -> Result<T, MachineError> + Send + 'static,
) -> BoxFuture<'a, Result<T, MachineError>> {
    let raised = Arc::new(AtomicBool::new(false));
    let deadline = match within {
        Within::Deadline(deadline) => Some(deadline),
        Within::Unbounded => None,
    };
    let stop = Stop { raised: raised.clone(), began: Instant::now(), deadline };
    Box::pin(async move {
        let _raised_on_drop = RaiseOnDrop(raised);
        let done = tokio::task::spawn_blocking(move || {
            stop.check()?;
            work(&stop)
        });
        done.await.unwrap_or_else(|failed| Err(MachineError::Other(failed.to_string())))
    })
}

struct RaiseOnDrop(Arc<AtomicBool>);

impl Drop for RaiseOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::fixture::run;

    #[test]
    fn dropping_the_future_stops_the_work() {
        let (tell, told) = mpsc::channel();
        run(async {
            let started = Arc::new(AtomicBool::new(false));
            let seen = started.clone();
            let mut working = hop(Within::Unbounded, move |stop| {
                seen.store(true, Ordering::Relaxed);
                let ended = loop {
                    if let Err(ended) = stop.check() {
                        break ended;
                    }
                    std::thread::yield_now();
                };
                tell.send(ended).map_err(|error| MachineError::Other(error.to_string()))
            });
            // Polled once, so that it begins; then dropped.
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
        assert_eq!(told.recv(), Ok(MachineError::Other("it was cancelled".into())));
    }

    #[test]
    fn a_deadline_in_the_past_is_told_before_the_work_begins() {
        let within = Within::Deadline(Duration::ZERO);
        let result = run(hop(within, |_| -> Result<(), MachineError> { panic!("it began") }));
        assert_eq!(result, Err(MachineError::TimedOut(Duration::ZERO)));
    }

    #[test]
    fn a_panic_is_an_error() {
        let result =
            run(hop(Within::Unbounded, |_| -> Result<(), MachineError> { panic!("broken") }));
        assert!(matches!(result, Err(MachineError::Other(why)) if why.contains("panic")));
    }
}
