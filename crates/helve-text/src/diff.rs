//! Differences between two sequences, and unified diffs of two files.

mod greedy;
mod unified;

#[cfg(test)]
mod tests;

use std::{collections::HashMap, hash::Hash, ops::Range};

use similar::{Algorithm, DiffTag, capture_diff_slices};

pub use self::unified::{DiffLabels, DiffLimits, UnifiedDiff, unified};

/// A range of the old side that the new side replaces. Everything between two hunks is equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffHunk {
    pub old: Range<usize>,
    pub new: Range<usize>,
}

/// Up to this many items on both sides together, the shortest difference is computed.
const MAX_SHORTEST: usize = 2_000;
/// Up to this many items on both sides together, Myers' algorithm is used. With more items, it could take seconds.
/// Longer sequences are aligned at the items that a short edit script leaves unchanged. If there is no short script,
/// they are aligned at items that occur once on each side.
const MAX_MYERS: usize = 200_000;

/// Returns the hunks between two sequences, in order and never adjacent. The running time is bounded for any input.
pub fn hunks<T: Hash + Eq>(old: &[T], new: &[T]) -> Vec<DiffHunk> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let tail =
        old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(|(a, b)| a == b).count();
    let mut list = HunkList { hunks: Vec::new() };
    let middle = DiffHunk { old: head..old.len() - tail, new: head..new.len() - tail };
    let mut numbers = HashMap::new();
    let [old, new] = [&old[middle.old.clone()], &new[middle.new.clone()]]
        .map(|items| intern(items, &mut numbers));
    if old.len() + new.len() <= MAX_MYERS {
        list.add_differences(&old, &new, head, head);
    } else {
        let common = greedy::common_items(&old, &new).unwrap_or_else(|| unique_anchors(&old, &new));
        list.add_gaps(&common, &old, &new, head);
    }
    join_replacements(list.hunks, &old, &new, head)
}

/// Maps items to numbers. Equal items get equal numbers.
fn intern<'a, T: Hash + Eq>(items: &'a [T], numbers: &mut HashMap<&'a T, usize>) -> Vec<usize> {
    let number = |item| {
        let next = numbers.len();
        *numbers.entry(item).or_insert(next)
    };
    items.iter().map(number).collect()
}

/// The hunks found so far. Adjacent hunks are joined.
struct HunkList {
    hunks: Vec<DiffHunk>,
}

impl HunkList {
    /// Adds the differences between two slices, which start at these offsets of the whole sequences.
    fn add_differences(
        &mut self,
        old: &[usize],
        new: &[usize],
        old_offset: usize,
        new_offset: usize,
    ) {
        let algorithm = if old.len() + new.len() <= MAX_SHORTEST {
            Algorithm::RawMyers
        } else {
            Algorithm::Myers
        };
        for operation in capture_diff_slices(algorithm, old, new) {
            if operation.tag() != DiffTag::Equal {
                let (old, new) = (operation.old_range(), operation.new_range());
                self.add(
                    old.start + old_offset..old.end + old_offset,
                    new.start + new_offset..new.end + new_offset,
                );
            }
        }
    }

    /// Adds the differences before, between and after equal items. `common` has the pairs of their indices, and `head`
    /// is the number of items before both slices.
    fn add_gaps(&mut self, common: &[(usize, usize)], old: &[usize], new: &[usize], head: usize) {
        let (mut old_at, mut new_at) = (0, 0);
        let mut budget = MAX_MYERS;
        for &(old_next, new_next) in common.iter().chain([&(old.len(), new.len())]) {
            let (gap_old, gap_new) = (&old[old_at..old_next], &new[new_at..new_next]);
            let size = gap_old.len() + gap_new.len();
            if gap_old.is_empty() || gap_new.is_empty() || size > MAX_SHORTEST.max(budget) {
                self.add(head + old_at..head + old_next, head + new_at..head + new_next);
            } else {
                budget = budget.saturating_sub(size);
                self.add_differences(gap_old, gap_new, head + old_at, head + new_at);
            }
            (old_at, new_at) = (old_next + 1, new_next + 1);
        }
    }

    fn add(&mut self, old: Range<usize>, new: Range<usize>) {
        match self.hunks.last_mut() {
            Some(last) if last.old.end == old.start && last.new.end == new.start => {
                last.old.end = old.end;
                last.new.end = new.end;
            }
            Some(_) | None if old.is_empty() && new.is_empty() => {}
            Some(_) | None => self.hunks.push(DiffHunk { old, new }),
        }
    }
}

/// Maximum number of equal items over which a hunk is moved to join its neighbour.
const MAX_SLIDE: usize = 100;

/// Joins a deletion and an insertion if one of them can slide to the other. A hunk can slide over an item if the result
/// stays the same: deleting the first of two equal lines is the same as deleting the second.
fn join_replacements(
    hunks: Vec<DiffHunk>,
    old: &[usize],
    new: &[usize],
    head: usize,
) -> Vec<DiffHunk> {
    let mut joined: Vec<DiffHunk> = Vec::with_capacity(hunks.len());
    for hunk in hunks {
        match joined.last_mut() {
            Some(last) if is_delete_and_insert(last, &hunk) => {
                let gap = hunk.old.start - last.old.end;
                if can_slide(&hunk, old, new, head, gap, Direction::Up) {
                    last.old.end = hunk.old.end - gap;
                    last.new.end = hunk.new.end - gap;
                } else if can_slide(last, old, new, head, gap, Direction::Down) {
                    last.old = last.old.start + gap..hunk.old.end;
                    last.new = last.new.start + gap..hunk.new.end;
                } else {
                    joined.push(hunk);
                }
            }
            Some(_) | None => joined.push(hunk),
        }
    }
    joined
}

/// Whether one of two neighbouring hunks only deletes and the other only inserts.
fn is_delete_and_insert(one: &DiffHunk, other: &DiffHunk) -> bool {
    let deletes = |hunk: &DiffHunk| hunk.new.is_empty();
    let inserts = |hunk: &DiffHunk| hunk.old.is_empty();
    deletes(one) && inserts(other) || inserts(one) && deletes(other)
}

/// Where a hunk is moved.
#[derive(Clone, Copy)]
enum Direction {
    Up,
    Down,
}

/// Whether a deletion or insertion has the same result if it is moved by `gap` items.
fn can_slide(
    hunk: &DiffHunk,
    old: &[usize],
    new: &[usize],
    head: usize,
    gap: usize,
    direction: Direction,
) -> bool {
    let (range, items) = if hunk.new.is_empty() { (&hunk.old, old) } else { (&hunk.new, new) };
    let (start, end) = (range.start - head, range.end - head);
    gap <= MAX_SLIDE
        && match direction {
            Direction::Up => start >= gap && items[start - gap..start] == items[end - gap..end],
            Direction::Down => items
                .get(end..end + gap)
                .is_some_and(|following| following == &items[start..start + gap]),
        }
}

/// Returns the indices, on both sides, of items that occur exactly once on each side. Items that are not in the same
/// order on both sides are left out, as few as possible.
fn unique_anchors(old: &[usize], new: &[usize]) -> Vec<(usize, usize)> {
    let unique_positions = |items: &[usize]| {
        let mut positions: HashMap<usize, Option<usize>> = HashMap::new();
        for (at, item) in items.iter().enumerate() {
            positions.entry(*item).and_modify(|position| *position = None).or_insert(Some(at));
        }
        positions
    };
    let (in_old, in_new) = (unique_positions(old), unique_positions(new));
    let shared = old.iter().enumerate().filter_map(|(at, item)| {
        in_old[item]?;
        Some((at, (*in_new.get(item)?)?))
    });
    longest_increasing(&shared.collect::<Vec<_>>())
}

/// Returns the longest subsequence of pairs whose second elements increase.
fn longest_increasing(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // Both lists hold indices of pairs. `lasts[n]` is the last pair of the best subsequence of length `n + 1`.
    // `predecessors[n]` is the pair before pair `n` in its subsequence.
    let mut lasts: Vec<usize> = Vec::new();
    let mut predecessors = vec![None; pairs.len()];
    for (index, (_, to)) in pairs.iter().enumerate() {
        let length = lasts.partition_point(|last| pairs[*last].1 < *to);
        predecessors[index] = length.checked_sub(1).map(|shorter| lasts[shorter]);
        match lasts.get_mut(length) {
            Some(last) => *last = index,
            None => lasts.push(index),
        }
    }
    let mut chosen: Vec<_> =
        std::iter::successors(lasts.last().copied(), |index| predecessors[*index])
            .map(|index| pairs[index])
            .collect();
    chosen.reverse();
    chosen
}
