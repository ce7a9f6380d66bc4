//! Applies several edits that all refer to the original file, not to the result of the edit before.

use std::ops::Range;

use super::{AppliedEdits, Edit, MatchPolicy, RefusedEdit, apply};
use crate::diff;

/// Why independent edits were not applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IndependentError {
    Refused(RefusedEdit),
    /// Two edits, counted from 0, change the same bytes or insert at the same position.
    Overlap {
        first: usize,
        second: usize,
    },
}

/// Bytes of the original file that an edit replaces.
struct Region {
    range: Range<usize>,
    /// The bytes that replace them.
    new: Vec<u8>,
    /// Index of the edit.
    edit: usize,
}

/// Applies every edit to the original bytes and combines the results: all edits or none.
pub fn apply_independent(
    bytes: &[u8],
    edits: &[Edit<'_>],
    policy: MatchPolicy,
) -> Result<AppliedEdits, IndependentError> {
    let (mut regions, mut changes) = (Vec::new(), Vec::with_capacity(edits.len()));
    for (index, edit) in edits.iter().enumerate() {
        let applied = apply(bytes, edit, policy)
            .map_err(|refusal| IndependentError::Refused(RefusedEdit { index, refusal }))?;
        regions.extend(changed_regions(bytes, &applied.bytes, index));
        changes.push(applied.change);
    }
    regions.sort_by_key(|region| (region.range.start, region.range.end));
    let (mut combined, mut end) = (Vec::with_capacity(bytes.len()), 0);
    let mut previous: Option<&Region> = None;
    for region in &regions {
        if let Some(previous) = previous
            && (region.range.start < end || region.range.start == previous.range.start)
        {
            let [first, second] = [previous.edit.min(region.edit), previous.edit.max(region.edit)];
            return Err(IndependentError::Overlap { first, second });
        }
        combined.extend_from_slice(&bytes[end..region.range.start]);
        combined.extend_from_slice(&region.new);
        end = region.range.end;
        previous = Some(region);
    }
    combined.extend_from_slice(&bytes[end..]);
    Ok(AppliedEdits { bytes: combined, changes })
}

/// Returns the regions in which the bytes differ. Bytes that are equal at the start or end of a hunk are left out.
fn changed_regions(old: &[u8], new: &[u8], edit: usize) -> Vec<Region> {
    let old_lines: Vec<&[u8]> = old.split_inclusive(|byte| *byte == b'\n').collect();
    let new_lines: Vec<&[u8]> = new.split_inclusive(|byte| *byte == b'\n').collect();
    let (old_starts, new_starts) = (line_offsets(&old_lines), line_offsets(&new_lines));
    let hunks = diff::hunks(&old_lines, &new_lines);
    let region = |hunk: diff::DiffHunk| {
        let old_range = old_starts[hunk.old.start]..old_starts[hunk.old.end];
        let replacement = &new[new_starts[hunk.new.start]..new_starts[hunk.new.end]];
        let replaced = &old[old_range.clone()];
        let head = replaced.iter().zip(replacement).take_while(|(a, b)| a == b).count();
        let tails = replaced[head..].iter().rev().zip(replacement[head..].iter().rev());
        let tail = tails.take_while(|(a, b)| a == b).count();
        let range = old_range.start + head..old_range.end - tail;
        Region { range, new: replacement[head..replacement.len() - tail].to_vec(), edit }
    };
    hunks.into_iter().map(region).collect()
}

/// Returns the offset of each line, then the total length.
fn line_offsets(lines: &[&[u8]]) -> Vec<usize> {
    let mut line_offsets = vec![0];
    for line in lines {
        line_offsets.push(line_offsets.last().copied().unwrap_or(0) + line.len());
    }
    line_offsets
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::TextKind;

    fn edit<'a>(old: &'a str, new: &'a str) -> Edit<'a> {
        Edit { old, new, all: false, kind: TextKind::Unknown }
    }

    fn combined(text: &str, edits: &[Edit<'_>]) -> Result<String, IndependentError> {
        let applied = apply_independent(text.as_bytes(), edits, MatchPolicy::Tolerant)?;
        Ok(String::from_utf8_lossy(&applied.bytes).into_owned())
    }

    #[test]
    fn every_edit_is_applied_to_the_original() {
        let edits = [edit("one", "two"), edit("two", "three")];
        assert_eq!(combined("one\ntwo\n", &edits).as_deref(), Ok("two\nthree\n"));
        let backwards = [edit("b = 2", "b = 3"), edit("a = 1", "a = 2")];
        assert_eq!(combined("a = 1; b = 2\n", &backwards).as_deref(), Ok("a = 2; b = 3\n"));
        let all = Edit { all: true, ..edit("x", "y") };
        assert_eq!(combined("x\n1\nx\n", &[all, edit("1", "2")]).as_deref(), Ok("y\n2\ny\n"));
    }

    #[test]
    fn overlapping_edits_are_refused() {
        let edits = [edit("a b", "c d"), edit("b", "e")];
        let overlap = IndependentError::Overlap { first: 0, second: 1 };
        assert_eq!(combined("a b\n", &edits), Err(overlap.clone()));
        let inserts = [edit("a\n", "a\n1\n"), edit("a\nb", "a\n2\nb")];
        assert_eq!(combined("a\nb\n", &inserts), Err(overlap));
    }

    #[test]
    fn the_index_of_a_refused_edit_is_reported() {
        let error = combined("a\n", &[edit("a", "b"), edit("zzzz", "c")]);
        assert!(matches!(error, Err(IndependentError::Refused(RefusedEdit { index: 1, .. }))));
    }
}
