//! Replaces quoted text in a file, even if the quote is slightly off.
//!
//! An edit has the quoted text (`old`) and its replacement (`new`). The quoted text is located with as little tolerance
//! as possible, and must match in one place only. Then the difference between `old` and `new` is applied to the actual
//! lines of the file, so that unchanged text keeps its bytes. Uncertain edits are refused.

mod cut_word;
mod exact;
mod find;
mod indent;
mod independent;
mod interpretation;
mod line_merge;
mod nearest;
mod new_text;
mod normalize;
mod placeholder;
mod repeated;
mod text_kind;
pub(crate) mod write;

#[cfg(test)]
mod tests;

use std::{borrow::Cow, fmt, ops::Range};

pub use self::independent::{IndependentError, apply_independent};
use self::interpretation::Interpretation;
pub use self::nearest::{FirstDifference, Mismatch, NearestMatch};
pub use self::new_text::{NewText, TextFault};
pub use self::text_kind::TextKind;
use crate::view::{Encoding, LineEnding, View};

/// Replaces `old` with `new`: the only occurrence, or every occurrence if `all` is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edit<'a> {
    pub old: &'a str,
    pub new: &'a str,
    pub all: bool,
    /// The kind of the file, for judging `new`.
    pub kind: TextKind,
}

/// How closely `old` must match the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatchPolicy {
    /// White space, typography, escapes and line numbers may differ where that is certain to be harmless.
    Tolerant,
    /// `old` must be a substring of the text, apart from line endings.
    Exact,
}

/// A kind of difference between the quoted text and the file that is tolerated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tolerance {
    /// White space at the end of a line.
    TrailingBlanks,
    Indentation,
    /// The amount of white space inside a line.
    InnerBlanks,
    /// Quotes, dashes and spaces: plain on one side and typographic on the other.
    Typography,
    /// Blank lines at the start or end of the quoted text.
    BoundaryLines,
    /// One level of escaping too many: `\"` for `"`.
    Escapes,
    /// Line numbers before the quoted lines.
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

/// A set of tolerances. The set is empty for an exact match.
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
    fn union(self, other: Tolerances) -> Tolerances {
        Tolerances(self.0 | other.0)
    }

    /// Returns a key that sorts by number of tolerances, then by the order in [`Tolerance::ALL`].
    fn rank(self) -> (u32, u8) {
        (self.0.count_ones(), self.0)
    }
}

impl fmt::Debug for Tolerances {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_set().entries(self.iter()).finish()
    }
}

/// The result of an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedEdit {
    /// The bytes of the whole file after the edit.
    pub bytes: Vec<u8>,
    pub change: EditChange,
}

/// What an edit changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditChange {
    /// Number of replaced occurrences.
    pub count: usize,
    /// The changed lines, in order. Adjacent ranges are joined.
    pub changed_lines: Vec<ChangedLines>,
    pub tolerances: Tolerances,
}

/// A range of changed lines, counted from 1. `before` is empty if lines were only added, `after` if lines were only
/// removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedLines {
    /// Line numbers in the file before the edit.
    pub before: Range<usize>,
    /// Line numbers in the file after the edit.
    pub after: Range<usize>,
}

/// Why an edit was not applied. Lines are counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditRefusal {
    /// The file is not text.
    Binary,
    /// `old` is empty or only white space.
    Blank,
    /// The file is empty, so nothing can be quoted from it.
    EmptyFile,
    /// `new` should not be written as it was sent.
    Faulty(TextFault),
    /// The edit was probably made before: the file contains `new`, and contains `old` only inside `new` or not at all.
    AlreadyApplied { line: usize },
    /// `old` ends or starts inside the word `word` of the file, and `new` has the rest of that word too.
    CutWord { line: usize, word: String },
    /// `old` and `new` are the same, apart from line endings.
    Same,
    /// `old` was not found. Contains the closest match, if any.
    NotFound(Option<Box<NearestMatch>>),
    /// `old` occurs `count` times. `lines` has the line numbers of the first occurrences.
    Ambiguous { lines: Vec<usize>, count: usize, tolerances: Tolerances },
    /// `new` changes only white space, and `old` does not match the file exactly.
    WhiteSpaceOnly { line: usize, tolerances: Tolerances },
    /// The indentation of a line of `new` cannot be converted to the indentation
    /// of the file.
    UnconvertibleIndentation { line: usize, text: String },
    /// `old` is indented differently from the file, but `new` is indented like the file. It is unclear whether the
    /// indentation of `new` is relative to `old` or literal.
    UnclearIndentation { line: usize },
    /// `old` starts inside or right after the indentation of a line, and it is unclear how to indent the later lines of
    /// `new`, or the edit would join two lines.
    PartialIndentation { line: usize },
    /// It is unclear how a character of `new` is spelled in the file: plain or typographic, as a tab or as spaces.
    AmbiguousCharacter { line: usize, character: char },
    /// `old` has one level of escaping too many, and it is unclear whether `new` has it too.
    Escapes { line: usize },
    /// Lines of `old` start with line numbers, but only some lines of `new` do.
    LineNumbers { line: usize },
    /// The file's encoding cannot represent a character of `new`.
    CannotEncode { line: usize, character: char, encoding: Encoding },
    /// `old` was found, and replacing it would change no byte.
    NoEffect { line: usize },
    /// The result, or the comparison that it needs, is too large.
    TooLarge,
}

/// Applies one edit to the bytes of a file.
pub fn apply(
    bytes: &[u8],
    edit: &Edit<'_>,
    policy: MatchPolicy,
) -> Result<AppliedEdit, EditRefusal> {
    let view = View::new(bytes).map_err(|_| EditRefusal::Binary)?;
    match apply_to(&view, edit, policy) {
        Err(refusal @ EditRefusal::NotFound(_)) => match View::with_carriage_returns(bytes) {
            Some(view) => apply_to(&view, edit, policy).map_err(|_| refusal),
            None => Err(refusal),
        },
        result => result,
    }
}

/// The result of several edits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedEdits {
    /// The bytes of the whole file after all edits.
    pub bytes: Vec<u8>,
    /// The change of each edit, in the order of the edits.
    pub changes: Vec<EditChange>,
}

/// The index of a refused edit in a list, and why the edit was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedEdit {
    /// The index of the edit, counted from 0.
    pub index: usize,
    pub refusal: EditRefusal,
}

/// Applies edits in sequence, each to the result of the previous edit. Applies all edits or none.
pub fn apply_all(
    bytes: &[u8],
    edits: &[Edit<'_>],
    policy: MatchPolicy,
) -> Result<AppliedEdits, RefusedEdit> {
    let mut edited: Option<Vec<u8>> = None;
    let mut changes = Vec::with_capacity(edits.len());
    for (index, edit) in edits.iter().enumerate() {
        let current = edited.as_deref().unwrap_or(bytes);
        let applied =
            apply(current, edit, policy).map_err(|refusal| RefusedEdit { index, refusal })?;
        edited = Some(applied.bytes);
        changes.push(applied.change);
    }
    Ok(AppliedEdits { bytes: edited.unwrap_or_else(|| bytes.to_vec()), changes })
}

/// Applies one edit to a decoded file.
pub fn apply_to(
    view: &View<'_>,
    edit: &Edit<'_>,
    policy: MatchPolicy,
) -> Result<AppliedEdit, EditRefusal> {
    let (old, new) = (normalize_endings(view, edit.old), normalize_endings(view, edit.new));
    if old == new {
        return Err(EditRefusal::Same);
    }
    if old.trim().is_empty() {
        return Err(EditRefusal::Blank);
    }
    if view.text().trim().is_empty() {
        return Err(EditRefusal::EmptyFile);
    }
    let normalized = Edit { old: &old, new: &new, ..*edit };
    if let Some(applied) = exact::apply(view, &normalized, policy)? {
        return Ok(applied);
    }
    if old.ends_with('\r') && new.ends_with('\r') {
        // Both texts end in the middle of a CRLF. All trailing carriage returns are stripped at once, which bounds the
        // recursion.
        let [old, new] = [&old, &new].map(|text| text.trim_end_matches('\r'));
        return apply_to(view, &Edit { old, new, ..*edit }, policy);
    }
    match policy {
        MatchPolicy::Tolerant => apply_tolerant(view, &normalized),
        MatchPolicy::Exact => Err(nearest::exact_refusal(view, &normalized)),
    }
}

/// Returns `text` with `\n` for every line ending, as in a [`View`].
fn normalize_endings<'a>(view: &View<'_>, text: &'a str) -> Cow<'a, str> {
    let text =
        if view.bom_len() > 0 { text.strip_prefix('\u{feff}').unwrap_or(text) } else { text };
    if !text.contains('\r') {
        return Cow::Borrowed(text);
    }
    let text = text.replace("\r\n", "\n");
    match view.dominant_ending() {
        LineEnding::Cr => Cow::Owned(text.replace('\r', "\n")),
        LineEnding::Lf | LineEnding::CrLf | LineEnding::None => Cow::Owned(text),
    }
}

/// Applies an edit whose `old` is not a substring of the file.
fn apply_tolerant(view: &View<'_>, edit: &Edit<'_>) -> Result<AppliedEdit, EditRefusal> {
    let keys = find::LineKeys::new(view);
    for kind in interpretation::InterpretationKind::ALL {
        let mut matches = Vec::new();
        for interpretation in interpretation::interpretations(kind, edit) {
            if interpretation.old.trim().is_empty() {
                return Err(EditRefusal::Blank);
            }
            if let Some(match_set) = find::best_matches(view, &keys, &interpretation)? {
                matches.push((interpretation, match_set));
            }
        }
        let Some(((interpretation, match_set), others)) = matches.split_first() else { continue };
        if others.iter().any(|(other, _)| {
            (&other.old, &other.new) != (&interpretation.old, &interpretation.new)
        }) {
            return Err(EditRefusal::Escapes { line: match_set.starts[0] + 1 });
        }
        // At `start`, all lines of `old` except one match exactly, including their indentation. The edit is probably
        // meant for these lines, of which one has changed since.
        if match_set.needed.contains(Tolerance::Indentation)
            && let Some(start) =
                find::find_with_one_changed_line(view, &interpretation.old, match_set)
        {
            return Err(nearest::changed_line_refusal(view, &keys, &interpretation.old, start));
        }
        return apply_match(view, &keys, interpretation, match_set, edit);
    }
    Err(nearest::not_found_refusal(view, edit, &keys))
}

/// Applies the difference between `old` and `new` to the lines of each match.
fn apply_match(
    view: &View<'_>,
    keys: &find::LineKeys<'_>,
    interpretation: &Interpretation<'_>,
    match_set: &find::MatchSet,
    edit: &Edit<'_>,
) -> Result<AppliedEdit, EditRefusal> {
    let tolerances = match_set.needed.union(interpretation.tolerances);
    let line = match_set.starts[0] + 1;
    if match_set.starts.len() > 1 && !edit.all {
        let lines = match_set.starts.iter().map(|start| start + 1).take(MAX_LISTED).collect();
        return Err(EditRefusal::Ambiguous { lines, count: match_set.starts.len(), tolerances });
    }
    let Some(new) = &interpretation.new else {
        let numbered = interpretation.tolerances.contains(Tolerance::LineNumbers);
        return Err(if numbered {
            EditRefusal::LineNumbers { line }
        } else {
            EditRefusal::Escapes { line }
        });
    };
    if differ_only_in_white_space(&interpretation.old, new) {
        return Err(EditRefusal::WhiteSpaceOnly { line, tolerances });
    }
    let text = NewText {
        old: &interpretation.old,
        new,
        file: view.text(),
        first_line: line,
        before: "",
        after: "",
        kind: edit.kind,
    };
    if let Some(fault) = text.fault() {
        return Err(EditRefusal::Faulty(fault));
    }
    let (old, new) = (find::split_lines(&interpretation.old), find::split_lines(new));
    let around = |start: &usize| repeated::find_around_lines(view, *start, &old, &new);
    if let Some(starts) = match_set.starts.iter().map(around).collect::<Option<Vec<usize>>>() {
        return Err(EditRefusal::AlreadyApplied { line: starts.first().map_or(line, |at| at + 1) });
    }
    let mut end = 0;
    let blocks = match_set.starts.iter().filter_map(|start| {
        let candidate = find::candidate_at(view, keys, &old, *start)
            .filter(|candidate| candidate.lines.start >= end)?;
        end = candidate.lines.end;
        Some(line_merge::merge(view, &old, &new, &candidate))
    });
    write::write(view, blocks, tolerances)
}

/// Returns the lines of a file that are closest to quoted lines.
pub(crate) fn nearest_lines(view: &View<'_>, quoted: &str) -> Option<Box<NearestMatch>> {
    let edit = Edit { old: quoted, new: "", all: false, kind: TextKind::Unknown };
    let EditRefusal::NotFound(nearest) = nearest::exact_refusal(view, &edit) else { return None };
    nearest
}

/// Maximum number of lines listed for an ambiguous match.
const MAX_LISTED: usize = 100;

fn differ_only_in_white_space(old: &str, new: &str) -> bool {
    let [old, new] =
        [old, new].map(|text| text.chars().filter(|character| !character.is_whitespace()));
    old.eq(new)
}
