//! The shortest difference of two long sequences, if it is short: Myers' greedy algorithm with an end to its patience.

/// Items that may differ, and steps that may be taken to find out.
const PATIENCE: (usize, usize) = (600, 20_000_000);

/// The items, as pairs of places, that a shortest difference leaves as they are; `None` when it is long or hard to find.
pub(super) fn kept(old: &[usize], new: &[usize]) -> Option<Vec<(usize, usize)>> {
    let mut search = Search { old, new, steps: 0 };
    let mut rounds: Vec<Vec<usize>> = Vec::new();
    for round in 0..=PATIENCE.0 {
        let reached = search.round(rounds.last().map(Vec::as_slice), round)?;
        // The end lies on the diagonal where both sides are used up.
        let end =
            (round + old.len()).checked_sub(new.len()).filter(|place| place.is_multiple_of(2));
        let done = end.and_then(|place| reached.get(place)).is_some_and(|at| *at >= old.len());
        rounds.push(reached);
        if done {
            return Some(walk_back(&rounds, old.len(), new.len()));
        }
    }
    None
}

struct Search<'a> {
    old: &'a [usize],
    new: &'a [usize],
    steps: usize,
}

impl Search<'_> {
    /// How far along the old side each diagonal gets with one more difference: diagonal `k` stands at place `k + round`.
    fn round(&mut self, last: Option<&[usize]>, round: usize) -> Option<Vec<usize>> {
        let mut reached = vec![0; 2 * round + 1];
        for place in (0..=2 * round).step_by(2) {
            let start = last.map_or(0, |last| from(last, place, round).0);
            let diagonal = place.cast_signed() - round.cast_signed();
            let mut at = start;
            while let Some(to) = at.checked_add_signed(-diagonal)
                && at < self.old.len()
                && to < self.new.len()
                && self.old[at] == self.new[to]
            {
                at += 1;
            }
            self.steps += at - start + 1;
            reached[place] = at;
        }
        (self.steps <= PATIENCE.1).then_some(reached)
    }
}

/// Where a diagonal starts from in a round, and whether the step before it took an item of the old side.
fn from(last: &[usize], place: usize, round: usize) -> (usize, bool) {
    // A diagonal of this round has the place of the one below it in the last, and that of the one above it two further on.
    let below = place.checked_sub(2).map(|below| last[below] + 1);
    let above = (place < 2 * round).then(|| last[place]);
    match (below, above) {
        (Some(below), Some(above)) if below > above => (below, true),
        (_, Some(above)) => (above, false),
        (Some(below), None) => (below, true),
        (None, None) => (0, false),
    }
}

fn walk_back(rounds: &[Vec<usize>], old: usize, new: usize) -> Vec<(usize, usize)> {
    let mut kept = Vec::new();
    let (mut at, mut to) = (old, new);
    for round in (0..rounds.len()).rev() {
        let place = round + at - to.min(round + at);
        let (start, took_old) =
            round.checked_sub(1).map_or((0, false), |last| from(&rounds[last], place, round));
        while at > start {
            (at, to) = (at - 1, to.saturating_sub(1));
            kept.push((at, to));
        }
        match (round, took_old) {
            (0, _) => {}
            (_, true) => at = at.saturating_sub(1),
            (_, false) => to = to.saturating_sub(1),
        }
    }
    kept.reverse();
    kept
}
