//! `cargo xtask torture`: long tests with killed and competing processes. No change that was reported as done may be
//! lost.

mod agent_kills;
mod clients;
mod edit_kills;
mod edit_merges;
mod edit_models;
mod edit_swaps;
mod http_flood;
mod kills;
mod measurements;
mod nets;
mod pipe_flood;
mod programs;
pub(crate) mod server_flood;
mod shared_data;
mod todos;
mod transcripts;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fastrand::Rng;

use crate::helve::Helve;
use crate::options::Options;
use crate::scratch::Scratch;
use crate::{Outcome, Verdict};

struct TortureTest {
    name: &'static str,
    description: &'static str,
    /// Number of rounds. What a round is depends on the test.
    count: usize,
    /// Number of rounds with `--short`, with which all tests together take about five minutes.
    short_count: usize,
    /// Runs the test and returns a report. The error says what went wrong.
    run: fn(&Context<'_>) -> Result<String, String>,
}

const TESTS: &[TortureTest] = &[
    TortureTest {
        name: "kills",
        description: "kill -9 of parallel writers",
        count: 500,
        short_count: 300,
        run: kills::run,
    },
    TortureTest {
        name: "shared-data",
        description: "two servers and two callers with one data folder",
        count: 200,
        short_count: 100,
        run: shared_data::run,
    },
    TortureTest {
        name: "clients",
        description: "64 parallel calls of 8 clients over HTTP; the count is in seconds",
        count: 60,
        short_count: 20,
        run: clients::run,
    },
    TortureTest {
        name: "http-flood",
        description: "10,000 slow connections, requests of 1 GiB and many streams, while clients work",
        count: 1_000_000,
        short_count: 20_000,
        run: http_flood::run,
    },
    TortureTest {
        name: "pipe-flood",
        description: "messages to `helve mcp` from a client that does not read, oversized ones included",
        count: 1_000_000,
        short_count: 100_000,
        run: pipe_flood::run,
    },
    TortureTest {
        name: "server-flood",
        description: "messages from an MCP server that floods Helve, while other tools are used",
        count: 1_000_000,
        short_count: 1_000_000,
        run: server_flood::run,
    },
    TortureTest {
        name: "programs",
        description: "programs that are hard to end, and kill -9 of the Helve process that started them",
        count: 1000,
        short_count: 100,
        run: programs::run,
    },
    TortureTest {
        name: "edit-kills",
        description: "kill -9 of servers that change files",
        count: 10_000,
        short_count: 2_000,
        run: edit_kills::run,
    },
    TortureTest {
        name: "edit-merges",
        description: "two servers that change different lines of the same files",
        count: 100_000,
        short_count: 10_000,
        run: edit_merges::run,
    },
    TortureTest {
        name: "edit-models",
        description: "generated edits with the faults that models make, and edits that only resemble them",
        count: 20_000,
        short_count: 5_000,
        run: edit_models::run,
    },
    TortureTest {
        name: "edit-swaps",
        description: "files that are replaced by links to the outside during a write",
        count: 100_000,
        short_count: 20_000,
        run: edit_swaps::run,
    },
    TortureTest {
        name: "agent-kills",
        description: "kill -9 of agents in the middle of runs with 30 steps",
        count: 200,
        short_count: 40,
        run: agent_kills::run,
    },
    TortureTest {
        name: "transcripts",
        description: "random transcripts, each request of which every protocol must accept",
        count: 10_000,
        short_count: 10_000,
        run: transcripts::run,
    },
    TortureTest {
        name: "known-scripts",
        description: "every harmless flag, run under a tracer; a sample with --short",
        count: 1,
        short_count: 1,
        run: nets::traced,
    },
    TortureTest {
        name: "mutants",
        description: "mutated attacks on the shell decision; those it allows run under a tracer",
        count: 100_000,
        short_count: 10_000,
        run: nets::mutants,
    },
    TortureTest {
        name: "data-flow",
        description: "scripts that set variables and change folders; those allowed run under a tracer",
        count: 1_000_000,
        short_count: 100_000,
        run: nets::data_flow,
    },
    TortureTest {
        name: "random-texts",
        description: "random texts for the shell decision; the count is in seconds",
        count: 60,
        short_count: 10,
        run: nets::random_texts,
    },
];

/// The options, folders and binary of a test.
struct Context<'o> {
    options: &'o Options,
    scratch: Scratch,
    helve: OnceLock<Helve>,
    count: usize,
    seed: u64,
}

impl Context<'_> {
    /// Returns the binary, which is built for the first test that needs it.
    fn helve(&self) -> Result<&Helve, String> {
        if let Some(helve) = self.helve.get() {
            return Ok(helve);
        }
        let helve = Helve::prepare(self.options, &self.scratch)?;
        Ok(self.helve.get_or_init(|| helve))
    }

    /// Returns a random number generator that repeats its choices for the same seed. Each thread uses its own `stream`.
    fn rng(&self, stream: u64) -> Rng {
        Rng::with_seed(self.seed.wrapping_add(stream))
    }
}

/// Prints the progress of a test, ten times in all.
struct Progress {
    total: usize,
    done: AtomicUsize,
    start: Instant,
}

impl Progress {
    fn new(total: usize) -> Progress {
        Progress { total: total.max(1), done: AtomicUsize::new(0), start: Instant::now() }
    }

    fn step(&self) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        let tenth = self.total.div_ceil(10);
        if done.is_multiple_of(tenth) && done <= self.total {
            let seconds = self.start.elapsed().as_secs_f32();
            println!("   {done} of {} after {seconds:.0} s", self.total);
        }
    }
}

fn random_duration(rng: &mut Rng, max: Duration) -> Duration {
    Duration::from_micros(rng.u64(..u64::try_from(max.as_micros()).unwrap_or(u64::MAX).max(1)))
}

pub(crate) fn run(options: &Options) -> Outcome {
    let chosen = options.choose(TESTS, |test| test.name)?;
    let count_of = |test: &TortureTest| {
        options.count.unwrap_or(if options.short { test.short_count } else { test.count })
    };
    if options.list {
        for test in &chosen {
            println!("{:<12} {} ({})", test.name, test.description, count_of(test));
        }
        return Ok(Verdict::Good);
    }
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.as_secs());
    let seed = options.seed.unwrap_or(clock);
    let mut failed = Vec::new();
    for test in &chosen {
        let scratch = Scratch::in_memory("torture")?;
        let context =
            Context { options, scratch, helve: OnceLock::new(), count: count_of(test), seed };
        println!("── {}: {}, count {}, --seed {seed}", test.name, test.description, context.count);
        let start = Instant::now();
        match (test.run)(&context) {
            Ok(report) => println!("   {report}"),
            Err(why) => {
                println!("   FAILED (--seed {seed}): {why}");
                failed.push(test.name);
            }
        }
        println!("   {} took {:.0} s", test.name, start.elapsed().as_secs_f32());
    }
    println!("{} of {} tests passed", chosen.len() - failed.len(), chosen.len());
    if failed.is_empty() {
        return Ok(Verdict::Good);
    }
    println!("FAILED: {}", failed.join(", "));
    Ok(Verdict::Bad)
}
