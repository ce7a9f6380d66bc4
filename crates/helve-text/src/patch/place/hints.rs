//! Uses the hint lines of a hunk (`@@ class Cat`) to narrow down its position.

use std::ops::Range;

use super::{
    PatchHunk, PlacementProblem,
    candidate::HunkCandidate,
    search::{IndexedFile, MAX_LISTED},
};

/// Maximum number of lines that may match a hint.
const MAX_HINT_MATCHES: usize = 100;

/// Returns the anchors of a hunk: the lines that its last hint may refer to. Returns `None` if it has no hints.
pub(super) fn find_anchors(
    file: &IndexedFile<'_, '_>,
    hunk: &PatchHunk,
) -> Result<Option<Vec<usize>>, PlacementProblem> {
    let mut anchors: Option<Vec<usize>> = None;
    for hint in &hunk.hints {
        file.spend_search_budget(file.line_count)?;
        let hint_lines = matching_lines(file, hint);
        let matches_in_region = search_regions(file, anchors.as_deref())
            .map(|region| {
                hint_lines
                    .iter()
                    .copied()
                    .filter(|line| region.contains_below_anchor(*line))
                    .collect::<Vec<_>>()
            })
            .find(|matches_in_region| !matches_in_region.is_empty())
            .ok_or_else(|| PlacementProblem::HintNotFound(hint.clone()))?;
        if matches_in_region.len() > MAX_HINT_MATCHES {
            let lines = matches_in_region.iter().map(|line| line + 1).take(MAX_LISTED).collect();
            return Err(PlacementProblem::Ambiguous { lines, count: matches_in_region.len() });
        }
        anchors = Some(matches_in_region);
    }
    Ok(anchors)
}

/// Compares the lines with a hint, first strictly and then more loosely. Returns the lines that match under the first
/// comparison that has a match.
fn matching_lines(file: &IndexedFile<'_, '_>, hint: &str) -> Vec<usize> {
    let trimmed = hint.trim();
    let comparisons: [&dyn Fn(&str) -> bool; 4] = [
        &|line| line == hint,
        &|line| line.trim_end() == hint.trim_end(),
        &|line| line.trim() == trimmed,
        &|line| line.trim_start().starts_with(trimmed),
    ];
    let matching = |is_match: &dyn Fn(&str) -> bool| {
        (0..file.line_count).filter(|index| is_match(file.line(*index))).collect::<Vec<_>>()
    };
    comparisons.into_iter().map(matching).find(|lines| !lines.is_empty()).unwrap_or_default()
}

/// A part of the file to search.
pub(super) enum SearchRegion {
    Everywhere,
    /// The blocks of the anchors: an anchor line and the more indented lines below it.
    Blocks(Vec<Range<usize>>),
    /// Everything from the anchor line on. If an anchor has a block, a candidate must match exactly and must not be
    /// indented more than the anchor.
    From {
        anchor: usize,
        has_block: bool,
    },
}

impl SearchRegion {
    /// Whether a candidate lies in the region.
    pub(super) fn contains(&self, candidate: &HunkCandidate) -> bool {
        match self {
            SearchRegion::Everywhere => true,
            // The hunk may quote the anchor too.
            SearchRegion::Blocks(blocks) => blocks.iter().any(|block| {
                block.contains(&candidate.file_lines.start)
                    || candidate.file_lines.contains(&block.start)
            }),
            SearchRegion::From { anchor, .. } => candidate.file_lines.end > *anchor,
        }
    }

    /// Whether a candidate in the region matches well enough to be used.
    pub(super) fn accepts(&self, file: &IndexedFile<'_, '_>, candidate: &HunkCandidate) -> bool {
        match self {
            SearchRegion::From { has_block: true, anchor } => {
                let is_not_blank = |index: &usize| !file.line(*index).trim().is_empty();
                let first_line = candidate.file_lines.clone().find(is_not_blank);
                candidate.is_exact()
                    && first_line.is_some_and(|line| depth(file, line) <= depth(file, *anchor))
            }
            SearchRegion::From { has_block: false, .. }
            | SearchRegion::Everywhere
            | SearchRegion::Blocks(_) => true,
        }
    }

    /// Whether a line is in the region, not counting the anchor lines themselves.
    fn contains_below_anchor(&self, line: usize) -> bool {
        match self {
            SearchRegion::Everywhere => true,
            SearchRegion::Blocks(blocks) => {
                blocks.iter().any(|block| block.start < line && line < block.end)
            }
            SearchRegion::From { anchor, .. } => line > *anchor,
        }
    }
}

/// Returns the regions to search for these anchors: first their blocks, then everything that follows.
pub(super) fn search_regions(
    file: &IndexedFile<'_, '_>,
    anchors: Option<&[usize]>,
) -> impl Iterator<Item = SearchRegion> {
    let regions = match anchors {
        None => vec![SearchRegion::Everywhere],
        Some(anchors) => {
            let blocks: Vec<_> = anchors.iter().map(|anchor| block_of(file, *anchor)).collect();
            let anchor = anchors.first().copied().unwrap_or(0);
            let has_block = blocks.iter().any(|block| block.len() > 1);
            vec![SearchRegion::Blocks(blocks), SearchRegion::From { anchor, has_block }]
        }
    };
    regions.into_iter()
}

/// Returns a line and the more indented lines below it, including brackets at the same depth.
fn block_of(file: &IndexedFile<'_, '_>, anchor: usize) -> Range<usize> {
    let is_inside = |index: &usize| {
        let text = file.line(*index).trim_start();
        text.is_empty()
            || depth(file, *index) > depth(file, anchor)
            || text.starts_with(['{', '}', ')', ']']) && depth(file, *index) == depth(file, anchor)
    };
    anchor..anchor + 1 + (anchor + 1..file.line_count).take_while(is_inside).count()
}

/// Returns the length of the indentation of a line.
fn depth(file: &IndexedFile<'_, '_>, index: usize) -> usize {
    file.line(index).len() - file.line(index).trim_start().len()
}
