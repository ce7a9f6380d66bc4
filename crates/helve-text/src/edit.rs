//! Replacing quoted text: the quotation may drift from the file, the file never pays for it.
//!
//! The intent of an edit is the line difference between `old` and `new`. It is found at the least tolerance that fits anywhere, must fit
//! in one place only, and is carried out on the file's own lines: what was not to change keeps its bytes. What is not certain is refused.

mod elision;
mod exact;
mod find;
mod fold;
mod indent;
mod independent;
mod nearest;
mod variant;
mod weave;
pub(crate) mod write;

#[cfg(test)]
mod tests;

use std::{borrow::Cow, fmt, ops::Range};

pub use self::elision::left_out;
pub use self::independent::{IndependentError, apply_independent};
pub use self::nearest::{Difference, Nearest, Verdict};
use self::variant::Variant;
use crate::view::{Encoding, Ending, View};

/// Replace `old` by `new`, in one place or in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edit<'a> {
    pub old: &'a str,
    pub new: &'a str,
    pub all: bool,
}

/// How closely `old` must be quoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Match {
    /// Blanks, typography, escapes and line numbers may differ where that is certain to be harmless.
    Safe,
    /// A piece of the text as it stands, line endings aside.
    Exact,
}

/// What a quotation got wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tolerance {
    TrailingBlanks,
    Indentation,
    InnerBlanks,
    Typography,
    /// Blank lines at the beginning or the end of the quotation.
    BoundaryLines,
    Escapes,
    LineNumbers,
}

impl Tolerance {
    pub const ALL: [Tolerance; 7] = [
        Tolerance::TrailingBlanks,
        Tolerance::Indentation,
        Tolerance::InnerBlanks,
        Tolerance::Typography,
        Tolerance::BoundaryLines,
        Tolerance::Escapes,
        Tolerance::LineNumbers,
    ];

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// A set of tolerances; an exact match has none.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Tolerances(u8);

impl Tolerances {
    pub const NONE: Tolerances = Tolerances(0);

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn contains(self, tolerance: Tolerance) -> bool {
        self.0 & tolerance.bit() != 0
    }

    pub fn iter(self) -> impl Iterator<Item = Tolerance> {
        Tolerance::ALL.into_iter().filter(move |tolerance| self.contains(*tolerance))
    }

    #[must_use]
    fn with(self, tolerance: Tolerance) -> Tolerances {
        Tolerances(self.0 | tolerance.bit())
    }

    #[must_use]
    fn and(self, other: Tolerances) -> Tolerances {
        Tolerances(self.0 | other.0)
    }

    /// Fewer tolerances come first, then those named first.
    fn rank(self) -> (u32, u8) {
        (self.0.count_ones(), self.0)
    }
}

impl fmt::Debug for Tolerances {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_set().entries(self.iter()).finish()
    }
}

/// A carried-out edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The whole file afterwards.
    pub bytes: Vec<u8>,
    pub change: Change,
}

/// What an edit did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// How often `old` was replaced.
    pub count: usize,
    /// The lines that changed, in order; neighbours are one place.
    pub places: Vec<Place>,
    pub tolerances: Tolerances,
}

/// Changed lines, counted from 1, the end left out; empty where lines were only added or only removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub before: Range<usize>,
    pub after: Range<usize>,
}

/// Why an edit was not carried out. Lines are counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The file is not text.
    Binary,
    /// `old` is empty, or nothing but blanks.
    Blank,
    /// A line of `new` says that code is left out, and would be written as it stands.
    LeftOut { text: String },
    /// `old` and `new` are the same, line endings aside.
    Same,
    /// `old` is nowhere; the place that comes nearest, if any does.
    NotFound(Option<Box<Nearest>>),
    /// `old` is in several places: the first lines of the first of them, and how many there are.
    Ambiguous { lines: Vec<usize>, count: usize, tolerances: Tolerances },
    /// `new` changes nothing but white space, and `old` is not exactly what the file has.
    WhiteSpaceOnly { line: usize, tolerances: Tolerances },
    /// A line of `new` has an indentation for which there is none in the file's terms.
    Indentation { line: usize, text: String },
    /// `old` is indented otherwise than the file, and `new` like the file: either could be meant.
    IndentationUnclear { line: usize },
    /// `old` begins after a line's indentation, and `new` goes on in lines that have less, or would pull the next line up.
    Margin { line: usize },
    /// `new` rewrites, in plain characters, a place where the file has typographic ones, or the reverse.
    Typography { line: usize, character: char },
    /// `old` is escaped once too often; what `new` means is not clear.
    Escapes { line: usize },
    /// `old` has line numbers; only part of `new` has.
    LineNumbers { line: usize },
    /// The file's encoding has no bytes for a character of `new`.
    CannotEncode { line: usize, character: char, encoding: Encoding },
    /// The file says what `new` says already.
    NoEffect { line: usize },
    /// The result, or what would have to be compared for it, is too large.
    TooLarge,
}

/// Carries out one edit on the bytes of a file.
pub fn apply(bytes: &[u8], edit: &Edit<'_>, how: Match) -> Result<Applied, Refusal> {
    let view = View::new(bytes).map_err(|_| Refusal::Binary)?;
    apply_to(&view, edit, how)
}

/// Several edits that were carried out, one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedAll {
    pub bytes: Vec<u8>,
    pub changes: Vec<Change>,
}

/// The edit of a sequence that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedAt {
    /// Counted from 0.
    pub index: usize,
    pub refusal: Refusal,
}

/// Carries out edits one after the other, each on what the one before left: all of them or none.
pub fn apply_all(bytes: &[u8], edits: &[Edit<'_>], how: Match) -> Result<AppliedAll, RefusedAt> {
    let mut done = AppliedAll { bytes: bytes.to_vec(), changes: Vec::with_capacity(edits.len()) };
    for (index, edit) in edits.iter().enumerate() {
        let applied =
            apply(&done.bytes, edit, how).map_err(|refusal| RefusedAt { index, refusal })?;
        done.bytes = applied.bytes;
        done.changes.push(applied.change);
    }
    Ok(done)
}

/// Carries out one edit on a file that is already seen as text.
pub fn apply_to(view: &View<'_>, edit: &Edit<'_>, how: Match) -> Result<Applied, Refusal> {
    let (old, new) = (in_terms_of(view, edit.old), in_terms_of(view, edit.new));
    if old == new {
        return Err(Refusal::Same);
    }
    if old.trim().is_empty() {
        return Err(Refusal::Blank);
    }
    if let Some(text) = left_out(old.lines(), new.lines()) {
        return Err(Refusal::LeftOut { text: text.to_owned() });
    }
    let quoted = Edit { old: &old, new: &new, all: edit.all };
    if let Some(applied) = exact::apply(view, &quoted, how)? {
        return Ok(applied);
    }
    if old.ends_with('\r') && new.ends_with('\r') {
        // Half of a line ending that was cut off. All of them at once, or a long row of them would be a deep one.
        let [old, new] = [&old, &new].map(|text| text.trim_end_matches('\r'));
        return apply_to(view, &Edit { old, new, all: edit.all }, how);
    }
    match how {
        Match::Safe => tolerant(view, &quoted),
        Match::Exact => Err(nearest::not_found(view, &quoted)),
    }
}

/// A text with `\n` for every ending, the way a view has it.
fn in_terms_of<'a>(view: &View<'_>, text: &'a str) -> Cow<'a, str> {
    let text = if view.mark() > 0 { text.strip_prefix('\u{feff}').unwrap_or(text) } else { text };
    if !text.contains('\r') {
        return Cow::Borrowed(text);
    }
    let text = text.replace("\r\n", "\n");
    match view.usual_ending() {
        Ending::Cr => Cow::Owned(text.replace('\r', "\n")),
        Ending::Lf | Ending::CrLf | Ending::None => Cow::Owned(text),
    }
}

fn tolerant(view: &View<'_>, edit: &Edit<'_>) -> Result<Applied, Refusal> {
    let keys = find::Keys::of(view);
    for reading in variant::Reading::ALL {
        let mut hits = Vec::new();
        for variant in variant::variants(reading, edit) {
            if variant.old.trim().is_empty() {
                return Err(Refusal::Blank);
            }
            if let Some(found) = find::least(view, &keys, &variant)? {
                hits.push((variant, found));
            }
        }
        let Some(((variant, found), others)) = hits.split_first() else { continue };
        if others.iter().any(|(other, _)| (&other.old, &other.new) != (&variant.old, &variant.new))
        {
            return Err(Refusal::Escapes { line: found.starts[0] + 1 });
        }
        if found.need.contains(Tolerance::Indentation)
            && let Some(start) = find::all_but_one(view, &variant.old, found)
        {
            return Err(nearest::stale(view, &keys, &variant.old, start));
        }
        return carry_out(view, &keys, variant, found, edit.all);
    }
    Err(nearest::not_found_with(view, edit, &keys))
}

fn carry_out(
    view: &View<'_>,
    keys: &find::Keys,
    variant: &Variant<'_>,
    found: &find::Found,
    all: bool,
) -> Result<Applied, Refusal> {
    let tolerances = found.need.and(variant.tolerances);
    let line = found.starts[0] + 1;
    if found.starts.len() > 1 && !all {
        let lines = found.starts.iter().map(|start| start + 1).take(LISTED).collect();
        return Err(Refusal::Ambiguous { lines, count: found.starts.len(), tolerances });
    }
    let Some(new) = &variant.new else {
        let numbered = variant.tolerances.contains(Tolerance::LineNumbers);
        return Err(if numbered {
            Refusal::LineNumbers { line }
        } else {
            Refusal::Escapes { line }
        });
    };
    if is_same_but_white_space(&variant.old, new) {
        return Err(Refusal::WhiteSpaceOnly { line, tolerances });
    }
    let (old, new) = (find::lines(&variant.old), find::lines(new));
    let mut end = 0;
    let blocks = found.starts.iter().filter_map(|start| {
        let candidate = find::candidate(view, keys, &old, *start)
            .filter(|candidate| candidate.lines.start >= end)?;
        end = candidate.lines.end;
        Some(weave::block(view, &old, &new, &candidate))
    });
    write::write(view, blocks, tolerances)
}

/// Lines listed of an ambiguous match, at most.
const LISTED: usize = 100;

fn is_same_but_white_space(old: &str, new: &str) -> bool {
    let [old, new] =
        [old, new].map(|text| text.chars().filter(|character| !character.is_whitespace()));
    old.eq(new)
}
