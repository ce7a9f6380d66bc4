//! Diagnoses quoted text that was not found: the closest match, and how it differs.

mod applied;
pub(super) mod entities;
mod equivalence;
mod mismatch;
mod normal_form;

use std::collections::HashMap;

use super::{
    Edit, EditRefusal, Tolerance,
    find::{self, LineKeys},
    interpretation::{self, InterpretationKind},
    normalize::{self, LineHasher},
};
use crate::view::View;

/// The lines of a file that are closest to the quoted text. Lines are counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NearestMatch {
    pub first_line: usize,
    pub last_line: usize,
    /// The first few of these lines. Long lines are clipped. The line with the first difference is clipped around it.
    pub excerpt: Vec<String>,
    pub difference: Option<FirstDifference>,
    pub mismatch: Mismatch,
}

/// The first difference between the quoted text and the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstDifference {
    /// Line of the file, from 1.
    pub line: usize,
    /// Line of the quoted text, from 1.
    pub quoted_line: usize,
    /// Character in the file's line, from 1.
    pub column: usize,
    /// The character of the quoted line; `None` at its end.
    pub quoted: Option<char>,
    /// The character of the file's line; `None` at its end.
    pub found: Option<char>,
}

/// How the quoted text differs from the closest match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mismatch {
    /// White space at the ends of lines.
    TrailingBlanks,
    /// The lines are not all shifted by the same indentation.
    Indentation,
    /// One side is indented with tabs, the other with spaces.
    TabsAgainstSpaces,
    /// Only white space within lines differs.
    Spacing,
    /// Blank lines at the start or end.
    BlankLines,
    LineEndings,
    /// Quotes, dashes or spaces are plain on one side and typographic on the other.
    Typographic,
    /// The quoted text has one level of escaping too many.
    Escapes,
    /// The quoted lines start with line numbers.
    LineNumbers,
    /// Only upper and lower case differ.
    CaseOnly,
    /// A letter belongs to another script and looks the same.
    LookAlike,
    /// An accented letter is composed on one side and decomposed on the other.
    NormalForm,
    /// A number or string has another value.
    StaleValue,
    /// Some lines differ, at most half of them.
    Changed,
    /// The same lines in another order.
    Reordered,
    /// The file has lines in between that are not quoted.
    OmittedLines,
    /// Some quoted lines are not in the file.
    ExtraLines,
    /// The quoted text has a placeholder for omitted lines.
    Placeholder,
    /// The quoted text has HTML entities in place of characters.
    Entities,
    /// Less than half of the text is the same.
    Different,
}

/// Builds the refusal of an edit whose lines, which start at `start`, have probably changed since they were read.
pub(super) fn changed_line_refusal(
    view: &View<'_>,
    keys: &LineKeys<'_>,
    old: &str,
    start: usize,
) -> EditRefusal {
    let quoted = find::split_lines(old);
    EditRefusal::NotFound(Some(Box::new(mismatch::diagnose(view, keys, &quoted, start))))
}

/// Builds the refusal of an edit in exact mode. The closest match is the match that tolerant mode would have found.
pub(super) fn exact_refusal(view: &View<'_>, edit: &Edit<'_>) -> EditRefusal {
    let keys = LineKeys::new(view);
    for kind in InterpretationKind::ALL {
        for interpretation in interpretation::interpretations(kind, edit) {
            let Ok(Some(match_set)) = find::best_matches(view, &keys, &interpretation) else {
                continue;
            };
            let needed = match_set.needed.union(interpretation.tolerances);
            let quoted = find::split_lines(edit.old);
            let start = match_set.starts[0];
            let candidate =
                find::candidate_at(view, &keys, &find::split_lines(&interpretation.old), start);
            let lines = candidate.map_or(start..start + 1, |candidate| candidate.lines);
            let mismatch = match needed.iter().last() {
                Some(Tolerance::TrailingBlanks) => Mismatch::TrailingBlanks,
                Some(Tolerance::Indentation) => {
                    mismatch::indentation_mismatch(view, &quoted, lines.start)
                }
                Some(Tolerance::InnerBlanks) => Mismatch::Spacing,
                Some(Tolerance::Typography) => Mismatch::Typographic,
                Some(Tolerance::BoundaryLines) | None => Mismatch::BlankLines,
                Some(Tolerance::Escapes) => Mismatch::Escapes,
                Some(Tolerance::LineNumbers) => Mismatch::LineNumbers,
            };
            return EditRefusal::NotFound(Some(Box::new(mismatch::with_mismatch(
                view, &quoted, lines, mismatch,
            ))));
        }
    }
    not_found_refusal(view, edit, &keys)
}

/// Builds the refusal of an edit whose quoted text is not in the file.
pub(super) fn not_found_refusal(
    view: &View<'_>,
    edit: &Edit<'_>,
    keys: &LineKeys<'_>,
) -> EditRefusal {
    let all = find::split_lines(edit.old);
    let (head, tail) = find::blank_margins(&all);
    let quoted = &all[head..all.len() - tail];
    if let Some(start) = applied::find(view, keys, edit) {
        return EditRefusal::AlreadyApplied { line: start + 1 };
    }
    if let Some(lines) = entities::find(view, edit.old) {
        let nearest = mismatch::with_mismatch(view, quoted, lines, Mismatch::Entities);
        return EditRefusal::NotFound(Some(Box::new(nearest)));
    }
    if let Some(lines) = normal_form::find(view, edit.old) {
        // Lines that are quoted only in part cannot be compared from their start.
        let is_whole = normal_form::is_same(quoted[0], view.line(lines.start));
        let mut nearest = mismatch::with_mismatch(view, quoted, lines, Mismatch::NormalForm);
        nearest.difference = nearest.difference.filter(|_| is_whole);
        return EditRefusal::NotFound(Some(Box::new(nearest)));
    }
    // All lines are there, but their indentation is inconsistent.
    if let Some(start) = find::match_starts(keys, quoted).first().copied() {
        let mismatch = mismatch::indentation_mismatch(view, quoted, start);
        return EditRefusal::NotFound(Some(Box::new(mismatch::with_mismatch(
            view,
            quoted,
            start..start + quoted.len(),
            mismatch,
        ))));
    }
    let start = most_similar_window(view, quoted)
        .or_else(|| range_between_anchors(keys, quoted))
        .or_else(|| range_around_equal_line(keys, quoted));
    EditRefusal::NotFound(
        start.map(|start| Box::new(mismatch::diagnose(view, keys, quoted, start))),
    )
}

/// Returns the start of the first range that begins with the first quoted line, ends with the last quoted line, and has
/// about the length of the quoted text.
fn range_between_anchors(keys: &LineKeys<'_>, quoted: &[&str]) -> Option<usize> {
    let ([first, .., last], true) = (quoted, quoted.len() > 2) else { return None };
    let (first, last) = (normalize::line_key(first), normalize::line_key(last));
    let slack = (quoted.len() / 4).max(1);
    let is_last =
        |start: usize, length: usize| keys.hashes().get(start + length - 1) == Some(&last);
    let starts = keys
        .hashes()
        .iter()
        .enumerate()
        .filter(|(_, key)| **key == first)
        .map(|(start, _)| start)
        .take(MAX_ANCHORS);
    let mut matches = starts.filter(|start| {
        (quoted.len() - slack..=quoted.len() + slack).any(|length| is_last(*start, length))
    });
    matches.next()
}

/// Returns the start of a range that has one of the quoted lines. Only a line with words that occurs once counts.
fn range_around_equal_line(keys: &LineKeys<'_>, quoted: &[&str]) -> Option<usize> {
    let letters = |line: &str| line.chars().filter(|character| character.is_alphanumeric()).count();
    let mut lines = quoted.iter().take(MAX_QUOTED_LINES).enumerate();
    lines.find_map(|(at, line)| {
        let key = Some(normalize::line_key(line)).filter(|_| letters(line) >= MIN_LETTERS)?;
        let mut found = keys.hashes().iter().enumerate().filter(|(_, other)| **other == key);
        let (index, _) = found.next()?;
        found.next().is_none().then(|| index.saturating_sub(at))
    })
}

/// Minimum number of letters and digits in a line that alone shows where the quoted text was.
const MIN_LETTERS: usize = 3;

/// How many lines that match the first quoted line are tried.
const MAX_ANCHORS: usize = 1_000;

/// Maximum number of quoted lines that are used to find the closest match.
const MAX_QUOTED_LINES: usize = 400;
/// Maximum number of quoted bytes that are used to find the closest match.
const MAX_QUOTED_BYTES: usize = 64 * 1024;
/// Minimum share of the quoted words, by weight, that the closest match must contain.
const MIN_SHARED: f64 = 0.3;

/// Returns the start of the window that shares the most words with the quoted text. Rare words weigh more.
fn most_similar_window(view: &View<'_>, quoted: &[&str]) -> Option<usize> {
    let mut words: HashMap<u64, usize> = HashMap::new();
    let mut bytes = 0;
    for line in quoted.iter().take(MAX_QUOTED_LINES) {
        bytes += line.len();
        if bytes > MAX_QUOTED_BYTES && !words.is_empty() {
            break;
        }
        each_word(&line[..line.floor_char_boundary(MAX_QUOTED_BYTES)], |word| {
            let next = words.len();
            words.entry(word).or_insert(next);
        });
    }
    let mut counts = vec![0usize; words.len()];
    let mut hits: Vec<(usize, usize)> = Vec::new();
    for index in 0..view.line_count() {
        let from = hits.len();
        each_word(view.line(index), |word| {
            if let Some(&word) = words.get(&word)
                && !hits[from..].iter().rev().take(64).any(|(_, earlier)| *earlier == word)
            {
                hits.push((index, word));
                counts[word] += 1;
            }
        });
    }
    let weight = |word: usize| 1.0 / (counts[word] as f64 + 1.0).sqrt();
    let total: f64 = (0..words.len()).map(weight).sum();
    best_window(&hits, quoted.len(), view.line_count(), weight, total * MIN_SHARED)
}

/// Returns the start of the window of `length` lines whose distinct words weigh most, if they weigh at least
/// `min_weight`. `hits` are pairs of a line and a word in it, sorted by line.
fn best_window(
    hits: &[(usize, usize)],
    length: usize,
    lines: usize,
    weight: impl Fn(usize) -> f64,
    min_weight: f64,
) -> Option<usize> {
    let mut counts: HashMap<usize, usize> = HashMap::new();
    let (mut sum, mut first) = (0.0, 0);
    let mut best: Option<(f64, usize)> = None;
    for (at, (line, word)) in hits.iter().enumerate() {
        let count = counts.entry(*word).or_insert(0);
        *count += 1;
        if *count == 1 {
            sum += weight(*word);
        }
        while hits[first].0 + length <= *line {
            let removed = hits[first].1;
            if let Some(count) = counts.get_mut(&removed) {
                *count -= 1;
                if *count == 0 {
                    sum -= weight(removed);
                }
            }
            first += 1;
        }
        let is_last_of_line = hits.get(at + 1).is_none_or(|(next, _)| next != line);
        if is_last_of_line && best.is_none_or(|(max, _)| sum > max + 1e-9) {
            best = Some((sum, (line + 1).saturating_sub(length)));
        }
    }
    let (sum, start) = best?;
    (sum >= min_weight).then(|| start.min(lines.saturating_sub(1)))
}

/// Calls `visit` with a hash of every word in lower case. In scripts that do not separate words, every character counts
/// as a word. Punctuation characters other than quotes and dashes count as words too.
fn each_word(line: &str, mut visit: impl FnMut(u64)) {
    let mut word: Option<LineHasher> = None;
    for character in line.chars() {
        if is_word_by_itself(character) {
            word.take().into_iter().for_each(|hash| visit(hash.finish()));
            visit(u64::from(character));
        } else if character.is_alphanumeric() || character == '_' {
            let hash = word.get_or_insert_with(LineHasher::new);
            if character.is_ascii() {
                hash.add(u64::from(character.to_ascii_lowercase()));
            } else {
                character.to_lowercase().for_each(|lower| hash.add(u64::from(lower)));
            }
        } else {
            word.take().into_iter().for_each(|hash| visit(hash.finish()));
            if !normalize::is_blank(character) && normalize::glyph_kind(character).is_none() {
                visit(u64::from(character));
            }
        }
    }
    word.into_iter().for_each(|hash| visit(hash.finish()));
}

/// Whether a character belongs to a script without spaces between words: Chinese, Japanese, Thai and others.
fn is_word_by_itself(character: char) -> bool {
    matches!(character,
        '\u{0E00}'..='\u{0EFF}'     // Thai, Lao
        | '\u{1000}'..='\u{109F}'   // Burmese
        | '\u{1780}'..='\u{17FF}'   // Khmer
        | '\u{2E80}'..='\u{2FDF}'   // radicals
        | '\u{3040}'..='\u{30FF}'   // Hiragana, Katakana
        | '\u{3400}'..='\u{4DBF}'   // Chinese characters
        | '\u{4E00}'..='\u{9FFF}'
        | '\u{AC00}'..='\u{D7AF}'   // Hangul, which has spaces but joins particles to words
        | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{3FFFF}')
}
