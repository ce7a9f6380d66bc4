//! Edits whose text to replace (`old`) is a substring of the file.

use std::ops::Range;

use memchr::memmem::Finder;

use super::{
    AppliedEdit, Edit, EditRefusal, MAX_LISTED, MatchPolicy, Tolerances,
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
    if !edit.all {
        // The second search starts one byte later, so that an overlapping occurrence is found too.
        if finder.find(&text[first + 1..]).is_some() {
            return Err(ambiguous_refusal(view, &finder, first));
        }
        if policy == MatchPolicy::Safe && splits_indentation(view, first, edit) {
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
    let blocks = group_by_line(view, &starts, edit.old.len())
        .map(|starts| Ok(build_block(view, starts, edit)));
    write::write(view, blocks, Tolerances::NONE).map(Some)
}

/// Whether `old` starts after or inside a line's indentation, and the intended indentation is unclear: the edit would
/// join the next line, or later lines of `new` are indented less than that line.
fn splits_indentation(view: &View<'_>, first: usize, edit: &Edit<'_>) -> bool {
    let line = view.line_at(first);
    let lead = split_line(view.line(line)).lead;
    let before = first - view.text_range(line).start;
    if before == 0 || before > lead.len() {
        return false;
    }
    let after = first + edit.old.len();
    let joins_next =
        edit.old.ends_with('\n') && !edit.new.ends_with('\n') && after < view.text().len();
    let mut later_lines = edit.new.split('\n').skip(1).filter(|line| !is_blank_line(line));
    let is_one_line = !edit.old.trim_end().contains('\n');
    joins_next || is_one_line && later_lines.any(|line| !line.starts_with(lead))
}

fn ambiguous_refusal(view: &View<'_>, finder: &Finder<'_>, first: usize) -> EditRefusal {
    let text = view.text().as_bytes();
    let separate_count = finder.find_iter(text).count();
    let overlapping = finder.find(&text[first + 1..]).map(|second| first + 1 + second);
    let (lines, count) = match overlapping {
        Some(second) if separate_count == 1 => (vec![first, second], 2),
        Some(_) | None => (finder.find_iter(text).take(MAX_LISTED).collect(), separate_count),
    };
    let lines = lines.into_iter().map(|start| view.line_at(start) + 1).collect();
    EditRefusal::Ambiguous { lines, count, tolerances: Tolerances::NONE }
}

/// Groups occurrences that share a line. `length` is that of `old`.
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

fn build_block(view: &View<'_>, starts: &[usize], edit: &Edit<'_>) -> Block {
    let first = starts[0];
    let last = starts[starts.len() - 1] + edit.old.len();
    let lines = view.line_at(first)..view.line_at(last) + 1;
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
            let actual = hunk.old.clone().nth(step).map(|actual| first + actual);
            let tail = if index + 1 == hunk.new.end {
                hunk.old.clone().last().map(|actual| first + actual)
            } else {
                actual
            };
            lines.push(BlockLine::New {
                text: new[index].to_owned(),
                source: SourceLines { head: actual, tail: tail.or(actual) },
            });
        }
    }
    lines.extend((at..old.len()).map(|index| BlockLine::Keep(first + index)));
    lines
}
