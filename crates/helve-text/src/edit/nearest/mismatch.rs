//! Determines how the quoted text differs from the lines closest to it.

use std::ops::Range;

use super::{
    FirstDifference, Mismatch, NearestMatch,
    equivalence::{EQUIVALENCES, Equivalence},
};
use crate::{
    diff,
    edit::{
        find::LineKeys,
        normalize::{self, split_line},
        placeholder::is_placeholder,
    },
    lines,
    view::View,
};

/// Maximum number of lines in an excerpt.
const EXCERPT_LINES: usize = 20;
/// Maximum number of characters in each line of an excerpt.
const EXCERPT_CHARS: usize = 200;
/// Number of lines that are examined before and after the closest match.
const CONTEXT: usize = 4;

/// Describes the closest lines when the kind of mismatch is already known.
pub(super) fn with_mismatch(
    view: &View<'_>,
    quoted: &[&str],
    lines: Range<usize>,
    mismatch: Mismatch,
) -> NearestMatch {
    let difference =
        quoted.iter().zip(lines.clone()).enumerate().find_map(|(at, (quoted, index))| {
            first_difference(quoted, at, view.line(index), index)
        });
    nearest_match(view, lines, difference, mismatch)
}

/// Returns the kind of mismatch of lines that differ from the file in indentation.
pub(super) fn indentation_mismatch(view: &View<'_>, quoted: &[&str], start: usize) -> Mismatch {
    let has_tab = |line: &str| split_line(line).lead.contains('\t');
    let file_has_tab = (start..start + quoted.len())
        .filter(|index| *index < view.line_count())
        .any(|index| has_tab(view.line(index)));
    if quoted.iter().any(|line| has_tab(line)) == file_has_tab {
        Mismatch::Indentation
    } else {
        Mismatch::TabsAgainstSpaces
    }
}

/// Finds out how the quoted text differs from the most similar lines of the file, which start at about `start`.
pub(super) fn diagnose(
    view: &View<'_>,
    keys: &LineKeys<'_>,
    quoted: &[&str],
    start: usize,
) -> NearestMatch {
    let quoted_keys: Vec<u64> = quoted.iter().map(|line| normalize::line_key(line)).collect();
    let end = start + quoted.len();
    if keys.hashes().get(start..end).is_some_and(|keys| sorted(keys) == sorted(&quoted_keys)) {
        return with_mismatch(view, quoted, start..end, Mismatch::Reordered);
    }
    let window = start.saturating_sub(CONTEXT)..(end + CONTEXT).min(content_line_count(view));
    let file_keys = &keys.hashes()[window.clone()];
    let equal = equal_lines(&quoted_keys, file_keys);
    let Some(lines) = matching_range(&equal, quoted.len(), window.clone()) else {
        let lines = start..end.min(window.end).max(start + 1);
        return compare_lines(view, quoted, &lines);
    };
    let actual: Vec<&str> = lines.clone().map(|index| view.line(index)).collect();
    let mismatch = block_mismatch(quoted, &actual, &quoted_keys, &keys.hashes()[lines.clone()]);
    let hunks = diff::hunks(&quoted_keys, &keys.hashes()[lines.clone()]);
    let difference = hunks.first().and_then(|hunk| {
        let (old, new) = (quoted.get(hunk.old.start), actual.get(hunk.new.start));
        body_difference(
            old.unwrap_or(&""),
            hunk.old.start,
            new.unwrap_or(&""),
            lines.start + hunk.new.start,
        )
    });
    nearest_match(view, lines, difference, mismatch)
}

/// Returns the number of lines. The empty line after a final newline does not count.
fn content_line_count(view: &View<'_>) -> usize {
    if view.ends_with_newline() { view.line_count() - 1 } else { view.line_count() }
}

/// Returns the pairs of quoted lines and file lines that are equal.
fn equal_lines(quoted_keys: &[u64], file_keys: &[u64]) -> Vec<(usize, usize)> {
    let (mut pairs, mut at, mut file_at) = (Vec::new(), 0, 0);
    for hunk in diff::hunks(quoted_keys, file_keys) {
        pairs.extend((at..hunk.old.start).zip(file_at..));
        (at, file_at) = (hunk.old.end, hunk.new.end);
    }
    pairs.extend((at..quoted_keys.len()).zip(file_at..file_keys.len()));
    pairs
}

/// Returns the range of the file's lines from the first to the last equal line, extended by as many lines as the quoted
/// text has before and after them. `equal` has pairs of a quoted line and a line of the window.
fn matching_range(
    equal: &[(usize, usize)],
    quoted_len: usize,
    window: Range<usize>,
) -> Option<Range<usize>> {
    let ((quoted, in_window), (last_quoted, last_in_window)) = (equal.first()?, equal.last()?);
    let start = (window.start + in_window).saturating_sub(*quoted);
    let end = window.start + last_in_window + (quoted_len - last_quoted);
    Some(start.max(window.start)..end.min(window.end))
}

/// Compares the lines one by one. Used if no line is equal.
fn compare_lines(view: &View<'_>, quoted: &[&str], lines: &Range<usize>) -> NearestMatch {
    let actual: Vec<&str> = lines.clone().map(|index| view.line(index)).collect();
    let mut mismatch = line_mismatch(quoted, &actual).unwrap_or_else(|| {
        if are_similar(quoted, &actual) { Mismatch::Changed } else { Mismatch::Different }
    });
    let difference =
        match (quoted, actual.as_slice()) {
            // The quoted text may be part of a line.
            ([only], [line]) if is_part(only, line, mismatch) => {
                let (shared, difference) = compare_within(only, line, lines.start);
                if shared * 2 >= split_line(only).body.len() {
                    mismatch = Mismatch::Changed;
                }
                Some(difference)
            }
            _ => quoted.iter().zip(&actual).enumerate().find_map(|(at, (quoted, line))| {
                body_difference(quoted, at, line, lines.start + at)
            }),
        };
    nearest_match(view, lines.clone(), difference, mismatch)
}

/// Whether a quoted line seems to be a part of a line of the file: more of its beginning occurs somewhere in the line
/// than at its start.
fn is_part(quoted: &str, line: &str, mismatch: Mismatch) -> bool {
    let (quoted, body) = (split_line(quoted).body, split_line(line).body);
    let common = quoted.bytes().zip(body.bytes()).take_while(|(a, b)| a == b).count();
    mismatch == Mismatch::Different
        || mismatch == Mismatch::Changed && compare_within(quoted, line, 0).0 > common.max(MIN_PART)
}

/// Minimum length in bytes of a beginning that shows that a quoted line is a part of a line of the file.
const MIN_PART: usize = 8;

/// Returns how the quoted lines differ from lines of the file of which some are equal.
fn block_mismatch(
    quoted: &[&str],
    actual: &[&str],
    quoted_keys: &[u64],
    file_keys: &[u64],
) -> Mismatch {
    if quoted.iter().any(|line| is_placeholder(line)) {
        return Mismatch::Placeholder;
    }
    if let Some(mismatch) = line_mismatch(quoted, actual) {
        return mismatch;
    }
    let hunks = diff::hunks(quoted_keys, file_keys);
    if hunks.iter().all(|hunk| hunk.old.is_empty()) {
        return Mismatch::OmittedLines;
    }
    if hunks.iter().all(|hunk| hunk.new.is_empty()) {
        return Mismatch::ExtraLines;
    }
    if sorted(quoted_keys) == sorted(file_keys) {
        return Mismatch::Reordered;
    }
    let changed: usize = hunks.iter().map(|hunk| hunk.old.len()).sum();
    if changed * 2 > quoted_keys.len() { Mismatch::Different } else { Mismatch::Changed }
}

fn sorted(keys: &[u64]) -> Vec<u64> {
    let mut keys = keys.to_vec();
    keys.sort_unstable();
    keys
}

/// Returns the first kind of mismatch, such as case, that explains the differences between all pairs of lines.
fn line_mismatch(quoted: &[&str], actual: &[&str]) -> Option<Mismatch> {
    if quoted.len() != actual.len() {
        return None;
    }
    let all = |equivalence: Equivalence| {
        quoted
            .iter()
            .zip(actual)
            .all(|(quoted, actual)| equivalence(split_line(quoted).body, split_line(actual).body))
    };
    EQUIVALENCES
        .into_iter()
        .find(|(equivalence, _)| all(*equivalence))
        .map(|(_, mismatch)| mismatch)
}

/// Minimum similarity, from 0 to 1, at which a quoted line counts as a misremembered line of the file.
const MIN_SIMILARITY: f64 = 0.7;

fn are_similar(quoted: &[&str], actual: &[&str]) -> bool {
    let clip = |line: &str| split_line(line).body.chars().take(EXCERPT_CHARS).collect::<String>();
    quoted.len() == actual.len()
        && quoted.len() <= EXCERPT_LINES
        && quoted.iter().zip(actual).all(|(quoted, actual)| {
            strsim::normalized_levenshtein(&clip(quoted), &clip(actual)) >= MIN_SIMILARITY
        })
}

fn nearest_match(
    view: &View<'_>,
    lines: Range<usize>,
    difference: Option<FirstDifference>,
    mismatch: Mismatch,
) -> NearestMatch {
    let clip = |index: usize| {
        let line = view.line(index);
        let in_this_line = difference.as_ref().filter(|difference| difference.line == index + 1);
        let at = in_this_line.and_then(|difference| line.char_indices().nth(difference.column - 1));
        clip_line(line, at.map_or(0, |(at, _)| at))
    };
    let excerpt = lines.clone().take(EXCERPT_LINES).map(clip).collect();
    NearestMatch {
        first_line: lines.start + 1,
        last_line: lines.end.max(lines.start + 1),
        excerpt,
        difference,
        mismatch,
    }
}

/// Clips a line around an offset. Omitted text is marked with an ellipsis.
fn clip_line(line: &str, at: usize) -> String {
    let clipped = lines::clip_around(line, at..at, EXCERPT_CHARS);
    let mark = |is_cut: bool| if is_cut { "\u{2026}" } else { "" };
    format!("{}{}{}", mark(clipped.is_cut_before), clipped.text, mark(clipped.is_cut_after))
}

/// Returns the first difference between quoted line `at` and line `index` of the file.
fn first_difference(
    quoted: &str,
    at: usize,
    actual: &str,
    index: usize,
) -> Option<FirstDifference> {
    let common = quoted.chars().zip(actual.chars()).take_while(|(a, b)| a == b).count();
    let (quoted, found) = (quoted.chars().nth(common), actual.chars().nth(common));
    (quoted != found).then_some(FirstDifference {
        line: index + 1,
        quoted_line: at + 1,
        column: common + 1,
        quoted,
        found,
    })
}

/// Like [`first_difference`], but ignores indentation and trailing white space, which would have been tolerated.
fn body_difference(quoted: &str, at: usize, actual: &str, index: usize) -> Option<FirstDifference> {
    let (quoted, actual) = (split_line(quoted), split_line(actual));
    let difference = first_difference(quoted.body, at, actual.body, index)?;
    let column = difference.column + actual.lead.chars().count();
    Some(FirstDifference { column, ..difference })
}

/// Returns the length in bytes of the longest prefix of the quoted text that occurs in the line, and the difference
/// that follows it.
fn compare_within(quoted: &str, actual: &str, index: usize) -> (usize, FirstDifference) {
    let body = split_line(quoted).body;
    let ends: Vec<usize> = body.char_indices().map(|(at, _)| at).chain([body.len()]).collect();
    let longest = ends.partition_point(|end| actual.contains(&body[..*end])).saturating_sub(1);
    let shared = ends[longest];
    let at = actual.find(&body[..shared]).unwrap_or(0) + shared;
    let column = actual[..at].chars().count() + 1;
    (
        shared,
        FirstDifference {
            line: index + 1,
            quoted_line: 1,
            column,
            quoted: body[shared..].chars().next(),
            found: actual[at..].chars().next(),
        },
    )
}
