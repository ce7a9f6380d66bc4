//! Maps the indentation of the quoted text to the indentation of the file.

use std::collections::HashMap;

/// How the indentation of the quoted text maps to the indentation of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IndentMapping {
    rule: IndentRule,
    /// The file's indentation for each quoted indentation. `None` if the file has several indentations for it.
    file_indents: HashMap<String, Option<String>>,
    /// The file's indentation of the first line, if that line was quoted without its indentation.
    first_line: Option<String>,
    /// Set if all quoted lines have the same depth. It is then unclear whether the quoted text is shifted or has
    /// another indentation width.
    ambiguous_depth: Option<AmbiguousDepth>,
}

/// The only depth of the quoted lines, in spaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct AmbiguousDepth {
    quoted: usize,
    /// The depth in the file.
    actual: usize,
    /// The number of spaces per level in the file.
    step: usize,
}

impl AmbiguousDepth {
    fn new(pairs: &[IndentPair<'_>], step: Option<usize>) -> Option<AmbiguousDepth> {
        let (quoted, actual) = *pairs.first()?;
        let is_plain = |lead: &str| lead.bytes().all(|byte| byte == b' ');
        let is_single = pairs.iter().all(|pair| *pair == pairs[0]);
        (is_single && quoted != actual && is_plain(quoted) && is_plain(actual))
            .then_some(AmbiguousDepth { quoted: quoted.len(), actual: actual.len(), step: step? })
    }

    /// Whether a new line at this depth suggests that the quoted text has another indentation width than the file. If
    /// the file has 4 spaces per level and the new line is nested by 2, the quoted text probably has 2 per level.
    fn is_rescaled(&self, lead: &str) -> bool {
        let nested = lead.len().abs_diff(self.quoted);
        nested > 0
            && (nested < self.step && self.step.is_multiple_of(nested)
                || nested != self.step && nested * self.actual == self.quoted * self.step)
    }
}

/// How to compute the file's indentation from a quoted indentation.
#[derive(Debug, Clone, PartialEq, Eq)]
enum IndentRule {
    Same,
    /// The file has this prefix before the quoted indentation.
    Add(String),
    /// The quoted text has this prefix before the file's indentation.
    Remove(String),
    /// Tabs on one side correspond to spaces on the other at a tab width of `width`. The file is indented `shift`
    /// columns more than the quoted text, with tabs if `uses_tabs`, otherwise with spaces. If `has_odd_columns`, the
    /// file also has lines that start between tab stops.
    Columns {
        width: usize,
        shift: isize,
        uses_tabs: bool,
        has_odd_columns: bool,
    },
    /// All quoted lines have the same indentation, so nothing is known about other depths.
    OneKnownDepth,
}

/// Error: the mapping has no counterpart for an indentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unmapped;

/// The indentation of a non-blank line, first as quoted, then in the file.
type IndentPair<'a> = (&'a str, &'a str);

/// Infers the mapping that explains all pairs. `indent_step` returns the number of spaces per level in the file.
pub(super) fn infer(
    pairs: &[IndentPair<'_>],
    indent_step: impl Fn() -> Option<usize>,
) -> Option<IndentMapping> {
    let is_indent_step = |width: usize| indent_step().is_none_or(|step| step == width);
    if let Some(mut rule) = infer_rule(pairs) {
        // A single depth fits any tab width at some shift, so the width is a guess. One tab is one level at any width.
        if let IndentRule::Columns { width, uses_tabs, .. } = rule
            && pairs.iter().all(|pair| *pair == pairs[0])
            && if uses_tabs { width == 2 && pairs[0].1.len() > 1 } else { !is_indent_step(width) }
        {
            rule = IndentRule::OneKnownDepth;
        }
        let ambiguous_depth = match rule {
            IndentRule::Add(_) | IndentRule::Remove(_) => AmbiguousDepth::new(pairs, indent_step()),
            IndentRule::Same | IndentRule::Columns { .. } | IndentRule::OneKnownDepth => None,
        };
        return Some(IndentMapping {
            rule,
            file_indents: file_indents_by_quoted(pairs),
            first_line: None,
            ambiguous_depth,
        });
    }
    match pairs {
        [("", actual), rest @ ..] if !rest.is_empty() => {
            let rule = infer_rule(rest).filter(|rule| *rule == IndentRule::Same)?;
            Some(IndentMapping {
                rule,
                file_indents: file_indents_by_quoted(rest),
                first_line: Some((*actual).to_owned()),
                ambiguous_depth: None,
            })
        }
        _ => None,
    }
}

impl IndentMapping {
    /// Whether the quoted text has the same indentation as the file.
    pub(super) fn is_identity(&self) -> bool {
        self.rule == IndentRule::Same && self.first_line.is_none()
    }

    /// Whether the quoted text is at another depth than the lines of the file.
    pub(super) fn is_shifted(&self) -> bool {
        match self.rule {
            IndentRule::Same | IndentRule::Columns { shift: 0, .. } => false,
            IndentRule::Add(_)
            | IndentRule::Remove(_)
            | IndentRule::Columns { .. }
            | IndentRule::OneKnownDepth => true,
        }
    }

    /// Returns the prefix that the file has and the quoted text lacks.
    pub(super) fn added_prefix(&self) -> Option<&str> {
        match &self.rule {
            IndentRule::Add(prefix) => Some(prefix),
            IndentRule::Same
            | IndentRule::Remove(_)
            | IndentRule::Columns { .. }
            | IndentRule::OneKnownDepth => None,
        }
    }

    /// Returns the file's indentation for the first line of the new text.
    pub(super) fn map_first(&self, lead: &str) -> Result<String, Unmapped> {
        match &self.first_line {
            Some(actual) if lead.is_empty() => Ok(actual.clone()),
            Some(_) | None => self.map(lead),
        }
    }

    /// Returns the file's indentation for a line of the new text.
    pub(super) fn map(&self, lead: &str) -> Result<String, Unmapped> {
        // If the first line was quoted without its indentation, other lines may lack some indentation too.
        if self.first_line.as_ref().is_some_and(|actual| {
            !lead.starts_with(actual.as_str()) && !self.file_indents.contains_key(lead)
        }) {
            return Err(Unmapped);
        }
        if self.rule == IndentRule::Same {
            return Ok(lead.to_owned());
        }
        match self.file_indents.get(lead) {
            Some(Some(actual)) => return Ok(actual.clone()),
            Some(None) => return Err(Unmapped),
            None => {}
        }
        if self.ambiguous_depth.is_some_and(|depth| depth.is_rescaled(lead)) {
            return Err(Unmapped);
        }
        match &self.rule {
            IndentRule::Same => Ok(lead.to_owned()),
            IndentRule::Add(prefix) if self.mixes_tabs_and_spaces(prefix, lead) => Err(Unmapped),
            IndentRule::Add(prefix) => Ok(format!("{prefix}{lead}")),
            IndentRule::Remove(prefix) => {
                lead.strip_prefix(prefix.as_str()).map(str::to_owned).ok_or(Unmapped)
            }
            IndentRule::Columns { width, shift, uses_tabs, has_odd_columns } => {
                let columns = columns(lead, *width)
                    .and_then(|columns| columns.checked_add_signed(*shift))
                    .ok_or(Unmapped)?;
                match (uses_tabs, columns % width) {
                    (true, 0) => Ok("\t".repeat(columns / width)),
                    (true, rest) if *has_odd_columns => {
                        Ok("\t".repeat(columns / width) + &" ".repeat(rest))
                    }
                    (true, _) => Err(Unmapped),
                    (false, _) => Ok(" ".repeat(columns)),
                }
            }
            IndentRule::OneKnownDepth => Err(Unmapped),
        }
    }

    /// Whether an indentation would mix tabs and spaces although no quoted line mixes them, so that its depth is
    /// unknown.
    fn mixes_tabs_and_spaces(&self, prefix: &str, lead: &str) -> bool {
        let is_quoted = |blank: char| self.file_indents.keys().any(|lead| lead.contains(blank));
        let mixed = |one: char, other: char| {
            prefix.contains(one)
                && lead.contains(other)
                && !prefix.contains(other)
                && !is_quoted(other)
        };
        mixed('\t', ' ') || mixed(' ', '\t')
    }
}

/// Returns the file's indentation for each quoted indentation, or `None` if the file's indentation varies.
fn file_indents_by_quoted(pairs: &[IndentPair<'_>]) -> HashMap<String, Option<String>> {
    let mut file_indents: HashMap<String, Option<String>> = HashMap::new();
    for (quoted, actual) in pairs {
        let indent =
            file_indents.entry((*quoted).to_owned()).or_insert_with(|| Some((*actual).to_owned()));
        if indent.as_deref() != Some(actual) {
            *indent = None;
        }
    }
    file_indents
}

/// Returns the simplest rule that explains all pairs.
fn infer_rule(pairs: &[IndentPair<'_>]) -> Option<IndentRule> {
    if pairs.iter().all(|(quoted, actual)| quoted == actual) {
        return Some(IndentRule::Same);
    }
    let (quoted, actual) = pairs.first()?;
    if let Some(prefix) = actual.strip_suffix(quoted)
        && pairs.iter().all(|(quoted, actual)| actual.strip_prefix(prefix) == Some(quoted))
    {
        return Some(IndentRule::Add(prefix.to_owned()));
    }
    if let Some(prefix) = quoted.strip_suffix(actual)
        && pairs.iter().all(|(quoted, actual)| quoted.strip_prefix(prefix) == Some(actual))
    {
        return Some(IndentRule::Remove(prefix.to_owned()));
    }
    columns_rule(pairs).or_else(|| {
        let one_depth = pairs.iter().all(|pair| pair == &pairs[0]);
        one_depth.then_some(IndentRule::OneKnownDepth)
    })
}

/// Tab widths to try, most common first.
const TAB_WIDTHS: [usize; 4] = [4, 2, 8, 3];

/// Infers a mapping between tabs on one side and spaces on the other.
fn columns_rule(pairs: &[IndentPair<'_>]) -> Option<IndentRule> {
    if !pairs.iter().any(|(quoted, actual)| quoted.contains('\t') != actual.contains('\t')) {
        return None;
    }
    let uses_tabs = pairs.iter().any(|(_, actual)| actual.contains('\t'));
    let mut candidates =
        TAB_WIDTHS.into_iter().filter_map(|width| Some((width, common_shift(pairs, width)?)));
    let unshifted = candidates.clone().find(|(_, shift)| *shift == 0);
    let (width, shift) = unshifted
        .or_else(|| candidates.find(|(width, shift)| is_conclusive(pairs, *width, *shift)))?;
    let has_odd_columns = pairs
        .iter()
        .any(|(_, actual)| columns(actual, width).is_some_and(|columns| columns % width != 0));
    Some(IndentRule::Columns { width, shift, uses_tabs, has_odd_columns })
}

/// Returns the number of columns by which the file is indented more, if it is the same for all pairs.
fn common_shift(pairs: &[IndentPair<'_>], width: usize) -> Option<isize> {
    let shift = |(quoted, actual): &IndentPair<'_>| {
        Some(columns(actual, width)?.cast_signed() - columns(quoted, width)?.cast_signed())
    };
    let first_shift = shift(pairs.first()?)?;
    pairs.iter().all(|pair| shift(pair) == Some(first_shift)).then_some(first_shift)
}

/// Whether a tab width and shift are certain. Two depths always fit some width and shift, so there must be three
/// depths, or two of which one is column 0. The shift must be a whole number of levels.
fn is_conclusive(pairs: &[IndentPair<'_>], width: usize, shift: isize) -> bool {
    let mut depths: Vec<&str> = pairs.iter().map(|(quoted, _)| *quoted).collect();
    depths.sort_unstable();
    depths.dedup();
    shift % width.cast_signed() == 0
        && (depths.len() > 2 || depths.len() == 2 && depths[0].is_empty())
}

/// Returns the width of an indentation, or `None` if it has a tab after spaces, which has no fixed width.
fn columns(lead: &str, width: usize) -> Option<usize> {
    let tabs = lead.bytes().take_while(|byte| *byte == b'\t').count();
    lead[tabs..].bytes().all(|byte| byte == b' ').then_some(tabs * width + lead.len() - tabs)
}
