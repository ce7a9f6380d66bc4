//! Where a quotation stands, line by line, and what has to be overlooked for it to stand there.

use std::{borrow::Cow, cell::OnceCell, cmp::Reverse, collections::BTreeMap, ops::Range};

use super::{
    Refusal, Tolerance, Tolerances,
    fold::{self, Parts, parts},
    indent::{self, Indent},
    variant::Variant,
};
use crate::view::View;

/// A key for every line of a file: equal where only blanks and typography can differ.
pub(super) struct Keys(pub(super) Vec<u64>, OnceCell<Option<usize>>);

impl Keys {
    pub(super) fn of(view: &View<'_>) -> Keys {
        let keys = (0..view.count()).map(|index| fold::key(view.line(index))).collect();
        Keys(keys, OnceCell::new())
    }

    /// By how many blanks lines are mostly indented more than the ones above them.
    fn usual_step(&self, view: &View<'_>) -> Option<usize> {
        *self.1.get_or_init(|| usual_step(view))
    }
}

/// The lines of a text: what follows a newline at its very end is no line.
pub(super) fn lines(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.split('\n').collect();
    if lines.last().is_some_and(|last| last.is_empty()) {
        lines.pop();
    }
    lines
}

/// Blank lines at the beginning and at the end.
pub(super) fn margins(lines: &[&str]) -> (usize, usize) {
    let head = lines.iter().take_while(|line| fold::is_blank_line(line)).count();
    let foot = lines[head..].iter().rev().take_while(|line| fold::is_blank_line(line)).count();
    (head, foot)
}

/// A place where every quoted line has its counterpart.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    /// Lines of the file, from 0.
    pub(super) lines: Range<usize>,
    /// The quoted lines that stand there: blank ones at the beginning or end that the file lacks are left out.
    pub(super) quoted: Range<usize>,
    pub(super) indent: Indent,
    need: Tolerances,
}

/// The places of the least tolerance that has any.
pub(super) struct Found {
    /// Where the first quoted line that says something stands in the file, from 0.
    pub(super) starts: Vec<usize>,
    pub(super) need: Tolerances,
}

/// Characters that may be compared for one quotation: a large block that repeats itself all over a file costs more than it tells.
const BUDGET: usize = 16 << 20;

pub(super) fn least(
    view: &View<'_>,
    keys: &Keys,
    variant: &Variant<'_>,
) -> Result<Option<Found>, Refusal> {
    let quoted = lines(&variant.old);
    let (head, foot) = margins(&quoted);
    let mut best: Option<Found> = None;
    let mut budget = BUDGET;
    for start in starts(keys, &quoted[head..quoted.len() - foot]) {
        if variant.at.is_some_and(|line| line != start + 1) {
            continue;
        }
        budget = budget.checked_sub(variant.old.len() + 1).ok_or(Refusal::TooLarge)?;
        let Some(Candidate { need, .. }) = candidate(view, keys, &quoted, start) else { continue };
        match &mut best {
            Some(found) if found.need == need => found.starts.push(start),
            Some(found) if found.need.rank() < need.rank() => {}
            Some(_) | None => best = Some(Found { starts: vec![start], need }),
        }
    }
    Ok(best)
}

/// Where else than found all quoted lines but one stand exactly as quoted: rather what was meant, and changed since, than a place
/// that differs in several.
pub(super) fn all_but_one(view: &View<'_>, old: &str, found: &Found) -> Option<usize> {
    let quoted = lines(old);
    let (head, _) = margins(&quoted);
    let says_something = quoted.iter().filter(|line| !fold::is_blank_line(line)).count();
    let places = view.count().checked_sub(quoted.len())?;
    if says_something < 3 || places.saturating_mul(quoted.len()) > COMPARED {
        return None;
    }
    let elsewhere = |start: &usize| found.starts.binary_search(&(start + head)).is_err();
    (0..=places).filter(elsewhere).find(|start| {
        let mut others = quoted.iter().zip(*start..).filter(|(line, at)| **line != view.line(*at));
        others.next().is_some() && others.next().is_none()
    })
}

/// Lines compared to find such a place, at most.
const COMPARED: usize = 4_000_000;

/// The lines of the file at which all keys of the quoted lines follow one another.
pub(super) fn starts(keys: &Keys, quoted: &[&str]) -> Vec<usize> {
    let wanted: Vec<u64> = quoted.iter().map(|line| fold::key(line)).collect();
    let keys = &keys.0;
    let mut starts = Vec::new();
    if wanted.is_empty() || wanted.len() > keys.len() {
        return starts;
    }
    // Knuth, Morris and Pratt: a file of equal lines costs no more than any other.
    let mut borders = vec![0; wanted.len()];
    for at in 1..wanted.len() {
        borders[at] = extend(&wanted, &borders, borders[at - 1], wanted[at]);
    }
    let mut matched = 0;
    for (at, key) in keys.iter().enumerate() {
        if matched == wanted.len() {
            matched = borders[matched - 1];
        }
        matched = extend(&wanted, &borders, matched, *key);
        if matched == wanted.len() {
            starts.push(at + 1 - matched);
        }
    }
    starts
}

fn extend(wanted: &[u64], borders: &[usize], mut matched: usize, next: u64) -> usize {
    while matched > 0 && wanted[matched] != next {
        matched = borders[matched - 1];
    }
    matched + usize::from(wanted[matched] == next)
}

/// What the lines from `start` on have to do with the quoted ones, if they are the same.
pub(super) fn candidate(
    view: &View<'_>,
    keys: &Keys,
    quoted: &[&str],
    start: usize,
) -> Option<Candidate> {
    let (head, foot) = margins(quoted);
    let core = head..quoted.len() - foot;
    let mut need = Tolerances::NONE;
    let mut leads = Vec::with_capacity(core.len());
    for (line, index) in quoted[core.clone()].iter().zip(start..) {
        let (old, own) = (parts(line), parts(view.line(index)));
        need = need.and(overlooked(old, own)?);
        if !old.body.is_empty() {
            leads.push((old.lead, own.lead));
        }
    }
    if leads.iter().any(|(old, own)| !old.is_ascii() || !own.is_ascii()) {
        need = need.with(Tolerance::Typography);
    }
    let folded: Vec<(Cow<'_, str>, Cow<'_, str>)> =
        leads.iter().map(|(old, own)| (plain(old), plain(own))).collect();
    let pairs: Vec<(&str, &str)> =
        folded.iter().map(|(old, own)| (old.as_ref(), own.as_ref())).collect();
    let levels = |width: usize| keys.usual_step(view).is_none_or(|step| step == width);
    let indent = indent::infer(&pairs, levels)?;
    if !indent.is_same() {
        need = need.with(Tolerance::Indentation);
    }
    let is_blank = |index: usize| index + 1 < view.count() && fold::is_blank_line(view.line(index));
    let above = start >= core.start && (start - core.start..start).all(is_blank);
    let end = start + core.len();
    let below = (end..end + quoted.len() - core.end).all(is_blank);
    if !above || !below {
        need = need.with(Tolerance::BoundaryLines);
    }
    let taken = if above { 0 } else { core.start }..if below { quoted.len() } else { core.end };
    let first = start - (core.start - taken.start);
    Some(Candidate { lines: first..first + taken.len(), quoted: taken, indent, need })
}

fn usual_step(view: &View<'_>) -> Option<usize> {
    let (mut above, mut steps) = (0, BTreeMap::new());
    for index in 0..view.count().min(LEVELLED) {
        let Parts { lead, body, .. } = parts(view.line(index));
        if body.is_empty() {
            continue;
        }
        if lead.len() > above && lead.bytes().all(|byte| byte == b' ') {
            *steps.entry(lead.len() - above).or_insert(0_usize) += 1;
        }
        above = lead.len();
    }
    steps.into_iter().max_by_key(|(step, count)| (*count, Reverse(*step))).map(|(step, _)| step)
}

/// Lines looked at to see how a file is indented.
const LEVELLED: usize = 10_000;

/// Indentation with ordinary blanks.
pub(super) fn plain(lead: &str) -> Cow<'_, str> {
    if lead.is_ascii() { Cow::Borrowed(lead) } else { lead.chars().map(fold::fold).collect() }
}

/// What has to be overlooked for two lines to be the same, indentation aside; `None` when they are not.
fn overlooked(old: Parts<'_>, own: Parts<'_>) -> Option<Tolerances> {
    let mut need = Tolerances::NONE;
    if old.trail != own.trail || old.body.is_empty() && old.lead != own.lead {
        need = need.with(Tolerance::TrailingBlanks);
    }
    if old.body == own.body {
        return Some(need);
    }
    if folded(old.body).eq(folded(own.body)) {
        return Some(need.with(Tolerance::Typography));
    }
    if squeezed(old.body.chars()).eq(squeezed(own.body.chars())) {
        return Some(need.with(Tolerance::InnerBlanks));
    }
    let same = squeezed(folded(old.body)).eq(squeezed(folded(own.body)));
    same.then(|| need.with(Tolerance::InnerBlanks).with(Tolerance::Typography))
}

fn folded(text: &str) -> impl Iterator<Item = char> {
    text.chars().map(fold::fold)
}

/// Every run of blanks as one; a typographic blank only among its own.
fn squeezed(text: impl Iterator<Item = char>) -> impl Iterator<Item = char> {
    let mut last = None;
    text.map(|character| if character == '\t' { ' ' } else { character }).filter(move |character| {
        let repeated = *character == ' ' && last == Some(' ');
        last = Some(*character);
        !repeated
    })
}
