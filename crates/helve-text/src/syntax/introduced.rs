//! Finds the errors that an edit introduced.

use super::{Language, LocatedError, MAX_ERRORS, SyntaxErrorKind};
use crate::diff::{DiffHunk, hunks};

/// With more old errors than this, the grammar probably does not support the dialect of the file.
const MAX_OLD_ERRORS: usize = 3;

/// Returns the errors of a new file. If there are too many, the file is probably not in the language that its name
/// suggests, and none are returned.
pub(super) fn of_new_file(new_errors: Vec<LocatedError>) -> Vec<LocatedError> {
    if new_errors.len() > MAX_ERRORS { Vec::new() } else { new_errors }
}

/// Returns the new errors that an edit introduced.
pub(super) fn of_edit(
    language: Language,
    old_errors: &[LocatedError],
    new_errors: Vec<LocatedError>,
    before: &str,
    after: &str,
) -> Vec<LocatedError> {
    // The YAML parser stops at the first error, so later errors cannot be compared.
    if old_errors.len() > MAX_OLD_ERRORS || language == Language::Yaml && !old_errors.is_empty() {
        return Vec::new();
    }
    let old: Vec<&str> = before.lines().collect();
    let new: Vec<&str> = after.lines().collect();
    let hunks = hunks(&old, &new);
    let sides = EditSides { old: &old, new: &new, hunks: &hunks };
    let mut introduced = sides.unmatched(old_errors, new_errors);
    for located in &mut introduced {
        sides.point_at_change(located);
    }
    introduced
}

/// The lines of a text before and after an edit, and their differences.
struct EditSides<'a> {
    old: &'a [&'a str],
    new: &'a [&'a str],
    hunks: &'a [DiffHunk],
}

/// The origin of a line of the new text.
enum LineOrigin<'a> {
    /// The line number in the old text, from 1.
    Kept(usize),
    /// The line is new or changed, by this hunk.
    Changed(&'a DiffHunk),
}

impl EditSides<'_> {
    /// Returns the new errors that do not correspond to an old error.
    fn unmatched(
        &self,
        old_errors: &[LocatedError],
        mut new_errors: Vec<LocatedError>,
    ) -> Vec<LocatedError> {
        let surplus = new_errors.len().saturating_sub(old_errors.len());
        let mut unmatched_old: Vec<&LocatedError> = old_errors.iter().collect();
        for is_same in
            [Self::is_unchanged, Self::is_on_changed_line, Self::is_moved, Self::is_on_same_line]
        {
            new_errors.retain(|new| {
                match unmatched_old.iter().position(|old| is_same(self, old, new)) {
                    Some(index) => {
                        unmatched_old.swap_remove(index);
                        false
                    }
                    None => true,
                }
            });
        }
        // After any edit, a grammar may report other errors near an old one. So outside the changed lines, no more
        // errors are reported than the edit added to the total.
        let mut unchanged_line_errors = 0;
        new_errors.retain(|located| {
            let is_changed = matches!(self.origin(located.error.line), LineOrigin::Changed(_));
            unchanged_line_errors += usize::from(!is_changed);
            is_changed || unchanged_line_errors <= surplus
        });
        new_errors
    }

    /// Moves the error of a missing closing bracket to the change that removed the bracket. Grammars report the error
    /// far below the change.
    fn point_at_change(&self, located: &mut LocatedError) {
        let SyntaxErrorKind::Missing(what) = &located.error.kind else { return };
        let pair = match what.as_str() {
            "}" => ['{', '}'],
            ")" => ['(', ')'],
            "]" => ['[', ']'],
            _ => return,
        };
        if matches!(self.origin(located.error.line), LineOrigin::Changed(_)) {
            return;
        }
        let loses_bracket = |hunk: &&DiffHunk| {
            let (old, new) = (&self.old[hunk.old.clone()], &self.new[hunk.new.clone()]);
            bracket_surplus(new, pair) > bracket_surplus(old, pair)
        };
        if let Some(hunk) = self.hunks.iter().find(loses_bracket) {
            located.error.line = (hunk.new.start + 1).min(self.new.len().max(1));
        }
    }

    fn origin(&self, line: usize) -> LineOrigin<'_> {
        let index = line.saturating_sub(1);
        let before = self.hunks.partition_point(|hunk| hunk.new.end <= index);
        match self.hunks.get(before) {
            Some(hunk) if hunk.new.contains(&index) => LineOrigin::Changed(hunk),
            Some(_) | None => {
                LineOrigin::Kept(match before.checked_sub(1).map(|n| &self.hunks[n]) {
                    Some(previous) => index - previous.new.end + previous.old.end + 1,
                    None => line,
                })
            }
        }
    }

    /// Whether this is the same error on the same line.
    fn is_unchanged(&self, old: &LocatedError, new: &LocatedError) -> bool {
        old.error.kind == new.error.kind && self.is_on_same_line(old, new)
    }

    /// Whether this is an error, perhaps another one, on the same line.
    fn is_on_same_line(&self, old: &LocatedError, new: &LocatedError) -> bool {
        matches!(self.origin(new.error.line), LineOrigin::Kept(line) if line == old.error.line)
    }

    /// Whether this is the same error in a line that was changed for another reason.
    fn is_on_changed_line(&self, old: &LocatedError, new: &LocatedError) -> bool {
        let LineOrigin::Changed(hunk) = self.origin(new.error.line) else { return false };
        old.error.kind == new.error.kind && hunk.old.contains(&(old.error.line - 1))
    }

    /// Whether this is the same error on an equal line elsewhere, or at the end of both texts.
    fn is_moved(&self, old: &LocatedError, new: &LocatedError) -> bool {
        let (from, to) = (old.error.line, new.error.line);
        let same_text = match (self.old.get(from - 1), self.new.get(to - 1)) {
            (Some(from), Some(to)) => from.trim() == to.trim(),
            (Some(_) | None, _) => false,
        };
        let at_end = from >= self.old.len() && to >= self.new.len();
        old.error.kind == new.error.kind && (same_text || at_end)
    }
}

/// Counts opening minus closing brackets.
fn bracket_surplus(lines: &[&str], [open, close]: [char; 2]) -> isize {
    let weight = |c: char| isize::from(c == open) - isize::from(c == close);
    lines.iter().flat_map(|line| line.chars()).map(weight).sum()
}
