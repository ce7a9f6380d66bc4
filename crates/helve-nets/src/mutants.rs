//! `mutants`: changed attacks are judged; those that are allowed are run, and may only do what the decision lists.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use helve_core::Action;

use crate::judge::judge;
use crate::lists::{self, Listed};
use crate::mutate;
use crate::random::Random;
use crate::traced::{self, Allowed, Policies};
use crate::world::World;

const PROGRESS: usize = 10_000;

pub(crate) fn run(files: &Path, count: usize, seed: u64) -> Result<Vec<String>, String> {
    println!("{count} mutants, --seed {seed}");
    let start = Instant::now();
    let attacks = lists::attacks();
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let allowed: Mutex<Vec<Allowed>> = Mutex::new(Vec::new());
    let work = || -> Result<(), String> {
        let (world, mut policies) = (World::new(), Policies::default());
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return Ok(());
            }
            let listed = mutant(&attacks, seed, number);
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
        "{count} mutants, {} allowed and run, {} did what was not listed, {:.1} s, --seed {seed}",
        allowed.len(),
        faults.len(),
        start.elapsed().as_secs_f32()
    );
    Ok(faults)
}

fn mutant(attacks: &[Listed], seed: u64, number: usize) -> Listed {
    let mut random = Random::new(seed ^ (number as u64).wrapping_mul(0xD134_2543_DE82_EF95));
    let attack = &attacks[random.below(attacks.len())];
    let other = &attacks[random.below(attacks.len())];
    let script = mutate::several(&attack.script, &other.script, &mut random);
    Listed { policy: attack.policy.clone(), script }
}
