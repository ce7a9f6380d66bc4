//! In what way a quotation differs from the lines nearest to it.

use std::ops::Range;

use super::{
    Difference, Nearest, Verdict,
    same::{Same, WAYS},
};
use crate::{
    diff,
    edit::{
        elision::is_elision,
        find::Keys,
        fold::{self, parts},
    },
    view::View,
};

/// Lines of an excerpt, and characters of each.
const EXCERPT: (usize, usize) = (20, 200);
/// Lines beyond the quoted number in which what was meant may lie.
const AROUND: usize = 4;

/// The nearest place with a verdict that is known.
pub(super) fn told(
    view: &View<'_>,
    quoted: &[&str],
    lines: Range<usize>,
    verdict: Verdict,
) -> Nearest {
    let difference = quoted
        .iter()
        .zip(lines.clone())
        .enumerate()
        .find_map(|(at, (quoted, index))| difference(quoted, at, view.line(index), index));
    nearest(view, lines, difference, verdict)
}

/// Lines that are all there, at depths that do not go together.
pub(super) fn indentation(view: &View<'_>, quoted: &[&str], start: usize) -> Verdict {
    let has_tab = |line: &str| parts(line).lead.contains('\t');
    let own = (start..start + quoted.len())
        .filter(|index| *index < view.count())
        .any(|index| has_tab(view.line(index)));
    if quoted.iter().any(|line| has_tab(line)) == own {
        Verdict::Indentation
    } else {
        Verdict::TabsAgainstSpaces
    }
}

/// The nearest place and what is wrong with the quotation, for lines that share most with it.
pub(super) fn judge(view: &View<'_>, keys: &Keys, quoted: &[&str], start: usize) -> Nearest {
    let wanted: Vec<u64> = quoted.iter().map(|line| fold::key(line)).collect();
    let end = start + quoted.len();
    if keys.0.get(start..end).is_some_and(|found| sorted(found) == sorted(&wanted)) {
        return told(view, quoted, start..end, Verdict::Reordered);
    }
    let around = start.saturating_sub(AROUND)..(end + AROUND).min(real_lines(view));
    let found = &keys.0[around.clone()];
    let same = same_lines(&wanted, found);
    let Some(lines) = extent(&same, quoted.len(), around.clone()) else {
        let lines = start..end.min(around.end).max(start + 1);
        return compared(view, quoted, &lines);
    };
    let own: Vec<&str> = lines.clone().map(|index| view.line(index)).collect();
    let verdict = verdict(quoted, &own, &wanted, &keys.0[lines.clone()]);
    let hunks = diff::hunks(&wanted, &keys.0[lines.clone()]);
    let difference = hunks.first().and_then(|hunk| {
        let (old, new) = (quoted.get(hunk.old.start), own.get(hunk.new.start));
        body_difference(
            old.unwrap_or(&""),
            hunk.old.start,
            new.unwrap_or(&""),
            lines.start + hunk.new.start,
        )
    });
    nearest(view, lines, difference, verdict)
}

fn real_lines(view: &View<'_>) -> usize {
    if view.ends_with_newline() { view.count() - 1 } else { view.count() }
}

/// Pairs of a quoted line and a found one that are the same.
fn same_lines(wanted: &[u64], found: &[u64]) -> Vec<(usize, usize)> {
    let (mut pairs, mut at, mut to) = (Vec::new(), 0, 0);
    for hunk in diff::hunks(wanted, found) {
        pairs.extend((at..hunk.old.start).zip(to..));
        (at, to) = (hunk.old.end, hunk.new.end);
    }
    pairs.extend((at..wanted.len()).zip(to..found.len()));
    pairs
}

/// The lines meant, judged by those that are the same: before the first and after the last as many as are quoted.
fn extent(same: &[(usize, usize)], quoted: usize, around: Range<usize>) -> Option<Range<usize>> {
    let ((old, new), (last_old, last_new)) = (same.first()?, same.last()?);
    let start = (around.start + new).saturating_sub(*old);
    let end = around.start + last_new + (quoted - last_old);
    Some(start.max(around.start)..end.min(around.end))
}

/// No line is the same: the lines are compared one by one.
fn compared(view: &View<'_>, quoted: &[&str], lines: &Range<usize>) -> Nearest {
    let own: Vec<&str> = lines.clone().map(|index| view.line(index)).collect();
    let mut verdict = line_verdict(quoted, &own).unwrap_or_else(|| {
        if are_alike(quoted, &own) { Verdict::Changed } else { Verdict::Different }
    });
    let difference =
        match (quoted, own.as_slice()) {
            // Perhaps a piece out of the middle of the line.
            ([only], [line]) if verdict == Verdict::Different => {
                let (shared, difference) = within(only, line, lines.start);
                if shared * 2 >= parts(only).body.len() {
                    verdict = Verdict::Changed;
                }
                Some(difference)
            }
            _ => quoted.iter().zip(&own).enumerate().find_map(|(at, (quoted, line))| {
                body_difference(quoted, at, line, lines.start + at)
            }),
        };
    nearest(view, lines.clone(), difference, verdict)
}

fn verdict(quoted: &[&str], own: &[&str], wanted: &[u64], found: &[u64]) -> Verdict {
    if quoted.iter().any(|line| is_elision(line)) {
        return Verdict::Elided;
    }
    if let Some(verdict) = line_verdict(quoted, own) {
        return verdict;
    }
    let hunks = diff::hunks(wanted, found);
    if hunks.iter().all(|hunk| hunk.old.is_empty()) {
        return Verdict::NotSeen;
    }
    if hunks.iter().all(|hunk| hunk.new.is_empty()) {
        return Verdict::NotThere;
    }
    if sorted(wanted) == sorted(found) {
        return Verdict::Reordered;
    }
    let changed: usize = hunks.iter().map(|hunk| hunk.old.len()).sum();
    if changed * 2 > wanted.len() { Verdict::Different } else { Verdict::Changed }
}

fn sorted(keys: &[u64]) -> Vec<u64> {
    let mut keys = keys.to_vec();
    keys.sort_unstable();
    keys
}

/// What tells apart lines that stand against one another one by one.
fn line_verdict(quoted: &[&str], own: &[&str]) -> Option<Verdict> {
    if quoted.len() != own.len() {
        return None;
    }
    let all = |same: Same| {
        quoted.iter().zip(own).all(|(quoted, own)| same(parts(quoted).body, parts(own).body))
    };
    WAYS.into_iter().find(|(same, _)| all(*same)).map(|(_, verdict)| verdict)
}

/// How alike two lines must be, from 0 to 1, for one to be a misremembered form of the other.
const ALIKE: f64 = 0.7;

fn are_alike(quoted: &[&str], own: &[&str]) -> bool {
    let cut = |line: &str| parts(line).body.chars().take(EXCERPT.1).collect::<String>();
    quoted.len() == own.len()
        && quoted.len() <= EXCERPT.0
        && quoted
            .iter()
            .zip(own)
            .all(|(quoted, own)| strsim::normalized_levenshtein(&cut(quoted), &cut(own)) >= ALIKE)
}

fn nearest(
    view: &View<'_>,
    lines: Range<usize>,
    difference: Option<Difference>,
    verdict: Verdict,
) -> Nearest {
    let cut = |line: &str| line.chars().take(EXCERPT.1).collect();
    let excerpt = lines.clone().take(EXCERPT.0).map(|index| cut(view.line(index))).collect();
    Nearest {
        first_line: lines.start + 1,
        last_line: lines.end.max(lines.start + 1),
        excerpt,
        difference,
        verdict,
    }
}

fn difference(quoted: &str, at: usize, own: &str, index: usize) -> Option<Difference> {
    let same = quoted.chars().zip(own.chars()).take_while(|(a, b)| a == b).count();
    let (quoted, found) = (quoted.chars().nth(same), own.chars().nth(same));
    (quoted != found).then_some(Difference {
        line: index + 1,
        quoted_line: at + 1,
        column: same + 1,
        quoted,
        found,
    })
}

/// The same, indentation and blanks at the end aside: those would have been overlooked.
fn body_difference(quoted: &str, at: usize, own: &str, index: usize) -> Option<Difference> {
    let (quoted, own) = (parts(quoted), parts(own));
    let found = difference(quoted.body, at, own.body, index)?;
    Some(Difference { column: found.column + own.lead.chars().count(), ..found })
}

/// How much of a quoted piece the line holds that it seems to come from, and where they part.
fn within(quoted: &str, own: &str, index: usize) -> (usize, Difference) {
    let body = parts(quoted).body;
    let edges: Vec<usize> = body.char_indices().map(|(at, _)| at).chain([body.len()]).collect();
    let longest = edges.partition_point(|edge| own.contains(&body[..*edge])).saturating_sub(1);
    let edge = edges[longest];
    let at = own.find(&body[..edge]).unwrap_or(0) + edge;
    let column = own[..at].chars().count() + 1;
    (
        edge,
        Difference {
            line: index + 1,
            quoted_line: 1,
            column,
            quoted: body[edge..].chars().next(),
            found: own[at..].chars().next(),
        },
    )
}
