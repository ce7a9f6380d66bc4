//! The bytes of a file after its hunks.

use super::{End, Out, Placement, Why};
use crate::edit::write::{Like, Pen};
use crate::edit::{Place, Refusal};
use crate::view::{Ending, View};

/// Writes the file with all hunks carried out; they are in order and do not overlap. The number is that of a hunk.
pub(super) fn write(
    view: &View<'_>,
    placements: &[Placement],
) -> Result<(Vec<u8>, Vec<Place>), (usize, Why)> {
    let mut paper = Paper { view, pen: Pen::new(view) };
    let mut places = Vec::new();
    let mut at = 0;
    for (n, placement) in placements.iter().enumerate() {
        paper.copy(at..placement.lines.start);
        at = placement.lines.end;
        let before = placement.lines.start + 1..placement.lines.end + 1;
        let first = paper.pen.line + 1;
        for out in &placement.out {
            paper.out(out, at).map_err(|why| (n, why))?;
        }
        if !before.is_empty() || !placement.out.is_empty() {
            places.push(Place { before, after: first..paper.pen.line + 1 });
        }
    }
    let open = usize::from(view.line(view.count() - 1).is_empty());
    paper.copy(at..view.count() - open);
    Ok((paper.pen.bytes, places))
}

struct Paper<'a> {
    view: &'a View<'a>,
    pen: Pen<'a>,
}

impl Paper<'_> {
    fn copy(&mut self, lines: std::ops::Range<usize>) {
        if !lines.is_empty() {
            self.end_line(lines.start);
            self.pen.copy(lines);
        }
    }

    /// Writes one line; `next` is the line of the file that follows the hunk.
    fn out(&mut self, out: &Out, next: usize) -> Result<(), Why> {
        let (text, instead, end) = match out {
            Out::Keep(index) => {
                self.copy(*index..index + 1);
                return Ok(());
            }
            Out::New { text, instead, end } => (text, *instead, *end),
        };
        self.end_line(next);
        let like = instead.map(Like::line).unwrap_or_default();
        self.pen.text(text, like).map_err(|refusal| match refusal {
            Refusal::CannotEncode { character, encoding, .. } => {
                Why::CannotEncode { character, encoding }
            }
            refusal => Why::Refused { refusal: Box::new(refusal), line: next },
        })?;
        let own = instead.map_or(Ending::None, |index| self.view.ending(index));
        let is_open = match end {
            End::Newline => false,
            End::Nothing => true,
            End::AsItIs => !self.view.line(self.view.count() - 1).is_empty(),
        };
        let ending =
            if is_open { Ending::None } else { self.pen.or_neighbour(own, self.below(next)) };
        self.pen.put(ending);
        self.pen.line += 1;
        Ok(())
    }

    /// Ends the last line of the old file, now that another follows it.
    fn end_line(&mut self, next: usize) {
        if self.pen.line > 0 && self.pen.ending == Ending::None {
            self.pen.put(self.pen.or_neighbour(Ending::None, self.below(next)));
        }
    }

    fn below(&self, next: usize) -> Ending {
        if next < self.view.count() { self.view.ending(next) } else { Ending::None }
    }
}
