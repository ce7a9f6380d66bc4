//! `cargo xtask torture`: long runs in which processes are killed and compete, and nothing said may be lost.

mod clients;
mod kills;
mod neighbours;
mod programs;
mod random;
mod todos;

use std::time::{SystemTime, UNIX_EPOCH};

use crate::command_line::Options;
use crate::helve::Helve;
use crate::scratch::Scratch;
use crate::{Outcome, Verdict};

struct Run {
    name: &'static str,
    what: &'static str,
    /// How many rounds, unless `--count` says otherwise.
    count: usize,
    /// Says what was done, or what was lost.
    run: fn(&Ground) -> Result<String, String>,
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
        name: "programs",
        what: "programs that do not want to end, and kill -9 of their Helve",
        count: 1000,
        run: programs::run,
    },
];

/// What a run works with: the binary in a fresh home, how often, and where its choices start.
struct Ground {
    helve: Helve,
    count: usize,
    seed: u64,
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
        let scratch = Scratch::new("torture")?;
        let ground = Ground {
            helve: Helve::prepare(options, &scratch)?,
            count: options.count.unwrap_or(run.count),
            seed,
        };
        println!("── {}: {}, {} rounds, --seed {seed}", run.name, run.what, ground.count);
        match (run.run)(&ground) {
            Ok(said) => println!("   {said}"),
            Err(why) => {
                println!("   FAILED: {why}");
                failed.push(run.name);
            }
        }
    }
    println!("{} of {} runs passed", chosen.len() - failed.len(), chosen.len());
    Ok(if failed.is_empty() { Verdict::Good } else { Verdict::Bad })
}
