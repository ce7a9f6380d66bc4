//! Generates scripts and runs those that the shell decision of helve-policy allows. Each must have only the effects
//! that the analysis listed when it allowed the script.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use crate::cases::ScriptCase;
use crate::decision::judge;
use crate::known_scripts::{self, AllowedScript, PolicyCache};
use crate::random::Random;
use crate::sample_files::SampleFiles;

/// Number of scripts after which progress is printed.
const PROGRESS_INTERVAL: usize = 10_000;

/// Generates a script from random choices.
pub(crate) type ScriptGenerator<'a> = &'a (dyn Fn(&mut Random) -> ScriptCase + Sync);

/// Generates and tests `count` scripts. `what` names them in the output. Returns a line for each failure.
pub(crate) fn run(
    sample_folder: &Path,
    what: &str,
    count: usize,
    seed: u64,
    generate: ScriptGenerator<'_>,
) -> Result<Vec<String>, String> {
    println!("{count} {what}, --seed {seed}");
    let start = Instant::now();
    let (next, judged_count) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let allowed: Mutex<Vec<AllowedScript>> = Mutex::new(Vec::new());
    let work = || -> Result<(), String> {
        let (samples, mut policies) = (SampleFiles::new(), PolicyCache::default());
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return Ok(());
            }
            let script_seed = seed ^ (number as u64).wrapping_mul(0xD134_2543_DE82_EF95);
            let case = generate(&mut Random::new(script_seed));
            let decision = judge(&case.script, policies.get(&case.policy)?, &samples);
            if decision.is_understood_and_allowed()
                && let Ok(mut allowed) = allowed.lock()
            {
                allowed.push(AllowedScript { case, decision });
            }
            let judged_count = judged_count.fetch_add(1, Ordering::Relaxed) + 1;
            if judged_count.is_multiple_of(PROGRESS_INTERVAL) {
                println!("   {judged_count} judged");
            }
        }
    };
    let workers = thread::available_parallelism().map_or(2, usize::from);
    let results: Vec<Result<(), String>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let panicked = |_| Err("a worker panicked".to_string());
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(panicked)).collect()
    });
    results.into_iter().collect::<Result<(), String>>()?;
    let mut allowed = allowed.into_inner().map_err(|_| "a worker panicked")?;
    let mut seen = HashSet::new();
    // A script with a NUL cannot be passed to a shell. Helve refuses it before judging.
    allowed.retain(|it| !it.case.script.contains('\0') && seen.insert(it.case.script.clone()));
    println!(
        "judged in {:.1} s; {} different scripts allowed",
        start.elapsed().as_secs_f32(),
        allowed.len()
    );
    let failures = known_scripts::run_all(sample_folder, &SampleFiles::new(), &allowed)?;
    println!(
        "{count} {what}, {} allowed and run, {} did something the decision did not list, {:.1} s, --seed {seed}",
        allowed.len(),
        failures.len(),
        start.elapsed().as_secs_f32()
    );
    Ok(failures)
}
