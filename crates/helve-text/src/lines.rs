//! Prepares lines for display: numbers them, clips them, and reduces overwritten lines to what a terminal shows.

use std::ops::Range;

mod collapse;

pub use collapse::{LineCollapser, collapse_overwritten};

/// Returns the lines of `text` without their endings, numbered from `first`.
pub fn numbered(text: &str, first: usize) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(move |(n, line)| (first.saturating_add(n), line))
}

/// Returns the first `max` characters of `line`, and whether the line was longer.
pub fn clip(line: &str, max: usize) -> (&str, bool) {
    let end = offset_after(line, 0, max);
    (&line[..end], end < line.len())
}

/// A section of a line that was too long to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClippedLine<'a> {
    pub text: &'a str,
    /// Byte range of `text` in the line.
    pub range: Range<usize>,
    pub is_cut_before: bool,
    pub is_cut_after: bool,
}

/// Returns at most `max` characters of `line`, with the byte range `focus` in the middle.
///
/// If `focus` is longer than `max`, its start is shown. A bound inside a character moves to the start of the character.
pub fn clip_around(line: &str, focus: Range<usize>, max: usize) -> ClippedLine<'_> {
    let focus_start = line.floor_char_boundary(focus.start);
    let focus_end = line.floor_char_boundary(focus.end).max(focus_start);
    let focus_end = offset_after(line, focus_start, max).min(focus_end);
    let spare = max - line[focus_start..focus_end].chars().count();
    let after = line[focus_end..offset_after(line, focus_end, spare)].chars().count();
    let start = offset_before(line, focus_start, (spare / 2).max(spare - after));
    let end = offset_after(line, focus_end, spare - line[start..focus_start].chars().count());
    let (is_cut_before, is_cut_after) = (start > 0, end < line.len());
    ClippedLine { text: &line[start..end], range: start..end, is_cut_before, is_cut_after }
}

/// Returns the offset `count` characters after `from`, or the end of the line.
fn offset_after(line: &str, from: usize, count: usize) -> usize {
    line[from..].char_indices().nth(count).map_or(line.len(), |(at, _)| from + at)
}

/// Returns the offset `count` characters before `to`, or the start of the line.
fn offset_before(line: &str, to: usize, count: usize) -> usize {
    match count.checked_sub(1) {
        None => to,
        Some(last) => line[..to].char_indices().nth_back(last).map_or(0, |(at, _)| at),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::{clip, clip_around, numbered};

    #[test]
    fn lines_are_numbered() {
        let lines: Vec<_> = numbered("a\r\n\nb", 9).collect();
        assert_eq!(lines, [(9, "a"), (10, ""), (11, "b")]);
        assert_eq!(numbered("", 1).count(), 0);
    }

    #[test]
    fn long_lines_are_clipped() {
        assert_eq!(clip("日本語", 3), ("日本語", false));
        assert_eq!(clip("日本語", 2), ("日本", true));
        assert_eq!(clip("abc", 0), ("", true));
        assert_eq!(clip("", 0), ("", false));
    }

    #[track_caller]
    fn check_around(line: &str, focus: &str, max: usize, expect: Expect) {
        let at = line.find(focus).unwrap();
        let clipped = clip_around(line, at..at + focus.len(), max);
        let mark = |cut| if cut { "…" } else { "" };
        assert_eq!(clipped.text, &line[clipped.range.clone()]);
        expect.assert_eq(&format!(
            "{}{}{}",
            mark(clipped.is_cut_before),
            clipped.text,
            mark(clipped.is_cut_after)
        ));
    }

    #[test]
    fn clips_around_a_match() {
        check_around("0123456789", "45", 20, expect!["0123456789"]);
        check_around("0123456789", "45", 6, expect!["…234567…"]);
        check_around("0123456789", "0", 5, expect!["01234…"]);
        check_around("0123456789", "9", 5, expect!["…56789"]);
        check_around("0123456789", "8", 6, expect!["…456789"]);
        check_around("0123456789", "23456", 3, expect!["…234…"]);
        check_around("äöü日本語äöü", "本", 5, expect!["…ü日本語ä…"]);
        check_around("0123456789", "", 4, expect!["0123…"]);
        check_around("0123456789", "5", 0, expect!["……"]);
    }

    proptest! {
        #[test]
        fn the_clip_contains_the_match(line in "[aé日]{0,30}", from in 0..99_usize, length in 0..20_usize, max in 0..20_usize) {
            let clipped = clip_around(&line, from..from + length, max);
            let total = line.chars().count();
            prop_assert_eq!(clipped.text.chars().count(), max.min(total));
            let focus = line.floor_char_boundary(from)..line.floor_char_boundary(from + length);
            if line[focus.clone()].chars().count() <= max {
                prop_assert!(clipped.range.start <= focus.start && focus.end <= clipped.range.end);
            } else {
                prop_assert_eq!(clipped.range.start, focus.start);
            }
        }
    }
}
