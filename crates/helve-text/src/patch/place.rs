//! Locates the hunks of a patch in a file and applies them.

mod candidate;
mod hints;
mod order;
mod search;
mod write;

#[cfg(test)]
mod tests;

use std::ops::Range;

use super::{PatchHunk, PatchLineKind};
use crate::{
    edit::{ChangedLines, EditRefusal, NearestMatch, NewText, TextKind, Tolerance},
    view::{Encoding, View},
};

/// The effect of one hunk on a file. Lines are counted from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// The lines of the file that change. Empty if lines are only added.
    pub lines: Range<usize>,
    /// The lines that replace the changed lines.
    pub replacement: Vec<PatchedLine>,
    /// The tolerances that the hunk needs. The set is empty if the hunk quotes the file exactly.
    pub tolerances: Vec<Tolerance>,
}

/// A line of the file after the patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatchedLine {
    /// An unchanged line of the file.
    Keep(usize),
    New {
        text: String,
        /// The line that this line replaces.
        replaces: Option<usize>,
        end: PatchedLineEnd,
    },
}

/// The line ending after a new line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchedLineEnd {
    Newline,
    /// The file ends with this line, without a newline.
    None,
    /// The same as after the last line of the file: the hunk marks both its old and its new text as without a final
    /// newline, so it does not change the ending.
    Unchanged,
}

/// The result of applying all hunks to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedPatch {
    pub bytes: Vec<u8>,
    /// The changed lines, in order.
    pub changed_lines: Vec<ChangedLines>,
    /// The tolerances that each hunk needed.
    pub tolerances: Vec<Vec<Tolerance>>,
}

/// The first hunk that cannot be placed, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacementError {
    /// The index of the hunk, counted from 0.
    pub hunk: usize,
    /// The row of the patch at which the hunk starts.
    pub row: usize,
    pub problem: PlacementProblem,
}

/// Why a hunk cannot be placed. Lines are counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlacementProblem {
    /// The lines of the hunk were not found. Contains the closest match, if any.
    NotFound(Option<Box<NearestMatch>>),
    /// A line that should precede the hunk was not found.
    HintNotFound(String),
    /// The lines of the hunk occur `count` times. `lines` has the line numbers of the first occurrences.
    Ambiguous { lines: Vec<usize>, count: usize },
    /// The lines of the hunk occur only before those of an earlier hunk.
    OutOfOrder { line: usize },
    /// The lines of the hunk are in the file, but not at its end as the patch says.
    NotAtEnd { line: usize },
    /// The hunk only adds lines and does not say where.
    NoContext,
    /// The lines of the hunk were found, but the change cannot be applied to them.
    Refused { line: usize, refusal: Box<EditRefusal> },
    /// The file's encoding cannot represent a character of a new line.
    CannotEncode { character: char, encoding: Encoding },
    /// The new lines of the hunk are in the file already.
    AlreadyApplied { line: usize },
    /// The comparison would take too long.
    TooLarge,
}

/// Finds the position of each hunk. Positions must be unambiguous and in the order of the patch.
pub fn place(view: &View<'_>, hunks: &[PatchHunk]) -> Result<Vec<Placement>, PlacementError> {
    let file = search::IndexedFile::new(view, hunks);
    let mut options = Vec::with_capacity(hunks.len());
    for (n, hunk) in hunks.iter().enumerate() {
        options.push(search::find_candidates(&file, hunk).map_err(|problem| PlacementError {
            hunk: n,
            row: hunk.row,
            problem,
        })?);
    }
    let chosen = order::choose(hunks, options)?;
    Ok(hunks.iter().zip(chosen).map(|(hunk, candidate)| candidate.placement(hunk)).collect())
}

/// Applies all hunks to the bytes of a file, or none. Returns `None` if the bytes are not text.
pub fn apply(
    bytes: &[u8],
    hunks: &[PatchHunk],
    kind: TextKind,
) -> Option<Result<AppliedPatch, PlacementError>> {
    let result = apply_to(&View::new(bytes).ok()?, hunks, kind);
    let is_not_found =
        |error: &PlacementError| matches!(error.problem, PlacementProblem::NotFound(_));
    // If nothing was found, try again with lone carriage returns as line ends.
    Some(match (result, View::with_carriage_returns(bytes)) {
        (Err(error), Some(view)) if is_not_found(&error) => {
            apply_to(&view, hunks, kind).map_err(|_| error)
        }
        (result, _) => result,
    })
}

fn apply_to(
    view: &View<'_>,
    hunks: &[PatchHunk],
    kind: TextKind,
) -> Result<AppliedPatch, PlacementError> {
    let placements = place(view, hunks)?;
    for (n, (hunk, placement)) in hunks.iter().zip(&placements).enumerate() {
        check(view, hunk, placement, kind).map_err(|problem| PlacementError {
            hunk: n,
            row: hunk.row,
            problem,
        })?;
    }
    let result = write::write(view, &placements);
    let (bytes, changed_lines) =
        result.map_err(|(hunk, problem)| PlacementError { hunk, row: hunks[hunk].row, problem })?;
    Ok(AppliedPatch {
        bytes,
        changed_lines,
        tolerances: placements.into_iter().map(|placement| placement.tolerances).collect(),
    })
}

/// Refuses a hunk whose new lines should not be written or are in the file already.
fn check(
    view: &View<'_>,
    hunk: &PatchHunk,
    placement: &Placement,
    kind: TextKind,
) -> Result<(), PlacementProblem> {
    let side = |excluded: PatchLineKind| {
        let lines = hunk.lines.iter().filter(move |line| line.kind != excluded);
        lines.map(|line| line.text.as_str()).collect::<Vec<_>>().join("\n")
    };
    let (old, new) = (side(PatchLineKind::Add), side(PatchLineKind::Remove));
    let first_line = placement.lines.start + 1;
    let text = NewText {
        old: &old,
        new: &new,
        file: view.text(),
        first_line,
        before: "",
        after: "",
        kind,
    };
    if let Some(fault) = text.fault() {
        let refusal = Box::new(EditRefusal::Faulty(fault));
        return Err(PlacementProblem::Refused { line: first_line, refusal });
    }
    match repeated_line(view, placement) {
        Some(line) => Err(PlacementProblem::AlreadyApplied { line: line + 1 }),
        None => Ok(()),
    }
}

/// Minimum number of letters in added lines for them to be recognized as added before.
const MIN_LETTERS: usize = 4;

/// If a hunk only adds lines, and the file already has these lines right before or after the position of the hunk,
/// returns the first of them.
fn repeated_line(view: &View<'_>, placement: &Placement) -> Option<usize> {
    let added = placement.replacement.iter().map(|line| match line {
        PatchedLine::New { text, .. } => Some(text.as_str()),
        PatchedLine::Keep(_) => None,
    });
    let added: Vec<&str> = added.collect::<Option<_>>()?;
    let letters = added.iter().flat_map(|line| line.chars()).filter(|c| c.is_alphabetic()).count();
    if !placement.lines.is_empty() || added.is_empty() || letters < MIN_LETTERS {
        return None;
    }
    let start = placement.lines.start;
    [Some(start), start.checked_sub(added.len())].into_iter().flatten().find(|from| {
        from + added.len() <= view.line_count()
            && added.iter().zip(*from..).all(|(line, index)| *line == view.line(index))
    })
}
