//! A tree level by level, and how much lies below what is told.

use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use helve_core::MachineError;
use helve_core::machine::{Amount, Counts, Ended, Found, Kind};
use parking_lot::Mutex;

use super::{counted, path};
use crate::walk::{self, DEEPEST, Ground, Met, Stop, Visited, Visitor, Walked, Way};

/// Looks at ever more levels until enough is known to tell, then once at everything to count it.
pub(super) fn find(
    ground: &Arc<Ground>,
    way: Way,
    stop: &Stop,
    most: usize,
) -> Result<(Vec<Found>, Counts), MachineError> {
    let mut deepest = 1;
    loop {
        let (told, ended) = first(ground, Way { deepest, ..way }, stop, most)?;
        let is_enough = told.len() >= most
            || ended == Ended::Deadline
            || deepest >= DEEPEST
            || !told.iter().any(|line| line.depth == deepest && line.sort == Sort::Folder);
        if is_enough {
            return count(ground, way, stop, told);
        }
        deepest *= 2;
    }
}

/// Something that is told, in the order of telling.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Line {
    depth: usize,
    sort: Sort,
    path: Box<[u8]>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sort {
    Folder,
    File,
}

/// The first `most` of some levels.
fn first(
    ground: &Arc<Ground>,
    way: Way,
    stop: &Stop,
    most: usize,
) -> Result<(Vec<Line>, Ended), MachineError> {
    let shares: Vec<Arc<Mutex<BinaryHeap<Line>>>> =
        (0..walk::threads()).map(|_| Arc::default()).collect();
    let gather = |share: &Arc<Mutex<BinaryHeap<Line>>>| Gather { most, share: share.clone() };
    let Walked { ended, .. } = walk::walk(ground, way, stop, shares.iter().map(gather).collect())?;
    let mut lines: Vec<Line> =
        shares.iter().flat_map(|share| std::mem::take(&mut *share.lock())).collect();
    lines.sort_unstable();
    lines.truncate(most);
    Ok((lines, ended))
}

struct Gather {
    most: usize,
    /// The one that has to go next on top.
    share: Arc<Mutex<BinaryHeap<Line>>>,
}

impl Gather {
    fn keep(&mut self, sort: Sort, path: &[u8]) {
        let depth = 1 + memchr::memchr_iter(b'/', path).count();
        let mut share = self.share.lock();
        let last = share.peek().map(|line| (line.depth, line.sort, &*line.path));
        if share.len() >= self.most && last.is_none_or(|last| (depth, sort, path) >= last) {
            return;
        }
        share.push(Line { depth, sort, path: path.into() });
        if share.len() > self.most {
            share.pop();
        }
    }
}

impl Visitor for Gather {
    fn file(&mut self, met: &Met<'_>) -> Visited {
        self.keep(Sort::File, met.path);
        Visited::Whole
    }

    fn folder(&mut self, met: &Met<'_>) {
        self.keep(Sort::Folder, met.path);
    }
}

/// Counts what lies in the told folders and is not told. Section 0 is the tree itself, the others are told folders.
fn count(
    ground: &Arc<Ground>,
    way: Way,
    stop: &Stop,
    told: Vec<Line>,
) -> Result<(Vec<Found>, Counts), MachineError> {
    let folders = told.iter().filter(|line| line.sort == Sort::Folder);
    let sections: HashMap<Box<[u8]>, usize> =
        folders.enumerate().map(|(at, line)| (line.path.clone(), at + 1)).collect();
    let sections = Arc::new(sections);
    let shares: Vec<Arc<Mutex<Vec<Amount>>>> = (0..walk::threads())
        .map(|_| Arc::new(Mutex::new(vec![Amount::default(); sections.len() + 1])))
        .collect();
    let tally = |share: &Arc<Mutex<Vec<Amount>>>| Tally {
        sections: sections.clone(),
        share: share.clone(),
    };
    let Walked { skipped, ended, .. } =
        walk::walk(ground, way, stop, shares.iter().map(tally).collect())?;
    let mut sums = vec![Amount::default(); sections.len() + 1];
    for share in &shares {
        for (sum, amount) in sums.iter_mut().zip(share.lock().iter()) {
            sum.files += amount.files;
            sum.folders += amount.folders;
        }
    }
    let files = sums.iter().map(|sum| sum.files).sum();
    for line in &told {
        let above = line.path.iter().rposition(|byte| *byte == b'/').map(|at| &line.path[..at]);
        let section = above.and_then(|above| sections.get(above)).copied().unwrap_or(0);
        // What changed between the two looks may be told and not be counted.
        let left = match line.sort {
            Sort::File => &mut sums[section].files,
            Sort::Folder => &mut sums[section].folders,
        };
        *left = left.saturating_sub(1);
    }
    let mut counts = counted(files, skipped, ended);
    counts.more = sums[0];
    let found = told.into_iter().map(|line| Found {
        more: sections.get(&line.path).map_or(Amount::default(), |at| sums[*at]),
        kind: match line.sort {
            Sort::File => Kind::File,
            Sort::Folder => Kind::Folder,
        },
        path: path(&line.path),
        modified: None,
    });
    Ok((found.collect(), counts))
}

struct Tally {
    sections: Arc<HashMap<Box<[u8]>, usize>>,
    share: Arc<Mutex<Vec<Amount>>>,
}

impl Visitor for Tally {
    fn file(&mut self, met: &Met<'_>) -> Visited {
        self.share.lock()[met.section].files += 1;
        Visited::Whole
    }

    fn folder(&mut self, met: &Met<'_>) {
        self.share.lock()[met.section].folders += 1;
    }

    fn section(&self, path: &[u8], section: usize) -> usize {
        self.sections.get(path).copied().unwrap_or(section)
    }
}
