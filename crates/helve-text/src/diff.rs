//! What differs between two sequences, and the unified diff of two files.

mod greedy;
mod unified;

#[cfg(test)]
mod tests;

use std::{collections::HashMap, hash::Hash, ops::Range};

use similar::{Algorithm, DiffTag, capture_diff_slices};

pub use self::unified::{Bounds, Labels, Unified, unified};

/// A piece of the old side that the new side says differently; everything between two hunks is equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    pub old: Range<usize>,
    pub new: Range<usize>,
}

/// Up to this many items in all the shortest difference is worth its price.
const SHORTEST: usize = 2_000;
/// Above this many, sides that have little in common would take seconds: if the shortest difference is not found soon,
/// only items that occur once hold them together.
const LARGE: usize = 200_000;

/// The differing pieces of two sequences, in order, never touching one another. Takes bounded time, whatever the sequences.
pub fn hunks<T: Hash + Eq>(old: &[T], new: &[T]) -> Vec<Hunk> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let tail =
        old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(|(a, b)| a == b).count();
    let mut found = Found { hunks: Vec::new() };
    let middle = Hunk { old: head..old.len() - tail, new: head..new.len() - tail };
    let mut numbers = HashMap::new();
    let [old, new] = [&old[middle.old.clone()], &new[middle.new.clone()]]
        .map(|items| numbered(items, &mut numbers));
    if old.len() + new.len() <= LARGE {
        found.between(&old, &new, head, head);
    } else {
        let kept = greedy::kept(&old, &new).unwrap_or_else(|| anchors(&old, &new));
        found.around(&kept, &old, &new, head);
    }
    settled(found.hunks, &old, &new, head)
}

fn numbered<'a, T: Hash + Eq>(items: &'a [T], numbers: &mut HashMap<&'a T, usize>) -> Vec<usize> {
    let number = |item| {
        let next = numbers.len();
        *numbers.entry(item).or_insert(next)
    };
    items.iter().map(number).collect()
}

struct Found {
    hunks: Vec<Hunk>,
}

impl Found {
    /// Adds what differs between two stretches that begin at these items of the whole.
    fn between(&mut self, old: &[usize], new: &[usize], from: usize, to: usize) {
        let algorithm =
            if old.len() + new.len() <= SHORTEST { Algorithm::RawMyers } else { Algorithm::Myers };
        for operation in capture_diff_slices(algorithm, old, new) {
            if operation.tag() != DiffTag::Equal {
                let (old, new) = (operation.old_range(), operation.new_range());
                self.add(old.start + from..old.end + from, new.start + to..new.end + to);
            }
        }
    }

    /// Adds what differs before, between and after items that are known to stay.
    fn around(&mut self, kept: &[(usize, usize)], old: &[usize], new: &[usize], head: usize) {
        let (mut at, mut to) = (0, 0);
        let mut budget = LARGE;
        for &(old_next, new_next) in kept.iter().chain([&(old.len(), new.len())]) {
            let (gap_old, gap_new) = (&old[at..old_next], &new[to..new_next]);
            let size = gap_old.len() + gap_new.len();
            if gap_old.is_empty() || gap_new.is_empty() || size > SHORTEST.max(budget) {
                self.add(head + at..head + old_next, head + to..head + new_next);
            } else {
                budget = budget.saturating_sub(size);
                self.between(gap_old, gap_new, head + at, head + to);
            }
            (at, to) = (old_next + 1, new_next + 1);
        }
    }

    fn add(&mut self, old: Range<usize>, new: Range<usize>) {
        match self.hunks.last_mut() {
            Some(last) if last.old.end == old.start && last.new.end == new.start => {
                last.old.end = old.end;
                last.new.end = new.end;
            }
            Some(_) | None if old.is_empty() && new.is_empty() => {}
            Some(_) | None => self.hunks.push(Hunk { old, new }),
        }
    }
}

/// Equal items over which a hunk is moved to meet its neighbour, at most.
const NEAR: usize = 100;

/// Where something was taken out and, among equal items next to it, something put in, the one stands in place of the other.
fn settled(hunks: Vec<Hunk>, old: &[usize], new: &[usize], head: usize) -> Vec<Hunk> {
    let mut settled: Vec<Hunk> = Vec::with_capacity(hunks.len());
    for hunk in hunks {
        match settled.last_mut() {
            Some(last) if is_exchange(last, &hunk) => {
                let gap = hunk.old.start - last.old.end;
                if slides(&hunk, old, new, head, gap, Way::Up) {
                    last.old.end = hunk.old.end - gap;
                    last.new.end = hunk.new.end - gap;
                } else if slides(last, old, new, head, gap, Way::Down) {
                    last.old = last.old.start + gap..hunk.old.end;
                    last.new = last.new.start + gap..hunk.new.end;
                } else {
                    settled.push(hunk);
                }
            }
            Some(_) | None => settled.push(hunk),
        }
    }
    settled
}

/// Whether one of two neighbours takes out what the other puts something in for.
fn is_exchange(one: &Hunk, other: &Hunk) -> bool {
    let takes = |hunk: &Hunk| hunk.new.is_empty();
    let puts = |hunk: &Hunk| hunk.old.is_empty();
    takes(one) && puts(other) || puts(one) && takes(other)
}

#[derive(Clone, Copy)]
enum Way {
    Up,
    Down,
}

/// Whether a hunk that only takes out or only puts in means the same so many items further up or down.
fn slides(hunk: &Hunk, old: &[usize], new: &[usize], head: usize, gap: usize, way: Way) -> bool {
    let (range, items) = if hunk.new.is_empty() { (&hunk.old, old) } else { (&hunk.new, new) };
    let (start, end) = (range.start - head, range.end - head);
    gap <= NEAR
        && match way {
            Way::Up => start >= gap && items[start - gap..start] == items[end - gap..end],
            Way::Down => {
                items.get(end..end + gap).is_some_and(|below| below == &items[start..start + gap])
            }
        }
}

/// Items that occur once on either side, as many as there are in the same order on both.
fn anchors(old: &[usize], new: &[usize]) -> Vec<(usize, usize)> {
    let once = |items: &[usize]| {
        let mut places: HashMap<usize, Option<usize>> = HashMap::new();
        for (at, item) in items.iter().enumerate() {
            places.entry(*item).and_modify(|place| *place = None).or_insert(Some(at));
        }
        places
    };
    let (in_old, in_new) = (once(old), once(new));
    let both = old.iter().enumerate().filter_map(|(at, item)| {
        in_old[item]?;
        Some((at, (*in_new.get(item)?)?))
    });
    rising(&both.collect::<Vec<_>>())
}

/// The longest choice of pairs, in order, whose second parts rise.
fn rising(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // The last pair of the best choice of each length so far, and for each pair the one before it.
    let mut lasts: Vec<usize> = Vec::new();
    let mut before = vec![None; pairs.len()];
    for (index, (_, to)) in pairs.iter().enumerate() {
        let length = lasts.partition_point(|last| pairs[*last].1 < *to);
        before[index] = length.checked_sub(1).map(|shorter| lasts[shorter]);
        match lasts.get_mut(length) {
            Some(last) => *last = index,
            None => lasts.push(index),
        }
    }
    let mut chosen: Vec<_> = std::iter::successors(lasts.last().copied(), |index| before[*index])
        .map(|index| pairs[index])
        .collect();
    chosen.reverse();
    chosen
}
