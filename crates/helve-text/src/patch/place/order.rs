//! One place for each hunk, in the order of the patch.

use super::{Hunk, Misplaced, Why, seek, spot::Spot};

/// Chooses a spot for every hunk, if there is exactly one way to do so.
pub(super) fn choose(hunks: &[Hunk], options: Vec<Vec<Spot>>) -> Result<Vec<Spot>, Misplaced> {
    let options = by_number(hunks, options);
    let misplaced = |hunk: usize, why: Why| Misplaced { hunk, row: hunks[hunk].row, why };
    let mut earliest = Vec::with_capacity(hunks.len());
    let mut from = 0;
    for (n, spots) in options.iter().enumerate() {
        let Some(first) = spots.iter().find(|spot| spot.changes.start >= from) else {
            let line = spots.first().map_or(0, |spot| spot.changes.start) + 1;
            return Err(misplaced(n, Why::OutOfOrder { line }));
        };
        from = first.changes.end;
        earliest.push(first);
    }
    let mut to = usize::MAX;
    let mut latest: Vec<&Spot> = Vec::with_capacity(hunks.len());
    for spots in options.iter().rev() {
        // The earliest choice leaves at least itself to every hunk.
        let last = spots.iter().rev().find(|spot| spot.changes.end <= to).unwrap_or(&spots[0]);
        to = last.changes.start;
        latest.push(last);
    }
    for (n, (first, last)) in earliest.iter().zip(latest.iter().rev()).enumerate() {
        if first.changes != last.changes {
            let between = |spot: &&Spot| {
                (first.changes.start..=last.changes.start).contains(&spot.changes.start)
            };
            let between: Vec<Spot> = options[n].iter().filter(between).cloned().collect();
            return Err(misplaced(n, seek::ambiguous(&between)));
        }
    }
    Ok(earliest.into_iter().cloned().collect())
}

/// Of several exact places takes the one at the line that the patch names, unless its other numbers are off.
fn by_number(hunks: &[Hunk], mut options: Vec<Vec<Spot>>) -> Vec<Vec<Spot>> {
    let is_named = |hunk: &Hunk, spot: &Spot| hunk.old_start == Some(spot.lines.start + 1);
    let mut told = hunks.iter().zip(&options).filter(|(hunk, _)| hunk.old_start.is_some());
    let is_reliable =
        told.all(|(hunk, spots)| spots.len() > 1 || spots.iter().all(|spot| is_named(hunk, spot)));
    if is_reliable {
        for (hunk, spots) in hunks.iter().zip(&mut options) {
            if spots.len() > 1
                && let Some(named) =
                    spots.iter().position(|spot| spot.is_exact() && is_named(hunk, spot))
            {
                *spots = vec![spots.swap_remove(named)];
            }
        }
    }
    options
}
