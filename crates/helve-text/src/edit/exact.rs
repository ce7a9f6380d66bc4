//! Edits whose text to replace (`old`) is a substring of the file.

use std::{borrow::Cow, ops::Range};

use memchr::memmem::Finder;

use super::{
    AppliedEdit, Edit, EditRefusal, MAX_LISTED, MatchPolicy, NewText, Tolerances,
    normalize::{is_blank_line, split_line},
    write::{self, Block, BlockLine, SourceLines},
};
use crate::{diff, view::View};

/// Applies an edit. Returns `None` if `old` does not occur in the file exactly.
pub(super) fn apply(
    view: &View<'_>,
    edit: &Edit<'_>,
    policy: MatchPolicy,
) -> Result<Option<AppliedEdit>, EditRefusal> {
    let text = view.text().as_bytes();
    let finder = Finder::new(edit.old);
    let Some(first) = finder.find(text) else { return Ok(None) };
    let new_text = with_line_ending(edit);
    let edit = &Edit { new: &new_text, ..*edit };
    if !edit.all {
        // The second search starts one byte later, so that an overlapping occurrence is found too.
        if finder.find(&text[first + 1..]).is_some() {
            return Err(ambiguous_refusal(view, &finder, first));
        }
        check_new_text(view, first, edit)?;
        if let Some(refusal) = cut_word_refusal(view, first, edit)
            .or_else(|| repeated_insertion_refusal(view, first, edit))
        {
            return Err(refusal);
        }
        if policy == MatchPolicy::Tolerant && splits_indentation(view, first, edit) {
            return Err(EditRefusal::PartialIndentation { line: view.line_at(first) + 1 });
        }
        return write::write(view, [Ok(build_block(view, &[first], edit))], Tolerances::NONE)
            .map(Some);
    }
    let starts: Vec<usize> = finder.find_iter(text).collect();
    let max_size =
        starts.len().checked_mul(edit.new.len()).and_then(|bytes| bytes.checked_add(text.len()));
    if max_size.is_none_or(|bytes| bytes > write::MAX_BYTES) {
        return Err(EditRefusal::TooLarge);
    }
    check_new_text(view, first, edit)?;
    if let Some(refusal) = starts.iter().find_map(|start| cut_word_refusal(view, *start, edit)) {
        return Err(refusal);
    }
    let blocks = group_by_line(view, &starts, edit.old.len())
        .map(|starts| Ok(build_block(view, starts, edit)));
    write::write(view, blocks, Tolerances::NONE).map(Some)
}

/// Whether `old` starts inside or right after the indentation of a line, and the intended indentation is unclear. It is
/// unclear if the next line of the file would be joined to `new`, if `old` quotes only a part of the indentation, or if
/// a later line of `new` is indented less than the line that `old` starts in.
fn splits_indentation(view: &View<'_>, at: usize, edit: &Edit<'_>) -> bool {
    let line = view.line_at(at);
    let lead = split_line(view.line(line)).lead;
    let before = at - view.text_range(line).start;
    if before == 0 || before > lead.len() {
        return false;
    }
    let after = at + edit.old.len();
    let joins_next =
        edit.old.ends_with('\n') && !edit.new.ends_with('\n') && after < view.text().len();
    let mut later_lines =
        edit.new.split('\n').skip(1).filter(|line| !is_blank_line(line)).peekable();
    let is_one_line = !edit.old.trim_end().contains('\n');
    // `old` may start with two of four spaces because the model believes that the file indents by two. Then it is
    // unclear how the later lines are to be indented.
    let quotes_part_of_indent = edit.old.starts_with([' ', '\t']) && later_lines.peek().is_some();
    joins_next
        || is_one_line && (quotes_part_of_indent || later_lines.any(|line| !line.starts_with(lead)))
}

/// Returns the new text with the line ending that the old text has. If the new text is empty, it gets no line ending.
fn with_line_ending<'a>(edit: &Edit<'a>) -> Cow<'a, str> {
    match edit.old.ends_with('\n') && !edit.new.is_empty() && !edit.new.ends_with('\n') {
        true => Cow::Owned(format!("{}\n", edit.new)),
        false => Cow::Borrowed(edit.new),
    }
}

/// Refuses a new text that should not be written. `at` is the offset of `old` in the file.
fn check_new_text(view: &View<'_>, at: usize, edit: &Edit<'_>) -> Result<(), EditRefusal> {
    let (line, end) = (view.line_at(at), at + edit.old.len());
    let text = NewText {
        old: edit.old,
        new: edit.new,
        file: view.text(),
        first_line: line + 1,
        before: &view.text()[view.text_range(line).start..at],
        after: &view.text()[end..view.text_range(view.line_at(end)).end],
        kind: edit.kind,
    };
    text.fault().map_or(Ok(()), |fault| Err(EditRefusal::Faulty(fault)))
}

/// Refuses an edit like `get` → `getUserById` in `getUser()`, which would give `getUserByIdUser()`. Here `old` ends in
/// the middle of a word of the file, and `new` has the whole word. The rest of the word would be in the file twice.
fn cut_word_refusal(view: &View<'_>, at: usize, edit: &Edit<'_>) -> Option<EditRefusal> {
    let (before, after) = (&view.text()[..at], &view.text()[at + edit.old.len()..]);
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    let trailing_word_len = |text: &str| text.len() - text.trim_end_matches(is_word).len();
    let refusal = |word: String| Some(EditRefusal::CutWord { line: view.line_at(at) + 1, word });
    let rest_of_word = &after[..after.len() - after.trim_start_matches(is_word).len()];
    let cut = &edit.old[edit.old.len() - trailing_word_len(edit.old)..];
    if !rest_of_word.is_empty() && !cut.is_empty() && !ends_with_word(edit.new, cut) {
        let word = format!("{cut}{rest_of_word}");
        let continues =
            edit.new.strip_prefix(edit.old).is_some_and(|more| more.starts_with(rest_of_word));
        if continues || contains_word(edit.new, &word) && !contains_word(edit.old, &word) {
            return refusal(word);
        }
    }
    let start_of_word = &before[before.len() - trailing_word_len(before)..];
    let cut = &edit.old[..edit.old.len() - edit.old.trim_start_matches(is_word).len()];
    if !start_of_word.is_empty() && !cut.is_empty() && cut.len() < edit.old.len() {
        let word = format!("{start_of_word}{cut}");
        let new_starts_with_word =
            edit.new.strip_prefix(word.as_str()).is_some_and(|rest| !rest.starts_with(is_word));
        if new_starts_with_word {
            return refusal(word);
        }
    }
    None
}

/// Whether `text` contains `word` as a whole word.
fn contains_word(text: &str, word: &str) -> bool {
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    text.match_indices(word).any(|(at, _)| {
        !text[..at].ends_with(is_word) && !text[at + word.len()..].starts_with(is_word)
    })
}

fn ends_with_word(text: &str, word: &str) -> bool {
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    text.strip_suffix(word).is_some_and(|before| !before.ends_with(is_word))
}

/// Refuses an insertion if the inserted text is already there, because the same edit was sent before.
fn repeated_insertion_refusal(view: &View<'_>, at: usize, edit: &Edit<'_>) -> Option<EditRefusal> {
    let (text, end) = (view.text(), at + edit.old.len());
    let new = edit.new.trim_end_matches('\n');
    let old = edit.old.trim_end_matches('\n');
    // A short insertion, such as `end`, a separator or a number, may be intended although the file already has it.
    let is_long_enough =
        |added: &str| added.chars().filter(|c| c.is_alphabetic()).count() >= MIN_LETTERS;
    let ends_line = |offset: usize| offset == text.len() || text[offset..].starts_with('\n');
    let after =
        new.strip_prefix(old).filter(|added| added.starts_with('\n') && is_long_enough(added));
    if after.is_some() && text[at..].starts_with(new) && ends_line(at + new.len()) {
        return Some(EditRefusal::AlreadyApplied { line: view.line_at(at) + 1 });
    }
    let before =
        new.strip_suffix(old).filter(|added| added.ends_with('\n') && is_long_enough(added))?;
    let start = (end - (edit.old.len() - old.len())).checked_sub(new.len())?;
    let starts_line = start == 0 || text.as_bytes()[start - 1] == b'\n';
    let is_there = starts_line
        && text.as_bytes()[start..].starts_with(before.as_bytes())
        && at == start + before.len();
    is_there.then(|| EditRefusal::AlreadyApplied { line: view.line_at(start) + 1 })
}

/// An inserted text with fewer letters is never taken for one that was sent before.
const MIN_LETTERS: usize = 4;

/// Builds the refusal of an edit whose `old` occurs several times.
fn ambiguous_refusal(view: &View<'_>, finder: &Finder<'_>, first: usize) -> EditRefusal {
    let text = view.text().as_bytes();
    let separate_count = finder.find_iter(text).count();
    let overlapping = finder.find(&text[first + 1..]).map(|second| first + 1 + second);
    let (starts, count) = match overlapping {
        Some(second) if separate_count == 1 => (vec![first, second], 2),
        Some(_) | None => (finder.find_iter(text).take(MAX_LISTED).collect(), separate_count),
    };
    let lines = starts.into_iter().map(|start| view.line_at(start) + 1).collect();
    EditRefusal::Ambiguous { lines, count, tolerances: Tolerances::NONE }
}

/// Groups occurrences that share a line. `length` is the length of `old`.
fn group_by_line<'a>(
    view: &View<'_>,
    starts: &'a [usize],
    length: usize,
) -> impl Iterator<Item = &'a [usize]> {
    let lines: Vec<Range<usize>> =
        starts.iter().map(|start| view.line_at(*start)..view.line_at(start + length)).collect();
    let mut rest = starts;
    let mut at = 0;
    std::iter::from_fn(move || {
        let sharing_count =
            lines.get(at..)?.windows(2).take_while(|pair| pair[1].start <= pair[0].end).count();
        let (group, after) = rest.split_at_checked(sharing_count + 1)?;
        rest = after;
        at += group.len();
        Some(group)
    })
}

/// Returns the lines around these occurrences, with each occurrence replaced. They share lines, so they form one block.
fn build_block(view: &View<'_>, starts: &[usize], edit: &Edit<'_>) -> Block {
    let block_start = starts[0];
    let block_end = starts[starts.len() - 1] + edit.old.len();
    let lines = view.line_at(block_start)..view.line_at(block_end) + 1;
    let span = view.text_range(lines.start).start..view.text_range(lines.end - 1).end;
    let mut new = String::with_capacity(span.len() + starts.len() * edit.new.len());
    let mut at = span.start;
    for start in starts {
        new.push_str(&view.text()[at..*start]);
        new.push_str(edit.new);
        at = start + edit.old.len();
    }
    new.push_str(&view.text()[at..span.end]);
    let old: Vec<&str> = view.text()[span].split('\n').collect();
    let new: Vec<&str> = new.split('\n').collect();
    Block { replacement: block_lines(lines.start, &old, &new), lines, count: starts.len() }
}

/// Returns the new lines of a block that starts at line `first`. Lines that are equal in `old` and `new` are kept.
fn block_lines(first: usize, old: &[&str], new: &[&str]) -> Vec<BlockLine> {
    let mut lines = Vec::with_capacity(new.len());
    let mut at = 0;
    for hunk in diff::hunks(old, new) {
        lines.extend((at..hunk.old.start).map(|index| BlockLine::Keep(first + index)));
        at = hunk.old.end;
        for (step, index) in hunk.new.clone().enumerate() {
            let old_line = hunk.old.clone().nth(step).map(|line| first + line);
            let last_old_line = if index + 1 == hunk.new.end {
                hunk.old.clone().last().map(|line| first + line)
            } else {
                old_line
            };
            lines.push(BlockLine::New {
                text: new[index].to_owned(),
                source: SourceLines { head: old_line, tail: last_old_line.or(old_line) },
            });
        }
    }
    lines.extend((at..old.len()).map(|index| BlockLine::Keep(first + index)));
    lines
}
