//! Chooses one position for each hunk, in the order of the patch.

use super::{PatchHunk, PlacementError, PlacementProblem, candidate::HunkCandidate, search};

/// Chooses a candidate for every hunk, if there is exactly one way to do so.
pub(super) fn choose(
    hunks: &[PatchHunk],
    options: Vec<Vec<HunkCandidate>>,
) -> Result<Vec<HunkCandidate>, PlacementError> {
    let options = prefer_line_numbers(hunks, options);
    let placement_error = |hunk: usize, problem: PlacementProblem| PlacementError {
        hunk,
        row: hunks[hunk].row,
        problem,
    };
    let mut earliest = Vec::with_capacity(hunks.len());
    let mut from = 0;
    for (n, candidates) in options.iter().enumerate() {
        let Some(first) = candidates.iter().find(|candidate| candidate.changes.start >= from)
        else {
            let line = candidates.first().map_or(0, |candidate| candidate.changes.start) + 1;
            return Err(placement_error(n, PlacementProblem::OutOfOrder { line }));
        };
        from = first.changes.end;
        earliest.push(first);
    }
    let mut to = usize::MAX;
    let mut latest: Vec<&HunkCandidate> = Vec::with_capacity(hunks.len());
    for candidates in options.iter().rev() {
        // The earliest choice is always possible.
        let last = candidates
            .iter()
            .rev()
            .find(|candidate| candidate.changes.end <= to)
            .unwrap_or(&candidates[0]);
        to = last.changes.start;
        latest.push(last);
    }
    for (n, (first, last)) in earliest.iter().zip(latest.iter().rev()).enumerate() {
        if first.changes != last.changes {
            let between = |candidate: &&HunkCandidate| {
                (first.changes.start..=last.changes.start).contains(&candidate.changes.start)
            };
            let between: Vec<HunkCandidate> = options[n].iter().filter(between).cloned().collect();
            return Err(placement_error(n, search::ambiguous(&between)));
        }
    }
    Ok(earliest.into_iter().cloned().collect())
}

/// If a hunk has several exact candidates, takes the one at its stated line number, unless other stated numbers are
/// wrong.
fn prefer_line_numbers(
    hunks: &[PatchHunk],
    mut options: Vec<Vec<HunkCandidate>>,
) -> Vec<Vec<HunkCandidate>> {
    let is_named = |hunk: &PatchHunk, candidate: &HunkCandidate| {
        hunk.old_start == Some(candidate.lines.start + 1)
    };
    let mut stated = hunks.iter().zip(&options).filter(|(hunk, _)| hunk.old_start.is_some());
    let is_reliable = stated.all(|(hunk, candidates)| {
        candidates.len() > 1 || candidates.iter().all(|candidate| is_named(hunk, candidate))
    });
    if is_reliable {
        for (hunk, candidates) in hunks.iter().zip(&mut options) {
            if candidates.len() > 1
                && let Some(named) = candidates
                    .iter()
                    .position(|candidate| candidate.is_exact() && is_named(hunk, candidate))
            {
                *candidates = vec![candidates.swap_remove(named)];
            }
        }
    }
    options
}
