//! Merges changed lines token by token. The file's spelling is kept wherever `old` and `new` agree.

use std::collections::HashMap;

use super::bodies;
use crate::{
    diff,
    edit::normalize::{self, GlyphKind, LineParts},
};

/// How typographic characters of the quoted text correspond to characters of the file.
#[derive(Debug, Default)]
pub(super) struct Spelling {
    /// The file's character for each typographic character of the quoted text. `None` if the file's character
    /// varies.
    actual: HashMap<char, Option<char>>,
    /// Kinds of characters, such as dashes, that are plain in both the quoted text and the file.
    plain: Vec<GlyphKind>,
    /// Whether the file has tabs wherever the quoted text has spaces between words, as in aligned columns.
    has_columns: bool,
}

impl Spelling {
    /// Compares the quoted lines with the lines of the file.
    pub(super) fn learn(old: &[LineParts<'_>], actual: &[LineParts<'_>]) -> Spelling {
        let mut spelling =
            Spelling { has_columns: has_columns(old, actual), ..Spelling::default() };
        for (old, actual) in old.iter().zip(actual) {
            if old.body.is_ascii() && actual.body.is_ascii() && spelling.plain.len() == 4 {
                continue;
            }
            for (quoted, actual) in
                normalize::tokens(old.body).iter().zip(normalize::tokens(actual.body))
            {
                for (quoted, actual) in quoted.chars().zip(actual.chars()) {
                    spelling.observe(quoted, actual);
                }
            }
        }
        spelling
    }

    fn observe(&mut self, quoted: char, actual: char) {
        if normalize::typographic_kind(quoted).is_some() {
            let file_char = self.actual.entry(quoted).or_insert(Some(actual));
            if *file_char != Some(actual) {
                *file_char = None;
            }
        } else if quoted == actual
            && let Some(kind) = normalize::glyph_kind(actual)
            && !self.plain.contains(&kind)
        {
            self.plain.push(kind);
        }
    }

    /// Whether the quoted text has typographic characters where the file does not.
    fn has_extra_typography(&self) -> bool {
        self.actual.iter().any(|(quoted, actual)| *actual != Some(*quoted))
    }

    /// Returns new text in the file's spelling. The error is a character whose spelling is unknown.
    fn spell(&self, piece: &str) -> Result<String, char> {
        if !self.has_extra_typography() {
            return Ok(piece.to_owned());
        }
        piece.chars().map(|character| self.spell_one(character)).collect()
    }

    fn spell_one(&self, character: char) -> Result<char, char> {
        let Some(kind) = normalize::typographic_kind(character) else { return Ok(character) };
        match self.actual.get(&character) {
            Some(file_char) => file_char.ok_or(character),
            None if self.actual.iter().any(|(quoted, actual)| {
                normalize::typographic_kind(*quoted) == Some(kind)
                    && *actual == Some(normalize::plain_char(kind))
            }) =>
            {
                Ok(normalize::plain_char(kind))
            }
            None if self.plain.contains(&kind) => Ok(character),
            None => Err(character),
        }
    }
}

/// Returns the new lines in the file's spelling. The error is a character whose spelling is unclear.
pub(super) fn merge(
    old: &[&str],
    actual: &[&str],
    new: &[&str],
    spelling: &Spelling,
) -> Result<Vec<String>, char> {
    if old == actual && !spelling.has_extra_typography() && !spelling.has_columns {
        return Ok(new.iter().map(|line| (*line).to_owned()).collect());
    }
    if new.is_empty() {
        return Ok(Vec::new());
    }
    let [old, actual, new] = [old, actual, new].map(spaced_words);
    if old.len() != actual.len() {
        return Err(char::REPLACEMENT_CHARACTER);
    }
    let sides = MergeSides { old: &old, actual: &actual, new: &new, spelling };
    let merged = sides.merge(&align(&old, &new))?;
    if old.iter().zip(&actual).any(|(old, actual)| old.is_respelled(actual))
        && merged != sides.merge(&align_backwards(&old, &new))?
    {
        // Equal words can be aligned in more than one way, so the spelling of each word is unclear.
        return Err(first_typographic(&actual));
    }
    Ok(merged.split('\n').map(str::to_owned).collect())
}

fn has_columns(old: &[LineParts<'_>], actual: &[LineParts<'_>]) -> bool {
    if !actual.iter().any(|line| line.body.contains('\t')) {
        return false;
    }
    let [old, actual] = [old, actual].map(|lines| spaced_words(&bodies(lines)));
    let mut gaps = old.iter().zip(&actual).filter(|(old, _)| !old.gap.is_empty()).peekable();
    old.len() == actual.len()
        && gaps.peek().is_some()
        && gaps.all(|(old, actual)| actual.gap.contains('\t') && !old.gap.contains('\t'))
}

/// Returns a typographic character of the file's line if the quoted line has other typographic characters or none.
pub(super) fn lost_typography(old: &str, actual: &str) -> Option<char> {
    if typography_differs(old, actual) { typographic_char(actual) } else { None }
}

/// Whether a line has a character, plain or typographic, of the same kind as a given typographic character.
pub(super) fn has_kind_of(line: &str, character: char) -> bool {
    normalize::typographic_kind(character).is_some_and(|wanted| {
        line.chars().filter_map(normalize::glyph_kind).any(|kind| kind.is_like(wanted))
    })
}

/// A token and the blanks before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SpacedWord<'a> {
    gap: &'a str,
    text: &'a str,
}

impl SpacedWord<'_> {
    /// Whether two words differ in typography. The number of blanks may differ.
    fn is_respelled(&self, actual: &SpacedWord<'_>) -> bool {
        typography_differs(self.text, actual.text) || typography_differs(self.gap, actual.gap)
    }
}

fn typography_differs(old: &str, actual: &str) -> bool {
    let typography = |text: &str| {
        text.chars()
            .filter(|character| normalize::typographic_kind(*character).is_some())
            .collect::<String>()
    };
    old != actual && typography(old) != typography(actual)
}

/// Splits lines into words. Each newline between two lines counts as a word.
fn spaced_words<'a>(lines: &[&'a str]) -> Vec<SpacedWord<'a>> {
    let mut words = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        if index > 0 {
            words.push(SpacedWord { gap: "", text: "\n" });
        }
        let mut gap = "";
        for token in normalize::tokens(line) {
            if token.starts_with(normalize::is_blank) {
                gap = token;
            } else {
                words.push(SpacedWord { gap, text: token });
                gap = "";
            }
        }
    }
    words
}

/// Returns for each new word the old word that it corresponds to.
fn align<'a>(old: &[SpacedWord<'a>], new: &[SpacedWord<'a>]) -> Vec<Option<usize>> {
    let [old_texts, new_texts] =
        [old, new].map(|words| words.iter().map(|word| word.text).collect::<Vec<_>>());
    let mut aligned = Vec::with_capacity(new.len());
    let mut at = 0;
    for hunk in diff::hunks(&old_texts, &new_texts) {
        aligned.extend((at..hunk.old.start).map(Some));
        aligned.extend(hunk.new.map(|_| None));
        at = hunk.old.end;
    }
    aligned.extend((at..old.len()).map(Some));
    aligned
}

/// Like [`align`], but compares from the end. The result differs if there are several ways to align equal words.
fn align_backwards<'a>(old: &[SpacedWord<'a>], new: &[SpacedWord<'a>]) -> Vec<Option<usize>> {
    let [old_back, new_back] =
        [old, new].map(|words| words.iter().rev().copied().collect::<Vec<_>>());
    let backward = align(&old_back, &new_back);
    backward.into_iter().rev().map(|at| at.map(|at| old.len() - 1 - at)).collect()
}

/// The words of the three texts that are merged.
struct MergeSides<'a> {
    old: &'a [SpacedWord<'a>],
    actual: &'a [SpacedWord<'a>],
    new: &'a [SpacedWord<'a>],
    spelling: &'a Spelling,
}

impl MergeSides<'_> {
    /// Returns the new words in the file's spelling. `aligned` has the old word for each new word.
    fn merge(&self, aligned: &[Option<usize>]) -> Result<String, char> {
        self.check_typography(aligned)?;
        let mut merged = String::new();
        for (new_index, word) in self.new.iter().enumerate() {
            merged.push_str(&self.gap(aligned, new_index)?);
            match aligned[new_index] {
                Some(at) => merged.push_str(self.actual[at].text),
                None => merged.push_str(&self.spelling.spell(word.text)?),
            }
        }
        Ok(merged)
    }

    /// Returns the blanks before a new word. The file's blanks are kept if `old` has the same blanks before this word,
    /// or after the previous word.
    fn gap(&self, aligned: &[Option<usize>], new_index: usize) -> Result<String, char> {
        let gap = self.new[new_index].gap;
        let of_word = aligned[new_index];
        let after_previous = new_index
            .checked_sub(1)
            .and_then(|last| aligned[last])
            .map(|at| at + 1)
            .filter(|at| *at < self.old.len());
        let actual_gap = |at: Option<usize>| {
            at.filter(|at| self.old[*at].gap == gap).map(|at| self.actual[at].gap)
        };
        match (actual_gap(of_word), actual_gap(after_previous)) {
            (Some(actual), None) | (None, Some(actual)) => Ok(actual.to_owned()),
            (Some(actual), Some(other)) if actual == other => Ok(actual.to_owned()),
            (Some(actual), Some(other)) if typography_differs(actual, other) => {
                Err(typographic_char(actual).or(typographic_char(other)).unwrap_or(' '))
            }
            (Some(_), Some(_)) | (None, None) => {
                let lost_typography = [of_word, after_previous]
                    .into_iter()
                    .flatten()
                    .find(|at| typography_differs(self.old[*at].gap, self.actual[*at].gap));
                match lost_typography.and_then(|at| typographic_char(self.actual[at].gap)) {
                    None if self.spelling.has_columns && gap.contains(' ') => Err('\t'),
                    Some(character) if !gap.is_empty() => Err(character),
                    Some(_) | None => self.spelling.spell(gap),
                }
            }
        }
    }

    /// Refuses to replace typographic characters of the file that `old` spells differently.
    fn check_typography(&self, aligned: &[Option<usize>]) -> Result<(), char> {
        let (mut old_start, mut new_start) = (0, 0);
        while old_start < self.old.len() || new_start < self.new.len() {
            let new_end = (new_start..self.new.len())
                .find(|new_index| aligned[*new_index].is_some())
                .unwrap_or(self.new.len());
            let old_end = aligned.get(new_end).copied().flatten().unwrap_or(self.old.len());
            if let Some(character) = rewritten_typographic(
                &self.old[old_start..old_end],
                &self.actual[old_start..old_end],
                &self.new[new_start..new_end],
            ) {
                return Err(character);
            }
            old_start = old_end + 1;
            new_start = new_end + 1;
        }
        Ok(())
    }
}

/// Returns a typographic character of the file that `old` spells differently and that `new` replaces with another
/// character of its kind.
fn rewritten_typographic(
    old: &[SpacedWord<'_>],
    actual: &[SpacedWord<'_>],
    new: &[SpacedWord<'_>],
) -> Option<char> {
    if actual.iter().map(|word| word.text).eq(new.iter().map(|word| word.text)) {
        return None;
    }
    let changed =
        old.iter().zip(actual).filter(|(old, actual)| typography_differs(old.text, actual.text));
    let mut kinds = changed
        .flat_map(|(_, actual)| actual.text.chars())
        .filter_map(|character| Some((character, normalize::typographic_kind(character)?)));
    let new_has_kind = |wanted: GlyphKind| {
        new.iter().any(|word| {
            word.text.chars().filter_map(normalize::glyph_kind).any(|kind| kind.is_like(wanted))
        })
    };
    kinds.find(|(_, kind)| new_has_kind(*kind)).map(|(character, _)| character)
}

fn typographic_char(text: &str) -> Option<char> {
    text.chars().find(|character| normalize::typographic_kind(*character).is_some())
}

fn first_typographic(words: &[SpacedWord<'_>]) -> char {
    words
        .iter()
        .find_map(|word| typographic_char(word.gap).or(typographic_char(word.text)))
        .unwrap_or(char::REPLACEMENT_CHARACTER)
}
