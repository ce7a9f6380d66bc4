//! Where the hunks of a patch stand in a file, and what the file becomes.

mod hints;
mod order;
mod seek;
mod spot;
mod write;

#[cfg(test)]
mod tests;

use std::ops::Range;

use super::{Hunk, Kind};
use crate::{
    edit::{Nearest, Place, Refusal, Tolerance},
    view::{Encoding, View},
};

/// What one hunk does to a file. Lines are counted from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// The lines of the file that change; empty where lines are only added.
    pub lines: Range<usize>,
    /// What stands there afterwards.
    pub out: Vec<Out>,
    /// What the hunk got wrong; nothing if it quotes the file exactly.
    pub tolerances: Vec<Tolerance>,
}

/// A line of the file afterwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Out {
    /// A line that the file has.
    Keep(usize),
    New {
        text: String,
        /// The line whose place it takes.
        instead: Option<usize>,
        end: End,
    },
}

/// What follows a new line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Newline,
    /// The file ends with it, and no newline follows.
    Nothing,
    /// As with the last line now: the hunk says of both that no newline follows.
    AsItIs,
}

/// A file after all hunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patched {
    pub bytes: Vec<u8>,
    /// The lines that changed, in order.
    pub places: Vec<Place>,
    /// What the hunks got wrong, for each.
    pub tolerances: Vec<Vec<Tolerance>>,
}

/// The hunk that has no place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misplaced {
    /// Counted from 0.
    pub hunk: usize,
    /// The row of the patch at which it starts.
    pub row: usize,
    pub why: Why,
}

/// Why a hunk has no place. Lines are counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// Its lines are nowhere; the place that comes nearest, if any does.
    NotFound(Option<Box<Nearest>>),
    /// A line that should come before it is nowhere.
    NoHint(String),
    /// Its lines are in several places: the first of them, and how many there are.
    Ambiguous {
        lines: Vec<usize>,
        count: usize,
    },
    /// Its lines are only before those of an earlier hunk.
    OutOfOrder {
        line: usize,
    },
    /// Its lines are in the file, but not at its end.
    NotAtEnd {
        line: usize,
    },
    /// It only adds lines and does not say after which.
    NoContext,
    /// Its lines are found, but what it changes cannot be carried over to them.
    Refused {
        line: usize,
        refusal: Box<Refusal>,
    },
    CannotEncode {
        character: char,
        encoding: Encoding,
    },
    /// Too much would have to be compared.
    TooLarge,
}

/// Finds the places of all hunks: in their order, each the only one possible.
pub fn place(view: &View<'_>, hunks: &[Hunk]) -> Result<Vec<Placement>, Misplaced> {
    let file = seek::File::new(view, hunks);
    let mut options = Vec::with_capacity(hunks.len());
    for (n, hunk) in hunks.iter().enumerate() {
        options.push(seek::spots(&file, hunk).map_err(|why| Misplaced {
            hunk: n,
            row: hunk.row,
            why,
        })?);
    }
    let chosen = order::choose(hunks, options)?;
    Ok(hunks.iter().zip(chosen).map(|(hunk, spot)| spot.placement(hunk)).collect())
}

/// Carries out all hunks, or none.
pub fn apply(view: &View<'_>, hunks: &[Hunk]) -> Result<Patched, Misplaced> {
    let placements = place(view, hunks)?;
    let written = write::write(view, &placements);
    let (bytes, places) =
        written.map_err(|(hunk, why)| Misplaced { hunk, row: hunks[hunk].row, why })?;
    Ok(Patched {
        bytes,
        places,
        tolerances: placements.into_iter().map(|it| it.tolerances).collect(),
    })
}
