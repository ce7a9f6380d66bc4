//! Which faults an edit brought in.

use super::{FaultKind, Language, MOST, Spot};
use crate::diff::{Hunk, hunks};

/// With more old faults than this the grammar does not know the dialect of the file.
const A_FEW: usize = 3;

/// So many faults in a new file say that it is not in the language that its name says.
pub(super) fn of_new_file(now: Vec<Spot>) -> Vec<Spot> {
    if now.len() > MOST { Vec::new() } else { now }
}

pub(super) fn of_edit(
    language: Language,
    then: &[Spot],
    now: Vec<Spot>,
    before: &str,
    after: &str,
) -> Vec<Spot> {
    // The parser of YAML stops at the first fault, so that a second one tells nothing.
    if then.len() > A_FEW || language == Language::Yaml && !then.is_empty() {
        return Vec::new();
    }
    let old: Vec<&str> = before.lines().collect();
    let new: Vec<&str> = after.lines().collect();
    let hunks = hunks(&old, &new);
    let sides = Sides { old: &old, new: &new, hunks: &hunks };
    let mut fresh = sides.unknown(then, now);
    for spot in &mut fresh {
        sides.point_at_change(spot);
    }
    fresh
}

struct Sides<'a> {
    old: &'a [&'a str],
    new: &'a [&'a str],
    hunks: &'a [Hunk],
}

/// Where a line of the new text comes from.
enum Place<'a> {
    /// The old line's number, from 1.
    Kept(usize),
    Changed(&'a Hunk),
}

impl Sides<'_> {
    fn unknown(&self, then: &[Spot], mut now: Vec<Spot>) -> Vec<Spot> {
        let grown = now.len().saturating_sub(then.len());
        let mut left: Vec<&Spot> = then.iter().collect();
        for same in [Self::stayed, Self::reworded, Self::moved, Self::shifted] {
            now.retain(|new| match left.iter().position(|old| same(self, old, new)) {
                Some(index) => {
                    left.swap_remove(index);
                    false
                }
                None => true,
            });
        }
        // Beside an old fault a grammar may lose its way differently after any edit: away from what was changed, only
        // as many are believed as there are more than before.
        let mut elsewhere = 0;
        now.retain(|spot| {
            let changed = matches!(self.place(spot.fault.line), Place::Changed(_));
            elsewhere += usize::from(!changed);
            changed || elsewhere <= grown
        });
        now
    }

    /// A grammar misses a closing bracket far below the place where it was lost; the edit knows better.
    fn point_at_change(&self, spot: &mut Spot) {
        let FaultKind::Missing(what) = &spot.fault.kind else { return };
        let pair = match what.as_str() {
            "}" => ['{', '}'],
            ")" => ['(', ')'],
            "]" => ['[', ']'],
            _ => return,
        };
        if matches!(self.place(spot.fault.line), Place::Changed(_)) {
            return;
        }
        let lost = |hunk: &&Hunk| {
            let (old, new) = (&self.old[hunk.old.clone()], &self.new[hunk.new.clone()]);
            surplus(new, pair) > surplus(old, pair)
        };
        if let Some(hunk) = self.hunks.iter().find(lost) {
            spot.fault.line = (hunk.new.start + 1).min(self.new.len().max(1));
        }
    }

    fn place(&self, line: usize) -> Place<'_> {
        let index = line.saturating_sub(1);
        let before = self.hunks.partition_point(|hunk| hunk.new.end <= index);
        match self.hunks.get(before) {
            Some(hunk) if hunk.new.contains(&index) => Place::Changed(hunk),
            Some(_) | None => {
                Place::Kept(match before.checked_sub(1).map(|last| &self.hunks[last]) {
                    Some(last) => index - last.new.end + last.old.end + 1,
                    None => line,
                })
            }
        }
    }

    fn stayed(&self, old: &Spot, new: &Spot) -> bool {
        old.fault.kind == new.fault.kind && self.shifted(old, new)
    }

    fn shifted(&self, old: &Spot, new: &Spot) -> bool {
        matches!(self.place(new.fault.line), Place::Kept(line) if line == old.fault.line)
    }

    /// The same fault in a line that was changed for another reason.
    fn reworded(&self, old: &Spot, new: &Spot) -> bool {
        let Place::Changed(hunk) = self.place(new.fault.line) else { return false };
        old.fault.kind == new.fault.kind && hunk.old.contains(&(old.fault.line - 1))
    }

    /// The same fault of the same line elsewhere, or again at the very end.
    fn moved(&self, old: &Spot, new: &Spot) -> bool {
        let (from, to) = (old.fault.line, new.fault.line);
        let same_text = match (self.old.get(from - 1), self.new.get(to - 1)) {
            (Some(from), Some(to)) => from.trim() == to.trim(),
            (Some(_) | None, _) => false,
        };
        let at_end = from >= self.old.len() && to >= self.new.len();
        old.fault.kind == new.fault.kind && (same_text || at_end)
    }
}

/// How many more brackets open than close.
fn surplus(lines: &[&str], [open, close]: [char; 2]) -> isize {
    let weight = |c: char| isize::from(c == open) - isize::from(c == close);
    lines.iter().flat_map(|line| line.chars()).map(weight).sum()
}
