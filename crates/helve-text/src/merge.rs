//! Three-way merge of whole files, line by line, on raw bytes.

#[cfg(test)]
mod tests;

use std::ops::Range;

use crate::{
    diff::{self, DiffHunk},
    view::{Encoding, View},
};

/// Both sides changed the same or adjacent lines differently. Lines are counted from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    pub base: Range<usize>,
    pub mine: Range<usize>,
    pub theirs: Range<usize>,
}

/// Applies the changes of both sides to `base`. Binary files merge only if one side is unchanged or both sides are
/// equal.
pub fn merge3(base: &[u8], mine: &[u8], theirs: &[u8]) -> Result<Vec<u8>, Conflict> {
    if mine == base || mine == theirs {
        return Ok(theirs.to_vec());
    }
    if theirs == base {
        return Ok(mine.to_vec());
    }
    // Files that cannot be merged line by line conflict as a whole. The first line stands for all of them.
    let no_merge = Conflict { base: 0..1, mine: 0..1, theirs: 0..1 };
    let Some([base, mine, theirs]) = lines(base, mine, theirs) else { return Err(no_merge) };
    let sides = [Side::new(&base, &mine), Side::new(&base, &theirs)];
    Merge { base: &base, sides, out: Vec::new() }.run()
}

/// Lines with their endings.
type Lines<'a> = Vec<&'a [u8]>;

/// Splits all three files into lines with their endings, if all are text of compatible encodings.
fn lines<'a>(base: &'a [u8], mine: &'a [u8], theirs: &'a [u8]) -> Option<[Lines<'a>; 3]> {
    let views = [View::new(base).ok()?, View::new(mine).ok()?, View::new(theirs).ok()?];
    let utf16 = |view: &View<'_>| match view.encoding() {
        Encoding::Utf16Le => Some(Encoding::Utf16Le),
        Encoding::Utf16Be => Some(Encoding::Utf16Be),
        Encoding::Utf8 | Encoding::Legacy(_) | Encoding::Unclear => None,
    };
    if views.iter().any(|view| utf16(view) != utf16(&views[0])) {
        return None;
    }
    Some(views.map(|view| {
        (0..view.line_count())
            .map(|index| &view.bytes()[line_start(&view, index)..view.whole_range(index).end])
            .collect()
    }))
}

/// Returns the byte at which a line starts. The byte-order mark belongs to the first line.
fn line_start(view: &View<'_>, index: usize) -> usize {
    if index == 0 { 0 } else { view.whole_range(index).start }
}

/// One changed version of the file.
struct Side<'a> {
    lines: &'a [&'a [u8]],
    hunks: Vec<DiffHunk>,
    /// Index of the next hunk to merge.
    next: usize,
}

impl<'a> Side<'a> {
    fn new(base: &[&[u8]], lines: &'a [&'a [u8]]) -> Side<'a> {
        Side { lines, hunks: diff::hunks(base, lines), next: 0 }
    }

    fn next_hunk(&self) -> Option<&DiffHunk> {
        self.hunks.get(self.next)
    }
}

/// The state of a merge.
struct Merge<'a> {
    base: &'a [&'a [u8]],
    sides: [Side<'a>; 2],
    out: Vec<u8>,
}

impl Merge<'_> {
    fn run(mut self) -> Result<Vec<u8>, Conflict> {
        let mut at = 0;
        while let Some((group, hunks)) = self.next_group() {
            self.push(&self.base[at..group.start]);
            at = group.end;
            let [mine, theirs] =
                [self.side_range(0, &group, &hunks[0]), self.side_range(1, &group, &hunks[1])];
            let replacements =
                [&self.sides[0].lines[mine.clone()], &self.sides[1].lines[theirs.clone()]];
            match (hunks[0].is_empty(), hunks[1].is_empty()) {
                (false, true) => self.push(replacements[0]),
                (true, _) => self.push(replacements[1]),
                (false, false) if replacements[0] == replacements[1] => self.push(replacements[0]),
                (false, false) => return Err(Conflict { base: group, mine, theirs }),
            }
        }
        self.push(&self.base[at..]);
        Ok(self.out)
    }

    fn push(&mut self, lines: &[&[u8]]) {
        for line in lines {
            self.out.extend_from_slice(line);
        }
    }

    /// Returns the next range of changed base lines, with the hunks of both sides that touch it.
    fn next_group(&mut self) -> Option<(Range<usize>, [Range<usize>; 2])> {
        let first_hunk = self
            .sides
            .iter()
            .filter_map(|side| side.next_hunk())
            .min_by_key(|hunk| hunk.old.start)?;
        let mut group = first_hunk.old.clone();
        // `group`, widened by the neighbouring equal lines that a hunk could refer to instead (see `touched_lines`).
        let mut reach = group.clone();
        let from = [self.sides[0].next, self.sides[1].next];
        loop {
            let base = self.base;
            let joined = self.sides.iter_mut().find_map(|side| {
                let hunk = side.hunks.get(side.next)?;
                let touched = touched_lines(hunk, base, side.lines);
                (touched.start <= reach.end).then(|| {
                    side.next += 1;
                    (hunk.old.clone(), touched)
                })
            });
            let Some((old, touched)) = joined else { break };
            group = group.start.min(old.start)..group.end.max(old.end);
            reach = reach.start.min(touched.start)..reach.end.max(touched.end);
        }
        Some((group, [from[0]..self.sides[0].next, from[1]..self.sides[1].next]))
    }

    /// Returns the lines of a side that correspond to a group of base lines. `hunks` are its hunks in the group.
    fn side_range(&self, side: usize, group: &Range<usize>, hunks: &Range<usize>) -> Range<usize> {
        let side = &self.sides[side];
        let group_hunks = &side.hunks[hunks.clone()];
        match (group_hunks.first(), group_hunks.last()) {
            (Some(first), Some(last)) => {
                first.new.start - (first.old.start - group.start)
                    ..last.new.end + (group.end - last.old.end)
            }
            (None, _) | (_, None) => {
                let (old, new) = hunks
                    .start
                    .checked_sub(1)
                    .map_or((0, 0), |last| (side.hunks[last].old.end, side.hunks[last].new.end));
                group.start - old + new..group.end - old + new
            }
        }
    }
}

/// Maximum number of equal lines over which a change is assumed to slide.
const MAX_SLIDE: usize = 1_000;

/// Returns the base lines that a hunk may refer to. Deleting one of three equal lines has the same result whichever it
/// is, so all three are included; the same holds for an insertion beside equal lines.
fn touched_lines(hunk: &DiffHunk, base: &[&[u8]], side: &[&[u8]]) -> Range<usize> {
    let (moving, lines) = match (hunk.old.is_empty(), hunk.new.is_empty()) {
        (true, false) => (hunk.new.clone(), side),
        (false, true) => (hunk.old.clone(), base),
        (true, true) | (false, false) => return hunk.old.clone(),
    };
    let up = (0..moving.start.min(hunk.old.start).min(MAX_SLIDE))
        .take_while(|step| lines[moving.end - 1 - step] == lines[moving.start - 1 - step])
        .count();
    let max_down = (lines.len() - moving.end).min(base.len() - hunk.old.end);
    let down = (0..max_down.min(MAX_SLIDE))
        .take_while(|step| lines[moving.start + step] == lines[moving.end + step])
        .count();
    hunk.old.start - up..hunk.old.end + down
}
