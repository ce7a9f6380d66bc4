//! Writes a file with its hunks applied.

use super::{PatchedLine, PatchedLineEnd, Placement, PlacementProblem};
use crate::edit::write::{LineWriter, SourceLines};
use crate::edit::{ChangedLines, EditRefusal};
use crate::view::{LineEnding, View};

/// Writes the file with all hunks applied. The hunks must be in order and must not overlap. An error contains the index
/// of the hunk that cannot be written.
pub(super) fn write(
    view: &View<'_>,
    placements: &[Placement],
) -> Result<(Vec<u8>, Vec<ChangedLines>), (usize, PlacementProblem)> {
    let mut patch_writer = PatchWriter { view, writer: LineWriter::new(view) };
    let mut changed_lines = Vec::new();
    let mut at = 0;
    for (n, placement) in placements.iter().enumerate() {
        patch_writer.copy(at..placement.lines.start);
        at = placement.lines.end;
        let before = placement.lines.start + 1..placement.lines.end + 1;
        let first_line = patch_writer.writer.line + 1;
        for line in &placement.replacement {
            patch_writer.write_line(line, at).map_err(|problem| (n, problem))?;
        }
        if !before.is_empty() || !placement.replacement.is_empty() {
            changed_lines
                .push(ChangedLines { before, after: first_line..patch_writer.writer.line + 1 });
        }
    }
    // The empty line after a final newline is not copied.
    let empty_last = usize::from(view.line(view.line_count() - 1).is_empty());
    patch_writer.copy(at..view.line_count() - empty_last);
    Ok((patch_writer.writer.bytes, changed_lines))
}

/// Writes lines of the file and of the patch.
struct PatchWriter<'a> {
    view: &'a View<'a>,
    writer: LineWriter<'a>,
}

impl PatchWriter<'_> {
    fn copy(&mut self, lines: std::ops::Range<usize>) {
        if !lines.is_empty() {
            self.end_line(lines.start);
            self.writer.copy(lines);
        }
    }

    /// Writes one line. `next` is the line of the file that follows the hunk.
    fn write_line(&mut self, line: &PatchedLine, next: usize) -> Result<(), PlacementProblem> {
        let (text, replaces, end) = match line {
            PatchedLine::Keep(index) => {
                self.copy(*index..index + 1);
                return Ok(());
            }
            PatchedLine::New { text, replaces, end } => (text, *replaces, *end),
        };
        self.end_line(next);
        let source = replaces.map(SourceLines::line).unwrap_or_default();
        self.writer.write_text(text, source).map_err(|refusal| match refusal {
            EditRefusal::CannotEncode { character, encoding, .. } => {
                PlacementProblem::CannotEncode { character, encoding }
            }
            refusal => PlacementProblem::Refused { refusal: Box::new(refusal), line: next },
        })?;
        let replaced = replaces.map_or(LineEnding::None, |index| self.view.ending(index));
        let no_newline = match end {
            PatchedLineEnd::Newline => false,
            PatchedLineEnd::None => true,
            PatchedLineEnd::Unchanged => !self.view.line(self.view.line_count() - 1).is_empty(),
        };
        let ending = if no_newline {
            LineEnding::None
        } else {
            self.writer.ending_or_fallback(replaced, self.ending_at(next))
        };
        self.writer.write_ending(ending);
        self.writer.line += 1;
        Ok(())
    }

    /// Adds an ending to the old last line if another line follows it now.
    fn end_line(&mut self, next: usize) {
        if self.writer.line > 0 && self.writer.ending == LineEnding::None {
            self.writer.write_ending(
                self.writer.ending_or_fallback(LineEnding::None, self.ending_at(next)),
            );
        }
    }

    fn ending_at(&self, next: usize) -> LineEnding {
        if next < self.view.line_count() { self.view.ending(next) } else { LineEnding::None }
    }
}
