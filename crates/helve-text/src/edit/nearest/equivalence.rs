//! Compares a quoted line with a line of the file while ignoring one kind of difference, such as case.

use std::borrow::Cow;

use super::Mismatch;
use crate::edit::normalize;

/// Whether two trimmed lines are equal apart from one kind of difference.
pub(super) type Equivalence = fn(&str, &str) -> bool;

/// All equivalences, strictest first, each with the kind of mismatch that it ignores.
pub(super) const EQUIVALENCES: [(Equivalence, Mismatch); 6] = [
    (ignoring_carriage_returns, Mismatch::LineEndings),
    (ignoring_white_space, Mismatch::Spacing),
    (ignoring_case, Mismatch::CaseOnly),
    (ignoring_look_alikes, Mismatch::LookAlike),
    (ignoring_normalization, Mismatch::NormalForm),
    (ignoring_values, Mismatch::StaleValue),
];

fn ignoring_carriage_returns(a: &str, b: &str) -> bool {
    without(a, |character| character == '\r').eq(without(b, |character| character == '\r'))
}

fn ignoring_white_space(a: &str, b: &str) -> bool {
    without(a, char::is_whitespace).eq(without(b, char::is_whitespace))
}

fn ignoring_case(a: &str, b: &str) -> bool {
    a.chars().flat_map(char::to_lowercase).eq(b.chars().flat_map(char::to_lowercase))
}

fn ignoring_look_alikes(a: &str, b: &str) -> bool {
    a.chars().map(to_latin).eq(b.chars().map(to_latin))
}

fn without(text: &str, is_excluded: impl Fn(char) -> bool) -> impl Iterator<Item = char> {
    text.chars().filter(move |character| !is_excluded(*character))
}

/// Maps a Cyrillic or Greek letter to the Latin letter that it looks like.
fn to_latin(character: char) -> char {
    match character {
        'а' | 'α' => 'a',
        'с' | 'ϲ' => 'c',
        'е' => 'e',
        'һ' => 'h',
        'і' | 'ι' => 'i',
        'ј' => 'j',
        'о' | 'ο' => 'o',
        'р' | 'ρ' => 'p',
        'ѕ' => 's',
        'υ' => 'u',
        'ν' => 'v',
        'х' | 'χ' => 'x',
        'у' => 'y',
        'А' | 'Α' => 'A',
        'В' | 'Β' => 'B',
        'С' => 'C',
        'Е' | 'Ε' => 'E',
        'Н' | 'Η' => 'H',
        'І' | 'Ι' => 'I',
        'К' | 'Κ' => 'K',
        'М' | 'Μ' => 'M',
        'О' | 'Ο' => 'O',
        'Р' | 'Ρ' => 'P',
        'Т' | 'Τ' => 'T',
        'Х' | 'Χ' => 'X',
        other => other,
    }
}

/// Whether the lines are equal if a composed character matches a base letter with combining marks.
fn ignoring_normalization(a: &str, b: &str) -> bool {
    let (a, b) = (compose_hangul(a), compose_hangul(b));
    let (a, b) = (a.as_ref(), b.as_ref());
    let is_mark =
        |character: char| matches!(character, '\u{300}'..='\u{36f}' | '\u{3099}' | '\u{309a}');
    if a.contains(is_mark) == b.contains(is_mark) {
        return a == b;
    }
    let (marked, composed) = if a.contains(is_mark) { (a, b) } else { (b, a) };
    let mut marked = marked.chars().peekable();
    composed.chars().all(|character| {
        let base = marked.next();
        let mut marks = 0;
        while marked.next_if(|next| is_mark(*next)).is_some() {
            marks += 1;
        }
        if marks > 0 { is_composed(character) } else { base == Some(character) }
    }) && marked.next().is_none()
}

/// Joins the letters of Korean syllables.
fn compose_hangul(text: &str) -> Cow<'_, str> {
    if !text.contains(|character| matches!(character, '\u{1100}'..='\u{11ff}')) {
        return Cow::Borrowed(text);
    }
    let mut composed = String::with_capacity(text.len());
    for character in text.chars() {
        let (code, previous) = (u32::from(character), composed.pop());
        let joined = previous.and_then(|previous| {
            let previous = u32::from(previous);
            match code {
                // A vowel joins a leading consonant.
                0x1161..=0x1175 if (0x1100..=0x1112).contains(&previous) => {
                    char::from_u32(0xac00 + ((previous - 0x1100) * 21 + (code - 0x1161)) * 28)
                }
                // A trailing consonant joins a syllable without one.
                0x11a8..=0x11c2
                    if (0xac00..=0xd7a3).contains(&previous) && (previous - 0xac00) % 28 == 0 =>
                {
                    char::from_u32(previous + code - 0x11a7)
                }
                _ => None,
            }
        });
        match joined {
            Some(joined) => composed.push(joined),
            None => composed.extend(previous.into_iter().chain([character])),
        }
    }
    Cow::Owned(composed)
}

fn is_composed(character: char) -> bool {
    matches!(character, '\u{304c}'..='\u{30fe}' | '\u{c0}'..='\u{24f}' | '\u{370}'..='\u{52f}' | '\u{1e00}'..='\u{1fff}')
}

/// Whether the lines are equal apart from numbers and strings.
fn ignoring_values(a: &str, b: &str) -> bool {
    shape(a) == shape(b)
}

/// Returns the line with every number replaced with `0` and every string emptied.
fn shape(line: &str) -> String {
    let mut shape = String::with_capacity(line.len());
    let mut quote = None;
    for token in normalize::tokens(line) {
        match (quote, token) {
            (Some(open), token) if token == open => quote = None,
            (Some(_), _) => continue,
            (None, "\"" | "'" | "`") => quote = Some(token),
            (None, _) => {}
        }
        let is_number = token.starts_with(|character: char| character.is_ascii_digit());
        shape.push_str(if is_number { "0" } else { token });
    }
    shape
}
