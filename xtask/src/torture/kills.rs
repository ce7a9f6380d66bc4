//! Kills `helve call todowrite` at random moments, in several sessions at once. No finished write may be lost.

use std::process::Stdio;
use std::thread;
use std::time::Duration;

use fastrand::Rng;

use super::todos::{self, ExpectedList};
use super::{Context, random_duration};
use crate::helve::{CALL_LIMIT, Helve};
use crate::process;

const SESSIONS: u64 = 4;
/// Number of writes after which the list is read and checked.
const READ_EVERY: u64 = 10;
/// Maximum number of writes per kill. If more are needed, the writes finish too fast to be killed, and the test fails.
const MAX_ATTEMPTS: usize = 20;

#[derive(Default)]
struct KillCounts {
    killed: usize,
    finished: usize,
}

pub(super) fn run(context: &Context<'_>) -> Result<String, String> {
    let helve = &context.helve()?;
    let usual_time = measure_write(helve)?;
    let share = context.count.div_ceil(SESSIONS as usize);
    let counts: Result<Vec<KillCounts>, String> = thread::scope(|scope| {
        let writers: Vec<_> = (0..SESSIONS)
            .map(|number| Writer::new(helve, context.rng(number), number, usual_time))
            .map(|mut writer| scope.spawn(move || writer.write_and_kill(share)))
            .collect();
        let panicked = |_| Err("a writer panicked".to_owned());
        writers.into_iter().map(|writer| writer.join().unwrap_or_else(panicked)).collect()
    });
    let counts = counts?;
    let killed: usize = counts.iter().map(|it| it.killed).sum();
    let finished: usize = counts.iter().map(|it| it.finished).sum();
    let databases = todos::check_databases(&helve.data())?;
    Ok(format!("{killed} killed, {finished} finished, no reported write was lost, {databases}"))
}

/// Returns how long an undisturbed write takes.
fn measure_write(helve: &Helve) -> Result<Duration, String> {
    let finished = helve.call("usual", "todowrite", &todos::list(0))?;
    let took = finished.took;
    finished.success("helve call todowrite").map(|_| took)
}

/// Writes to one session, with one process after another.
struct Writer<'a> {
    helve: &'a Helve,
    session: String,
    rng: Rng,
    expected: ExpectedList,
    number: u64,
    /// Maximum time after which a process is killed.
    kill_window: Duration,
}

impl<'a> Writer<'a> {
    fn new(helve: &'a Helve, rng: Rng, session: u64, usual_time: Duration) -> Writer<'a> {
        Writer {
            helve,
            session: format!("torture-{session}"),
            rng,
            expected: ExpectedList::default(),
            number: session * 1_000_000_000,
            kill_window: usual_time * 2,
        }
    }

    /// Writes until `times` writes were killed, and checks the list from time to time.
    fn write_and_kill(&mut self, times: usize) -> Result<KillCounts, String> {
        let mut counts = KillCounts::default();
        while counts.killed < times {
            if counts.killed + counts.finished > times * MAX_ATTEMPTS {
                return Err(format!("{}: the writes are too fast to be killed", self.session));
            }
            let has_finished = self.write().map_err(|why| format!("{}: {why}", self.session))?;
            // The window is adjusted so that about half of the writes finish, and some are killed shortly before their
            // end.
            self.kill_window = if has_finished {
                self.kill_window * 19 / 20
            } else {
                (self.kill_window * 21 / 20).min(CALL_LIMIT)
            };
            counts.finished += usize::from(has_finished);
            counts.killed += usize::from(!has_finished);
            if self.number.is_multiple_of(READ_EVERY) || counts.killed == times {
                self.check_list().map_err(|why| format!("{}: {why}", self.session))?;
            }
        }
        Ok(counts)
    }

    /// Starts a write and kills it after a random delay. Returns whether it finished before.
    fn write(&mut self) -> Result<bool, String> {
        self.number += 1;
        let delay = random_duration(&mut self.rng, self.kill_window);
        let mut command =
            self.helve.call_command(&self.session, "todowrite", &todos::list(self.number));
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| format!("helve: {error}"))?;
        match process::wait(&mut child, delay)? {
            None => {
                self.expected.add_killed(self.number);
                Ok(false)
            }
            Some(status) if status.success() => {
                self.expected.add_finished(self.number);
                Ok(true)
            }
            Some(status) => {
                Err(format!("write {} was not killed and failed: {status}", self.number))
            }
        }
    }

    fn check_list(&mut self) -> Result<(), String> {
        self.expected.check(todos::read(self.helve, &self.session)?)
    }
}
