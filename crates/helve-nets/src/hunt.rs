//! Made-up scripts are judged; those that are allowed are run, and may only do what the decision lists.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use helve_policy::Action;

use crate::judge::judge;
use crate::lists::Listed;
use crate::random::Random;
use crate::traced::{self, Allowed, Policies};
use crate::world::World;

const PROGRESS: usize = 10_000;

/// What makes a script of random choices.
pub(crate) type Maker<'a> = &'a (dyn Fn(&mut Random) -> Listed + Sync);

pub(crate) fn run(
    files: &Path,
    what: &str,
    count: usize,
    seed: u64,
    make: Maker<'_>,
) -> Result<Vec<String>, String> {
    println!("{count} {what}, --seed {seed}");
    let start = Instant::now();
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let allowed: Mutex<Vec<Allowed>> = Mutex::new(Vec::new());
    let work = || -> Result<(), String> {
        let (world, mut policies) = (World::new(), Policies::default());
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return Ok(());
            }
            let own = seed ^ (number as u64).wrapping_mul(0xD134_2543_DE82_EF95);
            let listed = make(&mut Random::new(own));
            let judged = judge(&listed.script, policies.get(&listed.policy)?, &world);
            if judged.action == Action::Allow
                && let Ok(mut allowed) = allowed.lock()
            {
                allowed.push(Allowed { listed, judged });
            }
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            if done.is_multiple_of(PROGRESS) {
                println!("   {done} judged");
            }
        }
    };
    let workers = thread::available_parallelism().map_or(2, usize::from);
    let results: Vec<Result<(), String>> = thread::scope(|scope| {
        let all: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let joined = |_| Err("a judge panicked".to_string());
        all.into_iter().map(|one| one.join().unwrap_or_else(joined)).collect()
    });
    results.into_iter().collect::<Result<(), String>>()?;
    let mut allowed = allowed.into_inner().map_err(|_| "a judge panicked")?;
    let mut seen = HashSet::new();
    // A NUL cannot be passed to a shell; Helve refuses it before judging.
    allowed
        .retain(|one| !one.listed.script.contains('\0') && seen.insert(one.listed.script.clone()));
    println!(
        "judged in {:.1} s; {} different ones allowed and run",
        start.elapsed().as_secs_f32(),
        allowed.len()
    );
    let faults = traced::run_all(files, &World::new(), &allowed)?;
    println!(
        "{count} {what}, {} allowed and run, {} did what was not listed, {:.1} s, --seed {seed}",
        allowed.len(),
        faults.len(),
        start.elapsed().as_secs_f32()
    );
    Ok(faults)
}
