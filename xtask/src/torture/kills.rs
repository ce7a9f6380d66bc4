//! `helve call todowrite` killed at random moments, from several sides at once.

use std::process::Stdio;
use std::thread;
use std::time::Duration;

use super::Ground;
use super::random::Random;
use super::todos::{self, Expected};
use crate::helve::{CALL_LIMIT, Helve};
use crate::process;

const SESSIONS: u64 = 4;
/// A list is read back after so many writes.
const LOOK_EVERY: u64 = 10;
/// Attempts for each wanted kill, before we say that the process is too quick to be hit.
const MOST_ATTEMPTS: usize = 20;

#[derive(Default)]
struct Tally {
    killed: usize,
    finished: usize,
}

pub(super) fn run(ground: &Ground<'_>) -> Result<String, String> {
    let helve = &ground.helve()?;
    let usual = usual_time(helve)?;
    let share = ground.count.div_ceil(SESSIONS as usize);
    let tallies: Result<Vec<Tally>, String> = thread::scope(|scope| {
        let writers: Vec<_> = (0..SESSIONS)
            .map(|stream| Writer::new(helve, Random::new(ground.seed, stream), stream, usual))
            .map(|mut writer| scope.spawn(move || writer.write_until_killed(share)))
            .collect();
        let joined = |_| Err("a writer panicked".to_owned());
        writers.into_iter().map(|writer| writer.join().unwrap_or_else(joined)).collect()
    });
    let total = tallies?.into_iter().fold(Tally::default(), |sum, tally| Tally {
        killed: sum.killed + tally.killed,
        finished: sum.finished + tally.finished,
    });
    let databases = todos::check_databases(&helve.data())?;
    let Tally { killed, finished } = total;
    Ok(format!("{killed} killed, {finished} finished, nothing reported was lost, {databases}"))
}

/// How long an undisturbed write takes.
fn usual_time(helve: &Helve) -> Result<Duration, String> {
    let finished = helve.call("usual", "todowrite", &todos::list(0))?;
    let took = finished.took;
    finished.good("helve call todowrite").map(|_| took)
}

/// One session, written by one process after the other.
struct Writer<'a> {
    helve: &'a Helve,
    session: String,
    random: Random,
    expected: Expected,
    number: u64,
    /// Kills fall within this time from the start.
    span: Duration,
}

impl<'a> Writer<'a> {
    fn new(helve: &'a Helve, random: Random, stream: u64, usual: Duration) -> Writer<'a> {
        Writer {
            helve,
            session: format!("torture-{stream}"),
            random,
            expected: Expected::default(),
            number: stream * 1_000_000_000,
            span: usual * 2,
        }
    }

    fn write_until_killed(&mut self, times: usize) -> Result<Tally, String> {
        let mut tally = Tally::default();
        while tally.killed < times {
            if tally.killed + tally.finished > times * MOST_ATTEMPTS {
                return Err(format!("{}: the writes are too quick to be hit", self.session));
            }
            let survived = self.write().map_err(|what| format!("{}: {what}", self.session))?;
            // Drifts to where half of the writes survive, so that kills fall near their end, too.
            self.span =
                if survived { self.span * 19 / 20 } else { (self.span * 21 / 20).min(CALL_LIMIT) };
            tally.finished += usize::from(survived);
            tally.killed += usize::from(!survived);
            if self.number.is_multiple_of(LOOK_EVERY) || tally.killed == times {
                self.look().map_err(|what| format!("{}: {what}", self.session))?;
            }
        }
        Ok(tally)
    }

    /// One write, killed at some moment unless it has ended by then; whether it had.
    fn write(&mut self) -> Result<bool, String> {
        self.number += 1;
        let moment = Duration::from_micros(
            self.random.below(u64::try_from(self.span.as_micros()).unwrap_or(u64::MAX)),
        );
        let mut command =
            self.helve.call_command(&self.session, "todowrite", &todos::list(self.number));
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| format!("helve: {error}"))?;
        match process::wait(&mut child, moment)? {
            None => {
                self.expected.killed(self.number);
                Ok(false)
            }
            Some(status) if status.success() => {
                self.expected.finished(self.number);
                Ok(true)
            }
            Some(status) => {
                Err(format!("write {} was not killed and failed: {status}", self.number))
            }
        }
    }

    fn look(&mut self) -> Result<(), String> {
        self.expected.meet(todos::read(self.helve, &self.session)?)
    }
}
