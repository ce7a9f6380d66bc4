//! Three-way merge of whole files, line by line, on raw bytes.

#[cfg(test)]
mod tests;

use std::ops::Range;

use crate::{
    diff::{self, Hunk},
    view::{Encoding, View},
};

/// Both sides changed the same lines, or lines that touch, each in its own way. Lines are counted from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    pub base: Range<usize>,
    pub mine: Range<usize>,
    pub theirs: Range<usize>,
}

/// Carries out both changes of `base`. What is not text merges only where one side left it alone or both agree.
pub fn merge3(base: &[u8], mine: &[u8], theirs: &[u8]) -> Result<Vec<u8>, Conflict> {
    if mine == base || mine == theirs {
        return Ok(theirs.to_vec());
    }
    if theirs == base {
        return Ok(mine.to_vec());
    }
    let whole = Conflict { base: 0..1, mine: 0..1, theirs: 0..1 };
    let Some([base, mine, theirs]) = lines(base, mine, theirs) else { return Err(whole) };
    let sides = [Side::new(&base, &mine), Side::new(&base, &theirs)];
    Merge { base: &base, sides, out: Vec::new() }.run()
}

type Lines<'a> = Vec<&'a [u8]>;

/// All three cut into lines, endings included, if all are text of one kind.
fn lines<'a>(base: &'a [u8], mine: &'a [u8], theirs: &'a [u8]) -> Option<[Lines<'a>; 3]> {
    let views = [View::new(base).ok()?, View::new(mine).ok()?, View::new(theirs).ok()?];
    let wide = |view: &View<'_>| match view.encoding() {
        Encoding::Utf16Le => Some(Encoding::Utf16Le),
        Encoding::Utf16Be => Some(Encoding::Utf16Be),
        Encoding::Utf8 | Encoding::Legacy(_) | Encoding::Unclear => None,
    };
    if views.iter().any(|view| wide(view) != wide(&views[0])) {
        return None;
    }
    Some(views.map(|view| {
        (0..view.count())
            .map(|index| &view.bytes()[start(&view, index)..view.whole_range(index).end])
            .collect()
    }))
}

/// The byte-order mark belongs to the first line.
fn start(view: &View<'_>, index: usize) -> usize {
    if index == 0 { 0 } else { view.whole_range(index).start }
}

struct Side<'a> {
    lines: &'a [&'a [u8]],
    hunks: Vec<Hunk>,
    next: usize,
}

impl<'a> Side<'a> {
    fn new(base: &[&[u8]], lines: &'a [&'a [u8]]) -> Side<'a> {
        Side { lines, hunks: diff::hunks(base, lines), next: 0 }
    }

    fn upcoming(&self) -> Option<&Hunk> {
        self.hunks.get(self.next)
    }
}

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
                [self.range(0, &group, &hunks[0]), self.range(1, &group, &hunks[1])];
            let said = [&self.sides[0].lines[mine.clone()], &self.sides[1].lines[theirs.clone()]];
            match (hunks[0].is_empty(), hunks[1].is_empty()) {
                (false, true) => self.push(said[0]),
                (true, _) => self.push(said[1]),
                (false, false) if said[0] == said[1] => self.push(said[0]),
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

    /// The next lines of the base that change, with all hunks of both sides that touch one another there.
    fn next_group(&mut self) -> Option<(Range<usize>, [Range<usize>; 2])> {
        let first = self
            .sides
            .iter()
            .filter_map(|side| side.upcoming())
            .min_by_key(|hunk| hunk.old.start)?;
        let mut group = first.old.clone();
        let mut reach = group.clone();
        let from = [self.sides[0].next, self.sides[1].next];
        loop {
            let base = self.base;
            let joined = self.sides.iter_mut().find_map(|side| {
                let hunk = side.hunks.get(side.next)?;
                let own = slack(hunk, base, side.lines);
                (own.start <= reach.end).then(|| {
                    side.next += 1;
                    (hunk.old.clone(), own)
                })
            });
            let Some((old, own)) = joined else { break };
            group = group.start.min(old.start)..group.end.max(old.end);
            reach = reach.start.min(own.start)..reach.end.max(own.end);
        }
        Some((group, [from[0]..self.sides[0].next, from[1]..self.sides[1].next]))
    }

    /// The lines of a side that stand for a group of the base.
    fn range(&self, side: usize, group: &Range<usize>, taken: &Range<usize>) -> Range<usize> {
        let side = &self.sides[side];
        let hunks = &side.hunks[taken.clone()];
        match (hunks.first(), hunks.last()) {
            (Some(first), Some(last)) => {
                first.new.start - (first.old.start - group.start)
                    ..last.new.end + (group.end - last.old.end)
            }
            (None, _) | (_, None) => {
                let (old, new) = taken
                    .start
                    .checked_sub(1)
                    .map_or((0, 0), |last| (side.hunks[last].old.end, side.hunks[last].new.end));
                group.start - old + new..group.end - old + new
            }
        }
    }
}

/// A change that could be moved further than this among equal lines is taken to reach only so far.
const FAR: usize = 1_000;

/// The lines of the base that a hunk may be said to touch: an insertion or deletion among equal lines could as well stand further up or down.
fn slack(hunk: &Hunk, base: &[&[u8]], side: &[&[u8]]) -> Range<usize> {
    let (moving, lines) = match (hunk.old.is_empty(), hunk.new.is_empty()) {
        (true, false) => (hunk.new.clone(), side),
        (false, true) => (hunk.old.clone(), base),
        (true, true) | (false, false) => return hunk.old.clone(),
    };
    let up = (0..moving.start.min(hunk.old.start).min(FAR))
        .take_while(|step| lines[moving.end - 1 - step] == lines[moving.start - 1 - step])
        .count();
    let room = (lines.len() - moving.end).min(base.len() - hunk.old.end);
    let down = (0..room.min(FAR))
        .take_while(|step| lines[moving.start + step] == lines[moving.end + step])
        .count();
    hunk.old.start - up..hunk.old.end + down
}
