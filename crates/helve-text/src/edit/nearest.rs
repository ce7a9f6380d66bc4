//! What a quotation that stands nowhere was probably meant to be.

mod same;
mod verdict;

use std::collections::HashMap;

use super::{
    Edit, Refusal, Tolerance,
    find::{self, Keys},
    fold::{self, Hash},
    variant::{self, Reading},
};
use crate::view::View;

/// The place of a file that comes nearest to a quotation. Lines are counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nearest {
    pub first_line: usize,
    pub last_line: usize,
    /// The first of those lines, the text of each cut where it is long.
    pub excerpt: Vec<String>,
    pub difference: Option<Difference>,
    pub verdict: Verdict,
}

/// Where the quotation and the file part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The line of the file, from 1.
    pub line: usize,
    /// The line of the quotation, from 1.
    pub quoted_line: usize,
    /// The character of the file's line, from 1.
    pub column: usize,
    /// `None` where the quoted line ends.
    pub quoted: Option<char>,
    /// `None` where the file's line ends.
    pub found: Option<char>,
}

/// How a quotation differs from the nearest place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    TrailingBlanks,
    /// The lines are not all moved by the same indentation.
    Indentation,
    TabsAgainstSpaces,
    /// White space within lines.
    Spacing,
    BlankLines,
    LineEndings,
    Typographic,
    Escapes,
    LineNumbers,
    CaseOnly,
    /// A letter of another script that looks the same.
    LookAlike,
    /// The same accented letter, composed on one side and decomposed on the other.
    NormalForm,
    /// A number or a quoted text has another value.
    StaleValue,
    /// Some lines read differently.
    Changed,
    Reordered,
    /// The file has lines in between that are not quoted.
    NotSeen,
    /// Quoted lines are not in the file.
    NotThere,
    /// The quotation leaves lines out, with a mark in their place.
    Elided,
    /// Similar, no more.
    Different,
}

/// The refusal of an edit whose place is known, and reads otherwise now.
pub(super) fn stale(view: &View<'_>, keys: &Keys, old: &str, start: usize) -> Refusal {
    let quoted = find::lines(old);
    Refusal::NotFound(Some(Box::new(verdict::judge(view, keys, &quoted, start))))
}

/// The refusal of an edit that must be quoted exactly: what tolerance would have found is the nearest place.
pub(super) fn not_found(view: &View<'_>, edit: &Edit<'_>) -> Refusal {
    let keys = Keys::of(view);
    for reading in Reading::ALL {
        for variant in variant::variants(reading, edit) {
            let Ok(Some(found)) = find::least(view, &keys, &variant) else { continue };
            let need = found.need.and(variant.tolerances);
            let quoted = find::lines(edit.old);
            let start = found.starts[0];
            let candidate = find::candidate(view, &keys, &find::lines(&variant.old), start);
            let lines = candidate.map_or(start..start + 1, |candidate| candidate.lines);
            let verdict = match need.iter().last() {
                Some(Tolerance::TrailingBlanks) => Verdict::TrailingBlanks,
                Some(Tolerance::Indentation) => verdict::indentation(view, &quoted, lines.start),
                Some(Tolerance::InnerBlanks) => Verdict::Spacing,
                Some(Tolerance::Typography) => Verdict::Typographic,
                Some(Tolerance::BoundaryLines) | None => Verdict::BlankLines,
                Some(Tolerance::Escapes) => Verdict::Escapes,
                Some(Tolerance::LineNumbers) => Verdict::LineNumbers,
            };
            return Refusal::NotFound(Some(Box::new(verdict::told(view, &quoted, lines, verdict))));
        }
    }
    not_found_with(view, edit, &keys)
}

/// The refusal of an edit whose quotation stands nowhere.
pub(super) fn not_found_with(view: &View<'_>, edit: &Edit<'_>, keys: &Keys) -> Refusal {
    let all = find::lines(edit.old);
    let (head, foot) = find::margins(&all);
    let quoted = &all[head..all.len() - foot];
    // All lines are there, only their indentation does not go together.
    if let Some(start) = find::starts(keys, quoted).first().copied() {
        let verdict = verdict::indentation(view, quoted, start);
        return Refusal::NotFound(Some(Box::new(verdict::told(
            view,
            quoted,
            start..start + quoted.len(),
            verdict,
        ))));
    }
    let start = most_shared(view, quoted).or_else(|| between_anchors(keys, quoted));
    Refusal::NotFound(start.map(|start| Box::new(verdict::judge(view, keys, quoted, start))))
}

/// The first place that begins with the first quoted line and ends with the last, about as many lines further on.
fn between_anchors(keys: &Keys, quoted: &[&str]) -> Option<usize> {
    let ([first, .., last], true) = (quoted, quoted.len() > 2) else { return None };
    let (first, last) = (fold::key(first), fold::key(last));
    let slack = (quoted.len() / 4).max(1);
    let is_last = |start: usize, length: usize| keys.0.get(start + length - 1) == Some(&last);
    let starts = keys
        .0
        .iter()
        .enumerate()
        .filter(|(_, key)| **key == first)
        .map(|(start, _)| start)
        .take(ANCHORS);
    let mut places = starts.filter(|start| {
        (quoted.len() - slack..=quoted.len() + slack).any(|length| is_last(*start, length))
    });
    places.next()
}

/// Lines like the first quoted one that are tried, at most.
const ANCHORS: usize = 1_000;

/// Lines and bytes of a quotation that are looked at to find the nearest place.
const LOOKED_AT: (usize, usize) = (400, 64 * 1024);
/// The share of a quotation's words, by weight, below which no place is near.
const NEAR: f64 = 0.3;

/// The start of as many lines as are quoted that share most with the quotation; rare words weigh more.
fn most_shared(view: &View<'_>, quoted: &[&str]) -> Option<usize> {
    let mut words: HashMap<u64, usize> = HashMap::new();
    let mut bytes = 0;
    for line in quoted.iter().take(LOOKED_AT.0) {
        bytes += line.len();
        if bytes > LOOKED_AT.1 && !words.is_empty() {
            break;
        }
        each_word(&line[..line.floor_char_boundary(LOOKED_AT.1)], |word| {
            let next = words.len();
            words.entry(word).or_insert(next);
        });
    }
    let mut counts = vec![0usize; words.len()];
    let mut hits: Vec<(usize, usize)> = Vec::new();
    for index in 0..view.count() {
        let from = hits.len();
        each_word(view.line(index), |word| {
            if let Some(&word) = words.get(&word)
                && !hits[from..].iter().rev().take(64).any(|(_, known)| *known == word)
            {
                hits.push((index, word));
                counts[word] += 1;
            }
        });
    }
    let weight = |word: usize| 1.0 / (counts[word] as f64 + 1.0).sqrt();
    let total: f64 = (0..words.len()).map(weight).sum();
    best_window(&hits, quoted.len(), view.count(), weight, total * NEAR)
}

/// The window of lines whose distinct words weigh most, if that is enough.
fn best_window(
    hits: &[(usize, usize)],
    length: usize,
    lines: usize,
    weight: impl Fn(usize) -> f64,
    enough: f64,
) -> Option<usize> {
    let mut inside: HashMap<usize, usize> = HashMap::new();
    let (mut sum, mut first) = (0.0, 0);
    let mut best: Option<(f64, usize)> = None;
    for (at, (line, word)) in hits.iter().enumerate() {
        let known = inside.entry(*word).or_insert(0);
        *known += 1;
        if *known == 1 {
            sum += weight(*word);
        }
        while hits[first].0 + length <= *line {
            let gone = hits[first].1;
            if let Some(known) = inside.get_mut(&gone) {
                *known -= 1;
                if *known == 0 {
                    sum -= weight(gone);
                }
            }
            first += 1;
        }
        let last_of_line = hits.get(at + 1).is_none_or(|(next, _)| next != line);
        if last_of_line && best.is_none_or(|(most, _)| sum > most + 1e-9) {
            best = Some((sum, (line + 1).saturating_sub(length)));
        }
    }
    let (sum, start) = best?;
    (sum >= enough).then(|| start.min(lines.saturating_sub(1)))
}

/// Calls back with a hash of every word, in lower case.
fn each_word(line: &str, mut found: impl FnMut(u64)) {
    let mut word: Option<Hash> = None;
    for character in line.chars() {
        if character.is_alphanumeric() || character == '_' {
            let hash = word.get_or_insert_with(Hash::new);
            if character.is_ascii() {
                hash.add(u64::from(character.to_ascii_lowercase()));
            } else {
                character.to_lowercase().for_each(|lower| hash.add(u64::from(lower)));
            }
        } else {
            word.take().into_iter().for_each(|hash| found(hash.end()));
            if !fold::is_blank(character) && fold::kind(character).is_none() {
                found(u64::from(character));
            }
        }
    }
    word.into_iter().for_each(|hash| found(hash.end()));
}
