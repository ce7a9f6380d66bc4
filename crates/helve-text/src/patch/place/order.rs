//! Chooses one position for each hunk, in the order of the patch.

use super::{PatchHunk, PlacementError, PlacementProblem, candidate::HunkCandidate, search};

/// Chooses a candidate for every hunk. There must be exactly one way to do so.
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
    // Every hunk is placed as early as possible, then as late as possible. If both agree, there is only one way.
    let mut earliest = Vec::with_capacity(hunks.len());
    let mut min_start = 0;
    for (n, candidates) in options.iter().enumerate() {
        let Some(candidate) =
            candidates.iter().find(|candidate| candidate.changes.start >= min_start)
        else {
            let line = candidates.first().map_or(0, |candidate| candidate.changes.start) + 1;
            return Err(placement_error(n, PlacementProblem::OutOfOrder { line }));
        };
        min_start = candidate.changes.end;
        earliest.push(candidate);
    }
    let mut max_end = usize::MAX;
    let mut latest: Vec<&HunkCandidate> = Vec::with_capacity(hunks.len());
    for candidates in options.iter().rev() {
        // The earliest choice is always possible.
        let candidate = candidates
            .iter()
            .rev()
            .find(|candidate| candidate.changes.end <= max_end)
            .unwrap_or(&candidates[0]);
        max_end = candidate.changes.start;
        latest.push(candidate);
    }
    for (n, (early, late)) in earliest.iter().zip(latest.iter().rev()).enumerate() {
        if early.changes != late.changes {
            let is_between = |candidate: &&HunkCandidate| {
                (early.changes.start..=late.changes.start).contains(&candidate.changes.start)
            };
            let between: Vec<HunkCandidate> =
                options[n].iter().filter(is_between).cloned().collect();
            return Err(placement_error(n, search::ambiguous_problem(&between)));
        }
    }
    Ok(earliest.into_iter().cloned().collect())
}

/// If a hunk has several candidates, keeps only the exact one at the line number that the patch states. Does nothing if
/// the stated line numbers of other hunks, which have only one candidate, are wrong.
fn prefer_line_numbers(
    hunks: &[PatchHunk],
    mut options: Vec<Vec<HunkCandidate>>,
) -> Vec<Vec<HunkCandidate>> {
    let is_at_stated_line = |hunk: &PatchHunk, candidate: &HunkCandidate| {
        hunk.old_start == Some(candidate.file_lines.start + 1)
    };
    let mut with_line_numbers =
        hunks.iter().zip(&options).filter(|(hunk, _)| hunk.old_start.is_some());
    let is_reliable = with_line_numbers.all(|(hunk, candidates)| {
        candidates.len() > 1
            || candidates.iter().all(|candidate| is_at_stated_line(hunk, candidate))
    });
    if is_reliable {
        for (hunk, candidates) in hunks.iter().zip(&mut options) {
            if candidates.len() > 1
                && let Some(index) = candidates.iter().position(|candidate| {
                    candidate.is_exact() && is_at_stated_line(hunk, candidate)
                })
            {
                *candidates = vec![candidates.swap_remove(index)];
            }
        }
    }
    options
}
