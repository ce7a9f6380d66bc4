//! Runs the broker in two threads, of which one at a time answers calls.
//!
//! To give a program a handle, the kernel wakes the program, which then wakes the broker. Linux prefers to wake a
//! process on another CPU if that one is idle. In a virtual machine, waking an idle CPU takes longer than all else that
//! is done for a call. Linux does not look for another CPU if the current one runs nothing but processes with the
//! policy `SCHED_IDLE`, so on an idle machine, a thread with this policy answers calls. It hardly gets a CPU while
//! other processes use all of them, and without privileges it cannot change the policy back. So an ordinary thread
//! answers calls while there are such processes.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use super::{Broker, Progress};
use crate::confine::syscalls;

/// How many calls the ordinary thread answers before the other one may take over.
const TRIAL: u32 = 64;
/// How many calls the other thread answers before it checks how long it waited. Each check costs a system call.
const CALLS_PER_CHECK: u32 = 4;
/// The CPUs are busy if a thread waits longer than this for one: the ordinary thread in an average call, the other one
/// between two checks.
const SHORT_WAIT: Duration = Duration::from_micros(20);
const LONG_WAIT: Duration = Duration::from_micros(200);
/// How long the yielding thread does not answer after it had to wait. The time doubles until it answers many calls at
/// once.
const SHORTEST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
const MANY_CALLS: u32 = 5_000;

const STACK_SIZE: usize = 256 << 10;

/// The two threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Worker {
    /// Has the policy `SCHED_IDLE`.
    Yielding,
    Ordinary,
}

/// Which thread answers calls. The one that does holds the lock.
struct Shift {
    broker: Broker,
    turns: Turns,
}

/// Decides which thread answers the next call.
#[derive(Debug)]
struct Turns {
    worker: Worker,
    can_yield: bool,
    /// How many calls the thread has answered since it took over, or since its last trial.
    calls: u32,
    /// The yielding thread does not take over before.
    pause_ends: Option<Instant>,
    next_pause: Duration,
}

impl Turns {
    fn new() -> Self {
        Turns {
            worker: Worker::Ordinary,
            can_yield: true,
            calls: 0,
            pause_ends: None,
            next_pause: SHORTEST_PAUSE,
        }
    }

    /// Counts a call. Returns whether a check is due.
    fn count_call(&mut self) -> bool {
        self.calls = self.calls.saturating_add(1);
        match self.worker {
            Worker::Yielding => self.calls.is_multiple_of(CALLS_PER_CHECK),
            Worker::Ordinary => self.calls == TRIAL,
        }
    }

    /// Decides who continues. Since the last check, the thread waited this long for a CPU.
    fn check(&mut self, now: Instant, waited: Duration) {
        match self.worker {
            Worker::Yielding if waited > LONG_WAIT => {
                self.pause_ends = Some(now + self.next_pause);
                self.next_pause = (self.next_pause * 2).min(LONGEST_PAUSE);
                self.continue_with(Worker::Ordinary);
            }
            Worker::Yielding if self.calls == MANY_CALLS => self.next_pause = SHORTEST_PAUSE,
            Worker::Ordinary => {
                let is_idle = waited < SHORT_WAIT * TRIAL;
                let is_paused = self.pause_ends.is_some_and(|end| now < end);
                let may_yield = self.can_yield && is_idle && !is_paused;
                self.continue_with(if may_yield { Worker::Yielding } else { Worker::Ordinary });
            }
            Worker::Yielding => {}
        }
    }

    /// Lets the ordinary thread answer all calls.
    fn without_yielding(&mut self) {
        self.can_yield = false;
        self.continue_with(Worker::Ordinary);
    }

    fn continue_with(&mut self, worker: Worker) {
        self.worker = worker;
        self.calls = 0;
    }
}

struct Workplace {
    shift: Mutex<Shift>,
    changed: Condvar,
}

/// Starts the ordinary thread, which starts the other one when it is needed. They answer calls until no process makes
/// any.
pub(super) fn start(broker: Broker) -> io::Result<()> {
    let shift = Shift { broker, turns: Turns::new() };
    let place = Arc::new(Workplace { shift: Mutex::new(shift), changed: Condvar::new() });
    spawn(move || work_ordinary(&place))
}

fn spawn(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    Builder::new().stack_size(STACK_SIZE).spawn(work).map(drop)
}

fn work_ordinary(place: &Arc<Workplace>) {
    let clock = WaitClock::of_this_thread();
    if clock.is_none() {
        place.lock().turns.without_yielding();
    }
    let mut has_other = false;
    loop {
        match answer_calls(place, Worker::Ordinary, clock.as_ref()) {
            Progress::Answered => {}
            Progress::Ended => return,
        }
        if !has_other {
            has_other = true;
            let other = Arc::clone(place);
            if spawn(move || work_yielding(&other)).is_err() {
                place.lock().turns.without_yielding();
            }
        }
    }
}

fn work_yielding(place: &Workplace) {
    match WaitClock::of_this_thread().filter(|_| syscalls::yield_to_all().is_ok()) {
        Some(clock) => {
            while let Progress::Answered = answer_calls(place, Worker::Yielding, Some(&clock)) {}
        }
        None => {
            place.lock().turns.without_yielding();
            place.changed.notify_all();
        }
    }
}

/// Waits for this thread's turn and answers calls until it is the other thread's.
fn answer_calls(place: &Workplace, worker: Worker, clock: Option<&WaitClock>) -> Progress {
    let is_other = |shift: &mut Shift| shift.turns.worker != worker;
    let mut shift =
        place.changed.wait_while(place.lock(), is_other).unwrap_or_else(PoisonError::into_inner);
    let read_clock = || clock.map_or(Duration::ZERO, WaitClock::read);
    let mut waited = read_clock();
    while shift.turns.worker == worker {
        match shift.broker.answer_next() {
            Ok(Progress::Answered) => {}
            Ok(Progress::Ended) => return Progress::Ended,
            // Suspended calls fail when this process ends.
            Err(_) => syscalls::exit(1),
        }
        if shift.turns.count_call() {
            let total = read_clock();
            shift.turns.check(Instant::now(), total.saturating_sub(waited));
            waited = total;
        }
    }
    place.changed.notify_all();
    Progress::Answered
}

impl Workplace {
    fn lock(&self) -> MutexGuard<'_, Shift> {
        self.shift.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The time that a thread could have run, but waited for a CPU.
struct WaitClock(File);

impl WaitClock {
    /// Returns `None` if the kernel does not measure it.
    fn of_this_thread() -> Option<Self> {
        let clock = WaitClock(File::open("/proc/thread-self/schedstat").ok()?);
        // The thread runs, so it got a CPU at least once.
        (clock.fields()?[2] > 0).then_some(clock)
    }

    fn read(&self) -> Duration {
        Duration::from_nanos(self.fields().map_or(0, |[_, waited, _]| waited))
    }

    /// Returns how many nanoseconds the thread ran, how many it waited, and how often it got a CPU.
    fn fields(&self) -> Option<[u64; 3]> {
        let mut buffer = [0; 64];
        let count = self.0.read_at(&mut buffer, 0).ok()?;
        let text = str::from_utf8(&buffer[..count]).ok()?;
        let mut numbers = text.split_whitespace().map_while(|number| number.parse().ok());
        Some([numbers.next()?, numbers.next()?, numbers.next()?])
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{CALLS_PER_CHECK, MANY_CALLS, SHORTEST_PAUSE, TRIAL, Turns, WaitClock, Worker};

    const LONG: Duration = Duration::from_millis(3);
    const SHORT: Duration = Duration::from_micros(50);

    #[test]
    fn the_yielding_thread_answers_while_no_thread_has_to_wait() {
        let start = Instant::now();
        let mut turns = Turns::new();
        let answer = |turns: &mut Turns, milliseconds, calls, waited| {
            for _ in 0..calls {
                if turns.count_call() {
                    turns.check(start + Duration::from_millis(milliseconds), waited);
                }
            }
        };
        // The time in milliseconds, how many calls there are then, how long the thread waited, and who answers the next
        // one.
        for (at, calls, waited, expected) in [
            (0, TRIAL - 1, SHORT, Worker::Ordinary),
            (0, 1, SHORT, Worker::Yielding),
            (1, CALLS_PER_CHECK, LONG, Worker::Ordinary),
            (2, TRIAL, SHORT, Worker::Ordinary),
            (250, TRIAL, SHORT, Worker::Ordinary),
            (251, TRIAL, LONG, Worker::Ordinary),
            (251, TRIAL, SHORT, Worker::Yielding),
            (252, CALLS_PER_CHECK, LONG, Worker::Ordinary),
            (751, TRIAL, SHORT, Worker::Ordinary),
            (752, TRIAL, SHORT, Worker::Yielding),
        ] {
            answer(&mut turns, at, calls, waited);
            assert_eq!(turns.worker, expected, "{at}");
        }
        answer(&mut turns, 0, MANY_CALLS, SHORT);
        answer(&mut turns, 0, CALLS_PER_CHECK, LONG);
        assert_eq!(turns.pause_ends, Some(start + SHORTEST_PAUSE));
        turns.without_yielding();
        answer(&mut turns, 9_000, TRIAL, SHORT);
        assert_eq!(turns.worker, Worker::Ordinary);
    }

    #[test]
    fn the_time_that_a_thread_waited_never_decreases() {
        // Not every system measures it.
        if let Some(clock) = WaitClock::of_this_thread() {
            let before = clock.read();
            std::thread::yield_now();
            assert!(clock.read() >= before);
        }
    }
}
