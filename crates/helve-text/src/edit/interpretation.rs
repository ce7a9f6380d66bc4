//! Alternative interpretations of an edit, in case its text was escaped once too often or has line numbers.

pub(super) mod inner_escapes;

use std::{borrow::Cow, collections::HashSet};

use super::{Edit, Tolerance, Tolerances};

/// What is removed from an edit before it is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InterpretationKind {
    /// Nothing.
    AsSent,
    /// One level of escaping.
    Unescaped,
    /// Line numbers before the lines.
    Unnumbered,
    /// Both.
    UnescapedUnnumbered,
}

impl InterpretationKind {
    pub(super) const ALL: [InterpretationKind; 4] = [
        InterpretationKind::AsSent,
        InterpretationKind::Unescaped,
        InterpretationKind::Unnumbered,
        InterpretationKind::UnescapedUnnumbered,
    ];
}

/// An edit under one interpretation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Interpretation<'a> {
    pub(super) old: Cow<'a, str>,
    /// `None` if it is unclear how to interpret `new`.
    pub(super) new: Option<Cow<'a, str>>,
    pub(super) tolerances: Tolerances,
    /// If set, the quoted text may only match at this line, counted from 1.
    pub(super) only_line: Option<usize>,
}

/// Returns the interpretations of one kind. The list is empty if there is nothing to unescape and there are no line
/// numbers to remove.
pub(super) fn interpretations<'a>(
    kind: InterpretationKind,
    edit: &Edit<'a>,
) -> Vec<Interpretation<'a>> {
    let sent = Interpretation {
        old: Cow::Borrowed(edit.old),
        new: Some(Cow::Borrowed(edit.new)),
        tolerances: Tolerances::NONE,
        only_line: None,
    };
    match kind {
        InterpretationKind::AsSent => vec![sent],
        InterpretationKind::Unescaped => without_escapes(&sent),
        InterpretationKind::Unnumbered => without_line_numbers(&sent).into_iter().collect(),
        InterpretationKind::UnescapedUnnumbered => {
            without_escapes(&sent).iter().filter_map(without_line_numbers).collect()
        }
    }
}

/// Which escapes to undo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EscapeClass {
    /// Escaped newlines and tabs.
    Controls,
    /// Escaped quotes, and `\${` in template literals.
    Quotes,
    /// These and escaped backslashes and slashes.
    All,
}

/// Returns the interpretations without one level of escaping.
fn without_escapes<'a>(sent: &Interpretation<'_>) -> Vec<Interpretation<'a>> {
    let mut interpretations: Vec<Interpretation<'a>> = Vec::new();
    for escapes in [EscapeClass::Controls, EscapeClass::Quotes, EscapeClass::All] {
        let old = unescape(&sent.old, escapes);
        if old == sent.old {
            continue;
        }
        let new =
            sent.new.as_ref().and_then(|new| unescape_new(&sent.old, new, escapes)).map(Cow::Owned);
        let tolerances = sent.tolerances.with(Tolerance::Escapes);
        let interpretation =
            Interpretation { old: Cow::Owned(old), new, tolerances, only_line: sent.only_line };
        if !interpretations.contains(&interpretation) {
            interpretations.push(interpretation);
        }
    }
    interpretations
}

/// Removes the same escapes from `new` as from `old`. Returns `None` if it is unclear whether `new` is meant to be
/// unescaped: if a character is both escaped and unescaped, if `new` escapes quotes that `old` does not, or if a line
/// would be broken inside a string.
fn unescape_new(old: &str, new: &str, escapes: EscapeClass) -> Option<String> {
    let unescaped = unescape(new, escapes);
    if unescaped == new {
        return Some(unescaped);
    }
    let (controls, quotes) = (escapes != EscapeClass::Quotes, escapes != EscapeClass::Controls);
    let is_mixed = |letter: char, character: char| {
        has_escape(old, letter) && (has_unescaped(old, character) || has_unescaped(new, character))
    };
    let is_unclear = controls
        && (is_mixed('n', '\n') || is_mixed('t', '\t') || inner_escapes::damages_content(old, new))
        || quotes
            && ['"', '\'', '`'].iter().any(|quote| {
                is_mixed(*quote, *quote)
                    || escapes == EscapeClass::Quotes
                        && has_escape(new, *quote)
                        && !has_escape(old, *quote)
            });
    (!is_unclear).then_some(unescaped)
}

/// Whether a text has a backslash before this letter.
fn has_escape(text: &str, letter: char) -> bool {
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character == '\\' && characters.next() == Some(letter) {
            return true;
        }
    }
    false
}

/// Whether a character occurs without a backslash before it. A newline at the very end is ignored.
fn has_unescaped(text: &str, character: char) -> bool {
    let text = if character == '\n' { text.strip_suffix(character).unwrap_or(text) } else { text };
    text.match_indices(character).any(|(at, _)| !text[..at].ends_with('\\'))
}

/// Replaces the escapes of this class with the characters that they stand for.
fn unescape(text: &str, escapes: EscapeClass) -> String {
    let controls = escapes != EscapeClass::Quotes;
    let quotes = escapes != EscapeClass::Controls;
    let mut unescaped = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        unescaped.push_str(&rest[..at]);
        let escape = &rest[at..];
        let length = 1 + escape[1..].chars().next().map_or(0, char::len_utf8);
        match escape[1..].chars().next() {
            Some('n') if controls => unescaped.push('\n'),
            Some('t') if controls => unescaped.push('\t'),
            Some('r') if controls && escape.starts_with("\\r\\n") => {}
            Some(quote @ ('"' | '\'' | '`')) if quotes => unescaped.push(quote),
            // A template literal that was escaped as a whole: \`a ${b}\`
            Some('$') if quotes && escape.starts_with("\\${") => unescaped.push('$'),
            Some(character @ ('\\' | '/')) if escapes == EscapeClass::All => {
                unescaped.push(character)
            }
            Some(_) | None => unescaped.push_str(&escape[..length]),
        }
        rest = &escape[length..];
    }
    unescaped.push_str(rest);
    unescaped
}

/// Separators between a line number and the line.
const NUMBER_SEPARATORS: [&str; 7] = [": ", "| ", "|", " | ", "\t", "\u{2192}", ":"];

/// Returns the interpretation without line numbers, if every line has a line number.
fn without_line_numbers<'a>(sent: &Interpretation<'_>) -> Option<Interpretation<'a>> {
    let (separator, lines) = NUMBER_SEPARATORS
        .into_iter()
        .find_map(|separator| Some((separator, parse_numbered(&sent.old, separator)?)))?;
    let is_consecutive = lines.windows(2).all(|pair| pair[0].0.checked_add(1) == Some(pair[1].0));
    if !is_consecutive {
        return None;
    }
    let new = sent.new.as_ref().and_then(|new| unnumber_new(&lines, new, separator));
    // A single number may be part of the line. It is removed only if it is the right line number.
    let only_line = match lines.as_slice() {
        [(only, _)] => Some(*only),
        _ => sent.only_line,
    };
    let tolerances = sent.tolerances.with(Tolerance::LineNumbers);
    Some(Interpretation {
        old: Cow::Owned(join_lines(&lines, &sent.old)),
        new: new.map(Cow::Owned),
        tolerances,
        only_line,
    })
}

/// Removes from `new` the line numbers that `old` had. Returns `None` if it is unclear whether numbers in `new` are
/// line numbers.
fn unnumber_new(old: &[(usize, &str)], new: &str, separator: &str) -> Option<String> {
    let texts: HashSet<&str> =
        old.iter().map(|(_, text)| *text).filter(|text| !text.trim().is_empty()).collect();
    if texts.iter().any(|text| split_number(text, separator).is_some()) {
        // The lines themselves start with numbers. Only an unchanged line shows whether `new` has line numbers.
        return new.lines().any(|line| texts.contains(line)).then(|| new.to_owned());
    }
    if let Some(lines) = parse_numbered(new, separator)
        && lines[0].0 == old[0].0
    {
        return Some(join_lines(&lines, new));
    }
    let max_number = old[old.len() - 1].0.saturating_add(new.lines().count());
    let mut numbers = new
        .lines()
        .filter_map(|line| split_number(line, separator))
        .filter(|(_, text)| !text.is_empty())
        .map(|(number, _)| number)
        .peekable();
    let is_clear = numbers.peek().is_none()
        || !numbers.any(|number| (old[0].0..=max_number).contains(&number))
            && new.lines().any(|line| texts.contains(line));
    is_clear.then(|| new.to_owned())
}

/// Returns the number and the text of every line, if every line has both.
fn parse_numbered<'a>(text: &'a str, separator: &str) -> Option<Vec<(usize, &'a str)>> {
    if text.is_empty() {
        return None;
    }
    text.strip_suffix('\n')
        .unwrap_or(text)
        .split('\n')
        .map(|line| split_number(line, separator))
        .collect()
}

/// Splits a line into its line number and the rest.
fn split_number<'a>(line: &'a str, separator: &str) -> Option<(usize, &'a str)> {
    let line = line.trim_start_matches(' ');
    // As in `L12: text`.
    let line =
        if separator.starts_with(':') { line.strip_prefix('L').unwrap_or(line) } else { line };
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = line.split_at(digits);
    let text =
        rest.strip_prefix(separator).or_else(|| (rest == separator.trim_end()).then_some(""))?;
    Some((number.parse().ok()?, text))
}

/// Joins lines without their numbers. The result ends with a newline if `text` does.
fn join_lines(lines: &[(usize, &str)], text: &str) -> String {
    let mut joined = lines.iter().map(|(_, line)| *line).collect::<Vec<_>>().join("\n");
    if text.ends_with('\n') {
        joined.push('\n');
    }
    joined
}
