//! The row that starts a hunk.

/// What follows `@@`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HunkHead<'a> {
    /// `-OLD_START,OLD +NEW_START,NEW @@`; a hunk without old lines stands before `old_start`.
    Numbers {
        old_start: usize,
        old: usize,
        new: usize,
    },
    /// A line that comes before the hunk.
    Hint(&'a str),
    Bare,
}

/// Reads a row that starts with `@@`; `None` if its numbers make no sense.
pub(super) fn hunk_head(row: &str) -> Option<HunkHead<'_>> {
    let text = row.trim_end().trim_start_matches('@').trim_start();
    if let Some(numbers) = text.strip_prefix('-')
        && numbers.starts_with(|c: char| c.is_ascii_digit())
        && let Some((numbers, _)) = numbers.split_once("@@")
    {
        return read_numbers(numbers.trim());
    }
    match text.strip_suffix("@@").unwrap_or(text).trim_end() {
        "" | "..." | "…" => Some(HunkHead::Bare),
        hint => Some(HunkHead::Hint(hint)),
    }
}

fn read_numbers(text: &str) -> Option<HunkHead<'static>> {
    let (old, new) = text.split_once(" +")?;
    let (start, old) = span(old)?;
    let (_, new) = span(new)?;
    let old_start = if old == 0 { start.saturating_add(1) } else { start };
    Some(HunkHead::Numbers { old_start, old, new })
}

/// `START,COUNT`, where a count of one may be left out.
fn span(text: &str) -> Option<(usize, usize)> {
    let (start, count) = text.split_once(',').unwrap_or((text, "1"));
    Some((start.trim().parse().ok()?, count.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::{HunkHead, hunk_head};

    #[test]
    fn heads() {
        let numbers = |old_start, old, new| Some(HunkHead::Numbers { old_start, old, new });
        for (row, expected) in [
            ("@@ -1,2 +3,4 @@", numbers(1, 2, 4)),
            ("@@ -1 +1 @@ fn main() {", numbers(1, 1, 1)),
            ("@@ -0,0 +1,3 @@", numbers(1, 0, 3)),
            ("@@ -7,0 +8 @@", numbers(8, 0, 1)),
            ("@@ -1,x +1 @@", None),
            ("@@ -99999999999999999999999 +1 @@", None),
            ("@@ -1,2 @@", None),
            ("@@", Some(HunkHead::Bare)),
            ("@@ @@", Some(HunkHead::Bare)),
            ("@@ ... @@", Some(HunkHead::Bare)),
            ("@@ def f(): @@", Some(HunkHead::Hint("def f():"))),
            ("@@ class A", Some(HunkHead::Hint("class A"))),
            ("@@ -1 if x else y", Some(HunkHead::Hint("-1 if x else y"))),
            ("@@ - item", Some(HunkHead::Hint("- item"))),
        ] {
            assert_eq!(hunk_head(row), expected, "{row}");
        }
    }
}
