//! `mutants`: changed attacks.

use std::path::Path;

use crate::lists::{self, Listed};
use crate::random::Random;
use crate::{hunt, mutate};

pub(crate) fn run(files: &Path, count: usize, seed: u64) -> Result<Vec<String>, String> {
    let attacks = lists::attacks();
    let make = |random: &mut Random| {
        let attack = &attacks[random.below(attacks.len())];
        let other = &attacks[random.below(attacks.len())];
        let script = mutate::several(&attack.script, &other.script, random);
        Listed { policy: attack.policy.clone(), script }
    };
    hunt::run(files, "mutants", count, seed, &make)
}
