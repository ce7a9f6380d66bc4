//! Positions in a text as language servers count them: lines and columns from 0, columns in units of an encoding.
//!
//! Lines end with `\n`, `\r\n` or `\r`. A position outside the text stands for the nearest position inside.

use std::ops::Range;

/// The unit in which columns are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnUnit {
    /// Bytes of UTF-8.
    Utf8,
    /// 16-bit units of UTF-16.
    Utf16,
    /// Characters.
    Utf32,
}

impl ColumnUnit {
    /// Returns how many units a character has.
    fn len(self, c: char) -> usize {
        match self {
            ColumnUnit::Utf8 => c.len_utf8(),
            ColumnUnit::Utf16 => c.len_utf16(),
            ColumnUnit::Utf32 => 1,
        }
    }
}

/// A line and a column, both counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TextPosition {
    pub line: u64,
    pub column: u64,
}

/// Where the lines of a text begin.
#[derive(Clone, Debug)]
pub struct LineIndex<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> LineIndex<'a> {
    pub fn new(text: &'a str) -> Self {
        let bytes = text.as_bytes();
        let mut starts = vec![0];
        for at in memchr::memchr2_iter(b'\n', b'\r', bytes) {
            // In `\r\n` only the second byte ends the line.
            if bytes[at] == b'\n' || bytes.get(at + 1) != Some(&b'\n') {
                starts.push(at + 1);
            }
        }
        Self { text, starts }
    }

    /// Number of lines. A text that ends with a newline has an empty last line.
    pub fn line_count(&self) -> usize {
        self.starts.len()
    }

    /// Returns a line without its ending; empty if there is no such line.
    pub fn line(&self, line: u64) -> &'a str {
        &self.text[self.line_range(line)]
    }

    /// Returns the bytes of a line without its ending. After the last line, the range is empty.
    fn line_range(&self, line: u64) -> Range<usize> {
        let end = self.text.len();
        let Some(index) = usize::try_from(line).ok().filter(|index| *index < self.starts.len())
        else {
            return end..end;
        };
        let start = self.starts[index];
        let end = self.starts.get(index + 1).copied().unwrap_or(end);
        start..start + self.text[start..end].trim_end_matches(['\n', '\r']).len()
    }

    /// Returns the byte offset of a position. A column inside a character stands for the start of the character. A
    /// column after the end of the line stands for the end of the line.
    pub fn offset(&self, position: TextPosition, unit: ColumnUnit) -> usize {
        let range = self.line_range(position.line);
        let mut units_left = usize::try_from(position.column).unwrap_or(usize::MAX);
        for (at, c) in self.text[range.clone()].char_indices() {
            if units_left < unit.len(c) {
                return range.start + at;
            }
            units_left -= unit.len(c);
        }
        range.end
    }

    /// Returns the position of a byte offset. An offset inside a character stands for its start.
    pub fn position(&self, offset: usize, unit: ColumnUnit) -> TextPosition {
        let offset = self.text.floor_char_boundary(offset.min(self.text.len()));
        let index = self.starts.partition_point(|start| *start <= offset) - 1;
        let before = &self.text[self.starts[index]..offset];
        let column: usize = before.chars().map(|c| unit.len(c)).sum();
        TextPosition { line: index as u64, column: column as u64 }
    }

    /// Converts a position to another unit.
    pub fn convert(
        &self,
        position: TextPosition,
        from: ColumnUnit,
        to: ColumnUnit,
    ) -> TextPosition {
        self.position(self.offset(position, from), to)
    }
}

/// A replacement of some bytes of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeEdit {
    pub range: Range<usize>,
    pub new: String,
}

/// Error: two edits change the same bytes, or the range of an edit is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverlappingEdits;

/// Applies edits. All ranges refer to the text before the first edit. Insertions at the same place keep their order.
pub fn apply_edits(text: &str, mut edits: Vec<RangeEdit>) -> Result<String, OverlappingEdits> {
    edits.sort_by_key(|edit| (edit.range.start, edit.range.end));
    let mut result = String::with_capacity(text.len());
    let mut at = 0;
    for RangeEdit { range, new } in &edits {
        let is_valid = range.start >= at && range.start <= range.end;
        let (Some(unchanged), Some(_)) = (text.get(at..range.start), text.get(range.clone()))
        else {
            return Err(OverlappingEdits);
        };
        if !is_valid {
            return Err(OverlappingEdits);
        }
        result.push_str(unchanged);
        result.push_str(new);
        at = range.end;
    }
    result.push_str(text.get(at..).unwrap_or_default());
    Ok(result)
}

/// Returns the smallest single edit that turns one text into another; `None` if they are equal.
pub fn single_edit(old: &str, new: &str) -> Option<RangeEdit> {
    if old == new {
        return None;
    }
    let head = old.bytes().zip(new.bytes()).take_while(|(a, b)| a == b).count();
    let head = old.floor_char_boundary(head).min(new.floor_char_boundary(head));
    let rest = old[head..].bytes().rev().zip(new[head..].bytes().rev());
    let tail = rest.take_while(|(a, b)| a == b).count();
    let tail = (0..=tail)
        .rev()
        .find(|tail| {
            old.is_char_boundary(old.len() - tail) && new.is_char_boundary(new.len() - tail)
        })
        .unwrap_or(0);
    let range = head..old.len() - tail;
    Some(RangeEdit { range, new: new[head..new.len() - tail].to_owned() })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const UNITS: [ColumnUnit; 3] = [ColumnUnit::Utf8, ColumnUnit::Utf16, ColumnUnit::Utf32];

    /// Checks that a position, with its columns in UTF-8, UTF-16 and UTF-32, has this offset.
    #[track_caller]
    fn check(text: &str, line: u64, columns: [u64; 3], offset: usize) {
        let index = LineIndex::new(text);
        for (unit, column) in UNITS.into_iter().zip(columns) {
            let position = TextPosition { line, column };
            assert_eq!(index.offset(position, unit), offset, "{unit:?}");
            assert_eq!(index.position(offset, unit), position, "{unit:?}");
        }
    }

    #[test]
    fn columns_count_units() {
        check("", 0, [0, 0, 0], 0);
        check("abc", 0, [2, 2, 2], 2);
        check("a\nbc", 1, [1, 1, 1], 3);
        check("é=1", 0, [2, 1, 1], 2);
        check("🦀=1", 0, [4, 2, 1], 4);
        check("x\r\n🦀🦀", 1, [8, 4, 2], 11);
        check("a\rb", 1, [1, 1, 1], 3);
        check("a\n", 1, [0, 0, 0], 2);
    }

    #[test]
    fn positions_outside_the_text_stand_for_the_nearest_inside() {
        let check = |text: &str, line, column, unit, offset| {
            let position = TextPosition { line, column };
            assert_eq!(LineIndex::new(text).offset(position, unit), offset, "{text:?}");
        };
        check("ab\r\ncd", 0, 9, ColumnUnit::Utf16, 2);
        check("ab\ncd", 9, 0, ColumnUnit::Utf16, 5);
        check("ab\ncd", u64::MAX, u64::MAX, ColumnUnit::Utf8, 5);
        // Between the two halves of a surrogate pair, and inside the bytes of a character.
        check("x🦀", 0, 2, ColumnUnit::Utf16, 1);
        check("x🦀", 0, 3, ColumnUnit::Utf8, 1);
    }

    #[test]
    fn edits_are_applied_together_or_not_at_all() {
        let check = |edits: &[(Range<usize>, &str)], expected: Option<&str>| {
            let edits = edits.iter();
            let edits =
                edits.map(|(range, new)| RangeEdit { range: range.clone(), new: (*new).into() });
            let applied = apply_edits("hello é", edits.collect());
            assert_eq!(applied.ok().as_deref(), expected);
        };
        check(&[], Some("hello é"));
        check(&[(6..8, "e"), (0..1, "J")], Some("Jello e"));
        check(&[(5..5, ","), (5..5, " my")], Some("hello, my é"));
        check(&[(0..3, "a"), (2..4, "b")], None);
        check(&[(0..3, "a"), (7..8, "b")], None);
        check(&[(0..100, "a")], None);
        #[expect(clippy::reversed_empty_ranges, reason = "a server may send anything")]
        check(&[(3..1, "a")], None);
    }

    proptest! {
        #[test]
        fn offsets_and_positions_are_inverse(text in "[a-c\u{e9}\u{1f980}\u{20ac}\r\n]{0,30}", at in 0usize..60) {
            let index = LineIndex::new(&text);
            let at = text.floor_char_boundary(at.min(text.len()));
            // An offset between `\r` and `\n` is not a position.
            prop_assume!(!(at > 0 && text[..at].ends_with('\r') && text[at..].starts_with('\n')));
            for unit in UNITS {
                prop_assert_eq!(index.offset(index.position(at, unit), unit), at);
            }
        }

        #[test]
        fn any_position_gives_a_valid_offset(text in "\\PC{0,20}(\r\n|\n|\r)\\PC{0,20}", line in 0u64..4, column in 0u64..60) {
            let index = LineIndex::new(&text);
            for unit in UNITS {
                let offset = index.offset(TextPosition { line, column }, unit);
                prop_assert!(text.is_char_boundary(offset));
            }
        }

        #[test]
        fn a_single_edit_leads_from_one_text_to_the_other(old in "[ab\u{e9}\u{e8}\n]{0,12}", new in "[ab\u{e9}\u{e8}\n]{0,12}") {
            match single_edit(&old, &new) {
                None => prop_assert_eq!(old, new),
                Some(edit) => prop_assert_eq!(apply_edits(&old, vec![edit]), Ok(new)),
            }
        }
    }
}
