//! Myers' greedy algorithm with limits: finds the shortest edit script between two long sequences if it is short.

/// Maximum number of differing items. With more differences, the algorithm gives up.
const MAX_DIFFERENCES: usize = 600;
/// Maximum number of steps. If the algorithm needs more, it gives up.
const MAX_STEPS: usize = 20_000_000;

/// Returns the items that a shortest edit script leaves unchanged, as pairs of indices. Returns `None` if the script
/// exceeds the limits.
pub(super) fn common_items(old: &[usize], new: &[usize]) -> Option<Vec<(usize, usize)>> {
    let mut search = Search { old, new, steps: 0 };
    let mut rounds: Vec<Vec<usize>> = Vec::new();
    for round in 0..=MAX_DIFFERENCES {
        let reached = search.round(rounds.last().map(Vec::as_slice), round)?;
        // Index of the diagonal that contains the end of both sequences.
        let end =
            (round + old.len()).checked_sub(new.len()).filter(|index| index.is_multiple_of(2));
        let is_complete =
            end.and_then(|index| reached.get(index)).is_some_and(|at| *at >= old.len());
        rounds.push(reached);
        if is_complete {
            return Some(walk_back(&rounds, old.len(), new.len()));
        }
    }
    None
}

/// A search in rounds. Each round allows one more difference.
struct Search<'a> {
    old: &'a [usize],
    new: &'a [usize],
    steps: usize,
}

impl Search<'_> {
    /// Returns how far along the old side each diagonal gets with one more difference. Diagonal `k` is at index
    /// `k + round`.
    fn round(&mut self, previous: Option<&[usize]>, round: usize) -> Option<Vec<usize>> {
        let mut reached = vec![0; 2 * round + 1];
        for index in (0..=2 * round).step_by(2) {
            let start = previous.map_or(0, |previous| diagonal_start(previous, index, round).0);
            let diagonal = index.cast_signed() - round.cast_signed();
            let mut old_at = start;
            while let Some(new_at) = old_at.checked_add_signed(-diagonal)
                && old_at < self.old.len()
                && new_at < self.new.len()
                && self.old[old_at] == self.new[new_at]
            {
                old_at += 1;
            }
            self.steps += old_at - start + 1;
            reached[index] = old_at;
        }
        (self.steps <= MAX_STEPS).then_some(reached)
    }
}

/// Returns the position on the old side at which a diagonal starts in a round, and whether the step to it deleted an
/// item of the old side.
fn diagonal_start(previous: &[usize], index: usize, round: usize) -> (usize, bool) {
    // Relative to the last round, indices shift: the diagonal below is at `index - 2`, the one above at `index`.
    let below = index.checked_sub(2).map(|below| previous[below] + 1);
    let above = (index < 2 * round).then(|| previous[index]);
    match (below, above) {
        (Some(below), Some(above)) if below > above => (below, true),
        (_, Some(above)) => (above, false),
        (Some(below), None) => (below, true),
        (None, None) => (0, false),
    }
}

/// Follows the shortest edit script back from the end, and collects the items that it leaves unchanged.
fn walk_back(rounds: &[Vec<usize>], old: usize, new: usize) -> Vec<(usize, usize)> {
    let mut common = Vec::new();
    let (mut old_at, mut new_at) = (old, new);
    for round in (0..rounds.len()).rev() {
        let index = round + old_at - new_at.min(round + old_at);
        let (start, is_deletion) = round
            .checked_sub(1)
            .map_or((0, false), |previous| diagonal_start(&rounds[previous], index, round));
        while old_at > start {
            (old_at, new_at) = (old_at - 1, new_at.saturating_sub(1));
            common.push((old_at, new_at));
        }
        match (round, is_deletion) {
            (0, _) => {}
            (_, true) => old_at = old_at.saturating_sub(1),
            (_, false) => new_at = new_at.saturating_sub(1),
        }
    }
    common.reverse();
    common
}
