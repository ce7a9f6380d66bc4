//! `cargo xtask torture`: long runs in which processes are killed and compete, and nothing said may be lost.

mod clients;
mod edit_kills;
mod edit_rounds;
mod edit_swaps;
mod http_flood;
mod kills;
mod neighbours;
mod nets;
mod pipe_flood;
mod programs;
mod random;
pub(crate) mod server_flood;
mod todos;
mod watch;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::helve::Helve;
use crate::options::Options;
use crate::scratch::Scratch;
use crate::{Outcome, Verdict};

struct Run {
    name: &'static str,
    what: &'static str,
    /// How many rounds, unless `--count` says otherwise.
    count: usize,
    /// Says what was done, or what was lost.
    run: fn(&Ground<'_>) -> Result<String, String>,
}

const RUNS: &[Run] = &[
    Run { name: "kills", what: "kill -9 of parallel writers", count: 500, run: kills::run },
    Run {
        name: "neighbours",
        what: "two servers and two callers on one data folder",
        count: 200,
        run: neighbours::run,
    },
    Run {
        name: "clients",
        what: "64 calls at once of 8 clients over HTTP; rounds are seconds",
        count: 60,
        run: clients::run,
    },
    Run {
        name: "http-flood",
        what: "10,000 slow connections, bodies and heads of 1 GiB, streams asked for, and a client at work",
        count: 1_000_000,
        run: http_flood::run,
    },
    Run {
        name: "pipe-flood",
        what: "messages to `helve mcp` without reading, then large ones and one without end",
        count: 1_000_000,
        run: pipe_flood::run,
    },
    Run {
        name: "server-flood",
        what: "messages of an MCP server that floods us, while our own tools are used",
        count: 1_000_000,
        run: server_flood::run,
    },
    Run {
        name: "programs",
        what: "programs that do not want to end, and kill -9 of their Helve",
        count: 1000,
        run: programs::run,
    },
    Run {
        name: "edit-kills",
        what: "kill -9 of servers that change files",
        count: 10_000,
        run: edit_kills::run,
    },
    Run {
        name: "edit-rounds",
        what: "two servers that change different lines of the same files",
        count: 100_000,
        run: edit_rounds::run,
    },
    Run {
        name: "edit-swaps",
        what: "files that become links to the outside under the writer",
        count: 100_000,
        run: edit_swaps::run,
    },
    Run {
        name: "traced",
        what: "every harmless flag, run under a tracer",
        count: 1,
        run: nets::traced,
    },
    Run {
        name: "mutants",
        what: "changed attacks on the shell decision; those it allows are run under a tracer",
        count: 100_000,
        run: nets::mutants,
    },
    Run {
        name: "flows",
        what: "scripts that set variables and change folders in every way, and then use them; those allowed are run, too",
        count: 1_000_000,
        run: nets::flows,
    },
    Run {
        name: "bytes",
        what: "seconds of random texts for the shell decision",
        count: 60,
        run: nets::bytes,
    },
];

/// What a run works with: how often, and where its choices start; the binary in a fresh home is made when asked for.
struct Ground<'o> {
    options: &'o Options,
    scratch: Scratch,
    prepared: OnceLock<Helve>,
    count: usize,
    seed: u64,
}

/// Says ten times how far a run has come.
struct Progress {
    whole: usize,
    done: AtomicUsize,
    start: Instant,
}

impl Progress {
    fn new(whole: usize) -> Progress {
        Progress { whole: whole.max(1), done: AtomicUsize::new(0), start: Instant::now() }
    }

    fn step(&self) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        let tenth = self.whole.div_ceil(10);
        if done.is_multiple_of(tenth) && done <= self.whole {
            println!(
                "   {done} of {} after {:.0} s",
                self.whole,
                self.start.elapsed().as_secs_f32()
            );
        }
    }
}

impl Ground<'_> {
    /// Built and set up for the first run that asks.
    fn helve(&self) -> Result<&Helve, String> {
        if let Some(helve) = self.prepared.get() {
            return Ok(helve);
        }
        let helve = Helve::prepare(self.options, &self.scratch)?;
        Ok(self.prepared.get_or_init(|| helve))
    }
}

pub(crate) fn run(options: &Options) -> Outcome {
    let chosen = options.choose(RUNS, |run| run.name)?;
    if options.list {
        chosen.iter().for_each(|run| println!("{:<12} {} ({})", run.name, run.what, run.count));
        return Ok(Verdict::Good);
    }
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.as_secs());
    let seed = options.seed.unwrap_or(clock);
    let mut failed = Vec::new();
    for run in &chosen {
        let scratch = Scratch::in_memory("torture")?;
        let prepared = OnceLock::new();
        let ground =
            Ground { options, scratch, prepared, count: options.count.unwrap_or(run.count), seed };
        println!("── {}: {}, {} rounds, --seed {seed}", run.name, run.what, ground.count);
        match (run.run)(&ground) {
            Ok(said) => println!("   {said}"),
            Err(why) => {
                println!("   FAILED (--seed {seed}): {why}");
                failed.push(run.name);
            }
        }
    }
    println!("{} of {} runs passed", chosen.len() - failed.len(), chosen.len());
    Ok(if failed.is_empty() { Verdict::Good } else { Verdict::Bad })
}
