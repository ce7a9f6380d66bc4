//! Runs the broker in two threads, of which one at a time answers calls.
//!
//! To give a program a handle, the kernel wakes the program, which then wakes the broker. Linux prefers to wake a process on
//! another CPU if that one is idle. In a virtual machine, waking an idle CPU takes longer than all else that is done for a call.
//! Linux does not look for another CPU if the current one runs nothing but processes with the policy `SCHED_IDLE`, so a thread
//! with this policy answers calls. It hardly gets a CPU while other processes use all of them, and without privileges it cannot
//! change the policy back. So when it had to wait for a CPU, an ordinary thread takes over for a while.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use super::{Broker, Progress};
use crate::confine::syscalls;

/// A thread that waits longer than this for a CPU competes with other processes.
const MAX_WAIT: Duration = Duration::from_micros(200);
/// How many calls are answered before the yielding thread finds out how long it waited.
const CALLS_PER_CHECK: u32 = 8;
/// How long the ordinary thread answers. The time doubles until the other thread passes many checks.
const SHORTEST_SHIFT: Duration = Duration::from_millis(250);
const LONGEST_SHIFT: Duration = Duration::from_secs(4);
const MANY_CHECKS: u32 = 500;

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
    /// When the ordinary thread hands over; `None` for never.
    ends: Option<Instant>,
    next_length: Duration,
    /// How many checks the yielding thread has passed since it took over.
    passed: u32,
}

impl Turns {
    fn new() -> Self {
        Turns { worker: Worker::Yielding, ends: None, next_length: SHORTEST_SHIFT, passed: 0 }
    }

    /// Continues after calls during which the thread waited this long for a CPU.
    fn after_calls(&mut self, now: Instant, waited: Duration) {
        match self.worker {
            Worker::Yielding if waited > MAX_WAIT => {
                self.worker = Worker::Ordinary;
                self.ends = Some(now + self.next_length);
                self.next_length = (self.next_length * 2).min(LONGEST_SHIFT);
            }
            Worker::Yielding => {
                self.passed = self.passed.saturating_add(1);
                if self.passed == MANY_CHECKS {
                    self.next_length = SHORTEST_SHIFT;
                }
            }
            Worker::Ordinary if self.ends.is_some_and(|end| now >= end) => {
                self.worker = Worker::Yielding;
                self.passed = 0;
            }
            Worker::Ordinary => {}
        }
    }

    /// Lets the ordinary thread answer all calls.
    fn without_yielding(&mut self) {
        self.worker = Worker::Ordinary;
        self.ends = None;
    }
}

struct Workplace {
    shift: Mutex<Shift>,
    changed: Condvar,
}

/// Starts the threads. They answer calls until no process makes any.
pub(super) fn start(broker: Broker) -> io::Result<()> {
    let shift = Shift { broker, turns: Turns::new() };
    let place = Arc::new(Workplace { shift: Mutex::new(shift), changed: Condvar::new() });
    let yielding = Arc::clone(&place);
    let spawn = |work: Box<dyn FnOnce() + Send>| Builder::new().stack_size(STACK_SIZE).spawn(work);
    if spawn(Box::new(move || work_yielding(&yielding))).is_err() {
        place.lock().turns.without_yielding();
    }
    spawn(Box::new(move || work(&place, Worker::Ordinary, None))).map(drop)
}

fn work_yielding(place: &Workplace) {
    let clock = WaitClock::of_this_thread().filter(|_| syscalls::yield_to_all().is_ok());
    match clock {
        Some(clock) => work(place, Worker::Yielding, Some(&clock)),
        None => {
            place.lock().turns.without_yielding();
            place.changed.notify_all();
        }
    }
}

/// Answers calls whenever it is this thread's turn.
fn work(place: &Workplace, worker: Worker, clock: Option<&WaitClock>) {
    let mut shift = place.lock();
    loop {
        let is_other = |shift: &mut Shift| shift.turns.worker != worker;
        shift = place.changed.wait_while(shift, is_other).unwrap_or_else(PoisonError::into_inner);
        let mut waited = clock.map_or(Duration::ZERO, WaitClock::read);
        let mut calls = 0_u32;
        while shift.turns.worker == worker {
            match shift.broker.answer_next() {
                Ok(Progress::Answered) => {}
                Ok(Progress::Ended) => return,
                // Suspended calls fail when this process ends.
                Err(_) => syscalls::exit(1),
            }
            calls = calls.wrapping_add(1);
            if calls.is_multiple_of(CALLS_PER_CHECK) {
                let total = clock.map_or(Duration::ZERO, WaitClock::read);
                shift.turns.after_calls(Instant::now(), total.saturating_sub(waited));
                waited = total;
            }
        }
        place.changed.notify_all();
    }
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

    use super::{MANY_CHECKS, Turns, WaitClock, Worker};

    #[test]
    fn the_ordinary_thread_takes_over_when_the_other_one_has_to_wait() {
        const LONG: Duration = Duration::from_millis(3);
        const SHORT: Duration = Duration::from_micros(5);
        let start = Instant::now();
        let mut turns = Turns::new();
        // The time of a check in milliseconds, how long the thread waited, and who answers the next calls.
        for (at, waited, expected) in [
            (0, SHORT, Worker::Yielding),
            (1, LONG, Worker::Ordinary),
            (250, LONG, Worker::Ordinary),
            (251, LONG, Worker::Yielding),
            (252, LONG, Worker::Ordinary),
            (751, SHORT, Worker::Ordinary),
            (752, SHORT, Worker::Yielding),
        ] {
            turns.after_calls(start + Duration::from_millis(at), waited);
            assert_eq!(turns.worker, expected, "{at}");
        }
        for _ in 0..MANY_CHECKS {
            turns.after_calls(start, SHORT);
        }
        turns.after_calls(start, LONG);
        assert_eq!(turns.ends, Some(start + Duration::from_millis(250)));
        turns.without_yielding();
        turns.after_calls(start + Duration::from_secs(9), SHORT);
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
