//! One hop to a thread that may block, which stops when nobody waits for it any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use helve_core::{BoxFuture, MachineError};

/// Tells blocking work that it should end. To be checked between bounded steps.
pub(crate) struct Stop {
    raised: Arc<AtomicBool>,
    began: Instant,
    deadline: Duration,
}

/// How long work may go on after its deadline before it counts as hung: a file system that does not answer stops nobody else.
const GRACE: Duration = Duration::from_millis(500);

impl Stop {
    #[cfg(test)]
    pub(crate) fn never() -> Self {
        Self { raised: Arc::default(), began: Instant::now(), deadline: Duration::MAX }
    }

    pub(crate) fn check(&self) -> Result<(), MachineError> {
        if self.raised.load(Ordering::Relaxed) {
            return Err(MachineError::Other("it was cancelled".into()));
        }
        if self.began.elapsed() >= self.deadline {
            return Err(MachineError::TimedOut(self.deadline));
        }
        Ok(())
    }
}

/// Runs `work` on a blocking thread. Dropping the future raises its [`Stop`]; work that hangs beyond its deadline is
/// left to itself.
pub(crate) fn hop<'a, T: Send + 'static>(
    deadline: Duration,
    work: impl FnOnce(&Stop) -> Result<T, MachineError> + Send + 'static,
) -> BoxFuture<'a, Result<T, MachineError>> {
    let raised = Arc::new(AtomicBool::new(false));
    let stop = Stop { raised: raised.clone(), began: Instant::now(), deadline };
    Box::pin(async move {
        let _raised_on_drop = RaiseOnDrop(raised);
        let done = tokio::task::spawn_blocking(move || {
            stop.check()?;
            work(&stop)
        });
        match tokio::time::timeout(deadline.saturating_add(GRACE), done).await {
            Ok(done) => done.unwrap_or_else(|failed| Err(MachineError::Other(failed.to_string()))),
            Err(_) => Err(MachineError::TimedOut(deadline)),
        }
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

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn dropping_the_future_stops_the_work() {
        let (tell, told) = mpsc::channel();
        run(async {
            let started = Arc::new(AtomicBool::new(false));
            let seen = started.clone();
            let mut working = hop(LONG, move |stop| {
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
        let result =
            run(hop(Duration::ZERO, |_| -> Result<(), MachineError> { panic!("it began") }));
        assert_eq!(result, Err(MachineError::TimedOut(Duration::ZERO)));
    }

    #[test]
    fn a_call_of_the_system_that_never_returns_is_given_up_and_others_go_on() {
        let (free, freed) = mpsc::channel::<()>();
        run(async {
            let deadline = Duration::from_millis(50);
            let hung = hop(deadline, move |_| {
                freed.recv().map_err(|error| MachineError::Other(error.to_string()))
            });
            let other = hop(LONG, |_| Ok("done"));
            let (hung, other) = tokio::join!(hung, other);
            assert_eq!((hung, other), (Err(MachineError::TimedOut(deadline)), Ok("done")));
            free.send(()).unwrap();
        });
    }

    #[test]
    fn a_panic_is_an_error() {
        let result = run(hop(LONG, |_| -> Result<(), MachineError> { panic!("broken") }));
        assert!(matches!(result, Err(MachineError::Other(why)) if why.contains("panic")));
    }
}
