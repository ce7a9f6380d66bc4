//! `mutants`: mutates attack scripts, and runs those that the shell decision allows.

use std::path::Path;

use crate::cases::{self, ScriptCase};
use crate::random::Random;
use crate::{mutate, random_scripts};

pub(crate) fn run(sample_folder: &Path, count: usize, seed: u64) -> Result<Vec<String>, String> {
    let attacks = cases::attacks();
    let generate = |random: &mut Random| {
        let attack = &attacks[random.below(attacks.len())];
        let other = &attacks[random.below(attacks.len())];
        let script = mutate::mutate(&attack.script, &other.script, random);
        ScriptCase { policy: attack.policy.clone(), script }
    };
    random_scripts::run(sample_folder, "mutants", count, seed, &generate)
}
