//! The bytes of a file after its hunks.

use std::ops::Range;

use super::{Out, Placement, Why};
use crate::{
    edit::Place,
    view::{Ending, View},
};

/// Writes the file with all hunks carried out; they are in order and do not overlap. The number is that of a hunk.
pub(super) fn write(
    view: &View<'_>,
    placements: &[Placement],
) -> Result<(Vec<u8>, Vec<Place>), (usize, Why)> {
    let mut pen = Pen { view, bytes: view.bytes()[..view.mark()].to_vec(), line: 0, ending: None };
    let mut places = Vec::new();
    let mut at = 0;
    for (n, placement) in placements.iter().enumerate() {
        pen.copy(at..placement.lines.start);
        at = placement.lines.end;
        let before = placement.lines.start + 1..placement.lines.end + 1;
        let first = pen.line + 1;
        for out in &placement.out {
            pen.out(out, at).map_err(|why| (n, why))?;
        }
        if !before.is_empty() || !placement.out.is_empty() {
            places.push(Place { before, after: first..pen.line + 1 });
        }
    }
    let open = usize::from(view.line(view.count() - 1).is_empty());
    pen.copy(at..view.count() - open);
    Ok((pen.bytes, places))
}

struct Pen<'v, 'a> {
    view: &'v View<'a>,
    bytes: Vec<u8>,
    /// Lines written.
    line: usize,
    /// That of the line written last.
    ending: Option<Ending>,
}

impl Pen<'_, '_> {
    fn copy(&mut self, lines: Range<usize>) {
        let Some(last) = lines.clone().last() else { return };
        self.end_line(lines.start);
        let span = self.view.whole_range(lines.start).start..self.view.whole_range(last).end;
        self.bytes.extend_from_slice(&self.view.bytes()[span]);
        self.line += lines.len();
        self.ending = Some(self.view.ending(last));
    }

    /// Writes one line; `next` is the line of the file that follows the hunk.
    fn out(&mut self, out: &Out, next: usize) -> Result<(), Why> {
        let (text, instead, is_open) = match out {
            Out::Keep(index) => {
                self.copy(*index..index + 1);
                return Ok(());
            }
            Out::New { text, instead, is_open } => (text, instead, is_open),
        };
        self.end_line(next);
        let cannot = |character| Why::CannotEncode { character, encoding: self.view.encoding() };
        let bytes = self.view.encode(text).map_err(cannot)?;
        self.bytes.extend_from_slice(&bytes);
        let own = instead.map(|index| self.view.ending(index));
        let ending = if *is_open { Ending::None } else { self.or_neighbour(own, next) };
        self.put(ending);
        self.line += 1;
        Ok(())
    }

    /// Ends the last line of the old file, now that another follows it.
    fn end_line(&mut self, next: usize) {
        if self.ending == Some(Ending::None) {
            let ending = self.or_neighbour(None, next);
            self.put(ending);
        }
    }

    /// A line's own ending, that of the line above it or of the line below it; else what most lines have.
    fn or_neighbour(&self, own: Option<Ending>, next: usize) -> Ending {
        let below = (next < self.view.count()).then(|| self.view.ending(next));
        let known =
            [own, self.ending, below].into_iter().flatten().find(|ending| *ending != Ending::None);
        known.unwrap_or_else(|| self.view.usual_ending())
    }

    fn put(&mut self, ending: Ending) {
        // Every encoding that a view knows has line feeds and carriage returns.
        self.bytes.extend_from_slice(&self.view.encode(ending.as_str()).unwrap_or_default());
        self.ending = Some(ending);
    }
}
