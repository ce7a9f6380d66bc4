//! Threads that share a heap of work until none is left, and one that waits for them no longer than it has to.

use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use helve_core::MachineError;
use helve_core::machine::Ended;
use parking_lot::{Condvar, Mutex};

use super::stop::Stop;

/// More threads than this only wait for the same disk.
const MOST_THREADS: usize = 8;
/// How long a thread may take to notice that the time is over before it is waited for no longer.
const GRACE: Duration = Duration::from_millis(50);

/// What one thread does with a piece of work; new pieces go to the heap.
pub(super) trait Worker<W>: Send + 'static {
    fn work(&mut self, piece: W, heap: &Heap<W>);
}

/// Work that is left, newest on top: so that a tree is walked to the bottom before it is walked in breadth.
pub(super) struct Heap<W> {
    state: Mutex<State<W>>,
    /// Told to those who wait for work.
    work: Condvar,
    /// Told to the one who waits for the end.
    left: Condvar,
    stop: Stop,
}

struct State<W> {
    left: Vec<W>,
    /// Threads that may still bring new work.
    busy: usize,
    /// Threads that have not ended.
    alive: usize,
    /// Threads that wait for work.
    idle: usize,
    /// Whoever has not been called yet.
    reserve: Vec<Box<dyn FnOnce() + Send>>,
    is_cut: bool,
    has_panicked: bool,
}

impl<W: Send + 'static> Heap<W> {
    /// Adds work, and calls one more thread if there is enough for it.
    pub(super) fn add(&self, pieces: impl IntoIterator<Item = W>) {
        let mut state = self.state.lock();
        state.left.extend(pieces);
        // The one who adds takes a piece for itself.
        let is_plenty = state.alive == 0 || state.left.len() > state.idle + 1;
        let next = if is_plenty { state.reserve.pop() } else { None };
        if next.is_some() {
            state.alive += 1;
        }
        let is_awaited = state.idle > 0;
        drop(state);
        if is_awaited {
            self.work.notify_all();
        }
        if let Some(next) = next {
            next();
        }
    }

    /// Says that a piece was not done to its end.
    pub(super) fn cut(&self) {
        self.state.lock().is_cut = true;
    }

    fn take(&self) -> Option<W> {
        let mut state = self.state.lock();
        loop {
            if self.stop.is_reached() {
                state.is_cut |= !state.left.is_empty();
                return None;
            }
            if let Some(piece) = state.left.pop() {
                state.busy += 1;
                return Some(piece);
            }
            if state.busy == 0 {
                return None;
            }
            state.idle += 1;
            self.work.wait(&mut state);
            state.idle -= 1;
        }
    }

    fn done(&self) {
        let mut state = self.state.lock();
        state.busy -= 1;
        if state.busy == 0 && state.idle > 0 {
            drop(state);
            self.work.notify_all();
        }
    }
}

/// Lets the workers do the first pieces and all that comes of them. After the deadline a worker that hangs is left behind.
pub(super) fn run<W: Send + 'static>(
    first: Vec<W>,
    workers: Vec<impl Worker<W>>,
    stop: &Stop,
) -> Result<Ended, MachineError> {
    let state = State {
        left: Vec::new(),
        busy: 0,
        alive: 0,
        idle: 0,
        reserve: Vec::new(),
        is_cut: false,
        has_panicked: false,
    };
    let heap = Arc::new(Heap {
        state: Mutex::new(state),
        work: Condvar::new(),
        left: Condvar::new(),
        stop: stop.clone(),
    });
    for worker in workers {
        let shared = heap.clone();
        let call = move || start(worker, shared);
        heap.state.lock().reserve.push(Box::new(call));
    }
    heap.add(first);
    let mut state = heap.state.lock();
    while state.alive > 0 {
        match stop.deadline() {
            None => heap.left.wait(&mut state),
            Some(deadline) => {
                let patience = deadline + GRACE;
                heap.left.wait_until(&mut state, patience);
                if Instant::now() >= patience {
                    break;
                }
            }
        }
    }
    // A reserve that was not needed holds the heap, and the heap holds the reserve.
    let unneeded = std::mem::take(&mut state.reserve);
    let (is_cut, has_panicked) = (state.is_cut || state.alive > 0, state.has_panicked);
    let is_undone = !is_cut && !state.left.is_empty();
    drop(state);
    drop(unneeded);
    if has_panicked {
        return Err(MachineError::Other("a thread failed from within".into()));
    }
    if is_undone {
        return Err(MachineError::Other("no thread could be started".into()));
    }
    Ok(if is_cut { Ended::Deadline } else { Ended::Complete })
}

fn start<W: Send + 'static>(mut worker: impl Worker<W>, heap: Arc<Heap<W>>) {
    let leaving = Leaving(heap.clone());
    let body = move || {
        let leaving = leaving;
        while let Some(piece) = leaving.0.take() {
            let busy = Busy(&leaving.0);
            worker.work(piece, busy.0);
        }
    };
    // Where no thread can be had, the one that is there goes on alone; the guard in the closure tells the others.
    std::thread::Builder::new().name("helve-walk".into()).spawn(body).map(|_| ()).unwrap_or(());
}

struct Busy<'a, W: Send + 'static>(&'a Heap<W>);

impl<W: Send + 'static> Drop for Busy<'_, W> {
    fn drop(&mut self) {
        self.0.done();
    }
}

struct Leaving<W: Send + 'static>(Arc<Heap<W>>);

impl<W: Send + 'static> Drop for Leaving<W> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.alive -= 1;
        state.has_panicked |= std::thread::panicking();
        drop(state);
        self.0.work.notify_all();
        self.0.left.notify_all();
    }
}

/// How many threads a walk has.
pub(super) fn threads() -> usize {
    // The system takes its time to answer.
    static THREADS: LazyLock<usize> = LazyLock::new(|| {
        std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(MOST_THREADS)
    });
    *THREADS
}
