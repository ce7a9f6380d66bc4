//! The newest matches of many files, in memory for as many as are wanted.

use std::collections::BinaryHeap;

use helve_core::machine::{Hit, HitLine, Role};

use crate::find::{Kept, Time, path};

/// Keeps the newest files until they have `most` matches together.
pub(super) struct Best {
    most: usize,
    /// Matches of the kept files, each counted up to `most`.
    matches: usize,
    /// The one that has to go next on top.
    kept: BinaryHeap<Kept<Matches>>,
}

/// What one file has.
pub(super) struct Matches {
    pub(super) count: u64,
    /// How many of the wanted matches it stands for: one where only files count.
    pub(super) weight: usize,
    pub(super) lines: Vec<HitLine>,
}

impl Best {
    pub(super) fn new(most: usize) -> Self {
        Self { most, matches: 0, kept: BinaryHeap::new() }
    }

    /// Whether matches of such a file would be told. Once it is not wanted, it never will be.
    pub(super) fn wants(&self, modified: Time, path: &[u8]) -> bool {
        let last = self.kept.peek();
        self.matches < self.most || last.is_some_and(|last| last.is_after(modified, path))
    }

    pub(super) fn keep(&mut self, modified: Time, path: &[u8], with: Matches) {
        if !self.wants(modified, path) {
            return;
        }
        self.matches += with.weight;
        self.kept.push(Kept { modified, path: path.into(), with });
        while let Some(last) = self.kept.peek()
            && self.matches - last.with.weight >= self.most
        {
            self.matches -= last.with.weight;
            self.kept.pop();
        }
    }

    /// Newest first, the last file with as many of its lines as there is room for.
    pub(super) fn hits(self) -> Vec<Hit> {
        let mut room = self.most;
        let mut hits = Vec::new();
        for Kept { modified, path: bytes, with } in self.kept.into_sorted_vec() {
            if room == 0 {
                break;
            }
            let mut lines = with.lines;
            if with.weight > room {
                shorten(&mut lines, room);
            }
            room = room.saturating_sub(with.weight);
            let modified = modified.told();
            hits.push(Hit { path: path(&bytes), modified, matches: with.count, lines });
        }
        hits
    }
}

/// Ends the lines after `most` matches and what goes on behind the last of them.
fn shorten(lines: &mut Vec<HitLine>, most: usize) {
    let matches = lines.iter().enumerate().filter(|(_, line)| line.role == Role::Match);
    let Some(beyond) = matches.map(|(at, _)| at).nth(most) else { return };
    // Context between two matches belongs to the second as far as it adjoins it.
    let last = lines[..beyond].iter().rposition(|line| line.role != Role::Context);
    let last = last.map_or(0, |last| last + 1);
    let adjoins = |at: &usize| *at > last && lines[*at - 1].number + 1 != lines[*at].number;
    let end = (last..=beyond).find(adjoins).unwrap_or(beyond);
    lines.truncate(end);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_kept_does_not_depend_on_the_order(
            files in proptest::collection::vec((0i64..5, 1usize..6), 0..40), most in 1usize..30,
        ) {
            let names: Vec<String> = (0..files.len()).map(|n| format!("{n:02}")).collect();
            let told = |backwards: bool| {
                let mut best = Best::new(most);
                let mut all: Vec<_> = files.iter().zip(&names).collect();
                if backwards {
                    all.reverse();
                }
                for ((seconds, count), name) in all {
                    let with = Matches { count: *count as u64, weight: (*count).min(most), lines: Vec::new() };
                    best.keep(Time { seconds: *seconds, nanos: 0 }, name.as_bytes(), with);
                }
                best.hits()
            };
            let mut sorted: Vec<_> = files.iter().zip(&names).collect();
            sorted.sort_by_key(|((seconds, _), name)| (std::cmp::Reverse(*seconds), *name));
            let mut room = most;
            let expected: Vec<std::path::PathBuf> = sorted.into_iter().take_while(|((_, count), _)| {
                let is_told = room > 0;
                room = room.saturating_sub(*count);
                is_told
            }).map(|(_, name)| name.as_str().into()).collect();
            let paths: Vec<std::path::PathBuf> = told(false).into_iter().map(|hit| hit.path).collect();
            prop_assert_eq!(&paths, &expected);
            prop_assert_eq!(told(false), told(true));
        }
    }
}
