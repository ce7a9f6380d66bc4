//! One place for a hunk, and what it does there.

use std::ops::Range;

use super::{End, Hunk, Kind, Out, Placement};
use crate::{edit::Tolerance, patch::Line};

/// A place for a hunk.
#[derive(Debug, Clone)]
pub(super) struct Spot {
    /// Lines of the file that the hunk quotes.
    pub(super) lines: Range<usize>,
    /// Lines of the hunk that count: blank ones at either end that the file lacks do not.
    pub(super) quoted: Range<usize>,
    /// Lines of the file that change.
    pub(super) changes: Range<usize>,
    pub(super) tolerances: Vec<Tolerance>,
    /// The lines afterwards, where they are not those of the hunk.
    pub(super) new: Option<Vec<String>>,
}

impl Spot {
    pub(super) fn is_exact(&self) -> bool {
        self.tolerances.is_empty()
    }

    /// Fewer tolerances are better, then those named first.
    pub(super) fn rank(&self) -> (usize, Vec<Option<usize>>) {
        let order = |it: &Tolerance| Tolerance::ALL.iter().position(|other| other == it);
        (self.tolerances.len(), self.tolerances.iter().map(order).collect())
    }

    pub(super) fn placement(self, hunk: &Hunk) -> Placement {
        let mut out = Vec::new();
        let mut at = self.lines.start;
        // The removed lines whose places are still to be taken.
        let mut free = 0..0;
        let mut new = self.new.into_iter().flatten();
        let was_open = hunk.lines.iter().any(|line| line.is_open && line.kind != Kind::Add);
        for line in &hunk.lines[self.quoted.clone()] {
            let text = if line.kind == Kind::Remove { None } else { new.next() };
            match line.kind {
                Kind::Keep => {
                    out.push(Out::Keep(at));
                    at += 1;
                    free = at..at;
                }
                Kind::Remove => {
                    free = if free.end == at { free.start..at + 1 } else { at..at + 1 };
                    at += 1;
                }
                Kind::Add => {
                    let text = text.unwrap_or_else(|| line.text.clone());
                    let end = match (line.is_open, was_open) {
                        (false, _) => End::Newline,
                        (true, false) => End::Nothing,
                        (true, true) => End::AsItIs,
                    };
                    out.push(Out::New { text, instead: free.next(), end });
                }
            }
        }
        let changes = self.changes;
        out.retain(|out| match out {
            Out::Keep(index) => changes.contains(index),
            Out::New { .. } => true,
        });
        Placement { lines: changes, out, tolerances: self.tolerances }
    }
}

/// The lines of the file between the kept ones at either end of a hunk.
pub(super) fn changes(hunk: &Hunk, quoted: &Range<usize>, lines: &Range<usize>) -> Range<usize> {
    let is_kept = |line: &&Line| line.kind == Kind::Keep;
    let head = hunk.lines[quoted.clone()].iter().take_while(is_kept).count();
    if head == quoted.len() {
        return lines.start..lines.start;
    }
    let foot = hunk.lines[quoted.clone()].iter().rev().take_while(is_kept).count();
    lines.start + head..lines.end - foot
}
