//! Finds the few lines of a file at which quoted lines can match, by searching for a text that must occur literally.
//! This is much faster than comparing all lines.

use memchr::memmem;

use super::normalize;
use crate::view::View;

/// Maximum number of lines to return. If there are more, comparing all lines is faster.
const MAX_STARTS: usize = 200;
/// Minimum length of a text to search for, in bytes.
const MIN_LENGTH: usize = 4;

/// Returns the lines of the file, in order, at which a match of the quoted lines can start, with any tolerance.
/// Returns `None` if there is no suitable text to search for, or if it is too common.
pub(super) fn possible_starts(view: &View<'_>, quoted: &[&str]) -> Option<Vec<usize>> {
    let all = quoted.iter().enumerate();
    let all = all.flat_map(|(at, line)| fragments(line).map(move |fragment| (at, fragment)));
    let (at, fragment) = all.max_by_key(|(_, fragment)| fragment.len())?;
    let last_start = view.line_count().checked_sub(quoted.len());
    let starts = starts_before_occurrences(view, fragment, at, |_| true)?;
    Some(starts.into_iter().filter(|start| Some(*start) <= last_start).collect())
}

/// Returns the lines of the file, in order, at which the quoted lines can start if all but one of them are equal to the
/// file's lines. At least one of the two longest quoted lines must be equal, so these two are searched for. Returns
/// `None` if they are too short or too common.
pub(super) fn starts_by_longest_lines(view: &View<'_>, quoted: &[&str]) -> Option<Vec<usize>> {
    let mut by_length: Vec<(usize, &str)> = quoted.iter().copied().enumerate().collect();
    by_length.sort_by_key(|(_, line)| std::cmp::Reverse(line.len()));
    let last_start = view.line_count().checked_sub(quoted.len());
    let text = view.text().as_bytes();
    let mut starts = Vec::new();
    for (at, line) in by_length.into_iter().take(2) {
        let is_line = |offset: usize| {
            (offset == 0 || text[offset - 1] == b'\n')
                && text.get(offset + line.len()).is_none_or(|next| *next == b'\n')
        };
        starts.extend(starts_before_occurrences(view, line, at, is_line)?);
    }
    starts.retain(|start| Some(*start) <= last_start);
    starts.sort_unstable();
    starts.dedup();
    Some(starts)
}

/// For each suitable occurrence of the searched text, returns the line that is `at` lines before it. `is_suitable` gets
/// the offset of the occurrence.
fn starts_before_occurrences(
    view: &View<'_>,
    searched: &str,
    at: usize,
    is_suitable: impl Fn(usize) -> bool,
) -> Option<Vec<usize>> {
    if searched.len() < MIN_LENGTH {
        return None;
    }
    let mut starts = Vec::new();
    for offset in memmem::find_iter(view.text().as_bytes(), searched) {
        if !is_suitable(offset) {
            continue;
        }
        let Some(start) = view.line_at(offset).checked_sub(at) else { continue };
        if starts.last() != Some(&start) {
            starts.push(start);
        }
        if starts.len() > MAX_STARTS {
            return None;
        }
    }
    Some(starts)
}

/// Returns the parts of a line that must also occur in any line that a tolerant search considers equal to it. Such
/// lines differ at most in white space and in characters that have typographic forms.
fn fragments(line: &str) -> impl Iterator<Item = &str> {
    let may_differ = |character: char| {
        normalize::is_blank(character) || normalize::glyph_kind(character).is_some()
    };
    line.split(may_differ).filter(|fragment| !fragment.is_empty())
}
