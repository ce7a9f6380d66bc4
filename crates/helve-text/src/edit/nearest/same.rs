//! Ways in which a quoted line and one of the file are the same after all.

use super::Verdict;
use crate::edit::fold;

/// Whether two lines, without the blanks around them, are the same in some way.
pub(super) type Same = fn(&str, &str) -> bool;

/// What lines can be the same in, the narrowest first.
pub(super) const WAYS: [(Same, Verdict); 6] = [
    (same_but_returns, Verdict::LineEndings),
    (same_but_white_space, Verdict::Spacing),
    (same_but_case, Verdict::CaseOnly),
    (same_looking, Verdict::LookAlike),
    (same_but_accents, Verdict::NormalForm),
    (same_but_values, Verdict::StaleValue),
];

fn same_but_returns(a: &str, b: &str) -> bool {
    without(a, |character| character == '\r').eq(without(b, |character| character == '\r'))
}

fn same_but_white_space(a: &str, b: &str) -> bool {
    without(a, char::is_whitespace).eq(without(b, char::is_whitespace))
}

fn same_but_case(a: &str, b: &str) -> bool {
    a.chars().flat_map(char::to_lowercase).eq(b.chars().flat_map(char::to_lowercase))
}

fn same_looking(a: &str, b: &str) -> bool {
    a.chars().map(latin).eq(b.chars().map(latin))
}

fn without(text: &str, left_out: impl Fn(char) -> bool) -> impl Iterator<Item = char> {
    text.chars().filter(move |character| !left_out(*character))
}

/// The Latin letter that a Cyrillic or Greek one looks like.
fn latin(character: char) -> char {
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

/// Composed against decomposed: equal once marks are dropped and accented letters are passed over for the letter before the mark.
fn same_but_accents(a: &str, b: &str) -> bool {
    let is_mark = |character: char| matches!(character, '\u{300}'..='\u{36f}');
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

fn is_composed(character: char) -> bool {
    matches!(character, '\u{c0}'..='\u{24f}' | '\u{370}'..='\u{52f}' | '\u{1e00}'..='\u{1fff}')
}

/// Numbers and quoted texts aside, the lines are the same.
fn same_but_values(a: &str, b: &str) -> bool {
    shape(a) == shape(b)
}

fn shape(line: &str) -> String {
    let mut shape = String::with_capacity(line.len());
    let mut quote = None;
    for token in fold::tokens(line) {
        match (quote, token) {
            (Some(open), token) if token == open => quote = None,
            (Some(_), _) => continue,
            (None, "\"" | "'" | "`") => quote = Some(token),
            (None, _) => {}
        }
        let number = token.starts_with(|character: char| character.is_ascii_digit());
        shape.push_str(if number { "0" } else { token });
    }
    shape
}
