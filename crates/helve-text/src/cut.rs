//! Truncates long output to a number of lines and bytes.

use memchr::{memchr, memchr_iter, memrchr, memrchr_iter};

/// The maximum size of the text that is kept. The limit that is reached first applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub lines: usize,
    pub bytes: usize,
}

/// The part of a long text to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// The start of the text.
    Head,
    /// The end of the text.
    Tail,
    /// Both ends of the text. The middle is removed.
    BothEnds,
    /// The whole text, which was limited elsewhere.
    All,
}

/// The kept ends of a text that was too long, and how much was removed.
///
/// A last line without a newline counts as a line. A line counts as shown if any part of it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CutText<'a> {
    pub head: &'a str,
    pub tail: &'a str,
    /// Number of lines that `head` shows at least in part.
    pub head_lines: usize,
    /// Number of lines that `tail` shows at least in part.
    pub tail_lines: usize,
    /// Whether `head` ends in the middle of a line.
    pub head_ends_mid_line: bool,
    /// Whether `tail` starts in the middle of a line.
    pub tail_starts_mid_line: bool,
    pub total_lines: usize,
    pub total_bytes: usize,
    /// Number of lines that are not shown at all.
    pub removed_lines: usize,
    pub removed_bytes: usize,
}

/// Cuts `text` to fit `limits`. Returns `None` if `text` fits already.
///
/// Cuts between lines. Only a line that exceeds the byte limit by itself is cut inside, between characters.
pub fn cut(text: &str, keep: Keep, limits: Limits) -> Option<CutText<'_>> {
    let total_lines = count_lines(text);
    if total_lines <= limits.lines && text.len() <= limits.bytes {
        return None;
    }
    let (head, tail) = match keep {
        Keep::All => return None,
        Keep::Head => (head(text, limits), ""),
        Keep::Tail => ("", tail(text, limits)),
        Keep::BothEnds => {
            let half = Limits { lines: limits.lines.div_ceil(2), bytes: limits.bytes.div_ceil(2) };
            let head = head(text, half);
            let lines = limits.lines - count_lines(head);
            let rest = Limits { lines, bytes: limits.bytes - head.len() };
            (head, tail(&text[head.len()..], rest))
        }
    };
    Some(cut_text(text, total_lines, head, tail))
}

/// Counts lines. Text after the last newline counts as a line.
pub fn count_lines(text: &str) -> usize {
    let unterminated_lines = usize::from(!text.is_empty() && !text.ends_with('\n'));
    memchr_iter(b'\n', text.as_bytes()).count() + unterminated_lines
}

/// Returns as many whole lines from the start of `text` as the limits allow, and a part of a line only if that line
/// alone is longer than the limit.
fn head(text: &str, limits: Limits) -> &str {
    let Some(newline_index) = limits.lines.checked_sub(1) else { return "" };
    let window = &text[..text.floor_char_boundary(limits.bytes)];
    if let Some(newline) = memchr_iter(b'\n', window.as_bytes()).nth(newline_index) {
        return &window[..=newline];
    }
    let start = memrchr(b'\n', window.as_bytes()).map_or(0, |newline| newline + 1);
    let rest = &text.as_bytes()[start..];
    let is_too_long = rest.len() > limits.bytes && memchr(b'\n', &rest[..limits.bytes]).is_none();
    if is_too_long || window.len() == text.len() { window } else { &window[..start] }
}

/// Returns as many whole lines from the end of `text` as the limits allow, and a part of a line only if that line alone
/// is longer than the limit.
fn tail(text: &str, limits: Limits) -> &str {
    let Some(newline_index) = limits.lines.checked_sub(1) else { return "" };
    let start = text.ceil_char_boundary(text.len().saturating_sub(limits.bytes));
    let window = &text[start..];
    // The newline that ends the text does not start another line.
    let body = window.strip_suffix('\n').unwrap_or(window);
    if let Some(newline) = memrchr_iter(b'\n', body.as_bytes()).nth(newline_index) {
        return &window[newline + 1..];
    }
    if start == 0 || text.as_bytes()[start - 1] == b'\n' {
        return window;
    }
    let line_len = memchr(b'\n', window.as_bytes()).unwrap_or(window.len());
    let line = &text.as_bytes()[..start + line_len];
    let is_too_long =
        line.len() >= limits.bytes && memrchr(b'\n', &line[line.len() - limits.bytes..]).is_none();
    // Keep the end of an overlong line, unless only its newline fits.
    if is_too_long && line_len > 0 {
        window
    } else {
        window.get(line_len + 1..).unwrap_or_default()
    }
}

/// Describes a text of which only `head` and `tail` are kept.
fn cut_text<'a>(text: &'a str, total_lines: usize, head: &'a str, tail: &'a str) -> CutText<'a> {
    let (head_lines, tail_lines) = (count_lines(head), count_lines(tail));
    let removed = &text[head.len()..text.len() - tail.len()];
    let head_ends_mid_line = !head.is_empty() && !head.ends_with('\n') && !removed.is_empty();
    let tail_starts_mid_line = !tail.is_empty() && !removed.is_empty() && !removed.ends_with('\n');
    // Both ends may show the same line.
    let shared = usize::from(
        head_ends_mid_line && tail_starts_mid_line && memchr(b'\n', removed.as_bytes()).is_none(),
    );
    CutText {
        head,
        tail,
        head_lines,
        tail_lines,
        head_ends_mid_line,
        tail_starts_mid_line,
        total_lines,
        total_bytes: text.len(),
        removed_lines: total_lines + shared - head_lines - tail_lines,
        removed_bytes: removed.len(),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::{CutText, Keep, Limits, count_lines, cut};

    /// Compares the result, rendered as the kept head, the removed lines and bytes, and the kept tail: `"a\n" -1 -2
    /// "c"`. `…` marks an end that is in the middle of a line.
    #[track_caller]
    fn check(text: &str, keep: Keep, (lines, bytes): (usize, usize), expect: Expect) {
        let shown = match cut(text, keep, Limits { lines, bytes }) {
            None => "fits".to_owned(),
            Some(result) => {
                let ellipsis = |is_cut| if is_cut { "…" } else { "" };
                let (before, after) =
                    (ellipsis(result.head_ends_mid_line), ellipsis(result.tail_starts_mid_line));
                let (lines, bytes) = (result.removed_lines, result.removed_bytes);
                format!("{:?}{before} -{lines} -{bytes} {after}{:?}", result.head, result.tail)
            }
        };
        expect.assert_eq(&shown);
    }

    #[test]
    fn fitting_text_is_not_cut() {
        check("", Keep::Head, (0, 0), expect!["fits"]);
        check("a\nb\n", Keep::Head, (2, 4), expect!["fits"]);
        check("a\nb", Keep::Tail, (2, 3), expect!["fits"]);
        check("a\nb\nc\n", Keep::All, (1, 1), expect!["fits"]);
    }

    #[test]
    fn head_keeps_whole_lines() {
        check("a\nb\nc\n", Keep::Head, (2, 99), expect![[r#""a\nb\n" -1 -2 """#]]);
        check("a\nb\nc", Keep::Head, (2, 99), expect![[r#""a\nb\n" -1 -1 """#]]);
        check("aa\nbb\ncc\n", Keep::Head, (9, 8), expect![[r#""aa\nbb\n" -1 -3 """#]]);
        check("aa\nbb\ncc", Keep::Head, (9, 7), expect![[r#""aa\nbb\n" -1 -2 """#]]);
        check("\n\n\n", Keep::Head, (1, 99), expect![[r#""\n" -2 -2 """#]]);
        check("a\nb\n", Keep::Head, (0, 99), expect![[r#""" -2 -4 """#]]);
    }

    #[test]
    fn tail_keeps_whole_lines() {
        check("a\nb\nc\n", Keep::Tail, (2, 99), expect![[r#""" -1 -2 "b\nc\n""#]]);
        check("a\nb\nc", Keep::Tail, (2, 99), expect![[r#""" -1 -2 "b\nc""#]]);
        check("aa\nbb\ncc\n", Keep::Tail, (9, 8), expect![[r#""" -1 -3 "bb\ncc\n""#]]);
        check("aa\nbb\ncc", Keep::Tail, (9, 5), expect![[r#""" -1 -3 "bb\ncc""#]]);
        check("aa\nbb\ncc", Keep::Tail, (9, 6), expect![[r#""" -1 -3 "bb\ncc""#]]);
        check("\n\n\n", Keep::Tail, (1, 99), expect![[r#""" -2 -2 "\n""#]]);
    }

    #[test]
    fn both_ends_are_kept() {
        check("1\n2\n3\n4\n5\n", Keep::BothEnds, (2, 99), expect![[r#""1\n" -3 -6 "5\n""#]]);
        check("1\n2\n3\n4\n5\n", Keep::BothEnds, (3, 99), expect![[r#""1\n2\n" -2 -4 "5\n""#]]);
        check("1\n2\n3\n4\n5\n", Keep::BothEnds, (9, 6), expect![[r#""1\n" -2 -4 "4\n5\n""#]]);
        check(
            "1\n2222222222\n3\n4\n5\n",
            Keep::BothEnds,
            (9, 14),
            expect![[r#""1\n22222"… -0 -6 "3\n4\n5\n""#]],
        );
        check("1\n2\n", Keep::BothEnds, (1, 99), expect![[r#""1\n" -1 -2 """#]]);
    }

    #[test]
    fn a_line_over_the_limit_is_cut_between_characters() {
        check("äöüäöü", Keep::Head, (9, 5), expect![[r#""äö"… -0 -8 """#]]);
        check("äöüäöü", Keep::Tail, (9, 5), expect![[r#""" -0 -8 …"öü""#]]);
        check("äöüäöü", Keep::BothEnds, (9, 6), expect![[r#""ä"… -0 -6 …"öü""#]]);
        check("a\nxxxxxxxxxx\nb\n", Keep::Head, (9, 6), expect![[r#""a\nxxxx"… -1 -9 """#]]);
        check("a\nxxxxxxxxxx\nb\n", Keep::Tail, (9, 6), expect![[r#""" -1 -9 …"xxx\nb\n""#]]);
        check("a\nxxxxxxxxxx\nb\n", Keep::Tail, (9, 3), expect![[r#""" -2 -13 "b\n""#]]);
        check("abc\n", Keep::Head, (9, 3), expect![[r#""abc"… -0 -1 """#]]);
        check("abc\n", Keep::Tail, (9, 3), expect![[r#""" -0 -1 …"bc\n""#]]);
        check("日本", Keep::Head, (9, 2), expect![[r#""" -1 -6 """#]]);
    }

    #[test]
    fn a_hundred_megabytes_are_cut() {
        let text = "0123456789abcde\n".repeat(100 << 20 >> 4);
        for keep in [Keep::Head, Keep::Tail, Keep::BothEnds] {
            let result = cut(&text, keep, Limits { lines: 2_000, bytes: 50 << 10 }).unwrap();
            assert_eq!(
                (result.head_lines + result.tail_lines, result.removed_lines),
                (2_000, (100 << 20 >> 4) - 2_000)
            );
        }
    }

    fn keep() -> impl Strategy<Value = Keep> {
        prop_oneof![Just(Keep::Head), Just(Keep::Tail), Just(Keep::BothEnds)]
    }

    /// Returns the lines that a byte range of a text touches.
    fn touched_lines(text: &str, from: usize, to: usize) -> std::ops::Range<usize> {
        if from == to {
            return 0..0;
        }
        let line_of = |byte: usize| text.as_bytes()[..byte].iter().filter(|b| **b == b'\n').count();
        line_of(from)..line_of(to - 1) + 1
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn kept_ends_are_within_limits(text in "[aé日\n\n]{0,40}", keep in keep(), lines in 0..8_usize, bytes in 0..40_usize) {
            let Some(result) = cut(&text, keep, Limits { lines, bytes }) else {
                prop_assert!(count_lines(&text) <= lines && text.len() <= bytes);
                return Ok(());
            };
            prop_assert!(text.starts_with(result.head) && text.ends_with(result.tail));
            prop_assert!(result.head.len() + result.tail.len() <= bytes);
            prop_assert!(count_lines(result.head) + count_lines(result.tail) <= lines);
            let removed = &text[result.head.len()..text.len() - result.tail.len()];
            prop_assert!(!removed.is_empty());
            check_counts(&text, &result, removed)?;
            check_whole_lines(&text, &result, keep, bytes)?;
        }
    }

    fn check_counts(text: &str, result: &CutText<'_>, removed: &str) -> Result<(), TestCaseError> {
        let head = touched_lines(text, 0, result.head.len());
        let tail = touched_lines(text, text.len() - result.tail.len(), text.len());
        let is_shown = |line: &usize| head.contains(line) || tail.contains(line);
        prop_assert_eq!((result.head_lines, result.tail_lines), (head.len(), tail.len()));
        prop_assert_eq!(
            (result.total_lines, result.total_bytes),
            (text.lines().count(), text.len())
        );
        prop_assert_eq!(result.removed_bytes, removed.len());
        prop_assert_eq!(
            result.removed_lines,
            (0..result.total_lines).filter(|line| !is_shown(line)).count()
        );
        prop_assert_eq!(
            result.head_ends_mid_line,
            !result.head.is_empty() && !result.head.ends_with('\n')
        );
        prop_assert_eq!(
            result.tail_starts_mid_line,
            !result.tail.is_empty() && !removed.ends_with('\n')
        );
        Ok(())
    }

    /// Checks that only a line over the limit is cut inside.
    fn check_whole_lines(
        text: &str,
        result: &CutText<'_>,
        keep: Keep,
        bytes: usize,
    ) -> Result<(), TestCaseError> {
        let share = if keep == Keep::BothEnds { bytes / 2 } else { bytes };
        let line_at =
            |byte: usize| text.split_inclusive('\n').nth(text[..byte].matches('\n').count());
        for (is_cut, at) in [
            (result.head_ends_mid_line, result.head.len()),
            (result.tail_starts_mid_line, text.len() - result.tail.len()),
        ] {
            let length = line_at(at).map_or(0, str::len);
            prop_assert!(!is_cut || length > share, "line of {length} bytes cut");
        }
        Ok(())
    }
}
