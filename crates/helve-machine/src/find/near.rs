//! Files whose names resemble a name.

use std::sync::Arc;

use helve_core::MachineError;
use helve_core::machine::{Counts, Found};
use helve_text::near::nearest;
use parking_lot::Mutex;

use super::{counted, file};
use crate::walk::{self, Ground, Met, Stop, Unseen, Visited, Visitor, Walked, Way};

/// Resembling names that one thread keeps; more would help nobody.
const MOST_NAMES: usize = 20_000;

pub(super) fn find(
    ground: &Arc<Ground>,
    way: Way,
    stop: &Stop,
    name: &str,
    most: usize,
) -> Result<(Vec<Found>, Counts, Unseen), MachineError> {
    let shares: Vec<Arc<Mutex<Share>>> = (0..walk::threads()).map(|_| Arc::default()).collect();
    let look = |share: &Arc<Mutex<Share>>| Look { wanted: name.into(), share: share.clone() };
    let Walked { skipped, ended, unseen } =
        walk::walk(ground, way, stop, shares.iter().map(look).collect())?;
    let mut all: Vec<(String, Vec<u8>)> = Vec::new();
    let mut files = 0;
    for share in shares {
        let share = std::mem::take(&mut *share.lock());
        all.extend(share.near);
        files += share.files;
    }
    all.sort_unstable_by(|one, other| one.1.cmp(&other.1));
    let names = nearest(name, all.iter().map(|(name, _)| name.as_str()), most);
    let mut found = Vec::new();
    for name in names {
        let called = all.iter().filter(|(other, _)| other == name);
        found.extend(called.map(|(_, path)| file(path, None)));
    }
    found.truncate(most);
    Ok((found, counted(files, skipped, ended), unseen))
}

/// What one thread found: names and paths.
#[derive(Default)]
struct Share {
    near: Vec<(String, Vec<u8>)>,
    files: u64,
}

struct Look {
    wanted: String,
    share: Arc<Mutex<Share>>,
}

impl Visitor for Look {
    fn file(&mut self, met: &Met<'_>) -> Visited {
        let name = met.name.to_string_lossy();
        if nearest(&self.wanted, [&*name], 1).is_empty() {
            return Visited::Whole;
        }
        let mut share = self.share.lock();
        share.files += 1;
        if share.near.len() < MOST_NAMES {
            share.near.push((name.into_owned(), met.path.to_vec()));
        }
        Visited::Whole
    }
}
