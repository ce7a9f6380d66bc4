//! Finds the quoted text in a file line by line, and determines the tolerances that each match needs.
//!
//! The quoted text is the old text of an edit. The caller copied it from the file, perhaps inexactly.

mod literal;

use std::{borrow::Cow, cell::OnceCell, cmp::Reverse, collections::BTreeMap, ops::Range};

use super::{
    EditRefusal, Tolerance, Tolerances,
    indent::{self, IndentMapping},
    interpretation::Interpretation,
    normalize::{self, LineParts, split_line},
};
use crate::view::View;

/// Hashes of the lines of a file, and how far it indents per level. Both are computed on first use.
pub(super) struct LineKeys<'v> {
    view: &'v View<'v>,
    hashes: OnceCell<Vec<u64>>,
    indent_step: OnceCell<Option<usize>>,
}

impl<'v> LineKeys<'v> {
    pub(super) fn new(view: &'v View<'v>) -> LineKeys<'v> {
        LineKeys { view, hashes: OnceCell::new(), indent_step: OnceCell::new() }
    }

    /// Returns the hash of each line. Lines that differ only in white space and typography have the same hash.
    pub(super) fn hashes(&self) -> &[u64] {
        self.hashes.get_or_init(|| self.view.text().split('\n').map(normalize::line_key).collect())
    }

    /// Returns the most common increase of indentation between lines, in spaces.
    fn indent_step(&self) -> Option<usize> {
        *self.indent_step.get_or_init(|| indent_step(self.view))
    }
}

/// Splits a text into lines. A newline at the very end does not start another line.
pub(super) fn split_lines(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.split('\n').collect();
    if lines.last().is_some_and(|last| last.is_empty()) {
        lines.pop();
    }
    lines
}

/// Counts the blank lines at the start and at the end of a list of lines.
pub(super) fn blank_margins(lines: &[&str]) -> (usize, usize) {
    let head = lines.iter().take_while(|line| normalize::is_blank_line(line)).count();
    let tail = lines[head..].iter().rev().take_while(|line| normalize::is_blank_line(line)).count();
    (head, tail)
}

/// Returns the keys of lines. Lines that differ only in white space and typography have the same key.
pub(super) fn line_keys(lines: &[&str]) -> Vec<u64> {
    lines.iter().map(|line| normalize::line_key(line)).collect()
}

/// A range of the file whose lines match the quoted lines one by one.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    /// Lines of the file, from 0.
    pub(super) lines: Range<usize>,
    /// The quoted lines that match. Blank lines at either end that the file lacks are excluded.
    pub(super) quoted: Range<usize>,
    pub(super) indent: IndentMapping,
    /// The tolerances that the match needs.
    needed: Tolerances,
}

/// All matches that need the smallest set of tolerances.
pub(super) struct MatchSet {
    /// For each match, the line of the file, from 0, at which the first non-blank quoted line matches.
    pub(super) starts: Vec<usize>,
    /// The tolerances that the matches need.
    pub(super) needed: Tolerances,
}

/// Maximum number of characters compared for one quoted text. Large blocks that repeat all over a file are refused.
const MAX_CHARACTERS: usize = 16 << 20;

/// Finds all matches of an interpretation that need the smallest set of tolerances.
pub(super) fn best_matches(
    view: &View<'_>,
    keys: &LineKeys<'_>,
    interpretation: &Interpretation<'_>,
) -> Result<Option<MatchSet>, EditRefusal> {
    let quoted = split_lines(&interpretation.old);
    let (head, tail) = blank_margins(&quoted);
    let mut best: Option<MatchSet> = None;
    let mut budget = MAX_CHARACTERS;
    for start in match_starts(keys, &quoted[head..quoted.len() - tail]) {
        if interpretation.only_line.is_some_and(|line| line != start + 1) {
            continue;
        }
        budget = budget.checked_sub(interpretation.old.len() + 1).ok_or(EditRefusal::TooLarge)?;
        let Some(Candidate { needed, .. }) = candidate_at(view, keys, &quoted, start) else {
            continue;
        };
        match &mut best {
            Some(best) if best.needed == needed => best.starts.push(start),
            Some(best) if best.needed.rank() < needed.rank() => {}
            Some(_) | None => best = Some(MatchSet { starts: vec![start], needed }),
        }
    }
    Ok(best)
}

/// Finds a range outside the matches in which all quoted lines except one match exactly. Such a range has probably
/// changed since it was read, and is more likely the intended one than a match that differs in indentation.
pub(super) fn find_with_one_changed_line(
    view: &View<'_>,
    old: &str,
    match_set: &MatchSet,
) -> Option<usize> {
    let quoted = split_lines(old);
    let (head, _) = blank_margins(&quoted);
    let non_blank = quoted.iter().filter(|line| !normalize::is_blank_line(line)).count();
    let last_start = view.line_count().checked_sub(quoted.len())?;
    if non_blank < 3 || last_start.saturating_mul(quoted.len()) > MAX_COMPARED {
        return None;
    }
    let is_not_a_match = |start: &usize| match_set.starts.binary_search(&(start + head)).is_err();
    let has_one_changed_line = |start: &usize| {
        let mut differing =
            quoted.iter().zip(*start..).filter(|(line, at)| **line != view.line(*at));
        differing.next().is_some()
            && differing.next().is_none()
            && has_equal_words(view, &quoted, *start)
    };
    match literal::starts_by_longest_lines(view, &quoted) {
        Some(starts) => starts.into_iter().filter(is_not_a_match).find(has_one_changed_line),
        None => (0..=last_start).filter(is_not_a_match).find(has_one_changed_line),
    }
}

/// Whether at least one equal line has letters or digits. Lines like `}` are equal almost anywhere.
fn has_equal_words(view: &View<'_>, quoted: &[&str], start: usize) -> bool {
    quoted
        .iter()
        .zip(start..)
        .any(|(line, at)| *line == view.line(at) && line.contains(char::is_alphanumeric))
}

/// Maximum number of line comparisons in [`find_with_one_changed_line`].
const MAX_COMPARED: usize = 4_000_000;

/// Returns the indices of the file's lines at which a match starts: the keys of the lines from there on equal the keys
/// of the quoted lines.
pub(super) fn match_starts(keys: &LineKeys<'_>, quoted: &[&str]) -> Vec<usize> {
    let quoted_keys = line_keys(quoted);
    if keys.hashes.get().is_none()
        && let Some(mut starts) = literal::possible_starts(keys.view, quoted)
    {
        let key = |line: usize| normalize::line_key(keys.view.line(line));
        starts.retain(|start| {
            (*start..).zip(&quoted_keys).all(|(line, quoted)| key(line) == *quoted)
        });
        return starts;
    }
    let keys = keys.hashes();
    let mut starts = Vec::new();
    if quoted_keys.is_empty() || quoted_keys.len() > keys.len() {
        return starts;
    }
    // Knuth–Morris–Pratt, so that a file of equal lines costs no more than any other.
    let mut borders = vec![0; quoted_keys.len()];
    for at in 1..quoted_keys.len() {
        borders[at] = advance(&quoted_keys, &borders, borders[at - 1], quoted_keys[at]);
    }
    let mut matched = 0;
    for (at, key) in keys.iter().enumerate() {
        if matched == quoted_keys.len() {
            matched = borders[matched - 1];
        }
        matched = advance(&quoted_keys, &borders, matched, *key);
        if matched == quoted_keys.len() {
            starts.push(at + 1 - matched);
        }
    }
    starts
}

/// Returns how many keys match after the next key of the file, for Knuth–Morris–Pratt.
fn advance(quoted_keys: &[u64], borders: &[usize], mut matched: usize, next: u64) -> usize {
    while matched > 0 && quoted_keys[matched] != next {
        matched = borders[matched - 1];
    }
    matched + usize::from(quoted_keys[matched] == next)
}

/// Matches the quoted lines against the file's lines from `start` on.
pub(super) fn candidate_at(
    view: &View<'_>,
    keys: &LineKeys<'_>,
    quoted: &[&str],
    start: usize,
) -> Option<Candidate> {
    let (head, tail) = blank_margins(quoted);
    let core = head..quoted.len() - tail;
    let mut needed = Tolerances::NONE;
    let mut leads = Vec::with_capacity(core.len());
    for (line, index) in quoted[core.clone()].iter().zip(start..) {
        let (old, actual) = (split_line(line), split_line(view.line(index)));
        needed = needed.union(required_tolerances(old, actual)?);
        if !old.body.is_empty() {
            leads.push((old.lead, actual.lead));
        }
    }
    if leads.iter().any(|(old, actual)| !old.is_ascii() || !actual.is_ascii()) {
        needed = needed.with(Tolerance::Typography);
    }
    let plain_leads: Vec<(Cow<'_, str>, Cow<'_, str>)> =
        leads.iter().map(|(old, actual)| (plain_spaces(old), plain_spaces(actual))).collect();
    let pairs: Vec<(&str, &str)> =
        plain_leads.iter().map(|(old, actual)| (old.as_ref(), actual.as_ref())).collect();
    let indent = indent::infer(&pairs, || keys.indent_step())?;
    if !indent.is_identity() {
        needed = needed.with(Tolerance::Indentation);
    }
    let is_blank =
        |index: usize| index + 1 < view.line_count() && normalize::is_blank_line(view.line(index));
    let has_blanks_above = start >= core.start && (start - core.start..start).all(is_blank);
    let end = start + core.len();
    let has_blanks_below = (end..end + quoted.len() - core.end).all(is_blank);
    if !has_blanks_above || !has_blanks_below {
        needed = needed.with(Tolerance::BoundaryLines);
    }
    let quoted_range = if has_blanks_above { 0 } else { core.start }..if has_blanks_below {
        quoted.len()
    } else {
        core.end
    };
    let first_line = start - (core.start - quoted_range.start);
    Some(Candidate {
        lines: first_line..first_line + quoted_range.len(),
        quoted: quoted_range,
        indent,
        needed,
    })
}

fn indent_step(view: &View<'_>) -> Option<usize> {
    let (mut last_indent, mut steps) = (0, BTreeMap::new());
    for line in view.text().split('\n').take(MAX_INDENT_SAMPLE) {
        let Some(lead) = normalize::lead(line) else { continue };
        if lead.len() > last_indent && lead.bytes().all(|byte| byte == b' ') {
            *steps.entry(lead.len() - last_indent).or_insert(0_usize) += 1;
        }
        last_indent = lead.len();
    }
    steps.into_iter().max_by_key(|(step, count)| (*count, Reverse(*step))).map(|(step, _)| step)
}

/// Number of lines examined to determine the indentation of a file.
const MAX_INDENT_SAMPLE: usize = 10_000;

/// Returns the indentation with ordinary spaces instead of typographic ones.
pub(super) fn plain_spaces(lead: &str) -> Cow<'_, str> {
    if lead.is_ascii() {
        Cow::Borrowed(lead)
    } else {
        lead.chars().map(normalize::to_plain).collect()
    }
}

/// Returns the tolerances that make two lines equal, apart from indentation. Returns `None` if no tolerance does.
fn required_tolerances(old: LineParts<'_>, actual: LineParts<'_>) -> Option<Tolerances> {
    let mut needed = Tolerances::NONE;
    if old.trail != actual.trail || old.body.is_empty() && old.lead != actual.lead {
        needed = needed.with(Tolerance::TrailingBlanks);
    }
    if old.body == actual.body {
        return Some(needed);
    }
    if to_plain_chars(old.body).eq(to_plain_chars(actual.body)) {
        return Some(needed.with(Tolerance::Typography));
    }
    if squeeze(old.body.chars()).eq(squeeze(actual.body.chars())) {
        return Some(needed.with(Tolerance::InnerBlanks));
    }
    let is_same = squeeze(to_plain_chars(old.body)).eq(squeeze(to_plain_chars(actual.body)));
    is_same.then(|| needed.with(Tolerance::InnerBlanks).with(Tolerance::Typography))
}

fn to_plain_chars(text: &str) -> impl Iterator<Item = char> {
    text.chars().map(normalize::to_plain)
}

/// Reduces every run of spaces and tabs to one space.
fn squeeze(text: impl Iterator<Item = char>) -> impl Iterator<Item = char> {
    let mut previous = None;
    text.map(|character| if character == '\t' { ' ' } else { character }).filter(move |character| {
        let repeated = *character == ' ' && previous == Some(' ');
        previous = Some(*character);
        !repeated
    })
}
