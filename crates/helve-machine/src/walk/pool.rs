//! A pool of threads that share a queue of work until it is empty. The caller does not wait for hung threads.

use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use helve_core::MachineError;
use helve_core::machine::WalkEnd;
use parking_lot::{Condvar, Mutex};

use super::stop::StopSignal;

/// Maximum number of threads; more would only wait for the same disk.
const MAX_THREADS: usize = 8;
/// How long the caller waits for threads after the deadline.
const GRACE: Duration = Duration::from_millis(50);

/// Processes work items on one thread. New items go to the queue.
pub(super) trait Worker<W>: Send + 'static {
    fn work(&mut self, item: W, queue: &WorkQueue<W>);
}

/// The remaining work. The newest item is taken first, so that a tree is walked depth-first.
pub(super) struct WorkQueue<W> {
    state: Mutex<PoolState<W>>,
    /// Notifies threads that wait for work.
    work: Condvar,
    /// Notifies the caller that a thread has exited.
    exited: Condvar,
    stop: StopSignal,
}

struct PoolState<W> {
    items: Vec<W>,
    /// Threads that may still add work.
    busy: usize,
    /// Threads that have not exited.
    alive: usize,
    /// Threads that wait for work.
    idle: usize,
    /// Starts the threads that have not been started yet.
    unstarted: Vec<Box<dyn FnOnce() + Send>>,
    is_interrupted: bool,
    has_panicked: bool,
}

impl<W: Send + 'static> WorkQueue<W> {
    /// Adds work, and starts one more thread if there is enough for it.
    pub(super) fn add(&self, items: impl IntoIterator<Item = W>) {
        let mut state = self.state.lock();
        state.items.extend(items);
        // The thread that adds work takes one item itself.
        let has_enough_work = state.alive == 0 || state.items.len() > state.idle + 1;
        let next = if has_enough_work { state.unstarted.pop() } else { None };
        if next.is_some() {
            state.alive += 1;
        }
        let has_waiting = state.idle > 0;
        drop(state);
        if has_waiting {
            self.work.notify_all();
        }
        if let Some(next) = next {
            next();
        }
    }

    /// Records that an item was not completed.
    pub(super) fn mark_interrupted(&self) {
        self.state.lock().is_interrupted = true;
    }

    fn take(&self) -> Option<W> {
        let mut state = self.state.lock();
        loop {
            if self.stop.should_stop() {
                state.is_interrupted |= !state.items.is_empty();
                return None;
            }
            if let Some(item) = state.items.pop() {
                state.busy += 1;
                return Some(item);
            }
            if state.busy == 0 {
                return None;
            }
            state.idle += 1;
            self.work.wait(&mut state);
            state.idle -= 1;
        }
    }

    fn finish_item(&self) {
        let mut state = self.state.lock();
        state.busy -= 1;
        if state.busy == 0 && state.idle > 0 {
            drop(state);
            self.work.notify_all();
        }
    }
}

/// Processes the first items and everything that follows from them. A worker that hangs past the deadline is abandoned.
pub(super) fn run<W: Send + 'static>(
    first: Vec<W>,
    workers: Vec<impl Worker<W>>,
    stop: &StopSignal,
) -> Result<WalkEnd, MachineError> {
    let state = PoolState {
        items: Vec::new(),
        busy: 0,
        alive: 0,
        idle: 0,
        unstarted: Vec::new(),
        is_interrupted: false,
        has_panicked: false,
    };
    let queue = Arc::new(WorkQueue {
        state: Mutex::new(state),
        work: Condvar::new(),
        exited: Condvar::new(),
        stop: stop.clone(),
    });
    for worker in workers {
        let shared = queue.clone();
        let call = move || start(worker, shared);
        queue.state.lock().unstarted.push(Box::new(call));
    }
    queue.add(first);
    let mut state = queue.state.lock();
    while state.alive > 0 {
        match stop.deadline() {
            None => queue.exited.wait(&mut state),
            Some(deadline) => {
                let wait_limit = deadline + GRACE;
                queue.exited.wait_until(&mut state, wait_limit);
                if Instant::now() >= wait_limit {
                    break;
                }
            }
        }
    }
    // A start function holds the queue, and the queue holds the start functions: break the cycle.
    let never_started = std::mem::take(&mut state.unstarted);
    let (is_interrupted, has_panicked) =
        (state.is_interrupted || state.alive > 0, state.has_panicked);
    let has_unprocessed = !is_interrupted && !state.items.is_empty();
    drop(state);
    drop(never_started);
    if has_panicked {
        return Err(MachineError::Other("a worker thread panicked".into()));
    }
    if has_unprocessed {
        return Err(MachineError::Other("no thread could be started".into()));
    }
    Ok(if is_interrupted { WalkEnd::Incomplete } else { WalkEnd::Complete })
}

fn start<W: Send + 'static>(mut worker: impl Worker<W>, queue: Arc<WorkQueue<W>>) {
    let exit_guard = ExitGuard(queue.clone());
    let body = move || {
        let exit_guard = exit_guard;
        while let Some(item) = exit_guard.0.take() {
            let busy = BusyGuard(&exit_guard.0);
            worker.work(item, busy.0);
        }
    };
    // If no thread can be spawned, the existing ones continue; dropping the guard in the closure notifies them.
    std::thread::Builder::new().name("helve-walk".into()).spawn(body).map(|_| ()).unwrap_or(());
}

struct BusyGuard<'a, W: Send + 'static>(&'a WorkQueue<W>);

impl<W: Send + 'static> Drop for BusyGuard<'_, W> {
    fn drop(&mut self) {
        self.0.finish_item();
    }
}

struct ExitGuard<W: Send + 'static>(Arc<WorkQueue<W>>);

impl<W: Send + 'static> Drop for ExitGuard<W> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.alive -= 1;
        state.has_panicked |= std::thread::panicking();
        drop(state);
        self.0.work.notify_all();
        self.0.exited.notify_all();
    }
}

/// Returns the number of threads for a walk.
pub(super) fn thread_count() -> usize {
    // Cached, because the query is slow.
    static THREADS: LazyLock<usize> = LazyLock::new(|| {
        std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(MAX_THREADS)
    });
    *THREADS
}
