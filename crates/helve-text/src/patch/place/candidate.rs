//! A position in the file at which a hunk could apply, and the effect of the hunk there.

use std::ops::Range;

use super::{PatchHunk, PatchLineKind, PatchedLine, PatchedLineEnd, Placement};
use crate::{edit::Tolerance, patch::PatchLine};

/// A position at which a hunk could apply.
#[derive(Debug, Clone)]
pub(super) struct HunkCandidate {
    /// Lines of the file that the hunk quotes.
    pub(super) file_lines: Range<usize>,
    /// The lines of the hunk that match. Blank lines at either end that the file lacks are excluded.
    pub(super) hunk_lines: Range<usize>,
    /// Lines of the file that change.
    pub(super) changes: Range<usize>,
    pub(super) tolerances: Vec<Tolerance>,
    /// The new lines, if they differ from the new lines of the hunk.
    pub(super) new: Option<Vec<String>>,
}

impl HunkCandidate {
    pub(super) fn is_exact(&self) -> bool {
        self.tolerances.is_empty()
    }

    /// Returns a key that sorts by number of tolerances, then by the order in [`Tolerance::ALL`].
    pub(super) fn rank(&self) -> (usize, Vec<Option<usize>>) {
        let order =
            |tolerance: &Tolerance| Tolerance::ALL.iter().position(|other| other == tolerance);
        (self.tolerances.len(), self.tolerances.iter().map(order).collect())
    }

    /// Computes the lines that replace the changed lines.
    pub(super) fn placement(self, hunk: &PatchHunk) -> Placement {
        let mut replacement = Vec::new();
        let mut at = self.file_lines.start;
        // The removed lines of the file that no new line replaces yet.
        let mut unreplaced = 0..0;
        let mut new = self.new.into_iter().flatten();
        let old_lacks_newline =
            hunk.lines.iter().any(|line| line.no_newline && line.kind != PatchLineKind::Add);
        for line in &hunk.lines[self.hunk_lines.clone()] {
            let text = if line.kind == PatchLineKind::Remove { None } else { new.next() };
            match line.kind {
                PatchLineKind::Keep => {
                    replacement.push(PatchedLine::Keep(at));
                    at += 1;
                    unreplaced = at..at;
                }
                PatchLineKind::Remove => {
                    unreplaced =
                        if unreplaced.end == at { unreplaced.start..at + 1 } else { at..at + 1 };
                    at += 1;
                }
                PatchLineKind::Add => {
                    let text = text.unwrap_or_else(|| line.text.clone());
                    let end = match (line.no_newline, old_lacks_newline) {
                        (false, _) => PatchedLineEnd::Newline,
                        (true, false) => PatchedLineEnd::None,
                        (true, true) => PatchedLineEnd::Unchanged,
                    };
                    replacement.push(PatchedLine::New { text, replaces: unreplaced.next(), end });
                }
            }
        }
        let changes = self.changes;
        replacement.retain(|line| match line {
            PatchedLine::Keep(index) => changes.contains(index),
            PatchedLine::New { .. } => true,
        });
        Placement { lines: changes, replacement, tolerances: self.tolerances }
    }
}

/// Returns the lines of the file that change: those between the context lines at either end of a hunk.
pub(super) fn changed_range(
    hunk: &PatchHunk,
    hunk_lines: &Range<usize>,
    file_lines: &Range<usize>,
) -> Range<usize> {
    let is_kept = |line: &&PatchLine| line.kind == PatchLineKind::Keep;
    let head = hunk.lines[hunk_lines.clone()].iter().take_while(is_kept).count();
    if head == hunk_lines.len() {
        return file_lines.start..file_lines.start;
    }
    let tail = hunk.lines[hunk_lines.clone()].iter().rev().take_while(is_kept).count();
    file_lines.start + head..file_lines.end - tail
}
