//! Writes edited lines back as bytes, with the file's encoding and line endings. Other lines keep their bytes.

use std::ops::Range;

use super::{AppliedEdit, ChangedLines, EditChange, EditRefusal, Tolerances};
use crate::view::{Encoding, LineEnding, View};

/// A range of lines of the file, and the lines that replace them.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) lines: Range<usize>,
    pub(super) replacement: Vec<BlockLine>,
    /// Number of occurrences of the text to replace (`old`) in these lines.
    pub(super) count: usize,
}

/// A line of a replacement.
#[derive(Debug)]
pub(super) enum BlockLine {
    /// An unchanged line of the file.
    Keep(usize),
    New {
        text: String,
        source: SourceLines,
    },
}

/// The lines of the file whose bytes a new line reuses.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SourceLines {
    /// The line whose bytes the start of the new line reuses.
    pub(crate) head: Option<usize>,
    /// The line whose bytes and line ending the end of the new line reuses.
    pub(crate) tail: Option<usize>,
}

impl SourceLines {
    /// The source of a new line that replaces one line of the file.
    pub(crate) fn line(index: usize) -> SourceLines {
        SourceLines { head: Some(index), tail: Some(index) }
    }
}

/// Maximum size of a result in bytes.
pub(super) const MAX_BYTES: usize = 256 << 20;

/// Writes the file with the blocks replaced. Blocks must be in order and must not overlap.
pub(super) fn write(
    view: &View<'_>,
    blocks: impl IntoIterator<Item = Result<Block, EditRefusal>>,
    tolerances: Tolerances,
) -> Result<AppliedEdit, EditRefusal> {
    let mut writer = LineWriter::new(view);
    let mut change = EditChange { count: 0, changed_lines: Vec::new(), tolerances };
    let mut at = 0;
    for block in blocks {
        let block = block?;
        writer.copy(at..block.lines.start);
        at = block.lines.end;
        change.count += block.count;
        push_joined(&mut change.changed_lines, writer.write_block(&block)?);
        if writer.bytes.len() > MAX_BYTES {
            return Err(EditRefusal::TooLarge);
        }
    }
    writer.copy(at..view.line_count());
    if writer.bytes == view.bytes() {
        return Err(EditRefusal::NoEffect {
            line: change.changed_lines.first().map_or(1, |changed| changed.before.start),
        });
    }
    Ok(AppliedEdit { bytes: writer.bytes, change })
}

/// Appends a range, or extends the last range if the two are adjacent.
fn push_joined(changed_lines: &mut Vec<ChangedLines>, changed: ChangedLines) {
    match changed_lines.last_mut() {
        Some(last)
            if last.before.end == changed.before.start && last.after.end == changed.after.start =>
        {
            last.before.end = changed.before.end;
            last.after.end = changed.after.end;
        }
        Some(_) | None => changed_lines.push(changed),
    }
}

/// Writes a file line by line.
pub(crate) struct LineWriter<'a> {
    view: &'a View<'a>,
    pub(crate) bytes: Vec<u8>,
    /// The line ending written last.
    pub(crate) ending: LineEnding,
    /// Number of lines written.
    pub(crate) line: usize,
}

impl<'a> LineWriter<'a> {
    /// Starts with the file's byte-order mark, if it has one.
    pub(crate) fn new(view: &'a View<'a>) -> LineWriter<'a> {
        let mut bytes = Vec::with_capacity(view.bytes().len() + 1024);
        bytes.extend_from_slice(&view.bytes()[..view.bom_len()]);
        LineWriter { view, bytes, ending: LineEnding::None, line: 0 }
    }

    /// Copies lines of the file unchanged.
    pub(crate) fn copy(&mut self, lines: Range<usize>) {
        let Some(last_line) = lines.clone().last() else { return };
        let span = self.view.whole_range(lines.start).start..self.view.whole_range(last_line).end;
        self.bytes.extend_from_slice(&self.view.bytes()[span]);
        self.ending = self.view.ending(last_line);
        self.line += lines.len();
    }

    /// Writes the replacement of a block. Returns the lines that changed.
    fn write_block(&mut self, block: &Block) -> Result<ChangedLines, EditRefusal> {
        let before = self.line;
        let same_head = block
            .replacement
            .iter()
            .zip(block.lines.clone())
            .take_while(|(new, line)| matches!(new, BlockLine::Keep(kept) if kept == line))
            .count();
        let rest = block.replacement[same_head..]
            .iter()
            .rev()
            .zip(block.lines.clone().skip(same_head).rev());
        let same_tail = rest
            .take_while(|(new, line)| matches!(new, BlockLine::Keep(kept) if kept == line))
            .count();
        let ends_file = block.lines.end == self.view.line_count();
        for (step, line) in block.replacement.iter().enumerate() {
            let is_last = ends_file && step + 1 == block.replacement.len();
            self.write_line(line, block, is_last)?;
        }
        if ends_file && block.replacement.is_empty() {
            // The lines at the end are removed, and the line before them becomes the last line. The last line of a file
            // has no ending, so the ending that was just written is removed too.
            let ending =
                self.ending.as_str().len() * self.view.encode("\n").map_or(1, |feed| feed.len());
            self.bytes.truncate(self.bytes.len().saturating_sub(ending).max(self.view.bom_len()));
        }
        Ok(ChangedLines {
            before: block.lines.start + same_head + 1..block.lines.end - same_tail + 1,
            after: before + same_head + 1..self.line - same_tail + 1,
        })
    }

    fn write_line(
        &mut self,
        line: &BlockLine,
        block: &Block,
        is_last: bool,
    ) -> Result<(), EditRefusal> {
        let own_ending = match line {
            BlockLine::Keep(index) => {
                self.bytes.extend_from_slice(&self.view.bytes()[self.view.byte_range(*index)]);
                self.view.ending(*index)
            }
            BlockLine::New { text, source } => {
                self.write_text(text, *source)?;
                source.tail.map_or(LineEnding::None, |index| self.view.ending(index))
            }
        };
        self.line += 1;
        let old_ending = self.view.ending(block.lines.start);
        self.write_ending(if is_last {
            LineEnding::None
        } else {
            self.ending_or_fallback(own_ending, old_ending)
        });
        Ok(())
    }

    pub(crate) fn write_ending(&mut self, ending: LineEnding) {
        // Every supported encoding has line feeds and carriage returns.
        self.bytes.extend_from_slice(&self.view.encode(ending.as_str()).unwrap_or_default());
        self.ending = ending;
    }

    /// Returns the first of these that is not [`LineEnding::None`]: `own_ending`, the ending written last, `next`, and
    /// the file's dominant ending.
    pub(crate) fn ending_or_fallback(
        &self,
        own_ending: LineEnding,
        next: LineEnding,
    ) -> LineEnding {
        [own_ending, self.ending, next]
            .into_iter()
            .find(|ending| *ending != LineEnding::None)
            .unwrap_or_else(|| self.view.dominant_ending())
    }

    /// Writes the text of a line. Bytes of the source lines are reused, even where they are invalid.
    pub(crate) fn write_text(
        &mut self,
        text: &str,
        source: SourceLines,
    ) -> Result<(), EditRefusal> {
        if self.view.encoding() == Encoding::Utf8 && !self.view.is_damaged() {
            self.bytes.extend_from_slice(text.as_bytes());
            return Ok(());
        }
        let bytes = match self.reuse_ends(text, source) {
            Ok(bytes) => bytes,
            Err(refusal) => self.reuse_invalid_bytes(text, source).ok_or(refusal)?,
        };
        let bytes = if self.view.decode(&bytes) == text { bytes } else { self.encode(text)? };
        self.bytes.extend_from_slice(&bytes);
        Ok(())
    }

    /// Reuses the bytes of the prefix and suffix that the text shares with its source lines, and encodes the rest.
    fn reuse_ends(&self, text: &str, source: SourceLines) -> Result<Vec<u8>, EditRefusal> {
        let head =
            source.head.map_or(0, |line| common_len(text.chars(), self.view.line(line).chars()));
        let tail = source.tail.map_or(0, |line| {
            let actual = self.view.line(line);
            let available =
                if source.head == Some(line) { actual.len() - head } else { actual.len() };
            common_len(text.chars().rev(), actual.chars().rev())
                .min(available)
                .min(text.len() - head)
        });
        let tail = if text.is_char_boundary(text.len() - tail) { tail } else { 0 };
        let mut bytes = Vec::with_capacity(text.len());
        if let Some(line) = source.head {
            bytes.extend_from_slice(self.raw_bytes(line, 0..head));
        }
        bytes.extend_from_slice(&self.encode(&text[head..text.len() - tail])?);
        if let Some(line) = source.tail {
            let end = self.view.line(line).len();
            bytes.extend_from_slice(self.raw_bytes(line, end - tail..end));
        }
        Ok(bytes)
    }

    /// Encodes a text in which one replacement character stands for invalid bytes, and copies these bytes from the
    /// source line. Returns `None` unless the text and the line have exactly one replacement character each.
    fn reuse_invalid_bytes(&self, text: &str, source: SourceLines) -> Option<Vec<u8>> {
        let line = source.head.filter(|line| source.tail == Some(*line))?;
        let (old_before, old_after) = split_at_replacement_char(self.view.line(line))?;
        let (before, after) = split_at_replacement_char(text)?;
        let raw =
            self.raw_bytes(line, old_before.len()..self.view.line(line).len() - old_after.len());
        Some([&self.view.encode(before).ok()?, raw, &self.view.encode(after).ok()?].concat())
    }

    /// Returns the bytes of part of a line. `columns` is a byte range of its text.
    fn raw_bytes(&self, line: usize, columns: Range<usize>) -> &[u8] {
        &self.view.bytes()
            [self.view.byte_offset(line, columns.start)..self.view.byte_offset(line, columns.end)]
    }

    fn encode(&self, text: &str) -> Result<Vec<u8>, EditRefusal> {
        let encoding = self.view.encoding();
        self.view.encode(text).map_err(|character| EditRefusal::CannotEncode {
            line: self.line + 1,
            character,
            encoding,
        })
    }
}

/// Counts the bytes of the common prefix of two character sequences.
fn common_len(a: impl Iterator<Item = char>, b: impl Iterator<Item = char>) -> usize {
    a.zip(b).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum()
}

/// Splits a text at its only replacement character.
fn split_at_replacement_char(text: &str) -> Option<(&str, &str)> {
    let (before, after) = text.split_once(char::REPLACEMENT_CHARACTER)?;
    (!after.contains(char::REPLACEMENT_CHARACTER)).then_some((before, after))
}
