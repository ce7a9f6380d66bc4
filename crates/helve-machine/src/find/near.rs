//! Finds files whose names are similar to a given name.

use std::sync::Arc;

use helve_core::MachineError;
use helve_core::machine::{FoundFile, SearchCounts};
use helve_text::near::nearest;
use parking_lot::Mutex;

use super::{file_counts, found_file};
use crate::walk::{
    self, IgnoredEntries, PreparedTree, StopSignal, VisitEnd, Visitor, WalkEntry, WalkOptions,
    WalkOutcome,
};

/// Maximum number of similar names that one thread keeps.
const MAX_SIMILAR_NAMES: usize = 20_000;

pub(super) fn find(
    tree: &Arc<PreparedTree>,
    options: WalkOptions,
    stop: &StopSignal,
    name: &str,
    max: usize,
) -> Result<(Vec<FoundFile>, SearchCounts, IgnoredEntries), MachineError> {
    let results: Vec<Arc<Mutex<SimilarNames>>> =
        (0..walk::thread_count()).map(|_| Arc::default()).collect();
    let visitor = |result: &Arc<Mutex<SimilarNames>>| NearVisitor {
        name: name.into(),
        result: result.clone(),
    };
    let WalkOutcome { skipped, ended, ignored_entries } =
        walk::walk(tree, options, stop, results.iter().map(visitor).collect())?;
    let mut all: Vec<(String, Vec<u8>)> = Vec::new();
    let mut files = 0;
    for result in results {
        let result = std::mem::take(&mut *result.lock());
        all.extend(result.near);
        files += result.files;
    }
    all.sort_unstable_by(|one, other| one.1.cmp(&other.1));
    let names = nearest(name, all.iter().map(|(name, _)| name.as_str()), max);
    let mut found = Vec::new();
    for name in names {
        let same_name = all.iter().filter(|(other, _)| other == name);
        found.extend(same_name.map(|(_, path)| found_file(path, None)));
    }
    found.truncate(max);
    Ok((found, file_counts(files, skipped, ended), ignored_entries))
}

/// What one thread found.
#[derive(Default)]
struct SimilarNames {
    /// Similar names with their paths.
    near: Vec<(String, Vec<u8>)>,
    files: u64,
}

struct NearVisitor {
    name: String,
    result: Arc<Mutex<SimilarNames>>,
}

impl Visitor for NearVisitor {
    fn file(&mut self, entry: &WalkEntry<'_>) -> VisitEnd {
        let name = entry.name.to_string_lossy();
        if nearest(&self.name, [&*name], 1).is_empty() {
            return VisitEnd::Complete;
        }
        let mut result = self.result.lock();
        result.files += 1;
        if result.near.len() < MAX_SIMILAR_NAMES {
            result.near.push((name.into_owned(), entry.path.to_vec()));
        }
        VisitEnd::Complete
    }
}
