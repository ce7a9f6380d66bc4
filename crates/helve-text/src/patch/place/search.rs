//! Finds the positions at which a hunk could apply.

use std::{cell::Cell, collections::HashMap, ops::Range};

use super::{
    PatchHunk, PatchLineKind, PlacementProblem,
    candidate::{self, HunkCandidate},
    hints,
};
use crate::{
    edit::{self, Edit, EditRefusal, MatchPolicy, TextKind, Tolerance},
    patch::PatchLine,
    view::View,
};

/// Maximum number of lines compared for one patch.
const MAX_COMPARED: usize = 20_000_000;
/// Maximum number of candidates tried with tolerance for one hunk.
const MAX_TRIED: usize = 64;
/// Maximum number of positions listed in a message.
pub(super) const MAX_LISTED: usize = 100;

/// A file with an index of the lines that the patch quotes.
pub(super) struct IndexedFile<'v, 'a> {
    pub(super) view: &'v View<'a>,
    /// Number of lines. The empty line after the last newline does not count.
    pub(super) line_count: usize,
    /// The hash of each line, see [`line_key`].
    keys: Vec<u64>,
    /// For each key that occurs in the patch, the lines of the file with this key.
    index: HashMap<u64, Vec<usize>>,
    /// Number of line comparisons that are still allowed.
    budget: Cell<usize>,
}

impl<'v, 'a> IndexedFile<'v, 'a> {
    pub(super) fn new(view: &'v View<'a>, hunks: &[PatchHunk]) -> IndexedFile<'v, 'a> {
        let empty_last = usize::from(view.line(view.line_count() - 1).is_empty());
        let line_count = view.line_count() - empty_last;
        let keys: Vec<u64> = (0..line_count).map(|index| line_key(view.line(index))).collect();
        let mut index: HashMap<u64, Vec<usize>> = hunks
            .iter()
            .flat_map(PatchHunk::old_lines)
            .map(|line| (line_key(&line.text), Vec::new()))
            .collect();
        for (at, key) in keys.iter().enumerate() {
            if let Some(positions) = index.get_mut(key) {
                positions.push(at);
            }
        }
        IndexedFile { view, line_count, keys, index, budget: Cell::new(MAX_COMPARED) }
    }

    pub(super) fn line(&self, index: usize) -> &'v str {
        self.view.line(index)
    }

    /// Deducts line comparisons from the budget.
    pub(super) fn spend_search_budget(&self, lines: usize) -> Result<(), PlacementProblem> {
        self.budget.set(self.budget.get().checked_sub(lines).ok_or(PlacementProblem::TooLarge)?);
        Ok(())
    }

    /// Returns the lines at which consecutive lines with the keys `wanted` start.
    fn find_starts(&self, wanted: &[u64]) -> Result<Vec<usize>, PlacementProblem> {
        let positions = |key: &u64| self.index.get(key).map_or(&[][..], Vec::as_slice);
        let rarest = wanted.iter().enumerate().min_by_key(|(_, key)| positions(key).len());
        let Some((offset, rarest)) = rarest else { return Ok(Vec::new()) };
        let mut starts = Vec::new();
        for start in positions(rarest).iter().filter_map(|at| at.checked_sub(offset)) {
            let Some(actual) = self.keys.get(start..start + wanted.len()) else { continue };
            let matching =
                wanted.iter().zip(actual).take_while(|(wanted, actual)| wanted == actual).count();
            self.spend_search_budget(matching + 1)?;
            starts.extend((matching == wanted.len()).then_some(start));
        }
        Ok(starts)
    }
}

/// Hashes a line. Lines that are equal under any tolerance have the same key, because blanks are ignored and all
/// characters with typographic forms are hashed as the same character.
fn line_key(line: &str) -> u64 {
    const TYPOGRAPHIC: char = '-';
    let mut key: u64 = 0;
    for c in line.chars() {
        let normalized = match c {
            '\'' | '"' | '-' => TYPOGRAPHIC,
            c if c.is_ascii_graphic() => c,
            c if c.is_ascii() || c.is_whitespace() => continue,
            c if c.is_alphanumeric() => c,
            _ => TYPOGRAPHIC,
        };
        key = (key.rotate_left(5) ^ u64::from(normalized)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    key
}

/// Returns all candidates that need the least tolerance. The list has at least one candidate.
pub(super) fn find_candidates(
    file: &IndexedFile<'_, '_>,
    hunk: &PatchHunk,
) -> Result<Vec<HunkCandidate>, PlacementProblem> {
    if hunk.old_lines().next().is_none() {
        return insertions(file, hunk);
    }
    let candidates = possible_candidates(file, hunk)?;
    let anchors = hints::find_anchors(file, hunk)?;
    let is_at_end = |candidate: &HunkCandidate| candidate.file_lines.end == file.line_count;
    for region in hints::search_regions(file, anchors.as_deref()) {
        let inside = candidates.iter().filter(|candidate| {
            region.contains(candidate) && (!hunk.at_end || is_at_end(candidate))
        });
        let mut best = best_candidates(file, hunk, inside.cloned().collect())?;
        best.retain(|candidate| region.accepts(file, candidate));
        if !best.is_empty() {
            return Ok(best);
        }
    }
    if hunk.at_end
        && let Some(candidate) = best_candidates(file, hunk, candidates)?.first()
    {
        return Err(PlacementProblem::NotAtEnd { line: candidate.file_lines.start + 1 });
    }
    Err(not_found(file, hunk))
}

/// Returns the possible positions of a hunk that only adds lines and quotes none.
fn insertions(
    file: &IndexedFile<'_, '_>,
    hunk: &PatchHunk,
) -> Result<Vec<HunkCandidate>, PlacementProblem> {
    let lines = match (hints::find_anchors(file, hunk)?, hunk.old_start) {
        _ if hunk.at_end || file.line_count == 0 => vec![file.line_count],
        (Some(anchors), _) => anchors.into_iter().map(|anchor| anchor + 1).collect(),
        (None, None) => vec![file.line_count],
        // Inserting before the first line is well defined. Any other line number is unreliable, because the
        // file may have changed.
        (None, Some(1)) => vec![0],
        (None, Some(_)) => return Err(PlacementProblem::NoContext),
    };
    let candidate = |line| HunkCandidate {
        file_lines: line..line,
        hunk_lines: 0..hunk.lines.len(),
        changes: line..line,
        tolerances: Vec::new(),
        new: None,
    };
    Ok(lines.into_iter().map(candidate).collect())
}

/// Returns the lines of a hunk without blank context lines at either end. If no old line would be left, one blank line
/// is included, so that there is a line to search for.
fn core_lines(hunk: &PatchHunk) -> Range<usize> {
    let is_blank =
        |line: &&PatchLine| line.kind == PatchLineKind::Keep && line.text.trim().is_empty();
    let head = hunk.lines.iter().take_while(is_blank).count();
    let tail = hunk.lines[head..].iter().rev().take_while(is_blank).count();
    let core = head..hunk.lines.len() - tail;
    match hunk.lines[core.clone()].iter().any(|line| line.kind != PatchLineKind::Add) {
        true => core,
        false if head > 0 => head - 1..core.end,
        false => core.start..core.end + 1,
    }
}

/// Returns the positions at which the lines of the hunk could match, with or without tolerance.
fn possible_candidates(
    file: &IndexedFile<'_, '_>,
    hunk: &PatchHunk,
) -> Result<Vec<HunkCandidate>, PlacementProblem> {
    let core = core_lines(hunk);
    let old = |range: Range<usize>| {
        hunk.lines[range].iter().filter(|line| line.kind != PatchLineKind::Add)
    };
    let wanted: Vec<u64> = old(core.clone()).map(|line| line_key(&line.text)).collect();
    let (head, tail) = (core.start, hunk.lines.len() - core.end);
    let is_blank = |index: usize| index < file.line_count && file.line(index).trim().is_empty();
    let mut candidates = Vec::new();
    for start in file.find_starts(&wanted)? {
        let end = start + wanted.len();
        let has_blanks_above = start >= head && (start - head..start).all(is_blank);
        let has_blanks_below = (end..end + tail).all(is_blank);
        let file_lines = start - if has_blanks_above { head } else { 0 }
            ..end + if has_blanks_below { tail } else { 0 };
        let hunk_lines = if has_blanks_above { 0 } else { core.start }..if has_blanks_below {
            hunk.lines.len()
        } else {
            core.end
        };
        let changes = candidate::changed_range(hunk, &hunk_lines, &file_lines);
        let tolerances = if has_blanks_above && has_blanks_below {
            Vec::new()
        } else {
            vec![Tolerance::BoundaryLines]
        };
        candidates.push(HunkCandidate { file_lines, hunk_lines, changes, tolerances, new: None });
    }
    Ok(candidates)
}

/// Returns the candidates at which the hunk fits best.
fn best_candidates(
    file: &IndexedFile<'_, '_>,
    hunk: &PatchHunk,
    candidates: Vec<HunkCandidate>,
) -> Result<Vec<HunkCandidate>, PlacementProblem> {
    let is_equal = |candidate: &HunkCandidate| {
        let old = hunk.lines[candidate.hunk_lines.clone()]
            .iter()
            .filter(|line| line.kind != PatchLineKind::Add);
        old.zip(candidate.file_lines.clone()).all(|(line, index)| line.text == file.line(index))
    };
    let (equal, other): (Vec<HunkCandidate>, Vec<HunkCandidate>) =
        candidates.into_iter().partition(is_equal);
    if equal.iter().any(HunkCandidate::is_exact) {
        return Ok(equal.into_iter().filter(HunkCandidate::is_exact).collect());
    }
    if other.len() > MAX_TRIED {
        return Err(ambiguous_problem(&other));
    }
    file.spend_search_budget(other.len() * hunk.lines.len())?;
    let mut refused = None;
    let mut fitting = equal;
    for candidate in &other {
        match try_with_tolerance(file, hunk, candidate) {
            Ok(fit) => fitting.extend(fit),
            Err(refusal) => {
                refused = Some(PlacementProblem::Refused {
                    line: candidate.file_lines.start + 1,
                    refusal,
                })
            }
        }
    }
    // A refused candidate may be the intended one.
    match refused {
        Some(_) if !fitting.is_empty() => return Err(ambiguous_problem(&other)),
        Some(problem) => return Err(problem),
        None => {}
    }
    let least = fitting.iter().map(HunkCandidate::rank).min();
    fitting.retain(|candidate| Some(candidate.rank()) == least);
    fitting.sort_by_key(|candidate| candidate.file_lines.start);
    Ok(fitting)
}

pub(super) fn ambiguous_problem(candidates: &[HunkCandidate]) -> PlacementProblem {
    let lines =
        candidates.iter().map(|candidate| candidate.changes.start + 1).take(MAX_LISTED).collect();
    PlacementProblem::Ambiguous { lines, count: candidates.len() }
}

/// Uses the edit engine to decide whether a hunk fits a position with tolerance, and to compute the new lines.
fn try_with_tolerance(
    file: &IndexedFile<'_, '_>,
    hunk: &PatchHunk,
    candidate: &HunkCandidate,
) -> Result<Option<HunkCandidate>, Box<EditRefusal>> {
    // Surrounding newlines make the edit engine compare whole lines.
    let block = |lines: &mut dyn Iterator<Item = &str>| {
        lines.fold("\n".to_owned(), |mut block, line| {
            block.push_str(line);
            block.push('\n');
            block
        })
    };
    let side = |excluded: PatchLineKind| {
        hunk.lines[candidate.hunk_lines.clone()]
            .iter()
            .filter(move |line| line.kind != excluded)
            .map(|line| line.text.as_str())
    };
    let actual = block(&mut candidate.file_lines.clone().map(|index| file.line(index)));
    let (old, new) =
        (block(&mut side(PatchLineKind::Add)), block(&mut side(PatchLineKind::Remove)));
    let applied = match edit::apply(
        actual.as_bytes(),
        &Edit { old: &old, new: &new, all: false, kind: TextKind::Unknown },
        MatchPolicy::Tolerant,
    ) {
        Ok(applied) => applied,
        Err(
            EditRefusal::NotFound(_)
            | EditRefusal::Blank
            | EditRefusal::Same
            | EditRefusal::EmptyFile
            | EditRefusal::AlreadyApplied { .. },
        ) => return Ok(None),
        Err(refusal) => return Err(Box::new(refusal)),
    };
    let result = String::from_utf8_lossy(&applied.bytes);
    let lines: Vec<String> = result
        .strip_prefix('\n')
        .unwrap_or(&result)
        .split_terminator('\n')
        .map(str::to_owned)
        .collect();
    if lines.len() != side(PatchLineKind::Remove).count() {
        return Ok(None);
    }
    let tolerances =
        applied.change.tolerances.iter().chain(candidate.tolerances.iter().copied()).collect();
    Ok(Some(HunkCandidate { tolerances, new: Some(lines), ..candidate.clone() }))
}

/// Explains why the lines of a hunk were not found.
fn not_found(file: &IndexedFile<'_, '_>, hunk: &PatchHunk) -> PlacementProblem {
    let side = |excluded: PatchLineKind| {
        hunk.lines.iter().filter(move |line| line.kind != excluded).map(|line| line.text.as_str())
    };
    let text = |excluded: PatchLineKind| side(excluded).collect::<Vec<_>>().join("\n");
    let (old, new) = (text(PatchLineKind::Add), text(PatchLineKind::Remove));
    match edit::apply_to(
        file.view,
        &Edit { old: &old, new: &new, all: false, kind: TextKind::Unknown },
        MatchPolicy::Exact,
    ) {
        Err(EditRefusal::NotFound(nearest)) => PlacementProblem::NotFound(nearest),
        Err(EditRefusal::AlreadyApplied { line }) => PlacementProblem::AlreadyApplied { line },
        Err(refusal @ EditRefusal::EmptyFile) => {
            PlacementProblem::Refused { line: 1, refusal: Box::new(refusal) }
        }
        // The lines are in the file, but not where the patch says, or they are parts of longer lines.
        Ok(_) | Err(_) => {
            let is_elsewhere = possible_candidates(file, hunk).is_ok_and(|found| !found.is_empty());
            let nearest = if is_elsewhere { None } else { edit::nearest_lines(file.view, &old) };
            PlacementProblem::NotFound(nearest)
        }
    }
}
