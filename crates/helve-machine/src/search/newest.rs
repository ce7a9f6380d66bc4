//! Collects the newest matches of many files. Memory use depends on how many are requested.

use std::collections::BinaryHeap;

use helve_core::machine::{LineRole, MatchedFile, MatchedLine};

use crate::find::{Mtime, RankedFile, path_from_bytes};

/// Keeps the newest files that together have `max` matches.
pub(super) struct NewestMatches {
    max: usize,
    /// The sum of the weights of the kept files.
    matches: usize,
    /// The file to drop next is on top.
    files: BinaryHeap<RankedFile<FileMatches>>,
}

/// The matches of one file.
pub(super) struct FileMatches {
    pub(super) count: u64,
    /// How much of `max` this file uses up: its number of matches, or one if only files are counted.
    pub(super) weight: usize,
    pub(super) lines: Vec<MatchedLine>,
}

impl NewestMatches {
    pub(super) fn new(max: usize) -> Self {
        Self { max, matches: 0, files: BinaryHeap::new() }
    }

    /// Whether a file with this time and path would be kept. Once false, it stays false.
    pub(super) fn would_keep(&self, modified: Mtime, path: &[u8]) -> bool {
        let last = self.files.peek();
        self.matches < self.max || last.is_some_and(|last| last.is_after(modified, path))
    }

    pub(super) fn keep(&mut self, modified: Mtime, path: &[u8], data: FileMatches) {
        if !self.would_keep(modified, path) {
            return;
        }
        self.matches += data.weight;
        self.files.push(RankedFile { modified, path: path.into(), data });
        while let Some(last) = self.files.peek()
            && self.matches - last.data.weight >= self.max
        {
            self.matches -= last.data.weight;
            self.files.pop();
        }
    }

    /// Returns the matches, newest first. The last file is shortened to the lines that fit.
    pub(super) fn hits(self) -> Vec<MatchedFile> {
        let mut remaining = self.max;
        let mut hits = Vec::new();
        for RankedFile { modified, path: bytes, data } in self.files.into_sorted_vec() {
            if remaining == 0 {
                break;
            }
            let mut lines = data.lines;
            if data.weight > remaining {
                shorten(&mut lines, remaining);
            }
            remaining = remaining.saturating_sub(data.weight);
            let modified = modified.to_system_time();
            hits.push(MatchedFile {
                path: path_from_bytes(&bytes),
                modified,
                matches: data.count,
                lines,
            });
        }
        hits
    }
}

/// Keeps the first `max` matches and their context lines, and removes the lines after them.
fn shorten(lines: &mut Vec<MatchedLine>, max: usize) {
    let matches = lines.iter().enumerate().filter(|(_, line)| line.role == LineRole::Match);
    let Some(first_surplus) = matches.map(|(at, _)| at).nth(max) else { return };
    // Context lines between the last kept match and the first removed one belong to the removed one if they come after
    // a gap in the line numbers.
    let last = lines[..first_surplus].iter().rposition(|line| line.role != LineRole::Context);
    let last = last.map_or(0, |last| last + 1);
    let starts_group = |at: &usize| *at > last && lines[*at - 1].number + 1 != lines[*at].number;
    let end = (last..=first_surplus).find(starts_group).unwrap_or(first_surplus);
    lines.truncate(end);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_result_does_not_depend_on_the_order_of_files(
            files in proptest::collection::vec((0i64..5, 1usize..6), 0..40), max in 1usize..30,
        ) {
            let names: Vec<String> = (0..files.len()).map(|n| format!("{n:02}")).collect();
            let hits = |is_reversed: bool| {
                let mut newest = NewestMatches::new(max);
                let mut all: Vec<_> = files.iter().zip(&names).collect();
                if is_reversed {
                    all.reverse();
                }
                for ((seconds, count), name) in all {
                    let data = FileMatches { count: *count as u64, weight: (*count).min(max), lines: Vec::new() };
                    newest.keep(Mtime { seconds: *seconds, nanos: 0 }, name.as_bytes(), data);
                }
                newest.hits()
            };
            let mut sorted: Vec<_> = files.iter().zip(&names).collect();
            sorted.sort_by_key(|((seconds, _), name)| (std::cmp::Reverse(*seconds), *name));
            let mut remaining = max;
            let expected: Vec<std::path::PathBuf> = sorted.into_iter().take_while(|((_, count), _)| {
                let fits = remaining > 0;
                remaining = remaining.saturating_sub(*count);
                fits
            }).map(|(_, name)| name.as_str().into()).collect();
            let paths: Vec<std::path::PathBuf> = hits(false).into_iter().map(|hit| hit.path).collect();
            prop_assert_eq!(&paths, &expected);
            prop_assert_eq!(hits(false), hits(true));
        }
    }
}
