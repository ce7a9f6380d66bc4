//! Edits whose text to replace (`old`) is a substring of the file.

use std::{borrow::Cow, ops::Range};

use memchr::memmem::Finder;

use super::{
    AppliedEdit, Edit, EditRefusal, MAX_LISTED, MatchPolicy, NewText, Tolerances, cut_word,
    normalize::{is_blank_line, split_line},
    repeated,
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
    let new_text = with_line_breaks(&view.text()[..first], edit);
    let edit = &Edit { new: &new_text, ..*edit };
    if !edit.all {
        // The second search starts one byte later, so that an overlapping occurrence is found too.
        if finder.find(&text[first + 1..]).is_some() {
            return Err(ambiguous_refusal(view, &finder, first));
        }
        check_new_text(view, first, edit)?;
        if let Some(refusal) =
            repeated_refusal(view, &[first], edit).or_else(|| cut_word_refusal(view, first, edit))
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
    if let Some(refusal) = repeated_refusal(view, &starts, edit)
        .or_else(|| starts.iter().find_map(|start| cut_word_refusal(view, *start, edit)))
    {
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

/// Returns the new text with the line breaks that the old text has at its ends. If the new text is empty, it gets none.
/// `text_before` is the text of the file before the old text.
fn with_line_breaks<'a>(text_before: &str, edit: &Edit<'a>) -> Cow<'a, str> {
    let start = dropped_line_start(text_before, edit).unwrap_or_default();
    let end = match edit.old.ends_with('\n') && !edit.new.is_empty() && !edit.new.ends_with('\n') {
        true => "\n",
        false => "",
    };
    match (start, end) {
        ("", "") => Cow::Borrowed(edit.new),
        (start, end) => Cow::Owned(format!("{start}{}{end}", edit.new)),
    }
}

/// If the old text starts with a line break that the new text lacks by mistake, so that two lines would be joined,
/// returns the line break, with the indentation that the new text lacks too.
fn dropped_line_start<'a>(text_before: &str, edit: &Edit<'a>) -> Option<&'a str> {
    let first = edit.new.chars().next().filter(|first| *first != '\n')?;
    // The line break of a blank line separates no two lines.
    let ends_line = !text_before.is_empty() && !text_before.ends_with('\n');
    if !edit.old.starts_with('\n') || !ends_line {
        return None;
    }
    let lines = edit.old.trim_start_matches('\n');
    let break_start = edit.old.len() - lines.len() - 1;
    let lead = |text: &str| text.len() - text.trim_start_matches([' ', '\t']).len();
    let joins_words = first.is_alphanumeric() && text_before.ends_with(char::is_alphanumeric);
    let is_dropped = match (lead(lines), lead(edit.new)) {
        // ` {` for a brace on a line of its own.
        (0, 1..) => false,
        (0, 0) => joins_words || !JOINING.contains(first) && lines != edit.new,
        (1.., 1..) => lines[..lead(lines)] == edit.new[..lead(edit.new)],
        (1.., 0) => joins_words,
    };
    let indent = if lead(edit.new) == 0 { lead(lines) } else { 0 };
    is_dropped.then(|| &edit.old[break_start..=break_start + indent])
}

/// Characters that may continue the line before: `{` and `.call()`.
const JOINING: &str = ")]}{>,;.:?!&|+=";

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

/// Refuses an edit that would repeat a part of a word.
fn cut_word_refusal(view: &View<'_>, at: usize, edit: &Edit<'_>) -> Option<EditRefusal> {
    let word = cut_word::find(view.text(), at..at + edit.old.len(), edit.old, edit.new)?;
    Some(EditRefusal::CutWord { line: view.line_at(at) + 1, word })
}

/// Refuses an edit if the new text is already there, around every occurrence of the old text, because the same edit was
/// sent before.
fn repeated_refusal(view: &View<'_>, starts: &[usize], edit: &Edit<'_>) -> Option<EditRefusal> {
    let around = |at: &usize| repeated::find_around(view.text(), *at, edit.old, edit.new);
    let start = starts.iter().map(around).collect::<Option<Vec<usize>>>()?.first().copied()?;
    Some(EditRefusal::AlreadyApplied { line: view.line_at(start) + 1 })
}

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
