//! Recognizes an edit that was applied before although its old text is still in the file: the new text contains the old
//! text, and the file has all of the new text there.

use std::ops::Range;

use super::{find, normalize::line_key};
use crate::view::View;

/// Minimum number of letters in inserted lines. A shorter insertion, such as `end`, a separator or a number, may be
/// intended although the file already has it.
const MIN_LETTERS: usize = 4;

/// If the text around the occurrence of `old` at the offset `at` equals `new`, returns the offset at which `new` starts.
/// Newlines at the ends of both texts are ignored.
pub(super) fn find_around(text: &str, at: usize, old: &str, new: &str) -> Option<usize> {
    let at = at + (old.len() - old.trim_start_matches('\n').len());
    let (old, new) = (old.trim_matches('\n'), new.trim_matches('\n'));
    new.match_indices(old).find_map(|(offset, _)| {
        let (before, after) = (&new[..offset], &new[offset + old.len()..]);
        let start = at.checked_sub(offset)?;
        let end = start + new.len();
        let is_there = is_convincing(before, after)
            && text.as_bytes()[start..].starts_with(new.as_bytes())
            && !cuts_word(text, start..end, new)
            && (!before.contains('\n') || start == 0 || text[..start].ends_with('\n'))
            && (!after.contains('\n') || end == text.len() || text[end..].starts_with('\n'));
        is_there.then_some(start)
    })
}

/// Whether the text that is inserted before and after the old text is unlikely to be there by chance.
fn is_convincing(before: &str, after: &str) -> bool {
    let mut inserted = before.chars().chain(after.chars());
    match before.contains('\n') || after.contains('\n') {
        true => inserted.filter(|character| character.is_alphabetic()).count() >= MIN_LETTERS,
        // One more bracket or quote, or more white space, may be intended.
        false => inserted
            .any(|character| !character.is_whitespace() && !"()[]{}<>\"'`".contains(character)),
    }
}

/// Whether a range of the text, which contains `new`, starts or ends inside a word.
fn cuts_word(text: &str, range: Range<usize>, new: &str) -> bool {
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    new.starts_with(is_word) && text[..range.start].ends_with(is_word)
        || new.ends_with(is_word) && text[range.end..].starts_with(is_word)
}

/// Like [`find_around`] for lines that match with tolerance. `start` is the line of the file, from 0, at which the first
/// quoted line that is not blank matches. Returns the line at which the new lines start.
pub(super) fn find_around_lines(
    view: &View<'_>,
    start: usize,
    old: &[&str],
    new: &[&str],
) -> Option<usize> {
    let (old, new) = (without_blank_margins(old), without_blank_margins(new));
    let (old_keys, new_keys) = (find::line_keys(old), find::line_keys(new));
    let offsets = 0..=new.len().checked_sub(old.len())?;
    offsets.filter(|offset| new_keys[*offset..].starts_with(&old_keys)).find_map(|offset| {
        let before = new[..offset].concat() + "\n";
        let first = start.checked_sub(offset)?;
        let mut lines = new_keys.iter().zip(first..);
        let is_there = is_convincing(&before, &new[offset + old.len()..].concat())
            && first + new.len() <= view.line_count()
            && lines.all(|(key, line)| *key == line_key(view.line(line)));
        is_there.then_some(first)
    })
}

fn without_blank_margins<'a, 'b>(lines: &'a [&'b str]) -> &'a [&'b str] {
    let (head, tail) = find::blank_margins(lines);
    &lines[head..lines.len() - tail]
}
