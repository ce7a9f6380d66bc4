//! Applies the difference between `old` and `new` to the actual lines of the file.

mod tokens;

use std::{borrow::Cow, ops::Range};

use self::tokens::Spelling;
use super::{
    EditRefusal,
    find::{self, Candidate},
    normalize::{LineParts, split_line},
    write::{Block, BlockLine, SourceLines},
};
use crate::{diff, view::View};

/// Computes the replacement for the lines of a match.
pub(super) fn merge(
    view: &View<'_>,
    all_old: &[&str],
    all_new: &[&str],
    candidate: &Candidate,
) -> Result<Block, EditRefusal> {
    let (old_head, old_tail) = find::blank_margins(all_old);
    let (new_head, new_tail) = find::blank_margins(all_new);
    // Blank lines at the edges that are quoted but missing from the file are dropped from the result too.
    let head = if candidate.quoted.start > 0 { old_head.min(new_head) } else { 0 };
    let tail = if candidate.quoted.end < all_old.len() { old_tail.min(new_tail) } else { 0 };
    let tail = tail.min(all_new.len() - head);
    let old: Vec<LineParts<'_>> =
        all_old[candidate.quoted.clone()].iter().map(|line| split_line(line)).collect();
    let new: Vec<LineParts<'_>> =
        all_new[head..all_new.len() - tail].iter().map(|line| split_line(line)).collect();
    let actual: Vec<LineParts<'_>> =
        candidate.lines.clone().map(|index| split_line(view.line(index))).collect();
    let spelling = Spelling::learn(&old, &actual);
    let has_typographic_indent = old.iter().any(|line| !line.lead.is_ascii());
    let drops_trailing_blanks =
        old.iter().all(|line| line.body.is_empty() || !line.trail.is_empty())
            && actual.iter().all(|line| line.trail.is_empty());
    let mut merge = LineMerge {
        candidate,
        old,
        new,
        actual,
        spelling,
        has_typographic_indent,
        drops_trailing_blanks,
        replacement: Vec::new(),
        indent_votes: IndentVotes::default(),
        changes: Vec::new(),
    };
    merge.merge_lines()?;
    merge.check_moved_lines()?;
    let has_same_depth = least_indentation(&merge.old) == least_indentation(&merge.new);
    let is_doubtful = merge.indent_votes.seems_indented_like_file() && !has_same_depth
        || merge.is_first_line_trimmed();
    if candidate.indent.is_shifted() && is_doubtful {
        return Err(EditRefusal::UnclearIndentation { line: candidate.lines.start + 1 });
    }
    Ok(Block { lines: candidate.lines.clone(), replacement: merge.replacement, count: 1 })
}

/// Returns the least indentation of the non-blank lines.
fn least_indentation<'a>(lines: &[LineParts<'a>]) -> Option<&'a str> {
    lines
        .iter()
        .filter(|line| !line.body.is_empty())
        .map(|line| line.lead)
        .min_by_key(|lead| lead.len())
}

/// The state of a merge of `new` into the lines of a match.
struct LineMerge<'a> {
    candidate: &'a Candidate,
    /// The quoted lines.
    old: Vec<LineParts<'a>>,
    new: Vec<LineParts<'a>>,
    /// The lines of the file that match `old`.
    actual: Vec<LineParts<'a>>,
    spelling: Spelling,
    /// Whether the quoted text is indented with typographic spaces.
    has_typographic_indent: bool,
    /// Whether every quoted line has trailing blanks and no line of the file has any. If so, trailing blanks in `new`
    /// are dropped.
    drops_trailing_blanks: bool,
    replacement: Vec<BlockLine>,
    indent_votes: IndentVotes,
    /// Ranges of `old` with the ranges of `new` that replace them.
    changes: Vec<(Range<usize>, Range<usize>)>,
}

/// The number of lines of `new` that are indented like the quoted text, and the number of lines that are indented like
/// the file.
#[derive(Default)]
struct IndentVotes {
    as_quoted: usize,
    as_in_file: usize,
}

impl IndentVotes {
    fn count_line(&mut self, old: LineParts<'_>, actual: LineParts<'_>, new: LineParts<'_>) {
        let is_not_blank = !new.body.is_empty();
        self.as_quoted += usize::from(is_not_blank && new.lead == old.lead);
        self.as_in_file +=
            usize::from(is_not_blank && new.lead != old.lead && new.lead == actual.lead);
    }

    /// Whether `new` seems to be indented like the file rather than like the quoted text.
    fn seems_indented_like_file(&self) -> bool {
        self.as_quoted == 0 && self.as_in_file > 0
    }
}

impl LineMerge<'_> {
    fn merge_lines(&mut self) -> Result<(), EditRefusal> {
        let [old, new] = [&self.old, &self.new]
            .map(|lines| lines.iter().map(|line| (lead_of(line), line.body)).collect::<Vec<_>>());
        let hunks = diff::hunks(&old, &new);
        let (mut old_index, mut new_index) = (0, 0);
        for hunk in hunks {
            self.add_unchanged(old_index..hunk.old.start, new_index)?;
            self.add_hunk(hunk.old.clone(), hunk.new.clone())?;
            (old_index, new_index) = (hunk.old.end, hunk.new.end);
        }
        self.add_unchanged(old_index..self.old.len(), new_index)
    }

    /// Handles lines that are equal in `old` and `new`, apart from trailing white space.
    fn add_unchanged(&mut self, old: Range<usize>, new: usize) -> Result<(), EditRefusal> {
        for (index, new_index) in old.zip(new..) {
            self.indent_votes.count_line(self.old[index], self.actual[index], self.new[new_index]);
            self.add_same_body(index, new_index)?;
        }
        Ok(())
    }

    /// Handles a hunk, in which some lines may only have changed their indentation.
    fn add_hunk(&mut self, old: Range<usize>, new: Range<usize>) -> Result<(), EditRefusal> {
        let (mut old_index, mut new_index) = (old.start, new.start);
        let hunks = diff::hunks(&bodies(&self.old[old.clone()]), &bodies(&self.new[new.clone()]));
        for hunk in hunks {
            let (old_range, new_range) = (
                hunk.old.start + old.start..hunk.old.end + old.start,
                hunk.new.start + new.start..hunk.new.end + new.start,
            );
            self.add_unchanged(old_index..old_range.start, new_index)?;
            (old_index, new_index) = (old_range.end, new_range.end);
            self.add_changed(old_range, new_range)?;
        }
        self.add_unchanged(old_index..old.end, new_index)
    }

    /// Whether only one line was quoted, without its indentation, and all following lines of `new` already have that
    /// indentation, so that it must not be added again.
    fn is_first_line_trimmed(&self) -> bool {
        let is_not_blank = |line: &&LineParts<'_>| !line.body.is_empty();
        let Some(prefix) = self.candidate.indent.added_prefix() else { return false };
        let mut following = self.new.iter().filter(is_not_blank).skip(1).peekable();
        self.old.iter().filter(is_not_blank).count() == 1
            && following.peek().is_some()
            && following.all(|line| line.lead.starts_with(prefix))
    }

    /// Adds a line whose content is equal in `old` and `new`.
    fn add_same_body(&mut self, index: usize, new_index: usize) -> Result<(), EditRefusal> {
        let (old, actual, new) = (self.old[index], self.actual[index], self.new[new_index]);
        let line = self.candidate.lines.start + index;
        let trail = merge_trail(old.trail, actual.trail, new.trail);
        if actual.body.is_empty() || lead_of(&old) == lead_of(&new) && trail == actual.trail {
            self.replacement.push(BlockLine::Keep(line));
            return Ok(());
        }
        let lead = if lead_of(&old) == lead_of(&new) {
            actual.lead.to_owned()
        } else {
            self.mapped_lead(new_index)?
        };
        self.replacement.push(BlockLine::New {
            text: format!("{lead}{}{trail}", actual.body),
            source: SourceLines::line(line),
        });
        Ok(())
    }

    /// Adds the new lines of a change.
    fn add_changed(&mut self, old: Range<usize>, new: Range<usize>) -> Result<(), EditRefusal> {
        let first_line = self.candidate.lines.start;
        self.changes.push((old.clone(), new.clone()));
        let bodies = tokens::merge(
            &bodies(&self.old[old.clone()]),
            &bodies(&self.actual[old.clone()]),
            &bodies(&self.new[new.clone()]),
            &self.spelling,
        );
        let refusal = |character| EditRefusal::AmbiguousCharacter {
            line: first_line + old.start + 1,
            character,
        };
        let bodies = bodies.map_err(refusal)?;
        self.check_typography(old.clone(), new.clone()).map_err(refusal)?;
        let pairs = pair_lines(&self.old[old.clone()], &self.new[new.clone()]);
        for ((new_index, body), pair) in new.zip(bodies).zip(pairs) {
            let pair = pair.map(|step| old.start + step);
            let (pair, body) = match self.moved_from(new_index) {
                Some(from) => (Some(from), Cow::Borrowed(self.actual[from].body)),
                None => (pair, Cow::Owned(body)),
            };
            let text = self.changed_line(pair, new_index, &body)?;
            let source =
                pair.map_or(SourceLines::default(), |index| SourceLines::line(first_line + index));
            self.replacement.push(BlockLine::New { text, source });
        }
        Ok(())
    }

    /// Returns a new line in the file's indentation. `pair` is the index of the old line that it replaces.
    fn changed_line(
        &mut self,
        pair: Option<usize>,
        new_index: usize,
        body: &str,
    ) -> Result<String, EditRefusal> {
        let new = self.new[new_index];
        if new.body.is_empty() {
            return Ok(String::new());
        }
        let trail = if self.drops_trailing_blanks { "" } else { new.trail };
        let Some(index) = pair else {
            return Ok(format!("{}{body}{trail}", self.mapped_lead(new_index)?));
        };
        let (old, actual) = (self.old[index], self.actual[index]);
        if old.body.is_empty() {
            return Ok(format!("{}{body}{trail}", self.mapped_lead(new_index)?));
        }
        self.indent_votes.count_line(old, actual, new);
        let lead = if lead_of(&old) == lead_of(&new) {
            actual.lead.to_owned()
        } else {
            self.mapped_lead(new_index)?
        };
        let is_same_line = similarity(old.body, new.body) > 0.0;
        let trail =
            if is_same_line { merge_trail(old.trail, actual.trail, new.trail) } else { trail };
        Ok(format!("{lead}{body}{trail}"))
    }

    /// If a new line repeats a quoted line at another position, and the file spells that line with other white space,
    /// returns the quoted line. The new line then takes the file's white space.
    fn moved_from(&self, new_index: usize) -> Option<usize> {
        let body = self.new[new_index].body;
        let mut equal_lines = (0..self.old.len()).filter(|index| self.old[*index].body == body);
        let only =
            equal_lines.next().filter(|_| !body.is_empty() && equal_lines.next().is_none())?;
        let (old, actual) = (self.old[only], self.actual[only]);
        ((old.body, old.trail) != (actual.body, actual.trail)
            && tokens::lost_typography(old.body, actual.body).is_none())
        .then_some(only)
    }

    /// Refuses a change if the file has a typographic character that `old` spells differently, and no similar line of
    /// `new` shows how the character is to be spelled.
    fn check_typography(&self, lines: Range<usize>, new: Range<usize>) -> Result<(), char> {
        for index in lines {
            let (old, actual) = (self.old[index].body, self.actual[index].body);
            let Some(character) = tokens::lost_typography(old, actual) else { continue };
            let has_same_kind =
                |new_index: &usize| tokens::has_kind_of(self.new[*new_index].body, character);
            let mut successors = new.clone().filter(has_same_kind).peekable();
            if successors.peek().is_some()
                && successors.all(|new_index| similarity(old, self.new[new_index].body) == 0.0)
            {
                return Err(character);
            }
        }
        Ok(())
    }

    /// Refuses a change that seems to move a line whose typographic characters `old` spells differently.
    fn check_moved_lines(&self) -> Result<(), EditRefusal> {
        let mut budget = MAX_COMPARISONS;
        for (change, (removed, added)) in self.changes.iter().enumerate() {
            for index in removed.clone() {
                let (old, actual) = (self.old[index].body, self.actual[index].body);
                let Some(character) = tokens::lost_typography(old, actual) else { continue };
                let mut best = |new: Range<usize>| {
                    budget = budget.saturating_sub(new.len());
                    new.map(|new_index| similarity(old, self.new[new_index].body))
                        .fold(0.0, f64::max)
                };
                let threshold = best(added.clone()).max(MIN_MOVED_SIMILARITY);
                let elsewhere =
                    self.changes.iter().enumerate().filter(|(other, _)| *other != change);
                let is_moved = elsewhere
                    .map(|(_, (_, new))| best(new.clone()))
                    .any(|similarity| similarity > threshold);
                if is_moved || budget == 0 {
                    let line = self.candidate.lines.start + index + 1;
                    return Err(EditRefusal::AmbiguousCharacter { line, character });
                }
            }
        }
        Ok(())
    }

    /// Returns the file's indentation for a new line.
    fn mapped_lead(&self, new_index: usize) -> Result<String, EditRefusal> {
        let line = &self.new[new_index];
        let lead = if self.has_typographic_indent {
            find::plain_spaces(line.lead)
        } else {
            Cow::Borrowed(line.lead)
        };
        let mapped = if new_index == 0 {
            self.candidate.indent.map_first(&lead)
        } else {
            self.candidate.indent.map(&lead)
        };
        mapped.map_err(|_| EditRefusal::UnconvertibleIndentation {
            line: self.candidate.lines.start + 1,
            text: format!("{}{}", line.lead, line.body),
        })
    }
}

fn bodies<'a>(lines: &[LineParts<'a>]) -> Vec<&'a str> {
    lines.iter().map(|line| line.body).collect()
}

/// Returns the indentation of a line, or an empty string for a blank line.
fn lead_of<'a>(line: &LineParts<'a>) -> Cow<'a, str> {
    if line.body.is_empty() { Cow::Borrowed("") } else { find::plain_spaces(line.lead) }
}

/// Merges trailing white space. If the file has the quoted white space, the new one is taken, else the file's.
fn merge_trail<'a>(old: &str, actual: &'a str, new: &'a str) -> &'a str {
    if actual == old { new } else { actual }
}

/// Maximum number of comparisons to detect moved lines.
const MAX_COMPARISONS: usize = 100_000;
/// Minimum similarity of a moved line.
const MIN_MOVED_SIMILARITY: f64 = 0.6;

/// Maximum number of lines on each side that are paired by similarity. More lines are paired in order.
const MAX_PAIRED_LINES: usize = 40;
/// Maximum number of bytes in total that are paired by similarity. Longer lines are paired in order.
const MAX_PAIRED_BYTES: usize = 32 * 1024;

/// Returns for each new line the old line that it replaces, if that is clear.
fn pair_lines(old: &[LineParts<'_>], new: &[LineParts<'_>]) -> Vec<Option<usize>> {
    if old.len() == new.len() {
        return (0..new.len()).map(Some).collect();
    }
    let bytes: usize = old.iter().chain(new).map(|line| line.body.len()).sum();
    if old.len().max(new.len()) > MAX_PAIRED_LINES || bytes > MAX_PAIRED_BYTES {
        return (0..new.len())
            .map(|new_index| (new_index < old.len()).then_some(new_index))
            .collect();
    }
    let similarities: Vec<Vec<f64>> = new
        .iter()
        .map(|new| old.iter().map(|old| similarity(old.body, new.body)).collect())
        .collect();
    // `best[new_index][old_index]` is the highest total similarity of the lines from `new_index` and `old_index` on,
    // paired in order.
    let mut best = vec![vec![0.0_f64; old.len() + 1]; new.len() + 1];
    for new_index in (0..new.len()).rev() {
        for old_index in (0..old.len()).rev() {
            let paired = best[new_index + 1][old_index + 1] + similarities[new_index][old_index];
            best[new_index][old_index] =
                paired.max(best[new_index + 1][old_index]).max(best[new_index][old_index + 1]);
        }
    }
    let mut pairs = vec![None; new.len()];
    let (mut new_index, mut old_index) = (0, 0);
    while new_index < new.len() && old_index < old.len() {
        if similarities[new_index][old_index] > 0.0
            && best[new_index][old_index]
                <= best[new_index + 1][old_index + 1] + similarities[new_index][old_index]
        {
            pairs[new_index] = Some(old_index);
            (new_index, old_index) = (new_index + 1, old_index + 1);
        } else if best[new_index][old_index] <= best[new_index + 1][old_index] {
            new_index += 1;
        } else {
            old_index += 1;
        }
    }
    pairs
}

/// Returns the share of two lines that is common prefix or suffix, from 0 to 1. A small share counts as 0.
fn similarity(old: &str, new: &str) -> f64 {
    let head = old.chars().zip(new.chars()).take_while(|(a, b)| a == b).count();
    let tail = old.chars().rev().zip(new.chars().rev()).take_while(|(a, b)| a == b).count();
    let (old, new) = (old.chars().count(), new.chars().count());
    let shared = (head + tail).min(old).min(new);
    let share = shared as f64 / old.max(new).max(1) as f64;
    if share < 0.3 { 0.0 } else { share }
}
