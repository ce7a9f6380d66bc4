//! Parses the row that starts a hunk: `@@ -1,2 +1,3 @@`, `@@ class Cat` or `@@`.

/// The content of a hunk header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HunkHeader<'a> {
    /// `-OLD_START,OLD_COUNT +NEW_START,NEW_COUNT @@`. A hunk without old lines is inserted before `old_start`.
    Numbers { old_start: usize, old_count: usize, new_count: usize },
    /// A line of the file that precedes the hunk, such as `class Cat`.
    Hint(&'a str),
    /// `@@` alone.
    Bare,
}

/// Parses a row that starts with `@@`. Returns `None` if its numbers are invalid.
pub(super) fn parse_hunk_header(row: &str) -> Option<HunkHeader<'_>> {
    let text = row.trim_end().trim_start_matches('@').trim_start();
    if let Some(numbers) = text.strip_prefix('-')
        && numbers.starts_with(|c: char| c.is_ascii_digit())
        && let Some((numbers, _)) = numbers.split_once("@@")
    {
        return parse_numbers(numbers.trim());
    }
    match text.strip_suffix("@@").unwrap_or(text).trim_end() {
        "" | "..." | "…" => Some(HunkHeader::Bare),
        hint => Some(HunkHeader::Hint(hint)),
    }
}

fn parse_numbers(text: &str) -> Option<HunkHeader<'static>> {
    let (old, new) = text.split_once(" +")?;
    let (start, old_count) = parse_range(old)?;
    let (_, new_count) = parse_range(new)?;
    let old_start = if old_count == 0 { start.saturating_add(1) } else { start };
    Some(HunkHeader::Numbers { old_start, old_count, new_count })
}

/// Parses `START,COUNT`, where a count of one may be omitted.
fn parse_range(text: &str) -> Option<(usize, usize)> {
    let (start, count) = text.split_once(',').unwrap_or((text, "1"));
    Some((start.trim().parse().ok()?, count.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::{HunkHeader, parse_hunk_header};

    #[test]
    fn headers_are_parsed() {
        let numbers = |old_start, old_count, new_count| {
            Some(HunkHeader::Numbers { old_start, old_count, new_count })
        };
        for (row, expected) in [
            ("@@ -1,2 +3,4 @@", numbers(1, 2, 4)),
            ("@@ -1 +1 @@ fn main() {", numbers(1, 1, 1)),
            ("@@ -0,0 +1,3 @@", numbers(1, 0, 3)),
            ("@@ -7,0 +8 @@", numbers(8, 0, 1)),
            ("@@ -1,x +1 @@", None),
            ("@@ -99999999999999999999999 +1 @@", None),
            ("@@ -1,2 @@", None),
            ("@@", Some(HunkHeader::Bare)),
            ("@@ @@", Some(HunkHeader::Bare)),
            ("@@ ... @@", Some(HunkHeader::Bare)),
            ("@@ def f(): @@", Some(HunkHeader::Hint("def f():"))),
            ("@@ class A", Some(HunkHeader::Hint("class A"))),
            ("@@ -1 if x else y", Some(HunkHeader::Hint("-1 if x else y"))),
            ("@@ - item", Some(HunkHeader::Hint("- item"))),
        ] {
            assert_eq!(parse_hunk_header(row), expected, "{row}");
        }
    }
}
