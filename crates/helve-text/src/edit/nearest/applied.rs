//! Recognizes an edit that was applied before: its new text is in the file.

use crate::{
    edit::{
        Edit,
        find::{self, LineKeys},
    },
    view::View,
};

/// Minimum length in bytes of a new text that is searched for inside lines.
const MIN_BYTES_WITHIN_LINE: usize = 8;

/// Returns the line of the file, from 0, at which the new text is found.
pub(super) fn find(view: &View<'_>, keys: &LineKeys<'_>, edit: &Edit<'_>) -> Option<usize> {
    let new = edit.new.trim();
    let has_letters = new.chars().filter(|character| character.is_alphanumeric()).count() >= 2;
    // If the new text is part of the old text, finding it proves nothing: it was in the file before the edit.
    if !has_letters || edit.old.contains(new) {
        return None;
    }
    let lines = find::split_lines(edit.new);
    let (head, tail) = find::blank_margins(&lines);
    if let Some(start) = find::match_starts(keys, &lines[head..lines.len() - tail]).first() {
        return Some(*start);
    }
    let at = view.text().find(new).filter(|_| new.len() >= MIN_BYTES_WITHIN_LINE)?;
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    let cuts_word = view.text()[..at].ends_with(is_word) && new.starts_with(is_word)
        || view.text()[at + new.len()..].starts_with(is_word) && new.ends_with(is_word);
    (!cuts_word).then(|| view.line_at(at))
}
